//! Why a replay gives no result: what, where, and how to mend it.

use std::io;
use std::path::{Path, PathBuf};

use joj_analysis::recording::page_transactions::derive::DeriveError;
use joj_analysis::recording::page_transactions::plan::TransactionPlanError;
use thiserror::Error;

use crate::bench::ask::Stop;
use crate::bench::builds::ExtensionError;
use crate::machine::files::output_file::OutputError;
use crate::machine::files::work_dir::WorkDirError;
use crate::machine::proc::worker_process::NoOwnFile;
use crate::record::error::RecordError;
use crate::trace_file::TraceReadError;

/// So many letters of a name are told where it may have thousands.
const LETTERS_MAX: usize = 200;

/// Why there is no result. Nothing of the replay is left then.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// Ctrl-C or its kin.
    #[error("stopped by a signal: what the replay made is removed")]
    Stopped,
    /// Ctrl-C would end joj without cleaning up.
    #[error("cannot catch Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// The command cannot be run in a copy of the working directory.
    #[error("cannot use the working directory: {0}")]
    WorkingDirectory(#[source] io::Error),
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] TraceReadError),
    /// It is a trace of block requests.
    #[error(
        "{} has no calls: it is a trace of block requests. `joj record --import` makes a recording that can be replayed",
        .0.display()
    )]
    NoCalls(PathBuf),
    /// Mobibench knows MobiGen's scripts only.
    #[error("--compat is Mobibench's reading of a MobiGen script, and {} was not imported from one", .0.display())]
    NoScript(PathBuf),
    /// There is no place for the files.
    #[error(transparent)]
    Place(#[from] WorkDirError),
    /// Nothing can be made in the directory.
    #[error("cannot write in {}: {error}; give a directory in which you may write", .place.display())]
    ReadOnly {
        /// The directory that was given.
        place: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A name is longer than a call may have.
    #[error(
        "the recording has a name of {bytes} bytes, {begin}.., which has {more} more in a replay below DIR, and a call takes no more \
         than 4,095. Give a DIR with a shorter name; where that is not enough, record the program where its directories have shorter \
         names, or fewer lie in each other"
    )]
    LongName {
        /// Its first letters.
        begin: String,
        /// How long it is in the recording.
        bytes: usize,
        /// What stands before it in a replay.
        more: usize,
    },
    /// A file of the replay cannot be made or read.
    #[error("cannot make {}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file of the working directory cannot be copied.
    #[error("cannot copy {}: {error}; {remedy}", begin(.path), remedy = copy_remedy(.error))]
    Copy {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The disk is full where the recording's was not.
    #[error("the disk or the quota of {} is full: {what}. Make room there, or give a directory on another disk", .place.display())]
    Full {
        /// The directory that was given.
        place: PathBuf,
        /// What could not be written.
        what: String,
    },
    /// The same of a disk in the emulated machine: nobody can make room there, and its directories are none of the user's.
    #[error(
        "the emulated disk is full: what is replayed has no room on it. Record less of the program, or leave --device and the like out and \
         replay it in a DIR on a disk with room"
    )]
    FullEmulated,
    /// The process may not have as many files open.
    #[error(
        "no descriptor is left: this process may have {allowed}, and the recording's processes together need some {needed}. Raise the \
         limit before joj runs: `ulimit -n {needed}`, which above `ulimit -Hn` takes root"
    )]
    Descriptors {
        /// How many it may have.
        allowed: u64,
        /// How many are needed.
        needed: usize,
    },
    /// The system has no more threads.
    #[error(
        "cannot start a thread for each of the recording's {threads}: {error}; `ulimit -u` says how many there may be"
    )]
    Threads {
        /// How many are needed.
        threads: usize,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The commits in it cannot be found.
    #[error("{}: {error}", .recording.display())]
    Derive {
        /// The recording.
        recording: PathBuf,
        /// Why not.
        #[source]
        error: DeriveError,
    },
    /// SQLite cannot make its commits.
    #[error("{}: {error}", .recording.display())]
    Transactions {
        /// The recording.
        recording: PathBuf,
        /// Why not.
        #[source]
        error: TransactionPlanError,
    },
    /// The extension is not there.
    #[error(transparent)]
    Extension(#[from] ExtensionError),
    /// There is no process to measure in.
    #[error(transparent)]
    Workers(#[from] NoOwnFile),
    /// Files cannot be in memory.
    #[error("{0}")]
    Memory(String),
    /// What SQLite or the process that measures said.
    #[error("{0}")]
    Sqlite(String),
    /// The recorded pass cannot be recorded.
    #[error("cannot record the pass: {0}")]
    Record(#[from] RecordError),
    /// What the pass has to do cannot be written down: a defect of joj's.
    #[error(transparent)]
    Task(#[from] serde_json::Error),
    /// The recorded pass failed. What it said is on standard error.
    #[error("the pass to be recorded ended with code {0}, so there is no recording and no result")]
    RecordedPass(i32),
    /// A defect of joj's. What the thread said is on standard error.
    #[error(
        "a thread of the replay panicked, so there is no result; this is a defect of joj's, please report it"
    )]
    Panicked,
    /// The result cannot be printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl ReplayError {
    /// Of a file that cannot be made; `place` is the directory that was given.
    pub fn of_file(place: &Path, path: PathBuf, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                let what = format!("{} has no room", path.display());
                Self::Full { place: place.to_owned(), what }
            }
            _ => Self::File { path, error },
        }
    }

    /// The same error where the disk is an emulated one, if it `is` one.
    pub fn where_emulated(self, is: bool) -> Self {
        match self {
            Self::Full { .. } if is => Self::FullEmulated,
            other => other,
        }
    }

    /// Of a file that cannot be copied; `place` is where the copies are.
    pub fn of_copy(place: &Path, path: PathBuf, error: io::Error) -> Self {
        match Self::of_file(place, path, error) {
            Self::File { path, error } => Self::Copy { path, error },
            full => full,
        }
    }

    /// Of a worker that gives no answer; `directory` is the one that was given.
    pub fn of_stop(stop: Stop, directory: &Path) -> Self {
        match stop {
            Stop::Signal => Self::Stopped,
            Stop::Full(what) => Self::Full { place: directory.to_owned(), what },
            Stop::Failed(reason) => Self::Sqlite(reason),
        }
    }
}

/// A name may have thousands of letters.
fn begin(path: &Path) -> String {
    let name = path.display().to_string();
    let end = name.char_indices().nth(LETTERS_MAX).map(|(end, _)| end);
    end.map_or_else(|| name.clone(), |end| format!("{}..", &name[..end]))
}

fn copy_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "each run begins with a copy of all files of this directory: make them readable for you, or run joj from a directory that has \
             none of others"
        }
        io::ErrorKind::InvalidFilename => {
            "a call takes no more than 4,095 bytes of a name: run joj from a directory below which fewer lie in each other, or leave \
             --rerun out"
        }
        _ => "run joj from a directory with the program's files alone, or leave --rerun out",
    }
}
