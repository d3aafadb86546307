//! One cell of a lab plan: a filesystem on a device, and what is done there.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::io::job::{IoJob, IoKey};
use crate::bench::io::way::SyncWay;
use crate::bench::key::{JournalMode, LogState, Schema, Synchronous, Word, Workload, parsed_as_words, words};
use crate::bench::study::pattern::Pattern;
use crate::filesystem::Filesystem;

/// What a filesystem is made or mounted with, beyond its defaults and `noatime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// No feature besides the defaults.
    None,
    /// ext4 made with `-O fast_commit`.
    FastCommit,
    /// ext4 mounted with `data=journal`.
    DataJournal,
    /// ext4 mounted with `journal_async_commit` (and `data=writeback`, which it needs).
    JournalAsyncCommit,
    /// ext4 and F2FS mounted with `nobarrier`, Btrfs and NILFS2 with theirs: no flush, not safe against a power cut.
    NoBarrier,
    /// Mounted with `discard`: what is freed is trimmed at once, as phones did it.
    Discard,
    /// F2FS with `ipu_policy` 0 (sysfs-fs-f2fs): every page that is written goes to the end of the log, as before that file came in
    /// November 2013. Today's F2FS writes the pages of a small fsync where they are.
    OutOfPlace,
}

impl Word for Feature {
    const DIMENSION: &'static str = "feature";
    const ALL: &'static [Self] = &[
        Self::None,
        Self::FastCommit,
        Self::DataJournal,
        Self::JournalAsyncCommit,
        Self::NoBarrier,
        Self::Discard,
        Self::OutOfPlace,
    ];
    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FastCommit => "fast_commit",
            Self::DataJournal => "data_journal",
            Self::JournalAsyncCommit => "journal_async_commit",
            Self::NoBarrier => "no_barrier",
            Self::Discard => "discard",
            Self::OutOfPlace => "out_of_place",
        }
    }
}

/// The call with which SQLite asks for durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncCall {
    /// SQLite as Linux distributions build it (`HAVE_FDATASYNC`).
    Fdatasync,
    /// SQLite as most programs bundle it, and as the papers' phones had it.
    Fsync,
}

impl Word for SyncCall {
    const DIMENSION: &'static str = "sync call";
    const ALL: &'static [Self] = &[Self::Fdatasync, Self::Fsync];
    fn word(self) -> &'static str {
        match self {
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
        }
    }
}

/// What records the program, as `joj record --method` does, while the clock runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recorder {
    /// Nobody does.
    #[default]
    None,
    /// Programs in the kernel.
    Bpf,
    /// A tracer.
    Ptrace,
}

impl Recorder {
    /// True where nobody records.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl Word for Recorder {
    const DIMENSION: &'static str = "recorder";
    const ALL: &'static [Self] = &[Self::None, Self::Bpf, Self::Ptrace];
    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bpf => "bpf",
            Self::Ptrace => "ptrace",
        }
    }
}

/// When a replay makes each call, as `joj replay --order` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellOrder {
    /// At its recorded time.
    #[default]
    Timed,
    /// After those that it waits for, and the think time that followed them: a slow disk makes the whole longer.
    Dependent,
}

impl CellOrder {
    /// True where nothing else is asked for.
    pub fn is_timed(&self) -> bool {
        *self == Self::Timed
    }
}

impl Word for CellOrder {
    const DIMENSION: &'static str = "order";
    const ALL: &'static [Self] = &[Self::Timed, Self::Dependent];
    fn word(self) -> &'static str {
        match self {
            Self::Timed => "timed",
            Self::Dependent => "dependent",
        }
    }
}

words! {
    /// What keeps the rows of a cell.
    pub enum Store: "store" {
        /// SQLite.
        Sqlite = "sqlite",
        /// A model of what LS-MVBT writes (FAST'14): pages of a multi-version B-tree, and one flush a transaction. No SQLite.
        Lsmvbt = "lsmvbt",
    }
}

impl Store {
    /// True where nothing else is asked for.
    pub fn is_sqlite(&self) -> bool {
        *self == Self::Sqlite
    }
}

/// Bytes of a write without SQLite.
const WRITE_BYTES: u64 = 4096;
/// MiB of the file that writes without SQLite are made in: as Mobibench has it.
pub const FILE_MIB: u32 = 10;
/// A record in order, and the file, of FAST'12's Table 3 (CrystalDiskMark with 100 or 128 MB).
const PROBE_SEQUENTIAL_BYTES: u64 = 128 << 10;
const PROBE_FILE_BYTES: u64 = 128 << 20;
/// What FAST'12 wrote in order before each range of its Fig. 13; no range is wider.
pub const PROBE_FILLED_MIB: u64 = 1024;

