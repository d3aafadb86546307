//! One system call of a recording: what a program asked of its files, without what it wrote or read.
//!
//! Bytes on disk: docs/trace_format.md. Flags have the numbers of x86-64, on every machine.

use crate::recording::flags::{
    EAGAIN, EBADF, EEXIST, EISDIR, ELOOP, ENOENT, ENOTDIR, O_CREAT, O_EXCL, O_NOFOLLOW, O_TMPFILE,
};
use crate::trace::texts::Text;
use crate::words::words;

words! {
    /// Which call. In brackets, which fields of [`RecordedCall`] have a meaning apart from time, process, thread and result.
    CallKind {
        /// open, openat, openat2, creat; result: the descriptor (description, descriptor, flags: O_.., path).
        #[default]
        Open = 1 "open",
        /// close (description, descriptor; flags: [`RecordedCall::STAYS_OPEN`]).
        Close = 2 "close",
        /// dup, dup2, dup3, fcntl with F_DUPFD: another descriptor of the same description (description, descriptor: the new one).
        Dup = 3 "dup",
        /// read (description, descriptor, bytes: asked for).
        Read = 4 "read",
        /// pread64 (the same, offset).
        Pread = 5 "pread",
        /// readv, preadv2 at -1 (as read; flags: RWF_..).
        Readv = 6 "readv",
        /// preadv, preadv2 (as pread; flags: RWF_..).
        Preadv = 7 "preadv",
        /// write (as read).
        Write = 8 "write",
        /// pwrite64 (as pread).
        Pwrite = 9 "pwrite",
        /// writev, pwritev2 at -1 (as readv).
        Writev = 10 "writev",
        /// pwritev, pwritev2 (as preadv).
        Pwritev = 11 "pwritev",
        /// lseek; result: the new position (description, descriptor, offset: signed, flags: SEEK_..).
        Lseek = 12 "lseek",
        /// fsync (description, descriptor).
        Fsync = 13 "fsync",
        /// fdatasync (description, descriptor).
        Fdatasync = 14 "fdatasync",
        /// sync_file_range (description, descriptor, offset, bytes, flags: SYNC_FILE_RANGE_..).
        SyncFileRange = 15 "sync_file_range",
        /// syncfs (description, descriptor).
        Syncfs = 16 "syncfs",
        /// sync: every filesystem of the machine.
        Sync = 17 "sync",
        /// ftruncate (description, descriptor, bytes: the new size).
        Ftruncate = 18 "ftruncate",
        /// truncate (path, bytes: the new size).
        Truncate = 19 "truncate",
        /// fallocate (description, descriptor, offset, bytes, flags: FALLOC_FL_..).
        Fallocate = 20 "fallocate",
        /// rename, renameat, renameat2 (path: old, second path: new, flags: RENAME_..).
        Rename = 21 "rename",
        /// link, linkat (path: old, or description and descriptor of what is open; second path: new).
        Link = 22 "link",
        /// symlink, symlinkat (path: the link's, second path: what is in it).
        Symlink = 23 "symlink",
        /// unlink, unlinkat (path).
        Unlink = 24 "unlink",
        /// mkdir, mkdirat (path).
        Mkdir = 25 "mkdir",
        /// rmdir, unlinkat with AT_REMOVEDIR (path).
        Rmdir = 26 "rmdir",
        /// stat, newfstatat, statx (path; bytes: the size, flags: S_IF.. of a file that is there).
        Stat = 27 "stat",
        /// lstat and its kin: of a link itself (as stat).
        Lstat = 28 "lstat",
        /// fstat and its kin (description, descriptor; bytes, flags as stat).
        Fstat = 29 "fstat",
        /// access, faccessat, faccessat2 (path, flags: R_OK, W_OK, X_OK).
        Access = 30 "access",
        /// fork, vfork, clone, clone3; result: the new thread. It orders the threads; a replay makes no such call.
        Fork = 31 "fork",
        /// No call: the last descriptor of a description went with its process, or with execve (description).
        Released = 32 "released",
        /// No call: a description that was open when the recording began (description, descriptor, path; offset: where it stands;
        /// flags: O_..). With O_TMPFILE of a file that had no name any more (path: a directory; bytes: the file's size).
        Held = 33 "held",
        /// fcntl with F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW (description, descriptor, offset, bytes: 0 is to the end of the file;
        /// flags: F_RDLCK 0, F_WRLCK 1, F_UNLCK 2). They say where SQLite's transactions begin and end; a replay makes no such call.
        Lock = 34 "lock",
        /// No call: the write before it in the same thread wrote the head of a frame of a SQLite log (description; offset: where the head
        /// is; bytes: the page's number; flags: pages of the database after the commit, 0 where the frame ends none).
        LogFrame = 35 "log_frame",
        /// No call: what the read or write before it in the same thread, or with a path the file at the recording's begin, says in
        /// page 1 of a SQLite database (description or path; offset: bytes of a page; bytes: pages of the database; result: pages of its
        /// free list; flags: [`RecordedCall::first_page_flags`]).
        FirstPage = 36 "first_page",
        /// No call: a file that was there when the recording began (path; bytes: its size; flags: its kind, as in `st_mode`).
        Present = 37 "present",
        /// fcntl with F_SETFL: how an open file description goes on (description, descriptor, flags: O_..).
        SetFlags = 38 "set_flags",
        /// No call: another thread woke this one, which waited in no call that a replay makes (result: that thread; bytes: for how
        /// long it had waited, in nanoseconds, 0 where that is not known).
        Woken = 39 "woken",
        /// chmod, chown, lchown, fchmodat, fchownat, utime, utimes, utimensat (path; flags: [`RecordedCall::SETS_MODE`] and its kin). A
        /// replay changes no more than the time of the inode's change, for which the filesystem writes as much.
        SetAttributes = 40 "set_attributes",
        /// fchmod, fchown, and the others on a descriptor (description, descriptor, flags as set_attributes).
        FsetAttributes = 41 "fset_attributes",
        /// posix_fadvise, and readahead, which is POSIX_FADV_WILLNEED (description, descriptor, offset, bytes: 0 is to the end of the
        /// file; flags: POSIX_FADV_..).
        Fadvise = 42 "fadvise",
        /// A write to /proc/sys/vm/drop_caches. A replay drops those caches, or without root what they hold of its own
        /// files.
        DropCaches = 43 "drop_caches",
        /// No call: the thread ended, and by itself: neither another thread nor a signal ended it. Or a signal ended the program, of which
        /// it is the first thread. result: 1 where its process ends with it, 2 where a tracer tells that
        /// of the program's first thread and nothing of others, else 0.
        Ended = 44 "ended",
    }
}

