//! What the host tells the guest about a command of the host's that it shall run.

use serde::{Deserialize, Serialize};

use crate::lab::job::{LabVolume, Setting};

/// The job, below the shared directory.
pub const EXEC_JOB_FILE: &str = "exec.json";

/// What the guest shall do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecJob {
    /// The devices of the guest.
    pub setting: Setting,
    /// Where the command runs.
    pub volumes: Vec<LabVolume>,
    /// The program, by its path on the host or its name, and its arguments.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Files that the host wants when it is over, by their paths as the command sees them.
    pub take: Vec<String>,
    /// The numbers of the volumes that this guest runs it on.
    pub units: Vec<usize>,
}

/// Name in the shared directory of file `number` of those that the host wants.
pub fn taken_file(unit: usize, number: usize) -> String {
    format!("taken-{unit}-{number}")
}
