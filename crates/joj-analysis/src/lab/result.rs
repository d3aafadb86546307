//! What came of a plan (docs/lab_format.md).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::run::{Run, StatusLine};
use crate::lab::cell::Cell;

/// First word of a result.
pub const RESULT_FORMAT: &str = "joj-lab-result";
/// Version that this joj writes.
pub const RESULT_VERSION: u32 = 2;

/// The result of `joj lab run`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LabResult {
    /// Always `joj-lab-result`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    pub title: String,
    /// What it ran on.
    pub machine: LabMachine,
    /// What each cell gave, in the plan's order.
    pub cells: Vec<CellResult>,
}

/// The machine in which the cells were measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct LabMachine {
    pub joj: String,
    pub qemu: String,
    /// Release of the kernel that runs in it.
    pub kernel: String,
    /// How QEMU keeps time.
    pub clock: String,
    /// Versions of the SQLite builds: name and version.
    pub sqlite: Vec<(String, String)>,
}

/// What stands in the head of each result, but for the SQLite builds.
impl fmt::Display for LabMachine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LabMachine { joj, qemu, kernel, clock, .. } = self;
        write!(formatter, "Linux {kernel}, QEMU {qemu} ({clock}), joj {joj}")
    }
}

/// What one cell gave.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CellResult {
    pub cell: Cell,
    /// What came of it.
    pub outcome: CellOutcome,
}

impl LabResult {
    /// True where a cell could not be measured.
    pub fn has_failed(&self) -> bool {
        self.cells.iter().any(|cell| matches!(cell.outcome, CellOutcome::Failed(_)))
    }
}

/// What came of a cell.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellOutcome {
    /// The cell was measured, and this came of it.
    Measured(Box<CellMeasurement>),
    /// It could not be, for this reason.
    Failed(String),
}

/// What was measured in a cell.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CellMeasurement {
    /// The run that the clock covers. All times are the guest's.
    pub run: Run,
    /// Latencies at the points of the quantile grid (docs/result_format.md), in nanoseconds.
    pub quantiles_ns: Vec<u64>,
    /// The rows of `PRAGMA waldio_status` at the end; empty without waldio.
    #[serde(default)]
    pub waldio_status: Vec<StatusLine>,
    /// What a transaction costs on its way to the device, from a run that was traced.
    #[serde(default)]
    pub costs: Option<Costs>,
    /// The traced run itself: beside `run` it says what tracing cost.
    #[serde(default)]
    pub traced_run: Option<Run>,
    /// File of the trace, beside the result.
    #[serde(default)]
    pub trace: Option<String>,
    /// Why there is no trace where there should be one.
    #[serde(default)]
    pub trace_failure: Option<String>,
    /// What a replay did, in a cell that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<CellReplay>,
}

/// What a replay in a cell did; its `run` is one transaction, which takes as long as its threads were inside calls.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct CellReplay {
    /// Calls that were made.
    pub calls: u64,
    /// Calls that returned something else than in the recording, or were not made.
    pub differing: u64,
    /// Calls that make something durable.
    pub syncs: u64,
    /// From the first call's begin to the last one's end, think time included.
    pub elapsed_ns: u64,
}

impl CellMeasurement {
    /// Transactions per second with the trace, of those without: 1 is no cost. `None` where nothing was traced, and where fewer were: a
    /// log that grows, or a filesystem that copies, has other costs later on.
    pub fn traced_share(&self) -> Option<f64> {
        let traced =
            self.traced_run.as_ref().filter(|traced| traced.transactions == self.run.transactions)?;
        Some(traced.transactions_per_s() / self.run.transactions_per_s())
    }
}

/// What one transaction writes: medians over the transactions that the clock covers in the traced run, each figure for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct Costs {
    /// Transactions that were looked at.
    pub transactions: u64,
    /// Bytes of files' data.
    pub data_bytes: u64,
    /// Bytes in the filesystem's journal.
    pub journal_bytes: u64,
    /// Of those, for SQLite's own journal.
    pub journal_of_journal_bytes: u64,
    /// Nodes, metadata, superblocks, and what nobody placed.
    pub other_bytes: u64,
    pub writes: u64,
    pub flushes: u64,
    pub syncs: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tracing_cost_is_known_where_as_many_transactions_were_traced() {
        let run = |transactions: u64, elapsed_ns: u64| {
            serde_json::json!({
                "round": 0, "transactions": transactions, "elapsed_ns": elapsed_ns, "cpu_user_us": 0, "cpu_system_us": 0,
                "latency": {"p50_ns": 1, "p99_ns": 1, "p999_ns": 1, "max_ns": 1}, "switches_voluntary": 0,
                "switches_involuntary": 0, "device": {"written_bytes": 0, "write_requests": 0, "flushes": 0}, "tick_share": 0.0,
            })
        };
        let share = |traced: serde_json::Value| {
            let text = serde_json::json!({"run": run(200, 1_000), "quantiles_ns": [], "traced_run": traced});
            serde_json::from_value::<CellMeasurement>(text).unwrap().traced_share()
        };
        assert_eq!(share(run(200, 1_250)), Some(0.8));
        assert_eq!(share(run(100, 400)), None, "another amount of work");
        assert_eq!(share(serde_json::Value::Null), None);
    }
}