impl CallKind {
    /// True for calls whose result is how many bytes were read.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::Pread | Self::Readv | Self::Preadv)
    }

    /// True for calls whose result is how many bytes were written.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::Pwrite | Self::Writev | Self::Pwritev)
    }

    /// True for calls that make something durable.
    pub fn is_sync(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync | Self::SyncFileRange | Self::Syncfs | Self::Sync)
    }

    /// True for calls that name files by their paths, and open none.
    pub fn is_about_paths(self) -> bool {
        use CallKind::{
            Access, Link, Lstat, Mkdir, Rename, Rmdir, SetAttributes, Stat, Symlink, Truncate, Unlink,
        };
        matches!(self, Truncate | Rename | Link | Symlink | Unlink | Mkdir | Rmdir)
            || matches!(self, Stat | Lstat | Access | SetAttributes)
    }

    /// True for calls that set permissions, owners or times.
    pub fn sets_attributes(self) -> bool {
        matches!(self, Self::SetAttributes | Self::FsetAttributes)
    }

    /// True for rows that no call made.
    pub fn is_no_call(self) -> bool {
        use CallKind::{Ended, FirstPage, Held, LogFrame, Present, Released, Woken};
        matches!(self, Released | Held | LogFrame | FirstPage | Present | Woken | Ended)
    }

    /// True for rows that say no more than when something was.
    pub fn is_time_alone(self) -> bool {
        matches!(self, Self::Woken | Self::Ended)
    }

    /// True for what a replay asks of the kernel.
    pub fn is_replayed(self) -> bool {
        !self.is_no_call() && !matches!(self, Self::Fork | Self::Lock)
    }
}

/// One call. Which fields have a meaning says [`CallKind`]; the others are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordedCall {
    /// Nanoseconds of the recording's clock when it began.
    pub begin_ns: u64,
    /// How long it took; 0 where the recording does not tell.
    pub duration_ns: u64,
    /// Which call.
    pub kind: CallKind,
    /// Its process.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// The open file description, which dup and fork share; 0 where there is none.
    pub description: u32,
    /// The number by which the program called it; -1 where there is none.
    pub descriptor: i32,
    /// What it returned, or its errno, negative.
    pub result: i64,
    /// Byte of the file.
    pub offset: u64,
    /// How many bytes were asked for, or a size.
    pub bytes: u64,
    /// The call's flags.
    pub flags: u32,
    /// An absolute path without `.` and `..`.
    pub path: Text,
    /// Of calls with two paths, the second.
    pub second_path: Text,
}

