//! Why a guest, or a unit of its work, came to no end.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::bench::ask::Stop;
use crate::lab::image::error::ImageError;
use crate::lab::recorded_log::RecordedLogError;
use crate::machine::files::work_dir::WorkDirError;
use crate::machine::proc::worker_process::NoOwnFile;
use crate::machine::qemu::error::QemuError;

/// How long a guest may take for a unit of work or for a step of it: `600 s of this machine (--state-seconds)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit {
    /// The option that has it.
    pub option: &'static str,
    /// In seconds of this machine.
    pub seconds: u64,
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "{} s of this machine ({})", self.seconds, self.option)
    }
}

/// Why host and guest cannot share files.
#[derive(Debug, Error)]
pub enum ShareError {
    /// There is no place for the shared directory.
    #[error("{0}, or name another place with TMPDIR")]
    Place(#[source] WorkDirError),
    /// The shared directory cannot be made.
    #[error("cannot make {}: {error}; name another place with TMPDIR", .path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// What is left for the guest cannot be written as JSON: a fault of joj's.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// What is left for the guest cannot be written.
    #[error("cannot write {}: {error}; name another place with TMPDIR", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file of the guest's cannot be copied.
    #[error("cannot copy {name} to {}: {error}", .to.display())]
    Take {
        /// Its name in the share.
        name: String,
        /// Where it was to be.
        to: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A recording, or a file of one, cannot be copied.
    #[error("cannot copy {name} to {}: {error}; make room", .to.display())]
    Recording {
        /// Its name.
        name: String,
        /// The directory that it was to be in.
        to: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

/// Why a unit has no result.
#[derive(Debug, Error)]
pub enum UnitError {
    /// The guest says why, in its report.
    #[error("{0}")]
    Reported(String),
    /// The guest left no report.
    #[error("no report of the cell: {0}")]
    NoReport(#[source] io::Error),
    /// What the guest left is no report.
    #[error("the cell's report is none: {0}")]
    Damaged(#[source] serde_json::Error),
    /// The guest took too long for the unit, and was ended.
    #[error("it took longer than {limit}, and was ended; what it did: {what}")]
    TooLong {
        /// How long it might take.
        limit: TimeLimit,
        /// What it did last.
        what: String,
    },
    /// The guest ended before it came to the unit.
    #[error(
        "its guest ended while it started; the console said: {said}. The system may have ended it for want of memory: then fewer at a \
         time will do (-j)"
    )]
    NotStarted {
        /// The last lines of its console.
        said: String,
    },
    /// The guest ended while it did the unit.
    #[error("the guest ended in it; its console said: {said}")]
    Ended {
        /// The last lines of its console.
        said: String,
    },
}

/// Why guests cannot go on.
#[derive(Debug, Error)]
pub enum SessionError {
    /// A recording that states are to be made of cannot be read.
    #[error("{0}; leave `--recordings` out, or name an empty DIR")]
    Recording(#[from] RecordedLogError),
    /// Other jojs cannot be kept from recording to the same directory at the same time.
    #[error("cannot lock {}: {error}; name a DIR on a filesystem with locks, where files can be made", .path.display())]
    Turn {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// There is nothing to boot.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Host and guest cannot share files.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// QEMU does not start.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// A file that the memory depends on cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The memory cannot be kept in the cache.
    #[error(
        "cannot {what} {}: {error}; make room, or name another place for the cache with XDG_CACHE_HOME",
        .path.display()
    )]
    Cache {
        /// What was tried, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// QEMU could not write the memory.
    #[error("cannot keep the guest's memory in {}: {reason}; is there room for 300 MB?", .file.display())]
    NotKept {
        /// The file.
        file: PathBuf,
        /// What QEMU says.
        reason: String,
    },
    /// QEMU gives no answer to a command.
    #[error("QEMU does not answer to `{0}`")]
    Silent(String),
    /// QEMU does not do what a command asks for.
    #[error("QEMU refuses `{command}`: {reason}")]
    Refused {
        /// The command.
        command: String,
        /// What QEMU says, as JSON.
        reason: serde_json::Value,
    },
    /// The guest says that it cannot go on.
    #[error("the guest: {0}")]
    Broken(String),
    /// The guest did not boot.
    #[error("the guest did not start; its console said: {said}")]
    NotStarted {
        /// The last lines of its console.
        said: String,
    },
    /// The guest did not come from the snapshot to its job.
    #[error("the guest did not go on; its console said: {said}")]
    NotGoneOn {
        /// The last lines of its console.
        said: String,
    },
    /// The guest took too long in front of its first unit, or between two.
    #[error("the guest had begun nothing after {seconds} s of this machine; its console said: {said}")]
    TooLate {
        /// How long it might take.
        seconds: u64,
        /// The last lines of its console.
        said: String,
    },
    /// The guest left units undone.
    #[error("the guest ended too early; its console said: {said}")]
    TooEarly {
        /// The last lines of its console.
        said: String,
    },
    /// A fault of joj's.
    #[error("a thread of the lab panicked")]
    Panicked,
}

impl SessionError {
    /// For a call that failed: what was tried with which file of the cache.
    pub fn cache(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Cache { what, path, error }
    }
}

/// Why it is not known what the guest runs.
#[derive(Debug, Error)]
pub enum MachineError {
    /// Nothing can be asked for its version.
    #[error(transparent)]
    Workers(#[from] NoOwnFile),
    /// A SQLite build does not load.
    #[error("the {name} SQLite does not say its version: {stop}")]
    NoVersion {
        /// The build.
        name: String,
        /// What came of asking.
        #[source]
        stop: Stop,
    },
}
