//! Whether another process has a database open, without opening or closing anything of it.
//!
//! Each connection in WAL mode holds a shared POSIX lock on the database file for as long as it is open, and F_GETLK
//! on *any* descriptor of that file tells of other processes' locks (never of this process's). A descriptor of our
//! own would be a trap: closing it drops every lock that this process has on the file ("How To Corrupt", section
//! 2.2). So the probe borrows the number of the descriptor that SQLite's unix VFS just opened, checks each time that
//! it still is that file, and never closes it. A wrong guess is no danger: the answer only chooses between two ways
//! of writing that are both right.

use std::ffi::{c_int, c_short};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// `PENDING_BYTE` + 2 and 510 bytes: SQLite's shared locks (os.h, `SHARED_FIRST` and `SHARED_SIZE`).
const SHARED_FIRST: i64 = 0x4000_0000 + 2;
const SHARED_SIZE: i64 = 510;
/// The wal-index's write lock (os_unix.c, `UNIX_SHM_BASE`).
const WRITE_LOCK: i64 = 120;
const F_GETLK: c_int = 5;
const F_WRLCK: c_short = 1;
const F_UNLCK: c_short = 2;

/// `struct flock` of 64-bit Linux.
#[repr(C)]
struct Flock {
    kind: c_short,
    whence: c_short,
    start: i64,
    len_bytes: i64,
    process: c_int,
}

unsafe extern "C" {
    fn fcntl(file: c_int, command: c_int, ...) -> c_int;
}

/// A descriptor that somebody else opened and owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockProbe {
    descriptor: RawFd,
    device: u64,
    inode: u64,
}

/// The number that the next descriptor of this process will probably get.
pub(crate) fn next_descriptor() -> Option<RawFd> {
    std::fs::File::open("/dev/null").ok().map(|file| file.as_raw_fd())
}

impl LockProbe {
    /// A probe on `descriptor`, if it is open on the file at `path`; elsewhere than on 64-bit Linux, none.
    pub(crate) fn new(descriptor: RawFd, path: &Path) -> Option<LockProbe> {
        let named = std::fs::metadata(path).ok()?;
        let probe = LockProbe { descriptor, device: named.dev(), inode: named.ino() };
        (cfg!(target_pointer_width = "64") && probe.is_valid()).then_some(probe)
    }

    fn is_valid(self) -> bool {
        // SAFETY: the descriptor is used for one fstat; if it is closed meanwhile, that fails.
        let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(self.descriptor) };
        rustix::fs::fstat(borrowed)
            .is_ok_and(|status| (status.st_dev, status.st_ino) == (self.device, self.inode))
    }

    /// True when no other process holds a lock of a connection; false when one does, or nobody knows.
    pub fn is_alone(self) -> bool {
        self.is_free(SHARED_FIRST, SHARED_SIZE) == Some(true)
    }

    /// On the wal-index's file: true when no other process holds the write lock; `None`: nobody knows.
    pub fn is_write_lock_free(self) -> Option<bool> {
        self.is_free(WRITE_LOCK, 1)
    }

    fn is_free(self, start: i64, len_bytes: i64) -> Option<bool> {
        if !self.is_valid() {
            return None;
        }
        let mut lock = Flock { kind: F_WRLCK, whence: 0, start, len_bytes, process: 0 };
        // SAFETY: F_GETLK reads and fills a `struct flock`, which lives through the call, and changes nothing else.
        let code = unsafe { fcntl(self.descriptor, F_GETLK, &raw mut lock) };
        (code == 0).then_some(lock.kind == F_UNLCK)
    }
}
