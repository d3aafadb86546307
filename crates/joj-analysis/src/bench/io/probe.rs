//! The result of `joj device probe`, described field by field in docs/device_probe.md.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::environment::Environment;
use crate::bench::io::job::IoJob;
use crate::bench::io::row::IoRow;

/// The value of `format` in each file.
pub const FORMAT: &str = "joj-device-probe";
/// The version of the format that this joj writes.
pub const VERSION: u32 = 1;

/// The jobs of a range, in their order: the sequential write undoes what random ones left in a flash translation layer.
pub const JOBS: [IoJob; 4] = [IoJob::Write, IoJob::Read, IoJob::RandWrite, IoJob::RandRead];

/// What `joj device probe --json` writes.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ProbeDocument {
    /// Always `joj-device-probe`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Conditions.
    pub environment: Environment,
    /// What was asked for, and what it took.
    pub plan: ProbePlan,
    /// What to hold against the figures.
    pub notes: Vec<String>,
    /// Each range with each record and job; `file_bytes` of the key is the range.
    pub cells: Vec<IoRow>,
}

/// How much was measured.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
pub struct ProbePlan {
    /// Bytes from the begin of the file.
    pub range_bytes: Vec<u64>,
    /// Bytes of a record.
    pub record_bytes: Vec<u64>,
    /// Most records of a run at random.
    pub requests_max: u64,
    /// Seconds after which no record of a run begins.
    pub seconds: f64,
    /// Runs of each cell.
    pub runs: u32,
    /// Seconds that all took.
    pub elapsed_s: f64,
}

/// Ranges from `least_bytes`, each twice the one before, up to `most_bytes`, which is one, too.
pub fn ranges(least_bytes: u64, most_bytes: u64) -> Vec<u64> {
    let doubling = std::iter::successors(Some(least_bytes.max(1)), |bytes| bytes.checked_mul(2));
    let mut ranges: Vec<u64> = doubling.take_while(|bytes| *bytes < most_bytes).collect();
    ranges.push(most_bytes);
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_double_up_to_the_last() {
        assert_eq!(ranges(32, 128), [32, 64, 128]);
        assert_eq!(ranges(32, 100), [32, 64, 100]);
        assert_eq!((ranges(32, 32), ranges(64, 32)), (vec![32], vec![32]));
    }
}
