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
use crate::ffi::base_vfs::{give_back, methods_of};
use crate::ffi::codes::*;
use crate::ffi::types::sqlite3_file;

/// How long those who read may take to leave.
const WAIT: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(1);
/// After an attempt in vain others read undisturbed for at least so many times as long as it kept them out.
const REST_FACTOR: u32 = 20;
/// Locks of a writer, a checkpoint and a recovery.
const WRITERS: LockRange = LockRange { slot: WAL_WRITE_LOCK, count: 3 };

/// A connection of this process has ended its transaction. Where that was a COMMIT that failed, it returns once it is taken back, or in vain
/// after `WAIT`: others may have to be told first that they failed with it.
pub(super) fn after_transaction(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls methods of open files only.
    let connection = unsafe { connection(file) };
    if !connection.is_poisoned() {
        return;
    }
    let waits = connection.take_commit_failed();
    let until = Instant::now() + if waits { WAIT } else { Duration::ZERO };
    while connection.has_failed_commit() {
        let may_try = connection.knows_all_that_failed() && connection.may_keep_readers_out();
        if may_try && take_back(file, until) || Instant::now() >= until {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// SQLite is about to unmap the wal-index, and closes the log then. Nobody tries after the last connection of this process.
pub(super) fn before_close(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls methods of open files only.
    let connection = unsafe { connection(file) };
    if connection.is_poisoned() && (connection.is_last() || connection.may_keep_readers_out()) {
        take_back(file, Instant::now() + WAIT);
    }
}

/// SQLite got the database for itself, and has copied nothing yet.
pub(super) fn when_alone(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls methods of open files only.
    let connection = unsafe { connection(file) };
    if connection.is_poisoned()
        && let Some(failed) = connection.first_failed()
        && connection.take_back(failed)
    {
        connection.sync_taken_back();
    }
}

/// Takes back what may be; those who read have until `until` to leave. False where they stayed, or others had the locks.
fn take_back(file: *mut sqlite3_file, until: Instant) -> bool {
    // SAFETY: SQLite calls methods of open files only.
    let connection = unsafe { connection(file) };
    connection.drop_early_lock();
    connection.hold_write_lock();
    let is_free = || {
        connection.write_lock_is_free();
        connection.write_released();
    };
    if !lock(file, WRITERS, until) {
        is_free();
        return false;
    }
    let began = Instant::now();
    let taken_back = connection.first_failed().map(|failed| {
        let Some(header) = connection.hide_commits() else { return false };
        // Each stays free: nobody begins to read.
        let left = (WAL_READ_LOCK_0..WAL_READ_LOCK_0 + 5).all(|slot| {
            let is_free = lock(file, LockRange::one(slot), until);
            if is_free {
                unlock(file, LockRange::one(slot));
            }
            is_free
        });
        let taken_back = left && connection.take_back(failed);
        if !taken_back {
            connection.show_commits(&header);
        }
        taken_back
    });
    unlock(file, WRITERS);
    is_free();
    match taken_back {
        // A device that fails may take long: nobody is kept waiting for it.
        Some(true) => connection.sync_taken_back(),
        Some(false) => connection.rest(began.elapsed() * REST_FACTOR),
        None => {}
    }
    taken_back.unwrap_or(true)
}

/// Takes locks of the wal-index, all or none, before `until`.
fn lock(file: *mut sqlite3_file, locks: LockRange, until: Instant) -> bool {
    const LOCK: c_int = SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE;
    loop {
        match forward!(shm_of(file) => xShmLock(locks.slot, locks.count, LOCK), SQLITE_IOERR) {
            SQLITE_OK => return true,
            SQLITE_BUSY if Instant::now() < until => std::thread::sleep(PAUSE),
            _ => return false,
        }
    }
}

fn unlock(file: *mut sqlite3_file, locks: LockRange) {
    const UNLOCK: c_int = SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE;
    give_back(|| forward!(shm_of(file) => xShmLock(locks.slot, locks.count, UNLOCK), SQLITE_OK));
}
