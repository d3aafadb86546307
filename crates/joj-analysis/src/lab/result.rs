//! What came of a plan (docs/lab_format.md).

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use crate::run::{Run, StatusLine};

/// First word of a result.
pub const RESULT_FORMAT: &str = "joj-lab-result";
/// Version that this joj writes.
pub const RESULT_VERSION: u32 = 1;

/// The whole result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabResult {
    /// [`RESULT_FORMAT`]
    pub format: String,
    /// [`RESULT_VERSION`]
    pub version: u32,
    /// The plan's title.
    pub title: String,
    /// What it ran on.
    pub machine: LabMachine,
    /// What each cell gave, in the plan's order.
    pub cells: Vec<CellResult>,
}

/// The emulated machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LabMachine {
    /// Version of joj.
    pub joj: String,
    /// Version of QEMU.
    pub qemu: String,
    /// Release of the kernel that runs in it.
    pub kernel: String,
    /// How QEMU keeps time.
    pub clock: String,
    /// Versions of the SQLite builds: name and version.
    pub sqlite: Vec<(String, String)>,
}

/// What one cell gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The cell.
    pub cell: Cell,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was measured.
    Measured(Box<Measurement>),
    /// It could not be, for this reason.
    Failed(String),
}

/// What was measured in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The run that the clock covers. All times are the guest's.
    pub run: Run,
    /// Latencies at the points of `statistics::quantile_grid`, in nanoseconds.
    pub quantiles_ns: Vec<u64>,
    /// What waldio said.
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
}

impl Measurement {
    /// Transactions per second with the trace, of those without: 1 is no cost. `None` where nothing was traced.
    pub fn traced_share(&self) -> Option<f64> {
        let traced = self.traced_run.as_ref()?;
        Some(traced.transactions_per_s() / self.run.transactions_per_s())
    }
}

/// What one transaction writes: medians over the transactions that the clock covers in the traced run, each figure for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    /// Write requests.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Sync calls.
    pub syncs: u64,
}