words! {
    /// What the cell's transactions do.
    pub enum Task: "task" {
        /// SQLite: appends a row.
        Insert = "insert",
        /// SQLite: changes a random row.
        Update = "update",
        /// SQLite: deletes a random row.
        Delete = "delete",
        /// No SQLite: appends 4 KiB to a file and syncs it.
        Append = "append",
        /// No SQLite: overwrites a file of `file_mib` in order, 4 KiB and a sync at a time.
        WriteSequential = "write_sequential",
        /// No SQLite: overwrites random 4 KiB blocks of such a file, a sync each.
        WriteRandom = "write_random",
        /// No SQLite, past the page cache: overwrites a file of 128 MiB in order, 128 KiB at a time, as FAST'12's Table 3 was measured.
        ProbeWrite = "probe_write",
        /// The same, read.
        ProbeRead = "probe_read",
        /// No SQLite, past the page cache: overwrites random 4 KiB blocks of such a file, which was written in order before.
        ProbeRandomWrite = "probe_random_write",
        /// The same, read.
        ProbeRandomRead = "probe_random_read",
        /// No SQLite: a model of what commits of one page write to a log, here SQLite's frames of 24 + 4096 bytes.
        FramesWal = "frames_wal",
        /// The same with frames padded to sectors of 512 bytes.
        FramesSector = "frames_sector",
        /// The same with a frame's header in a block of its own, padded to 4 KiB.
        FramesPage = "frames_page",
        /// The same with frames padded to 8 KiB.
        FramesPage8k = "frames_page_8k",
        /// The same with a frame's header inside its page.
        FramesEmbedded = "frames_embedded",
        /// The calls of a recording. All of them are one transaction.
        Replay = "replay",
    }
}

impl Task {
    /// The workload of `joj bench` that it is; `None` where it is not SQLite's.
    pub fn workload(self) -> Option<Workload> {
        match self {
            Self::Insert => Some(Workload::Insert),
            Self::Update => Some(Workload::Update),
            Self::Delete => Some(Workload::Delete),
            _ => None,
        }
    }

    /// What it does with a file past the page cache, as `joj device probe` does; `None` for the others.
    pub fn probe(self) -> Option<IoKey> {
        let (job, record_bytes) = match self {
            Self::ProbeWrite => (IoJob::Write, PROBE_SEQUENTIAL_BYTES),
            Self::ProbeRead => (IoJob::Read, PROBE_SEQUENTIAL_BYTES),
            Self::ProbeRandomWrite => (IoJob::RandWrite, WRITE_BYTES),
            Self::ProbeRandomRead => (IoJob::RandRead, WRITE_BYTES),
            _ => return None,
        };
        Some(IoKey { job, way: SyncWay::Direct, record_bytes, file_bytes: PROBE_FILE_BYTES })
    }

    /// Where it puts a log's frames, as `joj bench --waldio-study=alignment` does; `None` for the others.
    pub fn frames(self) -> Option<Pattern> {
        match self {
            Self::FramesWal => Some(Pattern::Wal),
            Self::FramesSector => Some(Pattern::Sector),
            Self::FramesPage => Some(Pattern::Page),
            Self::FramesPage8k => Some(Pattern::Page8k),
            Self::FramesEmbedded => Some(Pattern::Embedded),
            _ => None,
        }
    }

    /// Bytes of a write or read where it is not SQLite's.
    pub fn record_bytes(self) -> u64 {
        self.probe().map_or(WRITE_BYTES, |key| key.record_bytes)
    }
}

parsed_as_words!(Feature, SyncCall, Recorder, CellOrder);

