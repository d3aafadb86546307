//! What joj and its workers say to each other, as JSON.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use joj_analysis::bench::contended::{ContendedKey, ContendedRun};
use joj_analysis::bench::document::LimitKind;
use joj_analysis::bench::key::{JournalMode, RowKey, Schema, Synchronous};
use joj_analysis::bench::run::{Run, StatusLine, SyncCount};
use joj_analysis::bench::study::initialisation::InitialisationKey;
use joj_analysis::bench::study::pattern::PatternKey;
use joj_analysis::lab::crash::{CrashVerdict, Promise};
use libsqlite3_sys::SQLITE_FULL;
use serde::{Deserialize, Serialize};

use crate::machine::files::counters::Sources;
use crate::machine::files::work_dir::cannot_write;
use crate::machine::proc::usage::Usage;
use crate::machine::sqlite::connection::SqliteError;

/// What a worker shall do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Task {
    /// Load a SQLite build, and the extension if there is one, and say what they are.
    Describe(Libraries),
    /// Set each of these options of the extension, as it names them, on a new database.
    SetOptions {
        /// What to load.
        libraries: Libraries,
        /// Where the database goes.
        directory: String,
        /// Names and values.
        options: Vec<(String, String)>,
    },
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
    /// Prepare a database, have writers commit to it, verify it.
    Contend(ContendedTask),
    /// Be one or more of these writers.
    Write(WriteTask),
    /// Make a log ready and overwrite it.
    Initialise(InitialisationTask),
    /// Write frames to a log.
    Pattern(PatternTask),
    /// Write blocks of a file, each made durable.
    Files(FileTask),
    /// Commit the transactions of `joj lab crash`.
    CrashWrite(CrashWriteTask),
    /// Look at a database behind a power cut.
    CrashCheck(CrashCheckTask),
}

/// The database of `joj lab crash`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrashDatabase {
    /// What to load.
    pub libraries: Libraries,
    /// Its file.
    pub file: String,
    /// Journal mode, or waldio.
    pub mode: JournalMode,
    /// `PRAGMA synchronous`.
    pub synchronous: Synchronous,
    /// Options of waldio: names without `waldio_`, and values.
    pub waldio_options: Vec<(String, String)>,
}

/// Transactions to be cut.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrashWriteTask {
    /// Where; the file is not there yet.
    pub database: CrashDatabase,
    /// How many.
    pub commits: u64,
}

/// A database behind a power cut.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrashCheckTask {
    /// The database.
    pub database: CrashDatabase,
    /// What it must have.
    pub promise: Promise,
    /// An empty directory, to look at a copy there first, with nothing loaded into SQLite.
    pub copy: Option<String>,
}

/// A step of the writer's, by the clock that all processes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashEvent {
    /// The transaction's number; none for a checkpoint, and for closing and opening.
    pub commit: Option<u64>,
    /// Before it.
    pub begin_ns: u64,
    /// Behind it: from here on a COMMIT is acknowledged.
    pub end_ns: u64,
}

/// What the writer did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashWritten {
    /// The empty table was durable.
    pub ready_ns: u64,
    /// Its steps, in order.
    pub events: Vec<CrashEvent>,
}

/// What a database behind a power cut has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashChecked {
    /// By the mode itself.
    pub verdict: CrashVerdict,
    /// By stock SQLite, of a copy.
    pub stock: Option<CrashVerdict>,
}

/// What to load; by default the SQLite inside joj, alone and as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Libraries {
    /// File of the SQLite build; none for the one inside joj.
    pub sqlite: Option<String>,
    /// File of the waldio extension; none for stock modes.
    pub extension: Option<String>,
    /// Commit with F2FS's atomic writes where a rollback journal would be; the build must be made for that. Without it SQLite is kept
    /// from them.
    pub batch_atomic: bool,
    /// Keep SQLite from syncing the directory of a rollback journal, as builds with `SQLITE_DISABLE_DIRSYNC` do.
    pub no_directory_sync: bool,
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
    /// Options of waldio that the environment does not set: names without `waldio_`, and values.
    pub waldio_options: Vec<(String, String)>,
    /// Run no checkpoint beside the transactions, but one behind them with a clock of its own.
    pub checkpoint_apart: bool,
}

/// One run of many writers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContendedTask {
    /// What to load.
    pub libraries: Libraries,
    /// An empty directory.
    pub directory: String,
    /// What to run.
    pub key: ContendedKey,
    /// How long the clock runs.
    pub length: RunLength,
    /// Counters to read meanwhile.
    pub sources: Sources,
    /// Count calls for durability instead of time.
    pub count_syncs: bool,
    /// Options of waldio that the environment does not set: names without `waldio_`, and values.
    pub waldio_options: Vec<(String, String)>,
}

/// When the clock of many writers stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunLength {
    /// Behind a warm-up, after so many nanoseconds.
    Time(u64),
    /// When so many commits have returned to all writers together, which are threads of one process then and go on until that
    /// moment. Without a warm-up and without watching the log: what is beside them on an emulated processor takes their time.
    Commits(u64),
}

