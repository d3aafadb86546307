//! One row of a result: its runs, what they amount to, how it stands beside stock WAL.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::key::RowKey;
use crate::bench::pairs::versus;
use crate::bench::run::{Latency, Run, StatusLine, SyncCount};
use crate::statistics::Estimate;

/// Everything measured under one key.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub key: RowKey,
    /// The runs, in the order they were made.
    pub runs: Vec<Run>,
    /// Latencies of all runs together at the points of the document's `quantile_parts`, in nanoseconds.
    pub latency_quantiles_ns: Vec<u64>,
    /// Calls for durability; `null` where they could not be counted.
    pub syncs: Option<SyncCount>,
    /// What waldio said after the last run; empty for stock modes.
    pub waldio_status: Vec<StatusLine>,
    /// Why the row is not to be used; `null` where every run was sound.
    pub failure: Option<String>,
    /// What the runs amount to; `null` where there are none.
    pub summary: Option<RowSummary>,
}

/// The runs of a row in one number each: medians over the runs, sums only for latencies.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RowSummary {
    /// Transactions per second.
    pub transactions_per_s: Estimate,
    /// Throughput as a multiple of stock WAL's with the same build, paired by round; `null` where the disk was otherwise meanwhile.
    pub versus_stock_wal: Option<Estimate>,
    /// Throughput as a share of the disk's limit, paired with the limit measured just before.
    pub share_of_limit: Option<Estimate>,
    /// Latencies of all runs together.
    pub latency: Latency,
    /// Processor time per transaction in user mode, in microseconds.
    pub cpu_user_us: f64,
    /// Processor time per transaction in the kernel, in microseconds.
    pub cpu_system_us: f64,
    /// Voluntary context switches per transaction.
    pub switches_voluntary: f64,
    /// Involuntary context switches per transaction.
    pub switches_involuntary: f64,
    /// Bytes per transaction passed to write calls.
    pub wchar_bytes: Option<f64>,
    /// Bytes per transaction that the process made the storage layer write.
    pub storage_bytes: Option<f64>,
    /// Bytes per transaction that the block device wrote.
    pub device_bytes: Option<f64>,
    /// Write requests per transaction.
    pub device_requests: Option<f64>,
    /// Flushes of the device per transaction.
    pub device_flushes: Option<f64>,
    /// Calls for durability per transaction.
    pub syncs: Option<f64>,
    /// Commits of the file system's journal per transaction.
    pub journal_commits: Option<f64>,
}

