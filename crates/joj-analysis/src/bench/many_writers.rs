//! Contended commits: many writers on one database, what each of them got and how long it waited.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::key::{JournalMode, Schema, Synchronous, Word, words};
use crate::bench::pairs::versus;
use crate::bench::run::{Latency, Run, StatusLine, SyncCount};
use crate::statistics::Estimate;

words! {
    /// What a writer is.
    pub enum WriterKind: "kind of writer" {
        /// A thread with its own connection, all in one process.
        Threads = "threads",
        /// A process with one connection.
        Processes = "processes",
    }
}

/// What one contended row measures: autocommit inserts. Two results are comparable where this is equal.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ContendedKey {
    /// What the writers are.
    pub kind: WriterKind,
    /// How many of them, 1 or more.
    pub writers: u32,
    /// The table they insert into.
    pub schema: Schema,
    /// Stock WAL or waldio; `side` in files of version 1.
    #[serde(alias = "side")]
    pub mode: JournalMode,
    /// `PRAGMA synchronous`; in files without it `full`.
    #[serde(default = "full")]
    pub synchronous: Synchronous,
    /// Least time of a flush on the device made slow, in nanoseconds; 0 for the device as it is.
    pub flush_delay_ns: u64,
    /// Name of the SQLite build.
    pub library: String,
}

fn full() -> Synchronous {
    Synchronous::Full
}

impl ContendedKey {
    /// The key of stock WAL under otherwise equal conditions.
    pub fn stock_wal(&self) -> ContendedKey {
        ContendedKey { mode: JournalMode::Wal, ..self.clone() }
    }

    /// True where both belong into one table and one plot: all but mode and number of writers is the same.
    pub fn same_group(&self, other: &ContendedKey) -> bool {
        let rest = |key: &ContendedKey| {
            (key.kind, key.schema, key.synchronous, key.flush_delay_ns, key.library.clone())
        };
        rest(self) == rest(other)
    }

    /// `writers as threads, insert, schema waldio, synchronous=FULL`, with the delay of flushes if there is one.
    pub fn group_title(&self) -> String {
        let (kind, schema) = (self.kind.word(), self.schema.word());
        let synchronous = self.synchronous.word().to_uppercase();
        let delay = self.delay_words().map_or_else(String::new, |words| format!(", {words}, one at a time"));
        format!("writers as {kind}, insert, schema {schema}, synchronous={synchronous}{delay}")
    }

    /// `flush 2 ms`; none on the device as it is.
    fn delay_words(&self) -> Option<String> {
        (self.flush_delay_ns > 0).then(|| format!("flush {} ms", self.flush_delay_ns as f64 / 1e6))
    }

    /// `WAL`, `waldio` or `bounded`.
    pub fn mode_title(&self) -> &'static str {
        if self.mode.uses_waldio() { self.mode.word() } else { "WAL" }
    }
}

/// `16 threads, schema waldio, flush 2 ms, WAL, system`
impl fmt::Display for ContendedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, schema, mode) = (self.kind.word(), self.schema.word(), self.mode_title());
        let delay = self.delay_words().map_or_else(String::new, |words| format!("{words}, "));
        let delay = if self.synchronous == Synchronous::Normal { format!("NORMAL, {delay}") } else { delay };
        write!(formatter, "{} {kind}, schema {schema}, {delay}{mode}, {}", self.writers, self.library)
    }
}

/// One run of all writers of a row together.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ContendedRun {
    /// What other rows have too. `transactions` are commits that returned while the clock ran; `latency` is of all that
    /// returned after it started, the last ones included, which returned after it stopped.
    #[serde(flatten)]
    pub run: Run,
    /// Commits that returned to each writer while the clock ran.
    pub writer_commits: Vec<u64>,
    /// All commits that ever returned OK, before and after the clock too: as many rows the table must have.
    pub acknowledged: u64,
    /// How often an INSERT ended in which error.
    pub errors: BTreeMap<String, u64>,
    /// The longest wait that ended in an error, in nanoseconds; `null` where there was none.
    pub longest_failed_ns: Option<u64>,
    /// Largest size of the log file, as stat(2) tells it, in bytes.
    pub log_bytes_max: Option<u64>,
    /// Most bytes of the log that were in use, by the wal-index.
    pub log_used_bytes_max: Option<u64>,
    /// Calls for durability while the clock ran; `null` where the clock must not be disturbed by counting.
    pub syncs: Option<SyncCount>,
}

impl ContendedRun {
    /// Jain's index over the commits of each writer.
    pub fn fairness(&self) -> Option<f64> {
        jain(&self.writer_commits)
    }
}