/// The writers of one process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteTask {
    /// What to load.
    pub libraries: Libraries,
    /// The database file, prepared.
    pub database: String,
    /// The table to insert into.
    pub schema: Schema,
    /// Number of the process's first writer; the first of all is 0.
    pub writer_first: u32,
    /// How many threads, each a writer.
    pub writers: u32,
    /// Commits after which they stop, counted in all of them; none where the window's end does it.
    pub commits: Option<u64>,
    /// Options of waldio: names without `waldio_`, and values.
    pub waldio_options: Vec<(String, String)>,
    /// Count calls for durability.
    pub count_syncs: bool,
    /// Ask waldio afterwards.
    pub ask_waldio: bool,
    /// The slow device: its path and how long a flush takes there, in nanoseconds.
    pub slow_device: Option<(String, u64)>,
}

/// One run of a way to initialise a log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InitialisationTask {
    /// An empty directory.
    pub directory: String,
    /// What to run.
    pub key: InitialisationKey,
    /// Blocks of each pass.
    pub overwrites: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

/// One run of a log pattern.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PatternTask {
    /// An empty directory.
    pub directory: String,
    /// What to run.
    pub key: PatternKey,
    /// How many commits of one frame.
    pub commits: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

/// Its steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PatternRuns {
    /// The commits.
    pub commits: Run,
    /// One fdatasync behind them.
    pub last_flush: Run,
    /// What was wrong with the file afterwards.
    pub failure: Option<String>,
}

/// Where the blocks of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilePattern {
    /// Each behind the last, in a file that grows.
    Append,
    /// In order, in a file that is there; from its begin again behind its end.
    Sequential,
    /// Anywhere in a file that is there.
    Random,
}

/// Writes of 4 KiB, each followed by a sync call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileTask {
    /// An empty directory.
    pub directory: String,
    /// Where.
    pub pattern: FilePattern,
    /// fsync instead of fdatasync.
    pub full_sync: bool,
    /// How many, in all threads.
    pub writes: u64,
    /// Threads, each with a file and its part of the writes.
    pub threads: u32,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

/// Steps of an initialisation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InitialisationRuns {
    /// Making the file.
    pub create: Run,
    /// Making it longer.
    pub extend: Run,
    /// The first overwrite of each block.
    pub first_pass: Run,
    /// The second.
    pub second_pass: Run,
    /// What was wrong with the file afterwards.
    pub failure: Option<String>,
}

/// When to write, by the clock that all processes share. The second line that a writing process reads.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Window {
    /// Writing begins: the warm-up.
    pub begin_ns: u64,
    /// The clock starts.
    pub start_ns: u64,
    /// The clock stops, and no INSERT begins any more.
    pub end_ns: u64,
}

/// What one writer did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct WriterReport {
    /// Commits that returned while the clock ran.
    pub commits: u64,
    /// Commits that ever returned.
    pub acknowledged: u64,
    /// How long each commit took that returned after the clock had started, all waiting included.
    pub latencies_ns: Vec<u64>,
    /// How often an INSERT ended in which error.
    pub errors: BTreeMap<String, u64>,
    /// When the last of these commits returned, by the clock that all processes share.
    pub last_commit_ns: u64,
    /// The longest wait that ended in an error.
    pub longest_failed_ns: Option<u64>,
    /// The error after which it could not go on.
    pub fatal: Option<Refusal>,
}

/// What the writers of one process did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Each of them.
    pub writers: Vec<WriterReport>,
    /// What the process used while the clock ran.
    pub usage: Usage,
    /// Calls for durability while the clock ran, where they were counted.
    pub syncs: Option<SyncCount>,
    /// What waldio said.
    pub waldio_status: Vec<StatusLine>,
}

/// What all writers of a run did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Contended {
    /// The run; its round is joj's to fill in.
    pub run: ContendedRun,
    /// Latencies in nanoseconds, in no order.
    pub latencies_ns: Vec<u64>,
    /// What waldio said to the first writer.
    pub waldio_status: Vec<StatusLine>,
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
    /// Of [`Task::SetOptions`]: it took them all.
    OptionsSet,
    /// Of [`Task::Calibrate`].
    Calibrated(Calibration),
    /// Of [`Task::Limit`]: each kind, measured or the reason why it was refused.
    Limits(Vec<(LimitKind, Result<Measured, String>)>),
    /// Of [`Task::Row`].
    Measured(Box<Measured>),
    /// Of [`Task::Contend`].
    Contended(Box<Contended>),
    /// Of [`Task::Write`], first: all connections are open.
    Ready,
    /// Of [`Task::Write`], second, where commits are counted: the last of them has returned.
    Enough,
    /// Of [`Task::Initialise`]: measured, or the reason why it was refused.
    Initialised(Result<Box<InitialisationRuns>, String>),
    /// Of [`Task::Pattern`]: measured, or the reason why it was refused.
    Patterned(Result<Box<PatternRuns>, String>),
    /// Of [`Task::Write`], at last.
    Written(Box<ProcessReport>),
    /// Of [`Task::CrashWrite`].
    CrashWritten(CrashWritten),
    /// Of [`Task::CrashCheck`].
    CrashChecked(CrashChecked),
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

/// What a worker writes to its standard output.
pub type Reply = Result<Answer, Refusal>;

impl Refusal {
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