/// One measurement. Two results are comparable where this is equal.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Cell {
    pub filesystem: Filesystem,
    /// What it is made or mounted with.
    pub feature: Feature,
    /// The emulated device's name, or `ram` for a disk without latency.
    pub device: String,
    /// The device of an external journal; `null` for a journal inside.
    pub journal_device: Option<String>,
    pub task: Task,
    /// Who keeps the rows that a task of SQLite's changes; results had SQLite alone at first.
    #[serde(default = "sqlite", skip_serializing_if = "Store::is_sqlite")]
    pub store: Store,
    /// Journal mode, or waldio. Without meaning, and `off`, where the task is not SQLite's. `side` in files of version 1.
    #[serde(alias = "side")]
    pub mode: JournalMode,
    /// `PRAGMA synchronous`.
    pub synchronous: Synchronous,
    /// Which call asks for durability.
    pub sync_call: SyncCall,
    /// Which table the transactions touch.
    pub schema: Schema,
    /// State of the log at the start.
    pub log: LogState,
    /// SQLite commits with F2FS's atomic writes instead of a rollback journal. Results had none at first.
    #[serde(default)]
    pub batch_atomic: bool,
    /// SQLite syncs the directory of a rollback journal that it made, as it does unless compiled with
    /// `SQLITE_DISABLE_DIRSYNC`. Results had no other at first.
    #[serde(default = "synced")]
    pub directory_sync: bool,
    /// Options of waldio, for example `layout=embedded`; in the order in which they are set.
    pub waldio_options: Vec<String>,
    /// Threads that write together. Without SQLite each has a file and its part of the transactions; with SQLite each has a
    /// connection to the one database.
    #[serde(default = "one_thread")]
    pub threads: u32,
    /// MiB of the file that `write_sequential` and `write_random` overwrite; absent where it is the usual one.
    #[serde(default = "file_mib", skip_serializing_if = "is_file_mib")]
    pub file_mib: u32,
    /// Transactions that the clock covers.
    pub transactions: u64,
    /// Name of the recording that is replayed; with `replay` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// It is read as Mobibench reads a MobiGen script.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compat: bool,
    /// When each of its calls is made.
    #[serde(default, skip_serializing_if = "CellOrder::is_timed")]
    pub order: CellOrder,
    /// The first so many MiB that a probe's records are in, of a file that was written in order before. Absent: 128 MiB,
    /// which is the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_mib: Option<u64>,
    /// Who records what is done; results had nobody at first.
    #[serde(default, skip_serializing_if = "Recorder::is_none")]
    pub recorder: Recorder,
}

/// Of a cell that says nothing of its store.
fn sqlite() -> Store {
    Store::Sqlite
}

/// Of a cell that says nothing of directories.
fn synced() -> bool {
    true
}

/// Of a cell that says nothing of a file.
pub fn file_mib() -> u32 {
    FILE_MIB
}

fn is_file_mib(mib: &u32) -> bool {
    *mib == FILE_MIB
}

/// Of a cell that says nothing of threads: results were without them at first.
pub fn one_thread() -> u32 {
    1
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.filesystem.word(), self.device)?;
        if self.feature != Feature::None {
            write!(formatter, " {}", self.feature.word())?;
        }
        if let Some(device) = &self.journal_device {
            write!(formatter, " journal on {device}")?;
        }
        write!(formatter, ", {}", self.task.word())?;
        if let Some(range_mib) = self.range_mib {
            write!(formatter, " within {range_mib} MiB")?;
        }
        if let Some(recording) = &self.recording {
            let order = if self.order.is_timed() { "" } else { " dependent" };
            return write!(formatter, " {recording}{}{order}", if self.compat { " compat" } else { "" });
        }
        if self.file_mib != FILE_MIB {
            write!(formatter, " in {} MiB", self.file_mib)?;
        }
        if !self.store.is_sqlite() {
            write!(formatter, " {}", self.store.word().to_uppercase())?;
        } else if self.task.workload().is_some() {
            write!(formatter, " {}", self.mode.word().to_uppercase())?;
            if self.batch_atomic {
                write!(formatter, " batch_atomic")?;
            }
            if !self.directory_sync {
                write!(formatter, " no directory_sync")?;
            }
            if self.schema != Schema::Waldio {
                write!(formatter, " {}", self.schema.word())?;
            }
            if self.log == LogState::Steady {
                write!(formatter, " steady")?;
            }
            if self.synchronous != Synchronous::Full {
                write!(formatter, " {}", self.synchronous.word())?;
            }
            for option in &self.waldio_options {
                write!(formatter, " {option}")?;
            }
        } else if self.log == LogState::Steady {
            write!(formatter, " steady")?;
        }
        write!(formatter, ", {}", self.sync_call.word())?;
        if !self.recorder.is_none() {
            write!(formatter, ", recorded by {}", self.recorder.word())?;
        }
        match self.threads {
            1 => Ok(()),
            threads => write!(formatter, ", {threads} threads"),
        }
    }
}

