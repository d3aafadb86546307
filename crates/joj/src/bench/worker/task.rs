//! What joj and its workers say to each other, as JSON: a task and its name, then the task's answer or why there is none.
//!
//! Each task stands beside what does it, in the files above; [`serve`](super::serve) lists them.

use std::io;
use std::path::Path;

use joj_analysis::bench::run::{Run, StatusLine, SyncCount};
use libsqlite3_sys::SQLITE_FULL;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::machine::files::work_dir::cannot_write;
use crate::machine::sqlite::connection::SqliteError;

/// What a worker shall do.
pub trait Task: Serialize + DeserializeOwned {
    /// What joj calls it when it asks; no two have the same.
    const NAME: &'static str;
    /// What a worker finds.
    type Answer: Serialize + DeserializeOwned;
    /// Does it, in the worker.
    /// # Errors
    /// Why it cannot be done.
    fn run(&self) -> Reply<Self>;

    /// The line that asks for it.
    /// # Errors
    /// Where it cannot be written as JSON.
    fn line(&self) -> serde_json::Result<String> {
        serde_json::to_string(&(Self::NAME, self))
    }
}

/// What a worker writes to its standard output.
pub type Reply<T> = Result<<T as Task>::Answer, Refusal>;

/// Writes a reply to standard output, or a sign on the way to it.
/// # Errors
/// Where it cannot be written as JSON.
pub fn say<A: Serialize>(reply: &Result<A, Refusal>) -> serde_json::Result<()> {
    println!("{}", serde_json::to_string(reply)?);
    Ok(())
}

/// One run's numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// The run; its round and limit are joj's to fill in.
    pub run: Run,
    /// Latencies in nanoseconds, in the order they occurred.
    pub latencies_ns: Vec<u64>,
    /// One fdatasync of the log behind it, and the checkpoint, where that was to be apart.
    pub apart: Option<(Run, Run)>,
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

impl Refusal {
    /// Of anything but a full disk.
    pub fn new(message: String) -> Refusal {
        Refusal { message, disk_full: false }
    }

    /// Of a write in `directory`.
    pub fn of_write(directory: &Path, error: &io::Error) -> Refusal {
        let disk_full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
        Refusal { message: cannot_write(directory, error), disk_full }
    }
}

impl From<SqliteError> for Refusal {
    fn from(error: SqliteError) -> Refusal {
        let disk_full = error.code == SQLITE_FULL;
        let remedy =
            if disk_full { "; free 64 MiB in the measured directory, or give another one" } else { "" };
        Refusal { message: format!("{error}{remedy}"), disk_full }
    }
}
