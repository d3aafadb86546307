//! What joj and its workers say to each other, as JSON.

use joj_analysis::document::LimitKind;
use joj_analysis::key::RowKey;
use joj_analysis::run::{Run, StatusLine, SyncCount};
use libsqlite3_sys::SQLITE_FULL;
use serde::{Deserialize, Serialize};

use crate::machine::connection::SqliteError;
use crate::machine::counters::Sources;

/// What a worker shall do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Task {
    /// Load a SQLite build, and the extension if there is one, and say what they are.
    Describe(Libraries),
    /// Time a few writes, to tell beforehand how long a plan takes.
    Calibrate {
        /// Where the file goes.
        directory: String,
    },
    /// Measure the disk's limit.
    Limit {
        /// Where the file goes.
        directory: String,
        /// Which ones.
        kinds: Vec<LimitKind>,
        /// How often.
        operations: u64,
        /// Counters to read meanwhile.
        sources: Sources,
    },
    /// Run the transactions of a row.
    Row(RowTask),
}

/// What to load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Libraries {
    /// File of the SQLite build; none for the one inside joj.
    pub sqlite: Option<String>,
    /// File of the waldio extension; none for stock sides.
    pub extension: Option<String>,
}

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RowTask {
    /// What to load.
    pub libraries: Libraries,
    /// An empty directory.
    pub directory: String,
    /// What to run.
    pub key: RowKey,
    /// How many transactions.
    pub transactions: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
    /// Count calls for durability instead of time.
    pub count_syncs: bool,
}

/// What a worker found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Answer {
    /// Of [`Task::Describe`].
    Described {
        /// `sqlite3_libversion()`.
        version: String,
        /// `sqlite3_sourceid()`.
        source_id: String,
    },
    /// Of [`Task::Calibrate`].
    Calibrated(Calibration),
    /// Of [`Task::Limit`]: each kind, measured or the reason why it was refused.
    Limits(Vec<(LimitKind, Result<Measured, String>)>),
    /// Of [`Task::Row`].
    Measured(Box<Measured>),
}

/// What this disk takes, in nanoseconds: medians of a few operations.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Calibration {
    /// Overwriting 4 KiB, fdatasync.
    pub overwrite_ns: u64,
    /// Appending 4 KiB, fsync: the file system has to note the new size.
    pub append_ns: u64,
}

/// One run's numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// The run; its round and limit are joj's to fill in.
    pub run: Run,
    /// Latencies in nanoseconds, in the order they occurred.
    pub latencies_ns: Vec<u64>,
    /// Calls for durability, where they were counted.
    pub syncs: Option<SyncCount>,
    /// Why they were not, where they should have been.
    pub syncs_refused: Option<String>,
    /// What waldio said.
    pub waldio_status: Vec<StatusLine>,
}

/// Why a worker could not do its task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Refusal {
    /// What, where, and how to mend it if that is known.
    pub message: String,
    /// True where the disk is full: then no other run will fare better.
    pub disk_full: bool,
}

/// What a worker writes to its standard output.
pub type Reply = Result<Answer, Refusal>;

impl From<SqliteError> for Refusal {
    fn from(error: SqliteError) -> Refusal {
        let disk_full = error.code == SQLITE_FULL;
        let remedy =
            if disk_full { "; free 64 MiB in the measured directory, or give another one" } else { "" };
        Refusal { message: format!("{error}{remedy}"), disk_full }
    }
}