impl Cell {
    /// What the task does with a file past the page cache, and within which of its bytes; `None` for other tasks.
    pub fn probe(&self) -> Option<IoKey> {
        let key = self.task.probe()?;
        Some(IoKey { file_bytes: self.range_mib.map_or(key.file_bytes, |range_mib| range_mib << 20), ..key })
    }

    /// True for a model of a log's frames that writes past the page cache.
    pub fn writes_directly(&self) -> bool {
        self.task.frames().is_some() && self.log == LogState::Steady
    }

    /// Name and value of each of [`Cell::waldio_options`].
    pub fn waldio_settings(&self) -> Vec<(String, String)> {
        let pairs = self.waldio_options.iter().filter_map(|option| option.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Why it cannot be, where it cannot.
    pub fn impossible(&self) -> Option<&'static str> {
        let ext4 = self.filesystem == Filesystem::Ext4;
        let xfs = self.filesystem == Filesystem::Xfs;
        let only_ext4 =
            matches!(self.feature, Feature::FastCommit | Feature::DataJournal | Feature::JournalAsyncCommit);
        if only_ext4 && !ext4 {
            return Some("this feature is ext4's");
        }
        if self.feature == Feature::OutOfPlace && self.filesystem != Filesystem::F2fs {
            return Some("only F2FS can be told to write in place or not");
        }
        if self.feature == Feature::NoBarrier && xfs {
            return Some("XFS has no option against barriers since Linux 4.19");
        }
        if self.journal_device.is_some() && !ext4 && !xfs {
            return Some("only ext4 and XFS have external journals");
        }
        if !self.waldio_options.is_empty() && !self.mode.uses_waldio() {
            return Some("these options are waldio's");
        }
        if self.task.frames().is_some() && self.sync_call != SyncCall::Fdatasync {
            return Some("a log of frames is flushed with fdatasync");
        }
        if !self.directory_sync && !self.has_rollback_journal() {
            return Some("directories are synced for rollback journals: delete, truncate, persist");
        }
        self.without_atomic_writes().or_else(|| self.without_threads())
    }

    fn has_rollback_journal(&self) -> bool {
        matches!(self.mode, JournalMode::Delete | JournalMode::Truncate | JournalMode::Persist)
    }

    /// Why SQLite cannot commit with atomic writes here.
    fn without_atomic_writes(&self) -> Option<&'static str> {
        if !self.batch_atomic {
            return None;
        }
        if self.filesystem != Filesystem::F2fs {
            return Some("only F2FS has atomic writes");
        }
        if !self.has_rollback_journal() {
            return Some("atomic writes take the place of a rollback journal: delete, truncate, persist");
        }
        (self.sync_call != SyncCall::Fsync)
            .then_some("only joj's own SQLite is built for atomic writes: sync_call = [\"fsync\"]")
    }

    /// Why many threads cannot do it.
    fn without_threads(&self) -> Option<&'static str> {
        if self.threads > 1 && self.task.probe().is_some() {
            return Some("a probe has one thread");
        }
        if self.threads > 1 && self.task.frames().is_some() {
            return Some("a log of frames has one writer");
        }
        if self.threads > 1 && self.task == Task::Replay {
            return Some("a recording has its own threads");
        }
        if !self.recorder.is_none() && self.task == Task::Replay {
            return Some("a replay is not recorded");
        }
        let workload = self.task.workload()?;
        if self.threads == 1 {
            return None;
        }
        if workload != Workload::Insert || self.schema == Schema::Mobibench {
            return Some("many writers of one database insert into one table");
        }
        if self.log != LogState::Steady {
            return Some("many writers are measured with wal and waldio, and with a log that is steady");
        }
        (self.synchronous != Synchronous::Full).then_some("many writers are measured with synchronous=FULL")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::facts::sample;

    #[test]
    fn a_cell_that_says_nothing_of_atomic_writes_directories_and_the_file_has_the_ordinary_ones() {
        let cell = sample::cell(JournalMode::Delete);
        let mut old = serde_json::to_value(&cell).unwrap();
        let fields = old.as_object_mut().unwrap();
        assert_eq!(fields.remove("batch_atomic"), Some(false.into()));
        assert_eq!(fields.remove("directory_sync"), Some(true.into()));
        assert_eq!(fields.get("file_mib"), None, "10 MiB are not written");
        assert_eq!(serde_json::from_value::<Cell>(old).unwrap(), cell);
    }
}
