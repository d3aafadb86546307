//! Which calls a capture looks at, and which of their arguments are what.

use crate::recording::call::{CallKind, RecordedCall};
use crate::words::words;

words! {
    /// A call by its name. Codes are those of bpf/recording.bpf.c, not of saved recordings.
    CalledName {
        /// read.
        #[default]
        Read = 1 "read",
        /// pread64.
        Pread64 = 2 "pread64",
        /// readv.
        Readv = 3 "readv",
        /// preadv.
        Preadv = 4 "preadv",
        /// preadv2.
        Preadv2 = 5 "preadv2",
        /// write.
        Write = 6 "write",
        /// pwrite64.
        Pwrite64 = 7 "pwrite64",
        /// writev.
        Writev = 8 "writev",
        /// pwritev.
        Pwritev = 9 "pwritev",
        /// pwritev2.
        Pwritev2 = 10 "pwritev2",
        /// lseek.
        Lseek = 11 "lseek",
        /// fsync.
        Fsync = 12 "fsync",
        /// fdatasync.
        Fdatasync = 13 "fdatasync",
        /// sync_file_range.
        SyncFileRange = 14 "sync_file_range",
        /// syncfs.
        Syncfs = 15 "syncfs",
        /// sync.
        Sync = 16 "sync",
        /// ftruncate.
        Ftruncate = 17 "ftruncate",
        /// truncate.
        Truncate = 18 "truncate",
        /// fallocate.
        Fallocate = 19 "fallocate",
        /// fstat.
        Fstat = 20 "fstat",
        /// stat.
        Stat = 21 "stat",
        /// lstat.
        Lstat = 22 "lstat",
        /// newfstatat.
        Newfstatat = 23 "newfstatat",
        /// statx.
        Statx = 24 "statx",
        /// access.
        Access = 25 "access",
        /// faccessat.
        Faccessat = 26 "faccessat",
        /// faccessat2.
        Faccessat2 = 27 "faccessat2",
        /// open.
        Open = 28 "open",
        /// creat.
        Creat = 29 "creat",
        /// openat.
        Openat = 30 "openat",
        /// openat2.
        Openat2 = 31 "openat2",
        /// close.
        Close = 32 "close",
        /// close_range.
        CloseRange = 33 "close_range",
        /// dup.
        Dup = 34 "dup",
        /// dup2.
        Dup2 = 35 "dup2",
        /// dup3.
        Dup3 = 36 "dup3",
        /// fcntl, of which only some commands are looked at.
        Fcntl = 37 "fcntl",
        /// ioctl, of which only some requests are looked at.
        Ioctl = 38 "ioctl",
        /// rename.
        Rename = 39 "rename",
        /// renameat.
        Renameat = 40 "renameat",
        /// renameat2.
        Renameat2 = 41 "renameat2",
        /// link.
        Link = 42 "link",
        /// linkat.
        Linkat = 43 "linkat",
        /// symlink.
        Symlink = 44 "symlink",
        /// symlinkat.
        Symlinkat = 45 "symlinkat",
        /// unlink.
        Unlink = 46 "unlink",
        /// unlinkat.
        Unlinkat = 47 "unlinkat",
        /// mkdir.
        Mkdir = 48 "mkdir",
        /// mkdirat.
        Mkdirat = 49 "mkdirat",
        /// rmdir.
        Rmdir = 50 "rmdir",
        /// chdir.
        Chdir = 51 "chdir",
        /// fchdir.
        Fchdir = 52 "fchdir",
        /// mmap of a file.
        Mmap = 53 "mmap",
        /// io_uring_enter.
        IoUringEnter = 54 "io_uring_enter",
        /// io_submit.
        IoSubmit = 55 "io_submit",
        /// sendfile.
        Sendfile = 56 "sendfile",
        /// copy_file_range.
        CopyFileRange = 57 "copy_file_range",
        /// splice.
        Splice = 58 "splice",
        /// getdents64.
        Getdents64 = 59 "getdents64",
        /// flock.
        Flock = 60 "flock",
        /// open_by_handle_at.
        OpenByHandleAt = 61 "open_by_handle_at",
        /// chmod.
        Chmod = 62 "chmod",
        /// chown.
        Chown = 63 "chown",
        /// utimensat, and futimens, which is this without a path.
        Utimensat = 64 "utimensat",
        /// setxattr, removexattr and their kin.
        Setxattr = 65 "setxattr",
        /// mknod and mknodat.
        Mknod = 66 "mknod",
        /// A call of a program of 32 bits, whatever it is.
        Foreign = 67 "a call of a 32-bit program",
        /// unshare.
        Unshare = 68 "unshare",
        /// fchmod.
        Fchmod = 69 "fchmod",
        /// fchmodat.
        Fchmodat = 70 "fchmodat",
        /// fchown.
        Fchown = 71 "fchown",
        /// fchownat.
        Fchownat = 72 "fchownat",
        /// lchown.
        Lchown = 73 "lchown",
        /// utime and utimes.
        Utimes = 74 "utimes",
        /// fchmodat2.
        Fchmodat2 = 75 "fchmodat2",
        /// futimesat.
        Futimesat = 76 "futimesat",
        /// fadvise64.
        Fadvise64 = 77 "fadvise64",
        /// readahead.
        Readahead = 78 "readahead",
        /// mount, umount2, pivot_root and their kin.
        Mount = 79 "mount",
        /// setns.
        Setns = 80 "setns",
        /// msync.
        Msync = 81 "msync",
        /// io_uring_setup: with a thread of the kernel's (IORING_SETUP_SQPOLL) no other call follows.
        IoUringSetup = 82 "io_uring_setup",
        /// bind, which makes a name where the address is a path.
        Bind = 83 "bind",
        /// chroot.
        Chroot = 84 "chroot",
    }
}

