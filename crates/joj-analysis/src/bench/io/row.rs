//! A row of `joj bench --io`: its runs and their sums.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::io::job::IoKey;
use crate::bench::measurement::Measurement;
use crate::bench::run::{Latency, Run, SyncCount};
use crate::statistics::Estimate;

/// A row.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct IoRow {
    /// What was measured.
    pub key: IoKey,
    /// The runs; an operation is a record.
    pub records: Measurement,
    /// Bytes written or read per second; `null` where nothing was measured.
    pub bytes_per_s: Option<Estimate>,
    /// Records per second as a share of the disk's limit; `null` where a record is no durable write of 4 KiB.
    pub share_of_limit: Option<Estimate>,
    /// Latencies of all runs together, without the sync behind the last record.
    pub latency: Latency,
    /// The same at the points of `quantile_parts`, in nanoseconds.
    pub latency_quantiles_ns: Vec<u64>,
    /// Calls for durability of all runs, the sync at the end of each included.
    pub syncs: SyncCount,
    /// What the place does not take, and why; `null` where it was measured.
    pub refused: Option<String>,
    /// Why the row is not to be used; `null` where every run was sound.
    pub failure: Option<String>,
}

impl IoRow {
    /// A row without runs.
    pub fn new(key: IoKey) -> IoRow {
        IoRow {
            key,
            records: Measurement::default(),
            bytes_per_s: None,
            share_of_limit: None,
            latency: Latency::default(),
            latency_quantiles_ns: Vec::new(),
            syncs: SyncCount::default(),
            refused: None,
            failure: None,
        }
    }

    /// Fills in the sums of the runs, but for latencies, which it does not have one by one.
    pub fn summarise(&mut self) {
        self.records.summarise();
        let record_bytes = self.key.record_bytes as f64;
        self.bytes_per_s = self.records.summary.as_ref().map(|sum| sum.operations_per_s.scaled(record_bytes));
        let share = |run: &Run| run.limit_per_s.map(|limit| run.transactions_per_s() / limit);
        let shares: Vec<f64> = self.records.runs.iter().filter_map(share).collect();
        self.share_of_limit = if self.key.is_bound_by_flushes() { Estimate::of(&shares) } else { None };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::io::job::IoJob;
    use crate::bench::io::way::SyncWay;
    use crate::bench::measurement::tests::measurement;

    pub(crate) fn row(way: SyncWay, speeds: &[u64]) -> IoRow {
        let key = IoKey { job: IoJob::RandWrite, way, record_bytes: 4096, file_bytes: 10 << 20 };
        let mut row = IoRow { records: measurement(speeds), ..IoRow::new(key) };
        row.summarise();
        row
    }

    #[test]
    fn a_row_has_bytes_and_its_share_of_the_limit() {
        let durable = row(SyncWay::Fsync, &[500, 300, 400]);
        assert!((durable.bytes_per_s.unwrap().median - 400.0 * 4096.0).abs() < 1e-3);
        assert!((durable.share_of_limit.unwrap().median - 0.4).abs() < 1e-6);
        assert_eq!(row(SyncWay::Direct, &[500]).share_of_limit, None, "it makes nothing durable");
        let mut long = row(SyncWay::Fsync, &[500]);
        long.key.record_bytes = 65_536;
        long.summarise();
        assert_eq!(long.share_of_limit, None, "the limit is about 4 KiB");
    }
}
