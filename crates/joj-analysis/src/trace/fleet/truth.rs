//! What a report must say of the traces of a fleet.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::Program;
use crate::trace::attribution::request::Transaction;

/// What a report must say of some traces: sums, exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FleetSums {
    pub traces: u64,
    /// How long the traces are, together.
    pub span_ns: u64,
    pub commits: u64,
    /// What the commits wrote.
    pub written_bytes: u64,
    pub journal_of_journal_bytes: u64,
    /// What the checkpoints wrote.
    pub checkpoint_bytes: u64,
    /// Commits with a rollback journal, and what they wrote.
    pub rollback_commits: u64,
    pub rollback_bytes: u64,
    /// Flushes for commits.
    pub commit_flushes: u64,
    /// All flushes.
    pub flushes: u64,
    /// The sum of what all flushes took.
    pub flush_ns: u64,
    /// The sum of what the commits took.
    pub duration_ns: u64,
    /// Commits by journal mode and sync mode.
    pub modes: BTreeMap<String, u64>,
    /// Commits by application.
    pub applications: BTreeMap<String, u64>,
    /// Bytes written into each file.
    pub files: BTreeMap<String, u64>,
    /// Commits with an fsync.
    pub fsync_commits: u64,
}

impl FleetSums {
    /// Adds those of other traces.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.traces, other.traces),
            (&mut self.span_ns, other.span_ns),
            (&mut self.commits, other.commits),
            (&mut self.written_bytes, other.written_bytes),
            (&mut self.journal_of_journal_bytes, other.journal_of_journal_bytes),
            (&mut self.checkpoint_bytes, other.checkpoint_bytes),
            (&mut self.rollback_commits, other.rollback_commits),
            (&mut self.rollback_bytes, other.rollback_bytes),
            (&mut self.commit_flushes, other.commit_flushes),
            (&mut self.flushes, other.flushes),
            (&mut self.flush_ns, other.flush_ns),
            (&mut self.duration_ns, other.duration_ns),
            (&mut self.fsync_commits, other.fsync_commits),
        ] {
            *sum += more;
        }
        for (sums, more) in [
            (&mut self.modes, &other.modes),
            (&mut self.applications, &other.applications),
            (&mut self.files, &other.files),
        ] {
            for (key, count) in more {
                *sums.entry(key.clone()).or_default() += count;
            }
        }
    }

    /// Counts a commit of the program.
    pub fn count(&mut self, program: &Program, commit: &Transaction) {
        let written_bytes: u64 = commit.bytes.iter().sum();
        self.commits += 1;
        self.written_bytes += written_bytes;
        self.journal_of_journal_bytes += commit.journal_of_journal_bytes;
        self.commit_flushes += commit.flushes;
        self.duration_ns += commit.ended_ns.map_or(0, |ended_ns| ended_ns - commit.begun_ns);
        self.fsync_commits += u64::from(program.call == "fsync" && commit.syncs > 0);
        if !program.is_log {
            self.rollback_commits += 1;
            self.rollback_bytes += written_bytes;
        }
        let journal_mode = match program {
            Program { is_log: true, .. } => "wal",
            Program { deletes: true, .. } => "delete",
            _ => "truncate",
        };
        let sync_mode = match (program.is_log, program.journal_syncs) {
            (_, 0) => "none",
            (false, 1) => "normal",
            _ => "full",
        };
        *self.modes.entry(format!("{journal_mode} {sync_mode}")).or_default() += 1;
        *self.applications.entry(program.name.to_owned()).or_default() += 1;
    }

    /// Counts a flush.
    pub fn count_flush(&mut self, flush_ns: u64) {
        self.flushes += 1;
        self.flush_ns += flush_ns;
    }

    /// Counts what was written into a file.
    pub fn count_file(&mut self, path: &str, bytes: u64) {
        *self.files.entry(path.to_owned()).or_default() += bytes;
    }
}
