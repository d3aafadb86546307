//! What one run measured: the numbers a worker process sends back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::{WHOLE, percentile, quantile_grid};

/// Latencies of single transactions, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct Latency {
    /// Half of the transactions took no longer.
    pub p50_ns: u64,
    /// 99 % took no longer.
    pub p99_ns: u64,
    /// 99.9 % took no longer; with fewer than 1,000 transactions this is the longest.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Latency {
    /// From latencies in ascending order; zeros where there are none.
    pub fn of(sorted_ns: &[u64]) -> Latency {
        let at = |parts| percentile(sorted_ns, parts).unwrap_or(0);
        Latency { p50_ns: at(50_000), p99_ns: at(99_000), p999_ns: at(99_900), max_ns: at(WHOLE) }
    }
}

/// The distribution of ascending latencies at the points of [`quantile_grid`].
pub fn quantiles(sorted_ns: &[u64]) -> Vec<u64> {
    quantile_grid().into_iter().filter_map(|parts| percentile(sorted_ns, parts)).collect()
}

/// Of latencies in any order: their [`quantiles`], and the sums.
pub fn distribution(mut latencies_ns: Vec<u64>) -> (Vec<u64>, Latency) {
    latencies_ns.sort_unstable();
    (quantiles(&latencies_ns), Latency::of(&latencies_ns))
}

/// The share of latencies, 0 to 1, that lie within 12 % of 4, 8 or 12 ms while the fastest tenth stays below 1 ms.
///
/// A core that is busy when the flush completes wakes the waiter only at the next scheduler tick: 4 ms with
/// HZ=250. Such samples measure the scheduler, not the disk.
pub fn tick_share(sorted_ns: &[u64]) -> f64 {
    const TICK_NS: u64 = 4_000_000;
    let fast = percentile(sorted_ns, 10_000).unwrap_or(u64::MAX);
    if sorted_ns.is_empty() || fast >= 1_000_000 {
        return 0.0;
    }
    let near_tick =
        |latency: u64| (1..=3).any(|ticks| latency.abs_diff(ticks * TICK_NS) * 100 <= TICK_NS * 12);
    let hits = sorted_ns.iter().filter(|latency| near_tick(**latency)).count();
    hits as f64 / sorted_ns.len() as f64
}

/// What a block device did between two readings of its counters, by whomever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct DeviceDelta {
    /// Bytes written.
    pub written_bytes: u64,
    /// Write requests completed.
    pub write_requests: u64,
    /// Flush requests completed; `null` where the kernel does not count them (before 5.5, or without a cache).
    pub flushes: Option<u64>,
}

/// One run of one row.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Run {
    /// Which round it belonged to; the first is 0.
    pub round: u32,
    /// Transactions that the clock covers.
    pub transactions: u64,
    /// Wall time of all of them, in nanoseconds.
    pub elapsed_ns: u64,
    /// Latencies of single transactions.
    pub latency: Latency,
    /// Processor time in user mode, all threads of the process, in microseconds.
    pub cpu_user_us: u64,
    /// Processor time in the kernel on behalf of the process, in microseconds.
    pub cpu_system_us: u64,
    /// Context switches because the process waited.
    pub switches_voluntary: u64,
    /// Context switches because the process was made to wait.
    pub switches_involuntary: u64,
    /// Bytes passed to write calls (`wchar` of /proc/self/io); `null` where not readable.
    pub wchar_bytes: Option<u64>,
    /// Bytes the process made the storage layer write (`write_bytes` of /proc/self/io).
    pub storage_bytes: Option<u64>,
    /// What the block device did meanwhile.
    pub device: Option<DeviceDelta>,
    /// Transactions that the file system's journal committed meanwhile (jbd2), by whomever.
    pub journal_commits: Option<u64>,
    /// Processor cores that others kept busy meanwhile, 0 to the number of cores.
    pub others_cores: Option<f64>,
    /// Share of latencies near the scheduler's tick, 0 to 1.
    pub tick_share: f64,
    /// The disk's limit measured just before, in operations per second.
    pub limit_per_s: Option<f64>,
    /// What was wrong with the database afterwards; `null` where all was well.
    pub failure: Option<String>,
}

impl Run {
    /// Transactions per second.
    pub fn transactions_per_s(&self) -> f64 {
        self.transactions as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// `amount` of this run for each transaction.
    pub fn per_transaction(&self, amount: u64) -> f64 {
        amount as f64 / self.transactions.max(1) as f64
    }
}

/// How often a library asked the kernel for durability, counted in an extra run that no clock covers.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct SyncCount {
    /// Transactions of the extra run.
    pub transactions: u64,
    /// Calls of fsync.
    pub fsync: u64,
    /// Calls of fdatasync.
    pub fdatasync: u64,
    /// Calls of pwritev2 with RWF_DSYNC or RWF_SYNC.
    pub durable_writes: u64,
    /// Calls of sync_file_range, msync, sync or syncfs.
    pub other: u64,
}

impl SyncCount {
    /// All of them together.
    pub fn all(&self) -> u64 {
        self.fsync + self.fdatasync + self.durable_writes + self.other
    }

    /// The same for each transaction.
    pub fn per_transaction(&self) -> f64 {
        self.all() as f64 / self.transactions.max(1) as f64
    }

    /// Adds what another process or run counted.
    pub fn add(&mut self, other: &SyncCount) {
        self.transactions += other.transactions;
        self.fsync += other.fsync;
        self.fdatasync += other.fdatasync;
        self.durable_writes += other.durable_writes;
        self.other += other.other;
    }

    /// Which of fsync and fdatasync the library called, as a word for tables.
    pub fn call_name(&self) -> &'static str {
        match (self.fsync > 0, self.fdatasync > 0) {
            (true, true) => "fsync+fdatasync",
            (true, false) => "fsync",
            (false, true) => "fdatasync",
            (false, false) => "no sync call",
        }
    }
}

/// One line of what waldio said about itself (`waldio_status`).
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct StatusLine {
    /// What it is about.
    pub name: String,
    /// Its value, as text.
    pub value: String,
    /// Unit of the value; empty where it has none.
    pub unit: String,
    /// Where waldio read it.
    pub source: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_and_quantiles_of_a_known_ramp() {
        let ramp: Vec<u64> = (1..=1000).collect();
        let expected = Latency { p50_ns: 500, p99_ns: 990, p999_ns: 999, max_ns: 1000 };
        assert_eq!(Latency::of(&ramp), expected);
        assert_eq!(Latency::of(&[]), Latency::default());
        let points = quantiles(&ramp);
        assert_eq!(points.len(), quantile_grid().len());
        assert_eq!((points[0], points[50], points[points.len() - 1]), (1, 500, 1000));
    }

    #[test]
    fn ticks_count_only_on_a_disk_that_can_be_faster() {
        let mut latencies = vec![130_000; 80];
        latencies.extend([3_990_000; 15]);
        latencies.extend([8_100_000; 5]);
        assert!((tick_share(&latencies) - 0.20).abs() < 1e-9);
        assert_eq!(tick_share(&[4_000_000; 100]), 0.0, "a disk that always takes 4 ms");
        assert_eq!(tick_share(&[]), 0.0);
    }

    #[test]
    fn sync_calls_are_named_by_what_was_counted() {
        let count = SyncCount { transactions: 10, fsync: 11, durable_writes: 4, ..SyncCount::default() };
        assert_eq!((count.call_name(), count.per_transaction()), ("fsync", 1.5));
        assert_eq!(SyncCount::default().call_name(), "no sync call");
    }
}
