//! What the host tells the guest about crash states, and what the guest leaves for a guest after it.

use joj_analysis::filesystem::Filesystem;
use joj_analysis::lab::cell::Cell;
use joj_analysis::lab::crash::StateResult;
use serde::{Deserialize, Serialize};

use crate::bench::worker::crash::writer::CrashWritten;
use crate::lab::job::Setting;
use crate::lab::recorded_log::Written;

/// The job, below the shared directory; where it is, there is no other.
pub const CRASH_JOB_FILE: &str = "crash.json";
/// What the guest shall do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashJob {
    /// The SQLite library and the devices of the guest.
    pub setting: Setting,
    /// Filesystems and modes.
    pub cells: Vec<Cell>,
    /// States of each cell.
    pub states: u64,
    /// Chooses cuts and what they keep.
    pub seed: u64,
    /// Filesystems whose blocks may be torn into sectors.
    pub torn: Vec<Filesystem>,
    /// Cut a device that acknowledges flushes without effect.
    pub ignore_flushes: bool,
    /// What this guest does, ascending.
    pub units: Vec<usize>,
}

/// A piece of work with a report of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// The cell's number in the job.
    pub cell: usize,
    /// Which of its states, from 1 on; 0 is the recording that they are made of.
    pub state: u64,
}

impl CrashJob {
    /// How many units there are.
    pub fn units_max(&self) -> usize {
        self.cells.len() * self.units_of_cell()
    }

    /// The units of the cell with this number.
    pub fn units_of(&self, cell: usize) -> std::ops::Range<usize> {
        let of_cell = self.units_of_cell();
        cell * of_cell..(cell + 1) * of_cell
    }

    fn units_of_cell(&self) -> usize {
        usize::try_from(self.states + 1).unwrap_or(usize::MAX)
    }

    /// The unit of this number.
    pub fn unit(&self, number: usize) -> Unit {
        let of_cell = self.units_of_cell();
        Unit { cell: number / of_cell, state: (number % of_cell) as u64 }
    }
}

/// What came of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitReport {
    /// The recording is there.
    Recorded {
        /// Entries after which there can be a cut.
        entries: usize,
        /// No flush took longer.
        longest_flush_ns: u64,
    },
    /// The report of a state that was checked.
    State(StateResult),
}

impl Written for CrashWritten {
    fn ready_ns(&self) -> u64 {
        self.ready_ns
    }
}