/// Without a path a `stat` is about its descriptor.
pub(super) const AT_EMPTY_PATH: u64 = 0x1000;

/// What lies behind a pointer among the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BehindPointer {
    /// Nothing that is looked at.
    Nothing,
    /// Argument 1: an array of buffers; argument 2: how many.
    Vector,
    /// Argument 2: `struct open_how`.
    OpenHow,
    /// This argument: `struct stat`.
    Status(u8),
    /// This argument: `struct statx`.
    StatusX(u8),
    /// Argument 2: `struct flock`, with some commands.
    Lock,
    /// Argument 1: `struct sockaddr_un`, of which the family and the first byte of a path are taken.
    Address,
}

impl CalledName {
    /// True where argument 0 is a descriptor of what the call is about.
    pub fn is_on_a_descriptor(self) -> bool {
        let code = self.code();
        (code <= Self::Fstat.code() && !matches!(self, Self::Sync | Self::Truncate))
            || matches!(self, Self::Close | Self::Dup | Self::Dup2 | Self::Dup3 | Self::Fcntl | Self::Fchdir)
            || self == Self::Ioctl
            || self.is_a_later_one_on_a_file()
    }

    /// Calls on a descriptor whose codes do not stand with those of the others.
    fn is_a_later_one_on_a_file(self) -> bool {
        matches!(self, Self::Fchmod | Self::Fchown | Self::Fadvise64 | Self::Readahead)
    }

    /// True where the arguments say that argument 0 may be a descriptor of what a `stat` is about.
    pub fn may_be_on_a_descriptor(self, arguments: &[u64; 6]) -> bool {
        match self {
            Self::Newfstatat => arguments[3] & AT_EMPTY_PATH != 0,
            Self::Statx => arguments[2] & AT_EMPTY_PATH != 0,
            Self::Utimensat | Self::Futimesat if arguments[1] == 0 => true,
            Self::Fchownat => arguments[4] & AT_EMPTY_PATH != 0,
            Self::Utimensat | Self::Fchmodat2 => arguments[3] & AT_EMPTY_PATH != 0,
            _ => self.is_on_a_descriptor(),
        }
    }

    /// True where nothing but its count is of use if that descriptor is no file.
    pub fn needs_a_file(self) -> bool {
        (self.code() <= Self::Fstat.code() && self.is_on_a_descriptor()) || self.is_a_later_one_on_a_file()
    }

