//! What came of a replay of page transactions, beside the recording, as docs/page_transactions.md describes its JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::run::{DeviceDelta, Latency};
use crate::recording::outcome::Lateness;
use crate::recording::page_transactions::plan::TransactionPlan;
use crate::recording::page_transactions::{PageOne, PageTransactions, RecordedMode};
use crate::statistics::{WHOLE, percentile};

/// The version of a [`TransactionsOutcome`] in JSON.
pub const TRANSACTIONS_VERSION: u32 = 1;

/// How long commits took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct CommitTimes {
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// 99 % of them.
    pub p99_ns: u64,
    /// None took longer.
    pub max_ns: u64,
    /// All of them together.
    pub sum_ns: u64,
}

impl CommitTimes {
    /// Of times in any order.
    pub fn of(mut times_ns: Vec<u64>) -> Self {
        times_ns.sort_unstable();
        let latency = Latency::of(&times_ns);
        Self {
            p50_ns: latency.p50_ns,
            p99_ns: latency.p99_ns,
            max_ns: latency.max_ns,
            sum_ns: times_ns.iter().sum(),
        }
    }
}

/// One row: the recording's, or the replay's.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TransactionsRow {
    /// Of the recording what happened to its journals, and how often; of a replay the one that was asked for.
    pub journal_modes: BTreeMap<String, u64>,
    /// Commits.
    pub commits: u64,
    /// From the first commit's begin to the last one's end.
    pub elapsed_ns: u64,
    /// Commits in a second of that.
    pub commits_per_s: f64,
    /// How long a commit took from its first write on.
    pub commit_times: CommitTimes,
    /// Pages that commits wrote: to the database, or frames to the log.
    pub pages: Option<u64>,
    /// fsync and its kin, by call; `null` where they could not be counted.
    pub syncs: Option<BTreeMap<String, u64>>,
    /// All of them for each commit.
    pub syncs_per_commit: Option<f64>,
    /// Bytes that write calls took, those of checkpoints included; `null` where the system does not tell.
    pub written_bytes: Option<u64>,
    /// KiB of that for each commit.
    pub kib_per_commit: Option<f64>,
    /// What the block device did meanwhile, by whomever; `null` where there is none, and of a recording.
    pub device: Option<DeviceDelta>,
}

impl TransactionsRow {
    /// With what follows from the counts.
    pub fn with_rates(mut self) -> Self {
        let per_commit = |amount: f64| amount / self.commits.max(1) as f64;
        let calls = self.syncs.as_ref().map(|syncs| syncs.values().sum::<u64>());
        self.commits_per_s = self.commits as f64 * 1e9 / self.elapsed_ns.max(1) as f64;
        self.syncs_per_commit = calls.map(|calls| per_commit(calls as f64));
        self.kib_per_commit = self.written_bytes.map(|bytes| per_commit(bytes as f64 / 1024.0));
        self
    }

    /// The recording's own.
    pub fn recorded(found: &PageTransactions) -> Self {
        let mut journal_modes: BTreeMap<String, u64> = BTreeMap::new();
        for part in found.parts() {
            *journal_modes.entry(part.mode.word().to_owned()).or_default() += 1;
        }
        let begin_ns = found.commits.iter().map(|commit| commit.begin_ns).min().unwrap_or(0);
        let end_ns = found.commits.iter().map(|commit| commit.end_ns).max().unwrap_or(0);
        let times = found.commits.iter().map(|commit| commit.end_ns.saturating_sub(commit.write_ns));
        let syncs = [
            ("fsync", found.syncs.fsync),
            ("fdatasync", found.syncs.fdatasync),
            ("other", found.syncs.other),
        ];
        let row = Self {
            journal_modes,
            commits: found.commits.len() as u64,
            elapsed_ns: end_ns - begin_ns,
            commit_times: CommitTimes::of(times.collect()),
            pages: Some(found.parts().map(|part| part.page_count()).sum()),
            syncs: Some(syncs.map(|(call, calls)| (call.to_owned(), calls)).into()),
            written_bytes: Some(found.written_bytes),
            ..Self::default()
        };
        row.with_rates()
    }
}

