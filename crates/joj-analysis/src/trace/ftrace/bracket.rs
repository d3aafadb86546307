//! A sync or durable write that is under way in a thread, and the threads that work for programs.

use crate::trace::event::{Event, FileKey};
use crate::trace::ftrace::inode_number;
use crate::trace::ftrace::record::Inode;

/// A sync or durable write under way in a thread.
#[derive(Debug)]
pub(super) struct Bracket {
    pub(super) begin: Event,
    pub(super) descriptor: Option<u32>,
    /// Filesystems say the file of such a call in a record.
    pub(super) is_named: bool,
    /// Its first event was handed on.
    pub(super) told: bool,
    pub(super) begun_by: BegunBy,
    /// The kernel may give it up at once: its first event waits until it gets somewhere.
    pub(super) tries: bool,
    /// A direct write that a worker ended before this thread said that it goes on alone.
    pub(super) is_over: bool,
    /// The transaction of a journal that it was last said to wait for.
    pub(super) awaited: Option<i64>,
}

/// Whether two records may speak of one file: of Btrfs's, not each says in which subvolume.
pub(super) fn is_one(file: FileKey, other: FileKey) -> bool {
    file.device == other.device && inode_number::may_be_one(file.inode, other.inode)
}

/// What began a bracket, and so may end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BegunBy {
    Call,
    FileSync(Inode),
    DirectWrite(Inode),
}

/// For whom a thread works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worker {
    /// One of io_uring's: it makes the program's calls.
    IoUring,
    /// One of the kernel's: it ends direct writes, and makes the syncs of AIO.
    Kernel,
}

impl Worker {
    /// What a thread of this name is; `None` for a program's own.
    pub(super) fn of(command: &[u8]) -> Option<Self> {
        let workers = [(b"iou-wrk-", Self::IoUring), (b"kworker/", Self::Kernel)];
        workers.iter().find(|(name, _)| command.starts_with(*name)).map(|(_, worker)| *worker)
    }
}

impl Bracket {
    /// One whose first event was not handed on so far.
    pub(super) fn new(begin: Event, begun_by: BegunBy) -> Self {
        Self {
            begin,
            descriptor: None,
            is_named: true,
            told: false,
            begun_by,
            tries: false,
            is_over: false,
            awaited: None,
        }
    }

    /// It waits for a transaction of a journal. False where that is no news: the kernel says it twice.
    pub(super) fn waits(&mut self, transaction: i64) -> bool {
        self.awaited.replace(transaction) != Some(transaction)
    }

    /// Whether it is a direct write to this file that a worker may end before its thread says more.
    pub(super) fn is_direct_write_to(&self, file: FileKey) -> bool {
        matches!(self.begun_by, BegunBy::DirectWrite(_)) && is_one(self.begin.file, file) && !self.is_over
    }
}