impl Row {
    /// A row that nothing was measured of.
    pub fn new(key: RowKey) -> Row {
        Row {
            key,
            runs: Vec::new(),
            latency_quantiles_ns: Vec::new(),
            syncs: None,
            waldio_status: Vec::new(),
            failure: None,
            summary: None,
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    Estimate::of(&values.collect::<Vec<f64>>()).map(|estimate| estimate.median)
}

/// The median over the runs that have the value; `None` where one of them lacks it.
fn median_if_all(runs: &[Run], value: impl Fn(&Run) -> Option<u64>) -> Option<f64> {
    let values: Option<Vec<f64>> =
        runs.iter().map(|run| value(run).map(|amount| run.per_transaction(amount))).collect();
    median(values?.into_iter())
}

/// Latencies of all runs from the pooled, ascending `sorted_ns`; `stock` is the row of stock WAL, if any.
fn summarise_row(row: &Row, stock: Option<&Row>, latency: Latency) -> Option<RowSummary> {
    let runs = &row.runs;
    let speeds: Vec<f64> = runs.iter().map(Run::transactions_per_s).collect();
    let limits: Vec<f64> =
        runs.iter().filter_map(|run| run.limit_per_s.map(|limit| run.transactions_per_s() / limit)).collect();
    let bound_by_flushes = row.key.workload.is_bound_by_flushes();
    Some(RowSummary {
        transactions_per_s: Estimate::of(&speeds)?,
        versus_stock_wal: stock.and_then(|stock| versus(runs, &stock.runs, Run::transactions_per_s)),
        share_of_limit: if bound_by_flushes { Estimate::of(&limits) } else { None },
        latency,
        cpu_user_us: median(runs.iter().map(|run| run.per_transaction(run.cpu_user_us)))?,
        cpu_system_us: median(runs.iter().map(|run| run.per_transaction(run.cpu_system_us)))?,
        switches_voluntary: median(runs.iter().map(|run| run.per_transaction(run.switches_voluntary)))?,
        switches_involuntary: median(runs.iter().map(|run| run.per_transaction(run.switches_involuntary)))?,
        wchar_bytes: median_if_all(runs, |run| run.wchar_bytes),
        storage_bytes: median_if_all(runs, |run| run.storage_bytes),
        device_bytes: median_if_all(runs, |run| run.device.map(|device| device.written_bytes)),
        device_requests: median_if_all(runs, |run| run.device.map(|device| device.write_requests)),
        device_flushes: median_if_all(runs, |run| run.device.and_then(|device| device.flushes)),
        syncs: row.syncs.as_ref().map(SyncCount::per_transaction),
        journal_commits: median_if_all(runs, |run| run.journal_commits),
    })
}

/// Fills in `summary` of each row. `latencies[i]` describes all runs of `rows[i]` together.
pub fn summarise(rows: &mut [Row], latencies: &[Latency]) {
    assert_eq!(rows.len(), latencies.len(), "one latency distribution for each row");
    let summaries: Vec<Option<RowSummary>> = rows
        .iter()
        .zip(latencies)
        .map(|(row, latency)| {
            let wanted = row.key.stock_wal();
            let stock = rows.iter().find(|other| other.key == wanted && other.failure.is_none());
            summarise_row(row, stock, *latency)
        })
        .collect();
    for (row, summary) in rows.iter_mut().zip(summaries) {
        row.summary = summary;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::key::{JournalMode, LogState, Schema, Synchronous, Workload};
    use crate::bench::run::DeviceDelta;

    pub(crate) fn key(mode: JournalMode, log: LogState) -> RowKey {
        RowKey {
            workload: Workload::Insert,
            schema: Schema::Waldio,
            synchronous: Synchronous::Full,
            mode,
            log,
            library: "system".to_owned(),
        }
    }

    pub(crate) fn run(round: u32, speed: u64) -> Run {
        Run {
            round,
            transactions: 100,
            elapsed_ns: 100_000_000_000 / speed,
            latency: Latency::default(),
            cpu_user_us: 500,
            cpu_system_us: 1_000,
            switches_voluntary: 200,
            switches_involuntary: 0,
            wchar_bytes: Some(412_000),
            storage_bytes: Some(409_600),
            device: Some(DeviceDelta { written_bytes: 819_200, write_requests: 100, flushes: None }),
            journal_commits: None,
            others_cores: Some(0.1),
            tick_share: 0.0,
            limit_per_s: Some(1_000.0),
            failure: None,
        }
    }

    pub(crate) fn row(key: RowKey, speeds: &[u64]) -> Row {
        let runs = (0..).zip(speeds).map(|(round, speed)| run(round, *speed)).collect();
        Row { runs, ..Row::new(key) }
    }

    #[test]
    fn summary_pairs_with_stock_wal_and_with_the_limit() {
        let mut rows = vec![
            row(key(JournalMode::Wal, LogState::Steady), &[500, 400, 450]),
            row(key(JournalMode::Waldio, LogState::Steady), &[1_000, 800, 900]),
            row(key(JournalMode::Delete, LogState::None), &[100, 100, 100]),
        ];
        summarise(&mut rows, &[Latency::default(); 3]);
        let waldio = rows[1].summary.as_ref().unwrap();
        assert!((waldio.versus_stock_wal.unwrap().median - 2.0).abs() < 1e-6);
        assert!((waldio.share_of_limit.unwrap().median - 0.9).abs() < 1e-6);
        assert_eq!((waldio.cpu_user_us, waldio.switches_voluntary), (5.0, 2.0));
        assert_eq!(waldio.device_bytes, Some(8_192.0));
        // There is no stock WAL with a fresh log here, so DELETE has nothing to stand beside.
        assert_eq!(rows[2].summary.as_ref().unwrap().versus_stock_wal, None);
    }

    #[test]
    fn what_one_run_lacks_the_summary_lacks() {
        let mut rows = vec![row(key(JournalMode::Wal, LogState::Fresh), &[500, 400])];
        rows[0].runs[1].device = None;
        summarise(&mut rows, &[Latency::default()]);
        let summary = rows[0].summary.as_ref().unwrap();
        assert_eq!(
            (summary.device_bytes, summary.device_flushes, summary.journal_commits),
            (None, None, None)
        );
        assert!(summary.wchar_bytes.is_some());
    }

    #[test]
    fn a_failed_stock_row_is_nobodys_measure() {
        let mut rows = vec![
            row(key(JournalMode::Wal, LogState::Fresh), &[500]),
            row(key(JournalMode::Waldio, LogState::Fresh), &[900]),
        ];
        rows[0].failure = Some("integrity_check said: row missing".to_owned());
        summarise(&mut rows, &[Latency::default(); 2]);
        assert_eq!(rows[1].summary.as_ref().unwrap().versus_stock_wal, None);
    }
}
