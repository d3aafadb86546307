//! One thing that a kernel was seen to do, as captured: no judgement about it.
//!
//! A captured request is up to three kinds of events, in this order:
//!
//! ```text
//! Queue  a filesystem or program hands over a bio: what it wants (PREFLUSH, FUA), one event for each run of bytes
//!        that come from neighbouring bytes of one file
//! Issue  the driver gets a request: bios of neighbouring sectors merged, a large one split, flush and write apart
//! Complete  the device says that it is done
//! ```
//!
//! They belong together by device and sectors. Every other kind says what programs and filesystems did meanwhile.
//! Units: bytes, nanoseconds, sectors of 512 bytes. Bytes on disk: docs/trace_format.md.

use crate::trace::texts::Text;
use crate::words::words;

pub use crate::block_device::{DeviceNumber, SECTOR_BYTES};

/// `detail` where a sync call begins whose end will not be seen: the capture knows so at once.
pub const NO_END: i64 = -1;

/// `detail` where a sync call ends whose end was not seen, as the capture learns later: its time is not the call's end, and what was
/// written because of it is not known.
pub const END_NOT_TOLD: i64 = i64::MIN;

/// `detail` of a lock that was given back (F_UNLCK).
pub const UNLOCK: i64 = 2;

/// A file's identity: a number that an inode had is given to another file, with another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileKey {
    /// The filesystem's device number (`s_dev`): for Btrfs not the disk's.
    pub device: DeviceNumber,
    /// Inode number; 0 where there is no file.
    pub inode: u64,
    /// `i_generation`; 0 where the capture cannot see it (tracefs), and on filesystems that have none.
    pub generation: u32,
}

impl FileKey {
    /// No file.
    pub const NONE: Self = Self { device: DeviceNumber::NONE, inode: 0, generation: 0 };

    /// True where a file is named.
    pub fn is_some(self) -> bool {
        self.inode != 0
    }
}

words! {
    /// What happened. In brackets, which fields of [`Event`] have a meaning beside time, process, thread and command.
    EventKind {
        /// A run of a bio was handed to the block layer (device, sector, bytes, operation, flags, file, offset, backing, content, detail).
        #[default]
        Queue = 1 "queue",
        /// A request went to the driver (device, sector, bytes, operation, flags, offset).
        Issue = 2 "issue",
        /// A request was completed; detail is its errno, negative, or 0 (device, sector, bytes, operation, flags, detail, offset).
        Complete = 3 "complete",
        /// A request went back to its queue, to be issued again (device, sector, bytes, operation, flags, offset).
        Requeue = 4 "requeue",
        /// A system call that makes something durable begins (file, name: the call); detail [`NO_END`]: its end will not be seen.
        SyncBegin = 5 "sync-begin",
        /// It ends; detail is what it returned, or [`END_NOT_TOLD`] (file, name: the call, detail).
        SyncEnd = 6 "sync-end",
        /// A POSIX or OFD lock of a file was set; offset and bytes are its range, `bytes` 0 to the end of the file;
        /// detail: 0 read, 1 write, 2 unlocked (F_RDLCK, F_WRLCK, F_UNLCK). Only locks that were granted.
        Lock = 7 "lock",
        /// A file has this name now (file, name: path from its filesystem's root where known, else the last part).
        Named = 8 "named",
        /// A name of a file is gone; detail: how many it has left (file, name).
        Unlinked = 9 "unlinked",
        /// A file was cut or grown to `bytes` (file).
        Truncated = 10 "truncated",
        /// A filesystem's journal begins to commit; detail is the transaction (device: the filesystem's).
        JournalBegin = 11 "journal-begin",
        /// It is durable; detail is the transaction (device: the filesystem's).
        JournalEnd = 12 "journal-end",
        /// `bytes` of a file from `offset` on lie at `sector` of `device` (file); without a device nobody knows where.
        Extent = 13 "extent",
        /// Events were lost here; detail: how many, -1 where unknown.
        Lost = 14 "lost",
        /// A file holds no block any more: its extents mean nothing from now on (file).
        Freed = 15 "freed",
        /// A write call that is durable when it returns begins (O_DSYNC, O_SYNC, RWF_DSYNC; file, offset, bytes, name: the call).
        /// Its end is a SyncEnd.
        DurableWrite = 16 "durable-write",
        /// A sync call waits for a filesystem's journal: until jbd2 has committed transaction `detail`, or XFS checkpoint `detail` of its
        /// log (0: all that it holds). Device: the filesystem's; thread and process: the call's. Not every capture has it.
        JournalWait = 17 "journal-wait",
        /// A system call of a recording, which is no [`Event`] (crate::recording::call).
        Call = 18 "call",
        /// A process made another; detail is the new one's number. In no file: the head has the command's children.
        Forked = 19 "forked",
    }
}

