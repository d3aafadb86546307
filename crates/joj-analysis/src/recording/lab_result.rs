//! What came of a recording on emulated devices: the JSON of `joj replay --lab` (docs/recording.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::run::DeviceDelta;
use crate::filesystem::Filesystem;
use crate::lab::result::LabMachine;
use crate::recording::outcome::ReplayOutcome;
use crate::recording::page_transactions::outcome::TransactionsOutcome;

/// First word of a result.
pub const REPLAY_LAB_FORMAT: &str = "joj-lab-replay";
/// Version that this joj writes.
pub const REPLAY_LAB_VERSION: u32 = 1;

/// The result of `joj replay --lab`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ReplayLabResult {
    /// Always `joj-lab-replay`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// The recording's file, as it was given.
    pub recording: String,
    /// What it ran on.
    pub machine: LabMachine,
    /// Devices in the order in which they were given, and on each the filesystems.
    pub rows: Vec<ReplayLabRow>,
}

/// One replay.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ReplayLabRow {
    /// The filesystem that it was on.
    pub filesystem: Filesystem,
    /// The emulated device below, by its name or file.
    pub device: String,
    /// What came of it.
    pub outcome: ReplayLabOutcome,
}

/// What came of one replay.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplayLabOutcome {
    /// What `joj replay --json` says there.
    Replayed(Replayed),
    /// There is no result, for this reason.
    Failed(String),
}

/// The JSON of a replay, with and without `--as`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Replayed {
    /// The commits on databases; its JSON has a `kind`, which that of calls lacks.
    Transactions(Box<TransactionsOutcome>),
    /// The calls.
    Calls(Box<ReplayOutcome>),
}

impl Replayed {
    /// How long it took by the guest's clock, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        match self {
            Self::Transactions(outcome) => outcome.replayed.elapsed_ns,
            Self::Calls(outcome) => outcome.elapsed_ns,
        }
    }

    /// What the emulated device did in that time.
    pub fn device(&self) -> Option<DeviceDelta> {
        match self {
            Self::Transactions(outcome) => outcome.replayed.device,
            Self::Calls(outcome) => outcome.device,
        }
    }

    /// True where `--check` found a difference.
    pub fn has_wrong_files(&self) -> bool {
        match self {
            Self::Transactions(_) => false,
            Self::Calls(outcome) => {
                outcome.differences.as_ref().is_some_and(|differences| !differences.is_empty())
            }
        }
    }
}

impl ReplayLabResult {
    /// True where a replay failed, or `--check` found a difference.
    pub fn has_failed(&self) -> bool {
        self.rows.iter().any(|row| match &row.outcome {
            ReplayLabOutcome::Failed(_) => true,
            ReplayLabOutcome::Replayed(replayed) => replayed.has_wrong_files(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_replay_are_read_back_as_they_were_written() {
        let calls = ReplayOutcome { version: 1, order: "fast".to_owned(), ..ReplayOutcome::default() };
        let transactions = TransactionsOutcome {
            kind: "page_transactions".to_owned(),
            order: "fast".to_owned(),
            ..TransactionsOutcome::default()
        };
        let row = |outcome| ReplayLabRow {
            filesystem: Filesystem::Ext4,
            device: "galaxy-s5-emmc".to_owned(),
            outcome,
        };
        let result = ReplayLabResult {
            format: REPLAY_LAB_FORMAT.to_owned(),
            version: REPLAY_LAB_VERSION,
            recording: "app.joj".to_owned(),
            machine: LabMachine::default(),
            rows: vec![
                row(ReplayLabOutcome::Replayed(Replayed::Calls(Box::new(calls)))),
                row(ReplayLabOutcome::Replayed(Replayed::Transactions(Box::new(transactions)))),
                row(ReplayLabOutcome::Failed("the guest ended in it".to_owned())),
            ],
        };
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<ReplayLabResult>(&text).unwrap(), result, "{text}");
        assert!(result.has_failed());
    }
}
