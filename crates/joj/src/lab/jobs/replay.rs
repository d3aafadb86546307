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
    /// How often each row is replayed.
    pub rounds: usize,
    /// Words for that command after the recording and the directory; files in them are the guest's.
    pub arguments: Vec<String>,
    /// Environment variables that joj was given, and that the replay shall have.
    pub environment: Vec<(String, String)>,
    /// The numbers of the units that this guest does.
    pub units: Vec<usize>,
}

impl ReplayJob {
    /// How many units there are: one round of all rows of the first volume, then of those of the next, and so the other rounds. So where
    /// it is stopped, rows have the same rounds as far as can be.
    pub fn len(&self) -> usize {
        self.round_len() * self.rounds
    }

    fn round_len(&self) -> usize {
        self.volumes.len() * self.command.rows().len().max(1)
    }

    /// What unit `number` is.
    pub fn unit(&self, number: usize) -> ReplayUnit<'_> {
        let (round, place) = (number / self.round_len(), number % self.round_len());
        let rows = self.command.rows();
        let (disk, row) = (place / rows.len().max(1), rows.get(place % rows.len().max(1)).copied());
        ReplayUnit { disk, volume: &self.volumes[disk], row, round }
    }
}

/// What a guest does by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayUnit<'a> {
    /// Which volume, by its number.
    pub disk: usize,
    /// The same, made anew for it.
    pub volume: &'a LabVolume,
    /// Which row of `joj whatif`.
    pub row: Option<Configuration>,
    /// In which round, from 0.
    pub round: usize,
}

#[cfg(test)]
mod tests {
    use joj_analysis::filesystem::Filesystem;

    use super::*;
    use crate::lab::job::volumes;

    #[test]
    fn all_rows_of_all_disks_have_a_round_before_any_has_the_next() {
        let rows = [Configuration::Recorded, Configuration::Wal];
        let job = ReplayJob {
            setting: Setting { sqlite: String::new(), devices: Default::default(), device_bytes: 0 },
            volumes: volumes(
                &["kingston".to_owned()],
                &[Filesystem::Ext4, Filesystem::F2fs, Filesystem::Ext4],
            ),
            command: ReplayCommand::Whatif(rows.to_vec()),
            rounds: 2,
            arguments: Vec::new(),
            environment: Vec::new(),
            units: Vec::new(),
        };
        let units: Vec<ReplayUnit<'_>> = (0..job.len()).map(|number| job.unit(number)).collect();
        let places = units.iter().map(|unit| (unit.round, unit.disk, unit.row));
        let wanted =
            (0..2).flat_map(|round| (0..3).flat_map(move |disk| rows.map(|row| (round, disk, Some(row)))));
        assert!(places.eq(wanted), "{units:?}");
        assert!(units.iter().all(|unit| *unit.volume == job.volumes[unit.disk]));
        let replays = ReplayJob { command: ReplayCommand::Replay, rounds: 1, ..job.clone() };
        let disks: Vec<_> =
            (0..replays.len()).map(|number| (replays.unit(number).disk, replays.unit(number).row)).collect();
        assert_eq!(disks, [(0, None), (1, None), (2, None)]);
    }
}