words! {
    /// What a request asks of the device.
    Operation {
        /// The device's bytes go into memory.
        #[default]
        Read = 0 "read",
        /// Memory's bytes go to the device.
        Write = 1 "write",
        /// Nothing but making earlier writes durable.
        Flush = 2 "flush",
        /// Sectors have no meaning any more.
        Discard = 3 "discard",
        /// Sectors become zero without bytes going there.
        WriteZeroes = 4 "write-zeroes",
        /// Anything else: zone management, secure erase, a driver's own.
        Other = 5 "other",
    }
}

words! {
    /// What the memory of a bio belongs to: how its bytes were recognised.
    Backing {
        /// The capture does not see it (tracefs), or the bio has no memory (flush, discard).
        #[default]
        Unseen = 0 "unseen",
        /// Pages of a file's page cache: `file` and `offset` say which.
        File = 1 "file",
        /// Pages of a block device's own page cache, where filesystems keep metadata: `offset` is the byte on that device.
        Device = 2 "device",
        /// A program's memory, direct I/O: `file` and `offset` say what it wrote.
        Direct = 3 "direct",
        /// Memory of the kernel that belongs to no page cache (copies of metadata, XFS's buffers, Btrfs's parity, tmpfs on its way to swap).
        Private = 4 "private",
        /// A file whose inode the filesystem keeps for itself (Btrfs's trees, F2FS's nodes): `file` and `offset` say which.
        Inner = 5 "inner",
    }
}

words! {
    /// What the first bytes of a run say of themselves.
    Content {
        /// Not looked at, or nothing that we know.
        #[default]
        Unknown = 0 "unknown",
        /// jbd2, magic c03b3998, block type 1.
        JournalDescriptor = 1 "jbd2-descriptor",
        /// jbd2, block type 2.
        JournalCommit = 2 "jbd2-commit",
        /// jbd2, block types 3 and 4.
        JournalSuperblock = 3 "jbd2-superblock",
        /// jbd2, block type 5.
        JournalRevoke = 4 "jbd2-revoke",
        /// XFS's log record, magic feedbabe, or a run that its log's own completion routine awaits.
        XfsLog = 5 "xfs-log",
        /// A block of one of Btrfs's trees; `detail` is the tree's number (-6 the log tree, -7 its relocation, 1 the root tree ..).
        BtrfsTree = 6 "btrfs-tree",
        /// An XFS buffer; `detail` is the first four bytes, big endian (its magic).
        XfsBuffer = 7 "xfs-buffer",
        /// Page 1 of a SQLite database.
        SqliteDatabase = 8 "sqlite-database",
        /// The header of a SQLite rollback journal.
        SqliteJournal = 9 "sqlite-journal",
        /// The header of a SQLite write-ahead log.
        SqliteLog = 10 "sqlite-log",
        /// Looked at: it is none of the above.
        Other = 11 "other",
    }
}

/// What a request wants besides moving bytes, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RequestFlags(pub u16);

impl RequestFlags {
    /// Somebody waits for it (REQ_SYNC): fsync, O_DIRECT, a journal's commit.
    pub const SYNC: Self = Self(1);
    /// The filesystem calls it metadata (REQ_META).
    pub const METADATA: Self = Self(2);
    /// It is durable when complete (REQ_FUA).
    pub const FUA: Self = Self(4);
    /// What was completed before is durable before it (REQ_PREFLUSH).
    pub const PREFLUSH: Self = Self(8);
    /// Read ahead of need (REQ_RAHEAD).
    pub const READ_AHEAD: Self = Self(16);
    /// A further run of the same bio: its flags were counted with the first run.
    pub const CONTINUED: Self = Self(32);
    /// More runs of this bio were not captured: what is missing of its bytes is not known.
    pub const CUT_SHORT: Self = Self(64);

    /// True where all bits of `wanted` are there.
    pub fn has(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// The flags of both.
    #[must_use]
    pub fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// These without `less`.
    #[must_use]
    pub fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }
}

