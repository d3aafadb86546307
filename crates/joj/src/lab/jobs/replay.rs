//! What the host tells the guest about replays of a recording.

use serde::{Deserialize, Serialize};

use crate::lab::job::{LabVolume, Setting};

/// The job, below the shared directory.
pub const REPLAY_JOB_FILE: &str = "replay.json";
/// The recording, below the shared directory.
pub const RECORDING_FILE: &str = "recording.joj";

/// What replays it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplayCommand {
    /// `joj replay`
    Replay,
    /// `joj whatif`
    Whatif,
}

impl ReplayCommand {
    /// The word behind `joj`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Whatif => "whatif",
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
    /// The numbers of the volumes that this guest replays on.
    pub units: Vec<usize>,
}