impl RecordedCall {
    /// `result` of a thread's end with which its process ends.
    pub const PROCESS_ENDS: i64 = 1;
    /// The same of the program's first thread, by a tracer: it does not tell how others end.
    pub const PROGRAM_ENDS: i64 = 2;
    /// `flags` of a close after which the description is open still, through a descriptor that another process inherited.
    pub const STAYS_OPEN: u32 = 1;
    /// `flags` of a call that sets attributes: permissions.
    pub const SETS_MODE: u32 = 1;
    /// See above: user or group.
    pub const SETS_OWNER: u32 = 2;
    /// See above: times of access or modification.
    pub const SETS_TIMES: u32 = 4;
    /// See above: of a link itself.
    pub const OF_LINK: u32 = 8;
    /// With the O_ flags of an open: the path was lost, and the importer made one up.
    pub const LOST_NAME: u32 = 1 << 31;

    /// A lock of so many bytes: F_RDLCK 0, F_WRLCK 1, F_UNLCK 2. With a negative length they lie before the start (fcntl_locking(2)).
    pub fn lock(kind: u32, start: i64, length: i64) -> Self {
        let offset = if length < 0 { start.saturating_add(length) } else { start };
        let (offset, bytes) = (offset.max(0).cast_unsigned(), length.unsigned_abs());
        Self { kind: CallKind::Lock, offset, bytes, flags: kind, ..Self::default() }
    }

    /// True of a [`CallKind::Woken`] by nobody: the thread waited in vain for so long, or slept.
    pub fn waits_in_vain(&self) -> bool {
        self.kind == CallKind::Woken && self.result == 0 && self.bytes > 0
    }

    /// True of a [`CallKind::Woken`] from a sleep.
    pub fn awaits_time(&self) -> bool {
        self.offset % 2 == 1
    }

    /// The bytes that a [`CallKind::Lock`] is for: without a length to the end of the file.
    pub fn locked_bytes(&self) -> std::ops::Range<u64> {
        let end = if self.bytes == 0 { u64::MAX } else { self.offset.saturating_add(self.bytes) };
        self.offset..end
    }

    /// True where a link under the last name of the path is followed.
    pub fn follows_links(&self) -> bool {
        match self.kind {
            CallKind::Access | CallKind::Stat | CallKind::Truncate => true,
            CallKind::Open => {
                self.flags & O_NOFOLLOW == 0 && self.flags & (O_CREAT | O_EXCL) != O_CREAT | O_EXCL
            }
            CallKind::SetAttributes => self.flags & Self::OF_LINK == 0,
            _ => false,
        }
    }

    /// True where a file that had no name any more was open before the first call.
    pub fn holds_nameless(&self) -> bool {
        self.kind == CallKind::Held && self.flags & O_TMPFILE == O_TMPFILE
    }

    /// `flags` of a [`CallKind::FirstPage`]: the format's versions for reading and for writing (1: rollback journal, 2: log), and how
    /// many bytes at the end of each page SQLite leaves to others. Bytes 19, 18 and 20 of the database
    /// (<https://www.sqlite.org/fileformat2.html#the_database_header>).
    pub fn first_page_flags(read_version: u8, write_version: u8, reserved_bytes: u8) -> u32 {
        u32::from_be_bytes([0, read_version, write_version, reserved_bytes])
    }

    /// When it ended.
    pub fn end_ns(&self) -> u64 {
        self.begin_ns.saturating_add(self.duration_ns)
    }

    /// True where it failed for a reason that a replay does not have: no room, no right, a limit, a signal, a wrong address, files
    /// in a directory that the recording does not know. What names say (ENOENT, EEXIST, ENOTDIR, ELOOP) they say again, and so does
    /// what cannot be read (EBADF, EISDIR). EAGAIN is what any error of a read is in a script of MobiGen's, which is made as Mobibench makes it.
    pub fn fails_for_others_reasons(&self) -> bool {
        let is_said_again = match self.kind.is_read() {
            true => matches!(-self.result, EBADF | EISDIR | EAGAIN),
            false => matches!(-self.result, ENOENT | EEXIST | ENOTDIR | ELOOP),
        };
        self.result < 0 && !is_said_again
    }

    /// True for a close after which the file is open elsewhere. A replay has one descriptor for both, so it makes no such call.
    pub fn leaves_open(&self) -> bool {
        self.kind == CallKind::Close && self.stays_open()
    }

    /// Of a close, or of a row of what its process has no more: whether others have it.
    pub fn stays_open(&self) -> bool {
        self.flags & Self::STAYS_OPEN != 0
    }

    /// Bytes that it moved, for a read or write.
    pub fn moved_bytes(&self) -> u64 {
        u64::try_from(self.result).unwrap_or(0)
    }
}