/// One event. Which fields have a meaning says [`EventKind`]; the others are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Event {
    /// Nanoseconds of the trace's clock (CLOCK_MONOTONIC in a capture).
    pub time_ns: u64,
    pub kind: EventKind,
    /// The disk, or the partition that was asked for; for a journal the filesystem's device.
    pub device: DeviceNumber,
    /// First sector on the whole disk, also where `device` is a partition.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// What a request does.
    pub operation: Operation,
    /// What else it wants: as intended in `Queue`, as issued in `Issue`.
    pub flags: RequestFlags,
    /// Thread in which it happened (Linux's tid).
    pub thread: u32,
    /// Its process (Linux's tgid).
    pub process: u32,
    /// The thread's name; of a worker of io_uring's, with eBPF, its program's.
    pub command: Text,
    /// The file that the bytes belong to, or that a call names.
    pub file: FileKey,
    /// Byte of `file` (or of the device, see [`Backing::Device`]) at which the run begins. Of `Issue`, `Complete` and `Requeue` a
    /// [`DriverSlot`].
    pub offset: u64,
    /// What the memory belongs to.
    pub backing: Backing,
    /// What the bytes say of themselves.
    pub content: Content,
    /// A number whose meaning depends on the kind. For a `Queue` of a journal's block whose earlier copy was captured too: how many of
    /// its bytes changed since, plus 1; 0 where nobody looked.
    pub detail: i64,
    /// A name that belongs to the event: a file's, or a call's.
    pub name: Text,
}

/// Where a driver has a request: in the upper 32 bits the number of its queue (Linux: `blk_mq_hw_ctx`) plus 1, in the lower ones the
/// request's tag plus 1. While the request is there, no other one has both. 0 where the trace does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DriverSlot(pub u64);

impl DriverSlot {
    /// The number of the queue plus 1, where it is known.
    pub fn queue(self) -> Option<u64> {
        Some(self.0 >> 32).filter(|queue| *queue > 0)
    }

    /// True where the tag is known, too: the slot is one request's.
    pub fn is_one(self) -> bool {
        self.queue().is_some() && self.0.trailing_zeros() < 32
    }
}

impl Event {
    /// Where the driver has the request that is issued, complete, or put back.
    pub fn slot(&self) -> DriverSlot {
        DriverSlot(self.offset)
    }
}

impl EventKind {
    /// True for what happens to a request of a disk, from being handed over to its end.
    pub fn is_of_a_request(self) -> bool {
        matches!(self, Self::Queue | Self::Issue | Self::Complete | Self::Requeue)
    }
}

impl EventKind {
    /// True for what is neither part of a request nor of a call.
    pub fn is_note(self) -> bool {
        matches!(
            self,
            Self::Named
                | Self::Unlinked
                | Self::Freed
                | Self::Truncated
                | Self::JournalBegin
                | Self::JournalEnd
                | Self::Lost
        )
    }

    /// True where a file's blocks or names become others, which its filesystem has to commit.
    pub fn changes_a_file(self) -> bool {
        matches!(self, Self::Extent | Self::Unlinked | Self::Freed | Self::Truncated)
    }
}

impl Event {
    /// First sector after it. A length that is no multiple of a sector is rounded up, as it occupies the whole.
    pub fn end_sector(&self) -> u64 {
        self.sector.saturating_add(self.bytes.div_ceil(SECTOR_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_spellings_lead_back_to_their_words() {
        for &kind in EventKind::ALL {
            assert_eq!(
                (EventKind::from_code(kind.code()), EventKind::from_text(kind.text())),
                (Some(kind), Some(kind))
            );
        }
        for &content in Content::ALL {
            assert_eq!(Content::from_text(content.text()), Content::from_code(content.code()));
        }
        assert_eq!((EventKind::from_code(0), Operation::from_text("")), (None, None));
    }

    #[test]
    fn device_numbers_are_the_kernels() {
        let device = DeviceNumber::new(259, 5).expect("small numbers");
        assert_eq!((device.0, device.to_string().as_str()), ((259 << 20) + 5, "259:5"));
        assert_eq!((DeviceNumber::new(4096, 0), DeviceNumber::new(1, 1 << 20)), (None, None));
    }

    #[test]
    fn a_part_of_a_sector_occupies_it() {
        let event = Event { sector: 10, bytes: 513, ..Event::default() };
        assert_eq!(event.end_sector(), 12);
    }
}