    /// Which arguments are paths; the second of a `symlink` is the link.
    pub fn path_arguments(self) -> [Option<usize>; 2] {
        use CalledName as Of;
        match self {
            Of::Truncate | Of::Stat | Of::Lstat | Of::Access | Of::Open | Of::Creat | Of::Unlink => {
                [Some(0), None]
            }
            Of::Mkdir | Of::Rmdir | Of::Chdir | Of::Chroot => [Some(0), None],
            Of::Chmod | Of::Chown | Of::Lchown | Of::Utimes => [Some(0), None],
            Of::Fchmodat | Of::Fchmodat2 | Of::Fchownat | Of::Utimensat | Of::Futimesat => [Some(1), None],
            Of::Newfstatat | Of::Statx | Of::Faccessat | Of::Faccessat2 => [Some(1), None],
            Of::Openat | Of::Openat2 | Of::Unlinkat | Of::Mkdirat => [Some(1), None],
            Of::Rename | Of::Link | Of::Symlink => [Some(0), Some(1)],
            Of::Renameat | Of::Renameat2 | Of::Linkat => [Some(1), Some(3)],
            Of::Symlinkat => [Some(0), Some(2)],
            _ => [None, None],
        }
    }

    /// What lies behind which pointer.
    pub fn behind_pointer(self) -> BehindPointer {
        match self {
            Self::Readv | Self::Preadv | Self::Preadv2 => BehindPointer::Vector,
            Self::Writev | Self::Pwritev | Self::Pwritev2 => BehindPointer::Vector,
            Self::Openat2 => BehindPointer::OpenHow,
            Self::Stat | Self::Lstat | Self::Fstat => BehindPointer::Status(1),
            Self::Newfstatat => BehindPointer::Status(2),
            Self::Statx => BehindPointer::StatusX(4),
            Self::Fcntl => BehindPointer::Lock,
            Self::Bind => BehindPointer::Address,
            _ => BehindPointer::Nothing,
        }
    }

    /// True for calls that take bytes from a file.
    pub fn reads(self) -> bool {
        self.code() < Self::Write.code()
    }

    /// True for calls that give bytes to a file.
    pub fn writes(self) -> bool {
        (Self::Write.code()..=Self::Pwritev2.code()).contains(&self.code())
    }

    /// True for calls whose result is a new descriptor of a path.
    pub fn opens(self) -> bool {
        matches!(self, Self::Open | Self::Creat | Self::Openat | Self::Openat2)
    }

    /// True for calls that make names or take them away, whatever becomes of them.
    pub fn changes_names(self) -> bool {
        (Self::Rename.code()..=Self::Rmdir.code()).contains(&self.code())
    }

    /// True for calls that are only counted.
    pub fn is_only_counted(self) -> bool {
        ((Self::Mmap.code()..=Self::Foreign.code()).contains(&self.code()) && self.attributes() == 0)
            || (Self::Mount.code()..=Self::IoUringSetup.code()).contains(&self.code())
    }

    /// Which attributes of a file it sets: bits of [`RecordedCall`]; 0 for other calls.
    pub(super) fn attributes(self) -> u32 {
        use CalledName as Of;
        match self {
            Of::Chmod | Of::Fchmod | Of::Fchmodat | Of::Fchmodat2 => RecordedCall::SETS_MODE,
            Of::Chown | Of::Fchown | Of::Fchownat => RecordedCall::SETS_OWNER,
            Of::Lchown => RecordedCall::SETS_OWNER | RecordedCall::OF_LINK,
            Of::Utimensat | Of::Utimes | Of::Futimesat => RecordedCall::SETS_TIMES,
            _ => 0,
        }
    }

    /// Where the bytes of a read or write begin, by its arguments; `None` for the position of the descriptor.
    pub fn offset_argument(self) -> Option<usize> {
        let is_placed = matches!(
            self,
            Self::Pread64 | Self::Preadv | Self::Preadv2 | Self::Pwrite64 | Self::Pwritev | Self::Pwritev2
        );
        is_placed.then_some(3)
    }

