//! What the host tells the guest about replays of a recording.

use joj_analysis::recording::whatif::configuration::Configuration;
use serde::{Deserialize, Serialize};

use crate::lab::job::{LabVolume, Setting};

/// The job, below the shared directory.
pub const REPLAY_JOB_FILE: &str = "replay.json";
/// The recording, below the shared directory.
pub const RECORDING_FILE: &str = "recording.joj";

/// What replays it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplayCommand {
    /// `joj replay`
    Replay,
    /// `joj whatif` for these rows. A row's figures would depend on what the one before it left on the disk: so each has its own.
    Whatif(Vec<Configuration>),
}

impl ReplayCommand {
    /// The word behind `joj`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Whatif(_) => "whatif",
        }
    }

    fn rows(&self) -> &[Configuration] {
        match self {
            Self::Replay => &[],
            Self::Whatif(rows) => rows,
        }
    }
}

/// What the guest shall do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayJob {
    /// The devices of the guest.
    pub setting: Setting,
    /// Where the recording is replayed.
    pub volumes: Vec<LabVolume>,
    /// What replays it.
    pub command: ReplayCommand,
    /// Words for that command after the recording and the directory; files in them are the guest's.
    pub arguments: Vec<String>,
    /// Environment variables that joj was given, and that the replay shall have.
    pub environment: Vec<(String, String)>,
    /// The numbers of the units that this guest does.
    pub units: Vec<usize>,
}

impl ReplayJob {
    /// How many units there are: all rows of the first volume, then those of the next.
    pub fn len(&self) -> usize {
        self.volumes.len() * self.command.rows().len().max(1)
    }

    /// On which volume unit `number` is, made anew for it, and which row it is.
    pub fn unit(&self, number: usize) -> (&LabVolume, Option<Configuration>) {
        match self.command.rows() {
            [] => (&self.volumes[number], None),
            rows => (&self.volumes[number / rows.len()], Some(rows[number % rows.len()])),
        }
    }
}
