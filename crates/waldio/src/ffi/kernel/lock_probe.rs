//! Whether another process has a database open, without opening or closing anything of it.
//!
//! Each connection in WAL mode holds a shared POSIX lock on the database file for as long as it is open, and F_GETLK
//! on *any* descriptor of that file tells of other processes' locks (never of this process's). A descriptor of our
//! own would be a trap: closing it drops every lock that this process has on the file ("How To Corrupt", section
//! 2.2). So the probe borrows one that SQLite's unix VFS opened: at the first question it looks through the
//! descriptors of the process for one on that file, checks at each further one that it still is, and never closes
//! it. A database that is written once is never asked about, and pays nothing. A wrong answer is no danger: it only
//! chooses between two ways of writing that are both right.

use std::ffi::{c_int, c_short};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// `PENDING_BYTE` + 2 and 510 bytes: SQLite's shared locks (os.h, `SHARED_FIRST` and `SHARED_SIZE`).
const SHARED_FIRST: i64 = 0x4000_0000 + 2;
const SHARED_SIZE: i64 = 510;
/// The byte that whoever has the wal-index mapped holds a shared lock on (os_unix.c, `UNIX_SHM_DMS`).
const MAPPED_LOCK: i64 = 128;
/// The byte of the first of the five read locks (os_unix.c, `UNIX_SHM_BASE`; wal.c, `WAL_READ_LOCK`).
const READ_LOCK_0: i64 = 123;
const F_GETLK: c_int = 5;
const F_RDLCK: c_short = 0;
const F_WRLCK: c_short = 1;
const F_UNLCK: c_short = 2;

/// `struct flock` of 64-bit Linux.
#[derive(Debug)]
#[repr(C)]
pub struct Flock {
    /// F_RDLCK, F_WRLCK or F_UNLCK.
    pub kind: c_short,
    whence: c_short,
    /// The first byte.
    pub start: i64,
    /// How many; 0 for all to the end.
    pub len_bytes: i64,
    process: c_int,
}

unsafe extern "C" {
    fn fcntl(file: c_int, command: c_int, ...) -> c_int;
}

/// Descriptors with higher numbers are not looked at: 4,096 take a third of a millisecond.
const DESCRIPTORS_MAX: RawFd = 4096;

/// A descriptor that somebody else opened and owns, and the file that it led to.
#[derive(Debug, Clone, Copy)]
struct Borrowed {
    descriptor: RawFd,
    device: u64,
    inode: u64,
}

impl Borrowed {
    fn is_valid(self) -> bool {
        // SAFETY: the descriptor is used for one fstat; if it is closed meanwhile, that fails.
        let borrowed = unsafe { BorrowedFd::borrow_raw(self.descriptor) };
        rustix::fs::fstat(borrowed)
            .is_ok_and(|status| (status.st_dev, status.st_ino) == (self.device, self.inode))
    }

    fn is_free(self, start: i64, len_bytes: i64) -> Option<bool> {
        Some(self.lock(start, len_bytes)? == F_UNLCK)
    }

    /// What lock another process has there, if any.
    fn lock(self, start: i64, len_bytes: i64) -> Option<c_short> {
        let mut lock = Flock { kind: F_WRLCK, whence: 0, start, len_bytes, process: 0 };
        // SAFETY: F_GETLK reads and fills a `struct flock`, which lives through the call, and changes nothing else.
        let code = unsafe { fcntl(self.descriptor, F_GETLK, &raw mut lock) };
        (code == 0).then_some(lock.kind)
    }
}

/// Asks about the locks of one file.
#[derive(Debug)]
pub struct LockProbe {
    /// `None` where its locks are not POSIX locks.
    path: Option<PathBuf>,
    found: Mutex<ProbedFile>,
}

#[derive(Debug, Clone, Copy, Default)]
enum ProbedFile {
    #[default]
    NotLooked,
    On(Borrowed),
    /// None of them; looking again at each commit would cost more than it could gain.
    Nowhere,
}

impl LockProbe {
    /// A probe on the file at `path`, which SQLite has open whenever it is asked; `None` never knows anything.
    pub fn new(path: Option<PathBuf>) -> LockProbe {
        LockProbe { path, found: Mutex::default() }
    }

    /// The file, where its locks are POSIX locks.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn descriptor(&self) -> Option<Borrowed> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match *found {
            ProbedFile::Nowhere => return None,
            ProbedFile::On(borrowed) if borrowed.is_valid() => return Some(borrowed),
            ProbedFile::On(_) | ProbedFile::NotLooked => {}
        }
        let named = std::fs::metadata(self.path.as_ref()?).ok()?;
        let on = |descriptor| Borrowed { descriptor, device: named.dev(), inode: named.ino() };
        let answers = |borrowed: &Borrowed| borrowed.is_valid() && borrowed.is_free(0, 1).is_some();
        let borrowed =
            (0..DESCRIPTORS_MAX).map(on).find(answers).filter(|_| cfg!(target_pointer_width = "64"));
        *found = borrowed.map_or(ProbedFile::Nowhere, ProbedFile::On);
        borrowed
    }

    /// True when no other process holds a lock of a connection; false when one does, or nobody knows.
    pub fn is_alone(&self) -> bool {
        self.is_free(SHARED_FIRST, SHARED_SIZE) == Some(true)
    }

    /// On the wal-index's file: whether another process has it mapped; `None` where that cannot be asked.
    pub fn is_mapped_elsewhere(&self) -> Option<bool> {
        self.is_free(MAPPED_LOCK, 1).map(|is_free| !is_free)
    }

    /// On the wal-index's file: whether another process has the read lock of this number, 0 to 4, as a reader; false where that
    /// cannot be asked.
    pub fn is_read_elsewhere(&self, number: usize) -> bool {
        let byte = i64::try_from(number).map_or(READ_LOCK_0, |number| READ_LOCK_0 + number);
        self.descriptor().and_then(|borrowed| borrowed.lock(byte, 1)) == Some(F_RDLCK)
    }

    fn is_free(&self, start: i64, len_bytes: i64) -> Option<bool> {
        self.descriptor()?.is_free(start, len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_finds_a_descriptor_that_opens_later_and_another_when_that_is_closed() {
        let path = std::env::temp_dir().join(format!("waldio-probe-{}", std::process::id()));
        let probe = LockProbe::new(Some(path.clone()));
        assert!(!probe.is_alone(), "there is no file");
        let first = std::fs::File::create(&path).unwrap();
        assert!(probe.is_alone());
        let second = std::fs::File::open(&path).unwrap();
        drop(first);
        assert!(probe.is_alone());
        drop(second);
        assert!(!probe.is_alone(), "nobody has it open");
        std::fs::remove_file(&path).unwrap();
        assert!(!LockProbe::new(None).is_alone());
    }
}
