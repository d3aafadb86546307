//! What came of a command on emulated devices: the JSON of `joj lab exec` (docs/lab_format.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::run::DeviceDelta;
use crate::filesystem::Filesystem;
use crate::lab::result::LabMachine;

/// First word of a result.
pub const EXEC_FORMAT: &str = "joj-lab-exec";
/// Version that this joj writes.
pub const EXEC_VERSION: u32 = 1;

/// The result of `joj lab exec`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ExecResult {
    /// Always `joj-lab-exec`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What it ran on.
    pub machine: LabMachine,
    /// Devices in the order in which they were given, and on each the filesystems.
    pub rows: Vec<ExecRow>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ExecRow {
    /// The filesystem that it was on.
    pub filesystem: Filesystem,
    /// The emulated device below, by its name or file.
    pub device: String,
    /// What came of it.
    pub outcome: ExecOutcome,
}

/// What came of one run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecOutcome {
    /// It ran to its end, whatever that was.
    Ran(CommandRun),
    /// There is no result, for this reason.
    Failed(String),
}

/// A command that ran.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CommandRun {
    /// With which it ended; `null` where a signal ended it.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// From its start to its end by the guest's clock, in nanoseconds.
    pub elapsed_ns: u64,
    /// What the emulated device did in that time.
    pub device: Option<DeviceDelta>,
    /// What it printed, with a mark where that is no UTF-8.
    pub stdout: String,
    /// The same of standard error.
    pub stderr: String,
    /// What the guest's kernel asked the host for its files meanwhile. Each answer took an unknown time of the guest's clock.
    pub host_requests: u64,
}

impl ExecResult {
    /// True where a run has no result, or ended with another exit code than 0.
    pub fn has_failed(&self) -> bool {
        let is_done =
            |row: &ExecRow| matches!(&row.outcome, ExecOutcome::Ran(run) if run.exit_code == Some(0));
        !self.rows.iter().all(is_done)
    }
}
