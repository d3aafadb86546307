//! When a COMMIT that failed, and is published all the same, is taken back (`log_file/taking_back`).
//!
//! ```text
//! COMMIT fails -> its transaction ends -+-> the locks of a recovery -> header of the wal-index taken away -> readers leave
//! a later one of the process ends ------+                                    |                                 | in time
//! the process closes the database ------+      put back as it was <----------+ not in time          the commit is made none
//!                                                                                                  -> who comes next recovers the log
//! ```
//!
//! To others this is a recovery: they begin no transaction meanwhile, and SQLite's busy handler waits for its end. Whoever was reading
//! goes on; nothing of that is written over before all of them have left. If the process is killed at any point, the next
//! one recovers the log as it is. Source: wal.c (`walIndexReadHdr`, `walTryBeginRead`).

use std::ffi::c_int;
use std::time::{Duration, Instant};

use super::handle::{connection, forward, shm_of};
use crate::ffi::base_vfs::methods_of;
use crate::ffi::codes::*;
use crate::ffi::types::sqlite3_file;

/// How long those who read may take to leave.
const WAIT: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(1);
/// Locks of a writer, a checkpoint and a recovery.
const WRITERS: (c_int, c_int) = (WAL_WRITE_LOCK, 3);

/// A connection of this process has ended its transaction.
pub(super) fn after_transaction(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls methods of open files only.
    let connection = unsafe { connection(file) };
    if connection.has_failed_commit() {
        let wait = if connection.take_commit_failed() { WAIT } else { Duration::ZERO };
        take_back(file, wait);
    }
}

/// SQLite is about to unmap the wal-index, and closes the log then.
pub(super) fn before_close(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls methods of open files only.
    if unsafe { connection(file) }.database.check_poison().is_err() {
        take_back(file, WAIT);
    }
}

/// SQLite got the database for itself, and has copied nothing yet.
pub(super) fn when_alone(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls methods of open files only.
    let connection = unsafe { connection(file) };
    if connection.database.check_poison().is_err()
        && let Some(failed) = connection.first_failed()
    {
        connection.take_back(failed);
    }
}

fn take_back(file: *mut sqlite3_file, wait: Duration) {
    // SAFETY: SQLite calls methods of open files only.
    let connection = unsafe { connection(file) };
    let until = Instant::now() + wait;
    if !lock(file, WRITERS, until) {
        return;
    }
    if let Some(failed) = connection.first_failed()
        && let Some(header) = connection.hide_commits()
    {
        // Each stays free: nobody begins to read.
        let left = (WAL_READ_LOCK_0..WAL_READ_LOCK_0 + 5).all(|slot| {
            let is_free = lock(file, (slot, 1), until);
            if is_free {
                unlock(file, (slot, 1));
            }
            is_free
        });
        if !left || !connection.take_back(failed) {
            connection.show_commits(&header);
        }
    }
    unlock(file, WRITERS);
}

/// Takes locks of the wal-index, all or none, before `until`.
fn lock(file: *mut sqlite3_file, (slot, count): (c_int, c_int), until: Instant) -> bool {
    const LOCK: c_int = SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE;
    loop {
        match forward!(shm_of(file) => xShmLock(slot, count, LOCK), SQLITE_IOERR) {
            SQLITE_OK => return true,
            SQLITE_BUSY if Instant::now() < until => std::thread::sleep(PAUSE),
            _ => return false,
        }
    }
}

fn unlock(file: *mut sqlite3_file, (slot, count): (c_int, c_int)) {
    const UNLOCK: c_int = SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE;
    let _ = forward!(shm_of(file) => xShmLock(slot, count, UNLOCK), SQLITE_IOERR);
}
