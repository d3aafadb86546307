//! What attribution makes of events: requests with the runs in them, sync calls, and SQLite's commits.

use serde::Serialize;

use crate::filesystem::class::{Class, Part};
use crate::trace::event::{DeviceNumber, DriverSlot, FileKey, Operation, RequestFlags};
use crate::trace::file_type::FileType;
use crate::trace::texts::Text;

/// The number of a sync call, in the order in which they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct SyncId(pub u64);

/// The number of a commit or checkpoint, in the order in which they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct TransactionId(pub u64);

/// Bytes of a request that belong to neighbouring bytes of one file, or to one piece of metadata.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BlockRun {
    /// When its bio was handed over; the time of issue where nobody saw that.
    pub queued_ns: u64,
    /// First sector on the whole disk.
    pub sector: u64,
    pub bytes: u64,
    /// What its bytes are for.
    pub class: Class,
    /// Which part of its class it is: of metadata an inode table, say.
    pub part: Part,
    /// The file, for [`Class::Data`] and logged data; else none.
    pub file: FileKey,
    /// The file's name when it was written.
    pub name: Text,
    /// What the file is for.
    pub file_type: FileType,
    /// The file has no name any more.
    pub deleted: bool,
    /// Byte of the file.
    pub offset: u64,
    /// What says that it belongs there.
    pub evidence: Evidence,
    /// What was wanted besides moving bytes; PREFLUSH and FUA here are the intent.
    pub intended: RequestFlags,
    /// The sync call that caused it.
    pub cause: Option<SyncId>,
    /// The commit or checkpoint that it belongs to.
    pub transaction: Option<TransactionId>,
    /// Written for SQLite's own journal file by the filesystem's journal: the journaling of a journal.
    pub journal_of_journal: bool,
    /// Bytes of a logged block that differ from its last logged copy.
    pub changed_bytes: Option<u32>,
    /// Process that handed it over.
    pub process: u32,
    /// The name of the thread that handed it over.
    pub command: Text,
    /// The process for which it was handed over: that of the call that caused it, else its own. 0 where a kernel thread did it for
    /// nobody who is known to wait, and where the capture does not know processes.
    pub for_process: u32,
}

/// How a run was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Its memory, its content, or the filesystem's layout.
    Seen,
    /// An extent that the filesystem named before.
    Extent,
    /// Nothing says where the run belongs.
    #[default]
    None,
}

/// A request as the driver got it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// When it went to the driver.
    pub issued_ns: u64,
    /// When the device was done; `None` if the trace ended before, or has no event of it.
    pub completed_ns: Option<u64>,
    pub disk: DeviceNumber,
    /// First sector on the whole disk.
    pub sector: u64,
    /// Where the driver has it.
    pub slot: DriverSlot,
    /// Length; 0 for a flush.
    pub bytes: u64,
    pub operation: Operation,
    /// What the driver was told.
    pub issued: RequestFlags,
    /// Negative errno, or 0.
    pub error: i64,
    /// The thread's name that gave it to the driver.
    pub command: Text,
    /// What is in it, in order of sectors, without gaps. A flush has one run without bytes where its cause is known.
    pub runs: Vec<BlockRun>,
    /// It was handed over, and never seen at the driver (a device without a request queue, or an event that was lost).
    pub unissued: bool,
    /// The trace ended before it was issued: it is in no count of what the disk did.
    pub under_way: bool,
    /// It is complete, as a call that waited for it returned, or the driver has another one where it was. The trace has no event of that.
    pub untold: bool,
}

impl Request {
    /// The class of most of its bytes.
    pub fn class(&self) -> Class {
        let mut bytes = [0_u64; Class::ALL.len()];
        for run in &self.runs {
            bytes[usize::from(run.class.code())] += run.bytes;
        }
        let most = Class::ALL.iter().rev().max_by_key(|class| bytes[usize::from(class.code())]);
        if self.runs.is_empty() { Class::Unattributed } else { most.copied().unwrap_or_default() }
    }

    /// Bytes of one of its runs that it puts onto the medium: none of a read, and none of a discard or of zeroes that the device
    /// makes, whose lengths are of what becomes free or zero.
    pub fn written_of(&self, run: &BlockRun) -> u64 {
        if self.operation == Operation::Write { run.bytes } else { 0 }
    }

    /// Nanoseconds from issue to completion.
    pub fn latency_ns(&self) -> Option<u64> {
        self.completed_ns.map(|completed_ns| completed_ns.saturating_sub(self.issued_ns))
    }
}

/// A call that makes something durable, from its begin to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Sync {
    pub id: SyncId,
    /// `fsync`, `fdatasync`, ..
    pub call: Text,
    /// What was to be durable.
    pub file: FileKey,
    /// The file's name at the time of the call.
    pub name: Text,
    /// What the file is for.
    pub file_type: FileType,
    /// The thread that calls.
    pub thread: u32,
    /// The thread's process.
    pub process: u32,
    pub command: Text,
    /// When it was called.
    pub begun_ns: u64,
    /// When it returned; `None` if the trace ended before.
    pub ended_ns: Option<u64>,
    /// What the call returned: 0, or a negative errno.
    pub result: i64,
    /// What was written because of it, by class (index: [`Class::code`]).
    pub bytes: [u64; Class::ALL.len()],
    /// Bytes of control blocks of the journal in it: descriptor, commit, revoke.
    pub control_bytes: u64,
    /// Nanoseconds that the device spent on flushes for it.
    pub flush_ns: u64,
    /// Requests for it: writes, flushes, and others such as discards.
    pub requests: u64,
    /// Writes among the requests.
    pub writes: u64,
    /// Flushes among the requests.
    pub flushes: u64,
    /// When the last request for it was complete.
    pub last_completed_ns: u64,
    /// The commit or checkpoint it is part of.
    pub transaction: Option<TransactionId>,
}

/// What SQLite does between taking and giving back a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionKind {
    /// A write transaction: RESERVED on the database, or the write lock of the wal-index.
    Commit,
    /// A checkpoint: its own lock of the wal-index.
    Checkpoint,
    /// Who opens a log first makes the wal-index from it. It has the write lock while it does, and commits nothing.
    Recovery,
}

/// A transaction of SQLite: a commit, a checkpoint or a recovery, from its lock to its last request.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    pub id: TransactionId,
    /// Which of the three it is.
    pub kind: TransactionKind,
    /// The file that was locked (database or wal-index).
    pub file: FileKey,
    /// The file's name.
    pub name: Text,
    /// The thread that calls.
    pub thread: u32,
    /// The thread's process.
    pub process: u32,
    pub command: Text,
    /// When the lock was granted.
    pub begun_ns: u64,
    /// When it was given back; `None` if the trace ended before.
    pub ended_ns: Option<u64>,
    /// It lasted until the connection closed: that holds its lock in exclusive locking mode, for all commits in one.
    pub until_close: bool,
    /// Sync calls in it.
    pub syncs: u64,
    /// Written bytes by class.
    pub bytes: [u64; Class::ALL.len()],
    /// Written for SQLite's journal by the filesystem's.
    pub journal_of_journal_bytes: u64,
    pub writes: u64,
    pub flushes: u64,
}
