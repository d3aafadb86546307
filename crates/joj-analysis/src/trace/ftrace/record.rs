//! One record of a kernel's trace buffer, whatever that kernel's version calls its fields.

use crate::trace::event::{DeviceNumber, Event, EventKind, Operation, RequestFlags};

/// What a thread did, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds of the buffer's clock.
    pub time_ns: u64,
    /// The thread (`common_pid`); for what happens in an interrupt, the one that was interrupted.
    pub thread: u32,
    pub what: What,
}

/// A thread's name, as the kernel keeps it: zeros behind.
pub type Command = [u8; 16];

/// How an event names a filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// By its device (`s_dev`).
    Device(DeviceNumber),
    /// By its own number (Btrfs).
    Id([u8; 16]),
}

/// How an event names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inode {
    /// The filesystem that has the inode.
    pub holder: Holder,
    /// The inode's number in its filesystem.
    pub number: u64,
}

/// What a new inode is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InodeKind {
    /// A file, or the record does not say.
    File,
    Directory,
    /// A symbolic link, a device, a socket: what it has in blocks no program wrote there.
    Other,
}

/// A length in the unit in which an event has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Blocks of the filesystem.
    Blocks(u64),
    /// A length in bytes.
    Bytes(u64),
}

/// A request's or bio's own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRecord {
    /// Queue, Issue, Complete or Requeue.
    pub kind: EventKind,
    /// Disk or partition.
    pub device: DeviceNumber,
    /// First sector on the whole disk.
    pub sector: u64,
    pub bytes: u64,
    /// What it does, by its letters (`WFS`).
    pub operation: Operation,
    /// How it does it, by its letters.
    pub flags: RequestFlags,
    /// Complete: errno, negative, or 0.
    pub error: i64,
    /// The thread's name, where the record has it.
    pub command: Option<Command>,
}

impl RequestRecord {
    /// An event with what the record says.
    pub(super) fn told(&self, event: Event) -> Event {
        Event {
            device: self.device,
            sector: self.sector,
            bytes: self.bytes,
            operation: self.operation,
            flags: self.flags,
            detail: self.error,
            ..event
        }
    }
}

/// Where bytes of a file lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Which file's.
    pub file: Inode,
    /// The unit of all three: true bytes (Btrfs), false blocks of the filesystem.
    pub in_bytes: bool,
    /// Where in the file.
    pub first: u64,
    /// Where on the filesystem, in its own addresses.
    pub start: u64,
    /// How many.
    pub count: u64,
}

/// A call that makes something durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// fsync(2)
    Fsync,
    /// fdatasync(2)
    Fdatasync,
    /// sync_file_range(2)
    SyncFileRange,
    /// msync(2)
    Msync,
    /// sync(2)
    Sync,
    /// syncfs(2)
    Syncfs,
    /// pwritev2(2) with RWF_DSYNC or RWF_SYNC
    Pwritev2,
}

impl Call {
    /// True for calls of which no filesystem's record names the file.
    pub fn is_of_no_record(self) -> bool {
        matches!(self, Self::SyncFileRange | Self::Syncfs)
    }

    /// The event with which it begins.
    pub(super) fn begins(self) -> EventKind {
        if self == Self::Pwritev2 { EventKind::DurableWrite } else { EventKind::SyncBegin }
    }

    /// As programs write it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::SyncFileRange => "sync_file_range",
            Self::Msync => "msync",
            Self::Sync => "sync",
            Self::Syncfs => "syncfs",
            Self::Pwritev2 => "pwritev2",
        }
    }
}

/// What a call did to names of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameChange {
    /// A file got a further name (link).
    Added,
    /// A file got another name (rename), or two got each other's.
    Renamed,
    /// A file lost a name (unlink, rmdir).
    Removed,
}

/// What a record says, whichever filesystem's event it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The block layer did something with a request.
    Request(RequestRecord),
    /// A call begins.
    CallBegin {
        /// The system call.
        call: Call,
        /// The file descriptor, where the call has one.
        descriptor: Option<u32>,
        /// Where a write begins.
        offset: u64,
    },
    /// A call ends with this result.
    CallEnd(i64),
    /// A filesystem begins to make a file durable, whoever asked for it.
    FileSync {
        file: Inode,
        /// True where this filesystem also says when it is done.
        ends: bool,
        /// True where data alone is asked for (fdatasync), `None` where this filesystem does not say.
        data_only: Option<bool>,
    },
    /// It is done, with this result.
    FileSyncEnd {
        file: Inode,
        /// 0 or an errno, negative.
        result: i64,
    },
    /// A durable write past the page cache begins.
    DirectWrite {
        file: Inode,
        /// The first byte of the file.
        offset: u64,
        bytes: u64,
        /// True where the kernel does not wait (IOCB_NOWAIT): it may give up without a word, and try again in another thread.
        tries: bool,
    },
    /// A write past the page cache goes on without the thread that began it, be it durable or not.
    DirectWriteQueued(Inode),
    /// A durable write past the page cache is done, in whatever thread.
    DirectWriteEnd {
        file: Inode,
        /// Bytes, or an errno, negative.
        result: i64,
    },
    /// Bytes of a file lie somewhere.
    Mapped(Mapping),
    /// Btrfs looks for room: for a block of this tree, or for data.
    RoomWanted(Option<i64>),
    /// The thread that looked for room has it.
    RoomFound {
        holder: Holder,
        /// Its first byte there.
        start: u64,
        bytes: u64,
    },
    /// A file was cut.
    Truncated {
        file: Inode,
        /// The length that the file has afterwards.
        length: Length,
    },
    /// A thread begins to move what a file has behind a byte to other places of the same file (FALLOC_FL_COLLAPSE_RANGE, _INSERT_RANGE).
    ShiftBegin(Inode),
    /// The filesystem forgets where these blocks of a file lie, as they may lie elsewhere from now on.
    Unmapped {
        file: Inode,
        /// The first of them, in the file.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Blocks are no file's any more.
    BlocksFreed {
        holder: Holder,
        /// The first of them.
        start: u64,
        count: u64,
    },
    /// A file has a name less.
    Unlinked(Inode),
    /// A thread changed names of files: a call of its own succeeded.
    NamesChanged(NameChange),
    /// A thread begins to create a file (XFS): the next inode that it brings into memory is the new one.
    CreateBegin,
    /// An inode was brought into memory.
    Fetched(Inode),
    /// An inode's number was given to a new file.
    Created { file: Inode, kind: InodeKind },
    /// A file is gone: its number may be given to another.
    Ended(Inode),
    /// A lock was granted.
    Lock {
        file: Inode,
        /// The first byte of the file that the lock is on.
        first: u64,
        /// Last byte; `i64::MAX` for the end of the file.
        last: u64,
        /// 0 read, 1 write, 2 unlocked.
        mode: i64,
    },
    /// A journal begins a commit, or is done with it, or the thread waits for it.
    Journal {
        /// JournalBegin, JournalEnd or JournalWait.
        kind: EventKind,
        /// The filesystem's device.
        device: DeviceNumber,
        /// The number of the journal's transaction.
        transaction: i64,
    },
    /// The thread made another.
    NewThread {
        thread: u32,
        /// True where it belongs to the same process.
        same_process: bool,
        command: Command,
    },
    /// A thread has another name from now on.
    Renamed { thread: u32, command: Command },
}