    /// The row of a recording for a call on a descriptor.
    pub(super) fn kind_on_a_descriptor(self) -> CallKind {
        match self {
            Self::Pread64 => CallKind::Pread,
            Self::Readv => CallKind::Readv,
            Self::Preadv | Self::Preadv2 => CallKind::Preadv,
            Self::Write => CallKind::Write,
            Self::Pwrite64 => CallKind::Pwrite,
            Self::Writev => CallKind::Writev,
            Self::Pwritev | Self::Pwritev2 => CallKind::Pwritev,
            Self::Lseek => CallKind::Lseek,
            Self::Fsync => CallKind::Fsync,
            Self::Fdatasync => CallKind::Fdatasync,
            Self::SyncFileRange => CallKind::SyncFileRange,
            Self::Syncfs => CallKind::Syncfs,
            Self::Ftruncate => CallKind::Ftruncate,
            Self::Fallocate => CallKind::Fallocate,
            Self::Fstat => CallKind::Fstat,
            Self::Fchmod | Self::Fchown => CallKind::FsetAttributes,
            Self::Fadvise64 | Self::Readahead => CallKind::Fadvise,
            _ => CallKind::Read,
        }
    }

    /// True for calls that make a descriptor, or change the directory of relative paths.
    pub(super) fn has_its_effect_at_its_end(self) -> bool {
        use CalledName as Of;
        self.opens()
            || matches!(self, Of::Dup | Of::Dup2 | Of::Dup3 | Of::Fcntl | Of::Chdir | Of::Fchdir | Of::Chroot)
    }
}

/// Commands of fcntl that are looked at.
pub mod commands {
    /// Another descriptor.
    pub const F_DUPFD: u64 = 0;
    /// Sets FD_CLOEXEC, or takes it away.
    pub const F_SETFD: u64 = 2;
    /// How the open file description goes on: O_APPEND and the like.
    pub const F_SETFL: u64 = 4;
    /// A lock of the process, or none.
    pub const F_SETLK: u64 = 6;
    /// The same, waiting for it.
    pub const F_SETLKW: u64 = 7;
    /// A lock of the open file description.
    pub const F_OFD_SETLK: u64 = 37;
    /// The same, waiting for it.
    pub const F_OFD_SETLKW: u64 = 38;
    /// Another descriptor with FD_CLOEXEC.
    pub const F_DUPFD_CLOEXEC: u64 = 1030;
    /// All of them.
    pub const ALL: [u64; 8] =
        [F_DUPFD, F_SETFD, F_SETFL, F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_DUPFD_CLOEXEC];
    /// Those about locks.
    pub const LOCKS: [u64; 4] = [F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW];

    /// True for those that make or change no descriptor: of what is no file they do not matter.
    pub fn needs_a_file(command: u64) -> bool {
        command == F_SETFL || LOCKS.contains(&command)
    }

    /// Requests of ioctl: FD_CLOEXEC is taken away, and set.
    pub const FIONCLEX: u64 = 0x5450;
    /// See above.
    pub const FIOCLEX: u64 = 0x5451;
    /// Requests of ioctl that share blocks of two files: FICLONE, FICLONERANGE, FIDEDUPERANGE.
    pub const SHARING: [u64; 3] = [0x4004_9409, 0x4020_940d, 0xc018_9436];
    /// Kinds (bits 8 to 15) of requests that filesystems answer: those of ext4 and of several others, XFS, Btrfs, F2FS, NILFS2, FAT.
    pub const FILESYSTEM_KINDS: [u64; 6] = [0x66, 0x58, 0x94, 0xf5, 0x6e, 0x72];
    /// Requests of these kinds that programs make often, and that change nothing: flags of a file (two lengths), its blocks, its
    /// attributes, blocks of the filesystem, its label, what F2FS can do.
    pub const ASKING: [u64; 7] =
        [0x8008_6601, 0x8004_6601, 0xc020_660b, 0x801c_581f, 0xc0c0_583b, 0x8100_9431, 0x8004_f50c];

    /// True where an ioctl may change a file. Its request is an `int`.
    pub fn changes_a_file(request: u64) -> bool {
        let request = request & u64::from(u32::MAX);
        FILESYSTEM_KINDS.contains(&(request >> 8 & 0xff)) && !ASKING.contains(&request)
    }

    /// True where an ioctl is about the descriptor, whatever is open under it.
    pub fn is_about_descriptor(request: u64) -> bool {
        [FIONCLEX, FIOCLEX].contains(&(request & u64::from(u32::MAX)))
    }
}