/// How many pages the recorded commits would write with a log: page 1 is among them only where more of it changes than the change
/// counter, and not every recording tells that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct FrameInterval {
    /// Where page 1 is written by those commits alone that are known to change it.
    pub low: u64,
    /// Where every commit that may have changed it did.
    pub high: u64,
}

impl FrameInterval {
    /// Of a recording.
    pub fn of(found: &PageTransactions) -> Self {
        let mut interval = Self::default();
        for part in found.parts() {
            let others = part.page_count() - u64::from(part.has_page_one());
            let is_of_log = part.mode == RecordedMode::Wal;
            let known = u64::from(part.page_one == PageOne::Changed && part.has_page_one());
            let possible = u64::from(part.page_one == PageOne::Unknown && !is_of_log && part.has_page_one());
            interval.low += others + known;
            interval.high += others + known + possible;
        }
        interval
    }
}

/// A database, recorded and made.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct DatabaseOutcome {
    /// Its recorded path.
    pub path: String,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Pages before the first commit, recorded.
    pub pages_before: u32,
    /// Pages after the last one, recorded.
    pub pages_after: u32,
    /// Pages of the made database at the begin, the interior ones of its table included.
    pub made_pages_before: u32,
    /// The same at the end.
    pub made_pages_after: u32,
}

/// The SQLite of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ReplaySqlite {
    /// Its library; `null` for the one inside joj.
    pub file: Option<String>,
    /// `sqlite3_libversion()`.
    pub version: String,
    /// `sqlite3_sourceid()`.
    pub source_id: String,
    /// The waldio extension, where it was loaded.
    pub waldio: Option<String>,
}

/// The result.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TransactionsOutcome {
    /// Of this description: 1.
    pub version: u32,
    /// `page_transactions`.
    pub kind: String,
    /// Where the recording comes from.
    pub source: String,
    /// `dependent`, `timed` or `fast`.
    pub order: String,
    /// The journal mode that was asked for.
    pub journal_mode: String,
    /// `full`, `normal` or `off`.
    pub synchronous: String,
    /// The SQLite.
    pub sqlite: ReplaySqlite,
    /// Connections, each with a thread of its own.
    pub connections: u64,
    /// The databases; `integrity_check` said ok of each.
    pub databases: Vec<DatabaseOutcome>,
    /// The recording's row.
    pub recorded: TransactionsRow,
    /// The replay's.
    pub replayed: TransactionsRow,
    /// Pages that the recorded commits would write with a log.
    pub frames: FrameInterval,
    /// Commits whose page numbers the recording does not tell.
    pub pages_unknown: u64,
    /// Commits that grow a database and have no page that could stand for the parent of the new ones.
    pub parents_added: u64,
    /// Commits that make a database smaller, which no replay does.
    pub shrinks_left_out: u64,
    /// How late commits began; `null` in order `fast`.
    pub lateness: Option<Lateness>,
    /// Processor time of the replay, in microseconds.
    pub cpu_us: u64,
    /// What the recording's importer had to guess, and what could not be counted.
    pub notes: Vec<String>,
    /// Where the files are, with --keep.
    pub kept: Option<String>,
}

impl TransactionsOutcome {
    /// What the recording and its plan say, without what was measured.
    pub fn of(found: &PageTransactions, plan: &TransactionPlan) -> Self {
        Self {
            version: TRANSACTIONS_VERSION,
            kind: "page_transactions".to_owned(),
            connections: plan.connections.len() as u64,
            recorded: TransactionsRow::recorded(found),
            frames: FrameInterval::of(found),
            pages_unknown: found.parts().filter(|part| !part.pages_known).count() as u64,
            parents_added: plan.parents_added,
            shrinks_left_out: plan.shrinks_left_out,
            notes: found.notes.clone(),
            ..Self::default()
        }
    }
}

/// Of times in any order, how late things began; `None` of none.
pub fn lateness(mut late_ns: Vec<u64>) -> Option<Lateness> {
    late_ns.sort_unstable();
    let at = |parts| percentile(&late_ns, parts);
    Some(Lateness { p50_ns: at(50_000)?, p99_ns: at(99_000)?, max_ns: at(WHOLE)? })
}
