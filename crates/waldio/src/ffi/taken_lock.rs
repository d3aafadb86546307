//! Exclusive locks of the wal-index that waldio takes from the base VFS for itself, or for a connection before SQLite asks for them.

use std::ffi::c_int;
use std::thread;
use std::time::{Duration, Instant};

use super::base_vfs::{self, methods_of};
use super::codes::{
    LockRange, SQLITE_BUSY, SQLITE_OK, SQLITE_SHM_EXCLUSIVE, SQLITE_SHM_LOCK, SQLITE_SHM_UNLOCK,
    WAL_WRITE_LOCK,
};
use super::types::sqlite3_file;

const WRITE: LockRange = LockRange::one(WAL_WRITE_LOCK);
/// Between two tries for a lock: SQLite's transactions hold theirs for some 20 us.
const TRY_EVERY: Duration = Duration::from_micros(20);

/// The write lock, in the name of one open file of the base VFS. Dropped it stays taken: in a child of fork it is the parent's.
///
/// The base VFS knows it as that file's: its other files of this process are refused as those of other processes are, and it goes when the
/// process dies.
#[derive(Debug)]
#[must_use = "it is given back by `give_back`"]
pub struct TakenLock {
    /// The file, as a number: the lock may be given back by another thread.
    file: usize,
}

impl TakenLock {
    /// Tries for the lock once.
    /// # Safety
    /// `file` is an open file of the base VFS with a wal-index, whose connection does not hold the lock. It stays open, and its wal-index
    /// mapped, until `give_back` or `keep` is called. SQLite's mutexes work.
    pub unsafe fn take(file: *mut sqlite3_file) -> Option<TakenLock> {
        // SAFETY: the caller's promise.
        let code = unsafe { lock(file, WRITE, SQLITE_SHM_LOCK) };
        (code == SQLITE_OK).then(|| TakenLock { file: file.expose_provenance() })
    }

    /// One that is nobody's.
    #[cfg(test)]
    pub fn without_file() -> TakenLock {
        TakenLock { file: 0 }
    }

    /// Gives it back.
    pub fn give_back(self) {
        let file: *mut sqlite3_file = std::ptr::with_exposed_provenance_mut(self.file);
        if !file.is_null() {
            // SAFETY: `take`: it is open still.
            unsafe { unlock(file, WRITE) };
        }
    }

    /// SQLite asked for it: it is SQLite's to give back.
    pub fn keep(self) {}
}

/// Tries for these locks until they are there, or `wait_max` is over: true where they are.
/// # Safety
/// `file` is an open file of the base VFS with a wal-index, whose connection holds none of them.
pub unsafe fn take(file: *mut sqlite3_file, slots: LockRange, wait_max: Duration) -> bool {
    let until = Instant::now() + wait_max;
    loop {
        // SAFETY: the caller's promise.
        match unsafe { lock(file, slots, SQLITE_SHM_LOCK) } {
            SQLITE_OK => return true,
            SQLITE_BUSY if Instant::now() < until => thread::sleep(TRY_EVERY),
            _ => return false,
        }
    }
}

/// Gives back what `take` took.
/// # Safety
/// As `take`.
pub unsafe fn unlock(file: *mut sqlite3_file, slots: LockRange) {
    // SAFETY: the caller's promise.
    base_vfs::give_back(|| unsafe { lock(file, slots, SQLITE_SHM_UNLOCK) });
}

/// # Safety
/// `file` is an open file of the base VFS.
unsafe fn lock(file: *mut sqlite3_file, slots: LockRange, way: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let Some(call) = (unsafe { methods_of(file) }).and_then(|methods| methods.xShmLock) else {
        return SQLITE_BUSY;
    };
    // SAFETY: as above, with slots and flags as SQLite uses them.
    unsafe { call(file, slots.slot, slots.count, way | SQLITE_SHM_EXCLUSIVE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::codes::SQLITE_IOERR;
    use crate::ffi::types::sqlite3_io_methods;
    use std::cell::RefCell;

    thread_local! {
        static CALLS: RefCell<Vec<(c_int, c_int, c_int)>> = const { RefCell::new(Vec::new()) };
    }

    /// Grants the first request for the lock and refuses all others; gives it back at the second try.
    unsafe extern "C-unwind" fn shm_lock(
        _: *mut sqlite3_file,
        slot: c_int,
        count: c_int,
        flags: c_int,
    ) -> c_int {
        CALLS.with_borrow_mut(|calls| {
            calls.push((slot, count, flags));
            let unlocks = calls.iter().filter(|(.., flags)| flags & SQLITE_SHM_UNLOCK != 0).count();
            match (flags & SQLITE_SHM_UNLOCK != 0, unlocks, calls.len()) {
                (true, 1, _) => SQLITE_IOERR,
                (true, ..) | (false, _, 1) => SQLITE_OK,
                (false, ..) => SQLITE_BUSY,
            }
        })
    }

    #[test]
    fn what_was_taken_is_given_back_once_unless_sqlite_has_it() {
        // SAFETY: a number and methods that may be absent: zeros are none.
        let mut methods: sqlite3_io_methods = unsafe { std::mem::zeroed() };
        methods.xShmLock = Some(shm_lock);
        let mut file = sqlite3_file { pMethods: &raw const methods };
        let file = &raw mut file;
        // SAFETY: a file whose only method is there, and which lives to the end.
        let take = || unsafe { TakenLock::take(file) };
        let taken = take().expect("the first is granted");
        assert!(take().is_none(), "refused");
        taken.give_back();
        let [lock, unlock] = [SQLITE_SHM_LOCK, SQLITE_SHM_UNLOCK].map(|way| way | SQLITE_SHM_EXCLUSIVE);
        assert_eq!(CALLS.take(), [(0, 1, lock), (0, 1, lock), (0, 1, unlock), (0, 1, unlock)]);
        take().expect("granted").keep();
        assert_eq!(CALLS.take(), [(0, 1, lock)]);
    }
}
