//! The file of `joj mobibench --json`. Field by field: docs/mobibench.md.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::environment::Environment;
use crate::bench::run::SyncCount;
use crate::mobibench::setup::MobibenchSetup;
use crate::statistics::{WHOLE, percentile};

/// The value of `format` in each file.
pub const FORMAT: &str = "joj-mobibench";
/// The version of the format that this joj writes.
pub const VERSION: u32 = 1;

/// What `joj mobibench --json` writes.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MobibenchDocument {
    /// Always `joj-mobibench`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Conditions.
    pub environment: Environment,
    /// What was asked for.
    pub setup: MobibenchSetup,
    /// The SQLite of a database test.
    pub sqlite: Option<SqliteFacts>,
    pub result: MobibenchResult,
    /// What to hold against the figures, or what is not as with Mobibench.
    pub notes: Vec<String>,
}

/// What SQLite says of itself and of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct SqliteFacts {
    /// What was loaded; `null` for the one inside joj.
    pub file: Option<String>,
    /// The waldio extension that was loaded.
    pub waldio: Option<String>,
    pub version: String,
    pub source_id: String,
    /// The answers of each database of the first thread.
    pub databases: Vec<DatabaseFacts>,
}

/// A database's answers to PRAGMAs.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct DatabaseFacts {
    pub file: String,
    pub page_size: String,
    pub journal_mode: String,
    pub synchronous: String,
}

/// The figures.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MobibenchResult {
    /// From the start of all threads to the end of the last.
    pub elapsed_s: f64,
    /// Records or transactions of all threads.
    pub operations: u64,
    pub operations_per_s: f64,
    /// Of all records; `null` for databases.
    pub bytes: Option<u64>,
    pub bytes_per_s: Option<f64>,
    /// Shares of the processors' time, of the whole machine; `null` where no tick passed.
    pub cpu_percent: Option<CpuShares>,
    /// Of the one thread; `null` where there are several.
    pub context_switches: Option<ContextSwitches>,
    /// Of single operations of all threads.
    pub latency_us: LatencyUs,
    /// `null` where they could not be counted.
    pub syncs: Option<DurableCalls>,
}

/// Per cent.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuShares {
    pub active: f64,
    pub idle: f64,
    pub iowait: f64,
}

impl CpuShares {
    /// Of ticks at the begin and at the end: active, idle, iowait. `None` where none passed.
    pub fn between(before: [u64; 3], after: [u64; 3]) -> Option<CpuShares> {
        let ticks = [0, 1, 2].map(|index| after[index].saturating_sub(before[index]) as f64);
        let all: f64 = ticks.iter().sum();
        let [active, idle, iowait] = ticks.map(|ticks| ticks * 100.0 / all);
        (all > 0.0).then_some(CpuShares { active, idle, iowait })
    }
}

/// Of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ContextSwitches {
    pub total: u64,
    /// Because it waited.
    pub voluntary: u64,
}

/// Microseconds.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LatencyUs {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl LatencyUs {
    /// Of latencies in nanoseconds, in any order.
    pub fn of(mut latencies_ns: Vec<u64>) -> LatencyUs {
        latencies_ns.sort_unstable();
        let at = |parts| percentile(&latencies_ns, parts).unwrap_or(0) as f64 / 1e3;
        LatencyUs { p50: at(50_000), p99: at(99_000), max: at(WHOLE) }
    }
}

/// Calls that make something durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct DurableCalls {
    /// Records or transactions that the calls are of.
    pub operations: u64,
    pub fsync: u64,
    pub fdatasync: u64,
    /// Writes that return when they are durable: with O_SYNC, RWF_SYNC or RWF_DSYNC.
    pub durable_writes: u64,
    /// msync with MS_SYNC, sync_file_range, sync, syncfs.
    pub other: u64,
}

impl From<SyncCount> for DurableCalls {
    fn from(counted: SyncCount) -> DurableCalls {
        DurableCalls {
            operations: counted.transactions,
            fsync: counted.fsync,
            fdatasync: counted.fdatasync,
            durable_writes: counted.durable_writes,
            other: counted.other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_passed() {
        let shares = CpuShares::between([100, 200, 0], [125, 275, 0]).unwrap();
        assert_eq!(shares, CpuShares { active: 25.0, idle: 75.0, iowait: 0.0 });
        assert_eq!(CpuShares::between([1, 2, 3], [1, 2, 3]), None);
    }

    #[test]
    fn latencies_are_sorted_and_in_microseconds() {
        let latency = LatencyUs::of((1..=100).rev().map(|number| number * 1_500).collect());
        assert_eq!(latency, LatencyUs { p50: 75.0, p99: 148.5, max: 150.0 });
        assert_eq!(LatencyUs::of(Vec::new()).max, 0.0);
    }
}