/// Jain's fairness index: 1 where all got the same, 1/n where one of n got everything; `None` where nobody got any.
///
/// Source: Jain, Chiu and Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
pub fn jain(shares: &[u64]) -> Option<f64> {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Everything measured under one key.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ContendedRow {
    /// What was measured.
    pub key: ContendedKey,
    /// The runs, in the order they were made.
    pub runs: Vec<ContendedRun>,
    /// Latencies of all runs together at the points of the document's `quantile_parts`, in nanoseconds.
    pub latency_quantiles_ns: Vec<u64>,
    /// Calls for durability; `null` where they could not be counted.
    pub syncs: Option<SyncCount>,
    /// What waldio said after the last run, to the first writer; empty for stock.
    pub waldio_status: Vec<StatusLine>,
    /// Why the row is not to be used; `null` where every run was sound.
    pub failure: Option<String>,
    /// What the runs amount to; `null` where there are none.
    pub summary: Option<ContendedSummary>,
}

/// The runs of a row in one number each.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ContendedSummary {
    /// Commits per second of all writers together.
    pub commits_per_s: Estimate,
    /// Throughput as a multiple of stock WAL's with as many writers, paired by round.
    pub versus_stock_wal: Option<Estimate>,
    /// Latencies of all runs together, all waiting included.
    pub latency: Latency,
    /// The longest wait of a run, in nanoseconds.
    pub worst_wait_ns: Option<Estimate>,
    /// The longest wait of a run as a multiple of stock WAL's, paired by round.
    pub worst_wait_versus_stock_wal: Option<Estimate>,
    /// Jain's index over the commits of each writer.
    pub fairness: Option<Estimate>,
    /// Calls for durability per commit.
    pub flushes_per_commit: Option<f64>,
    /// Flushes of the device per commit, by whomever.
    pub device_flushes: Option<f64>,
    /// Bytes the device wrote per commit, by whomever.
    pub device_bytes: Option<f64>,
    /// Largest log file of all runs, in bytes.
    pub log_bytes_max: Option<u64>,
    /// Most bytes of the log in use in any run.
    pub log_used_bytes_max: Option<u64>,
    /// INSERTs of all runs that ended in an error.
    pub errors: u64,
    /// Processor time per commit in user mode, in microseconds.
    pub cpu_user_us: Option<f64>,
    /// Processor time per commit in the kernel, in microseconds.
    pub cpu_system_us: Option<f64>,
    /// Context switches per commit, of either kind.
    pub switches: Option<f64>,
}

fn estimate(values: impl Iterator<Item = f64>) -> Option<Estimate> {
    Estimate::of(&values.collect::<Vec<f64>>())
}

impl ContendedRow {
    /// A row that nothing was measured of.
    pub fn new(key: ContendedKey) -> ContendedRow {
        ContendedRow {
            key,
            runs: Vec::new(),
            latency_quantiles_ns: Vec::new(),
            syncs: None,
            waldio_status: Vec::new(),
            failure: None,
            summary: None,
        }
    }

    /// Its runs without what only many writers have.
    pub fn plain_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|run| &run.run)
    }

    /// The median over the runs, per commit; `None` where one of them lacks the value.
    fn per_commit(&self, value: impl Fn(&Run) -> Option<u64>) -> Option<f64> {
        let of_run = |run: &ContendedRun| Some(run.run.per_transaction(value(&run.run)?));
        let values: Option<Vec<f64>> = self.runs.iter().map(of_run).collect();
        Estimate::of(&values?).map(|found| found.median)
    }

    fn summarise(&self, stock: Option<&ContendedRow>, latency: Latency) -> Option<ContendedSummary> {
        let wait = |run: &Run| run.latency.max_ns as f64;
        let versus_stock = |value| versus(self.plain_runs(), stock?.plain_runs(), value);
        Some(ContendedSummary {
            commits_per_s: estimate(self.plain_runs().map(Run::transactions_per_s))?,
            versus_stock_wal: versus_stock(Run::transactions_per_s),
            latency,
            worst_wait_ns: estimate(self.plain_runs().map(wait)),
            worst_wait_versus_stock_wal: versus_stock(wait),
            fairness: estimate(self.runs.iter().filter_map(ContendedRun::fairness)),
            flushes_per_commit: self.syncs.as_ref().map(SyncCount::per_transaction),
            device_flushes: self.per_commit(|run| run.device.and_then(|device| device.flushes)),
            device_bytes: self.per_commit(|run| run.device.map(|device| device.written_bytes)),
            log_bytes_max: self.runs.iter().filter_map(|run| run.log_bytes_max).max(),
            log_used_bytes_max: self.runs.iter().filter_map(|run| run.log_used_bytes_max).max(),
            errors: self.runs.iter().flat_map(|run| run.errors.values()).sum(),
            cpu_user_us: self.per_commit(|run| Some(run.cpu_user_us)),
            cpu_system_us: self.per_commit(|run| Some(run.cpu_system_us)),
            switches: self.per_commit(|run| Some(run.switches_voluntary + run.switches_involuntary)),
        })
    }
}

