//! Where the time in calls went: which calls, on which files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::recording::Recording;
use crate::recording::call::CallKind;
use crate::recording::page_transactions::database_files::DatabaseFiles;
use crate::statistics::Estimate;

/// Files that are of no database.
pub const OTHER_FILES: &str = "other files";

/// Calls of one kind on the files of one database, or on all files that are of none.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BlockedPart {
    /// The call.
    pub call: String,
    /// Path of the database, its journal and log included, or `other files`.
    pub files: String,
    /// How many there are.
    pub calls: u64,
    /// How long they took together.
    pub blocked_ns: Estimate,
}

/// The same over several rounds.
#[derive(Debug, Default)]
pub struct Breakdown {
    rounds: usize,
    parts: BTreeMap<(String, CallKind), (u64, Vec<f64>)>,
}

impl Breakdown {
    /// Adds a round in which the calls took these times.
    pub fn add(&mut self, recording: &Recording, durations_ns: &[u64]) {
        let files = DatabaseFiles::find(recording);
        let is_first = self.rounds == 0;
        for (call, time_ns) in recording.calls.iter().zip(durations_ns) {
            if !call.kind.is_replayed() {
                continue;
            }
            let found = files.of_description(call.description).or_else(|| files.of_path(call.path));
            let database = found.map(|(_, database)| files.databases[database].path.as_str());
            let key = (database.unwrap_or(OTHER_FILES).to_owned(), call.kind);
            let (calls, rounds_ns) = self.parts.entry(key).or_default();
            *calls += u64::from(is_first);
            rounds_ns.resize(self.rounds + 1, 0.0);
            rounds_ns[self.rounds] += *time_ns as f64;
        }
        self.rounds += 1;
    }

    /// The parts, the longest first.
    pub fn parts(self) -> Vec<BlockedPart> {
        let part = |((files, kind), (calls, rounds_ns)): ((String, CallKind), (u64, Vec<f64>))| {
            let blocked_ns = Estimate::of(&rounds_ns)?;
            Some(BlockedPart { call: kind.text().to_owned(), files, calls, blocked_ns })
        };
        let mut parts: Vec<BlockedPart> = self.parts.into_iter().filter_map(part).collect();
        parts.sort_by(|one, other| other.blocked_ns.median.total_cmp(&one.blocked_ns.median));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::call::RecordedCall;

    #[test]
    fn times_are_summed_by_call_and_database_and_the_longest_comes_first() {
        let mut recording = Recording::default();
        let calls = [
            (CallKind::Open, 1, "/a.db"),
            (CallKind::Open, 2, "/a.db-journal"),
            (CallKind::Open, 3, "/b"),
            (CallKind::Fdatasync, 1, ""),
            (CallKind::Fdatasync, 2, ""),
            (CallKind::Fdatasync, 3, ""),
            (CallKind::Fork, 0, ""),
        ];
        for (kind, description, path) in calls {
            let path = recording.texts.keep(path);
            recording.calls.push(RecordedCall { kind, description, path, ..RecordedCall::default() });
        }
        let mut breakdown = Breakdown::default();
        for round in [[1, 1, 1, 10, 20, 7, 99], [1, 1, 1, 20, 40, 5, 99], [1, 1, 1, 10, 25, 6, 99]] {
            breakdown.add(&recording, &round);
        }
        let parts = breakdown.parts();
        let told: Vec<(&str, &str, u64, f64)> = parts
            .iter()
            .map(|part| (part.call.as_str(), part.files.as_str(), part.calls, part.blocked_ns.median))
            .collect();
        assert_eq!(
            told,
            [
                ("fdatasync", "/a.db", 2, 35.0),
                ("fdatasync", OTHER_FILES, 1, 6.0),
                ("open", "/a.db", 2, 2.0),
                ("open", OTHER_FILES, 1, 1.0)
            ]
        );
    }
}