/// Fills in `summary` of each row. `latencies[i]` describes all runs of `rows[i]` together.
pub fn summarise(rows: &mut [ContendedRow], latencies: &[Latency]) {
    assert_eq!(rows.len(), latencies.len(), "one latency distribution for each row");
    let summaries: Vec<Option<ContendedSummary>> = rows
        .iter()
        .zip(latencies)
        .map(|(row, latency)| {
            let wanted = row.key.stock_wal();
            let stock = rows.iter().find(|other| other.key == wanted && other.failure.is_none());
            row.summarise(stock, *latency)
        })
        .collect();
    for (row, summary) in rows.iter_mut().zip(summaries) {
        row.summary = summary;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::row::tests::run;

    pub(crate) fn key(mode: JournalMode, writers: u32) -> ContendedKey {
        let library = "system".to_owned();
        ContendedKey {
            kind: WriterKind::Threads,
            writers,
            schema: Schema::Waldio,
            mode,
            synchronous: Synchronous::Full,
            flush_delay_ns: 0,
            library,
        }
    }

    pub(crate) fn row(key: ContendedKey, runs: &[(u64, u64)]) -> ContendedRow {
        let one = |(round, (speed, max_ns)): (u32, &(u64, u64))| ContendedRun {
            run: Run { latency: Latency { max_ns: *max_ns, ..Latency::default() }, ..run(round, *speed) },
            writer_commits: vec![60, 40],
            acknowledged: 130,
            errors: BTreeMap::from([("SQLITE_BUSY".to_owned(), 2)]),
            longest_failed_ns: Some(60_000_000_000),
            log_bytes_max: Some(4_194_304 + u64::from(round)),
            log_used_bytes_max: None,
            syncs: None,
        };
        ContendedRow { runs: (0..).zip(runs).map(one).collect(), ..ContendedRow::new(key) }
    }

    #[test]
    fn fairness_of_known_shares() {
        assert_eq!(jain(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(jain(&[8, 0, 0, 0]), Some(0.25));
        assert_eq!(jain(&[3]), Some(1.0));
        assert!((jain(&[1, 2, 3]).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!((jain(&[]), jain(&[0, 0])), (None, None));
    }

    #[test]
    fn rows_stand_beside_stock_with_as_many_writers() {
        let mut rows = vec![
            row(key(JournalMode::Wal, 2), &[(100, 8_000), (200, 9_000)]),
            row(key(JournalMode::Waldio, 2), &[(400, 2_000), (800, 3_000)]),
            row(key(JournalMode::Waldio, 4), &[(400, 2_000)]),
        ];
        summarise(&mut rows, &[Latency::default(); 3]);
        let two = rows[1].summary.as_ref().unwrap();
        assert!((two.versus_stock_wal.unwrap().median - 4.0).abs() < 1e-6);
        let waits = two.worst_wait_versus_stock_wal.unwrap();
        assert!((waits.low - 0.25).abs() < 1e-6 && (waits.high - 1.0 / 3.0).abs() < 1e-6);
        assert!((two.fairness.unwrap().median - 10_000.0 / 10_400.0).abs() < 1e-12);
        assert_eq!((two.errors, two.log_bytes_max, two.log_used_bytes_max), (4, Some(4_194_305), None));
        assert_eq!(rows[2].summary.as_ref().unwrap().versus_stock_wal, None);
    }

    #[test]
    fn a_key_names_what_makes_rows_comparable() {
        let slow = ContendedKey { flush_delay_ns: 2_500_000, ..key(JournalMode::Waldio, 16) };
        assert_eq!(slow.to_string(), "16 threads, schema waldio, flush 2.5 ms, waldio, system");
        assert!(slow.group_title().ends_with("synchronous=FULL, flush 2.5 ms, one at a time"));
        assert_eq!(key(JournalMode::Wal, 2).to_string(), "2 threads, schema waldio, WAL, system");
        assert!(
            key(JournalMode::Wal, 1).same_group(&key(JournalMode::Waldio, 2))
                && !slow.same_group(&key(JournalMode::Waldio, 16))
        );
    }
}
