//! A checkpoint behind a closed barrier: the locks that it needs from the base VFS beyond those that SQLite asks for.

use std::cell::Cell;
use std::ffi::c_int;
use std::time::{Duration, Instant};

use super::database_sync::{self, BaseFiles};
use crate::checkpoint::barrier::Outcome;
use crate::connection::{Connection, Way};
use crate::ffi::codes::*;
use crate::ffi::taken_lock::{take, unlock};
use crate::ffi::types::sqlite3_file;

/// Read lock `number`, 1 to 4.
fn read_lock(number: usize) -> LockRange {
    LockRange::one(WAL_READ_LOCK_0 + c_int::try_from(number).unwrap_or(1))
}

/// How a connection's checkpoint runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckpointLocks {
    /// As SQLite means it.
    AsAsked,
    /// With the barrier closed and the write lock taken for it here.
    WithWriteLock,
    /// With the barrier closed; SQLite wanted the write lock itself (`FULL`, `RESTART`, `TRUNCATE`) and gives it back.
    SqliteHasWriteLock,
}

/// SQLite asks for the write lock: true where `begin` took it for this connection, which passes it on.
pub(super) fn pass_write_lock(locks: &Cell<CheckpointLocks>) -> bool {
    let taken = locks.get() == CheckpointLocks::WithWriteLock;
    if taken {
        locks.set(CheckpointLocks::SqliteHasWriteLock);
    }
    taken
}

/// The connection got the checkpoint lock. Where its checkpoint should run with the barrier closed, this closes it,
/// takes the write lock, and returns when the readers of older snapshots are out, or will not leave. `locks` is set then.
///
/// Other processes know nothing of the barrier: their readers come and go. But as nobody writes, the newcomers have the newest
/// snapshot, which keeps no frame from being copied; and once all are, SQLite gives newcomers the database alone.
///
/// Returns `SQLITE_OK`, or the code that the checkpoint ends with.
/// # Safety
/// `files` are those of `connection`, open, in a call of SQLite on it.
pub(super) unsafe fn begin(
    files: BaseFiles,
    connection: &Connection,
    locks: &Cell<CheckpointLocks>,
) -> c_int {
    let base = files.shm;
    // SAFETY: the caller's promise, here and below.
    let is_free = |number| unsafe { are_out(base, read_lock(number), Duration::ZERO) };
    match connection.close_barrier(is_free) {
        Way::Beside => {}
        // SAFETY: as above.
        Way::BesideOnceSynced => return unsafe { database_sync::sync(files, connection) },
        // SAFETY: as above.
        Way::Closed => unsafe { take_locks(base, connection, locks) },
    }
    SQLITE_OK
}

/// The barrier is closed: takes the write lock, and waits for the readers of older snapshots.
/// # Safety
/// As `end`.
unsafe fn take_locks(base: *mut sqlite3_file, connection: &Connection, locks: &Cell<CheckpointLocks>) {
    let (writer_wait, reader_wait) = connection.database.barrier.waits();
    connection.drop_early_lock();
    // The queue is shut: what came in a sleep is none.
    connection.hold_write_lock();
    // SAFETY: as above.
    if !unsafe { take(base, LockRange::one(WAL_WRITE_LOCK), writer_wait) } {
        connection.write_lock_is_free();
        connection.open_barrier(Outcome::InVain);
        return;
    }
    locks.set(CheckpointLocks::WithWriteLock);
    connection.flush_shared();
    let until = Instant::now() + reader_wait;
    for number in 1..=4 {
        let left = until.saturating_duration_since(Instant::now());
        // SAFETY: as above.
        if connection.is_old_snapshot(number) && !unsafe { are_out(base, read_lock(number), left) } {
            // SAFETY: as above.
            return unsafe { leave(base, connection, locks, connection.slow_reader(number)) };
        }
    }
}

/// The checkpoint lock is about to be given back: so is what `begin` took.
/// # Safety
/// `base` is the open file below `connection`'s whose wal-index is in use, in a call of SQLite on it.
pub(super) unsafe fn end(base: *mut sqlite3_file, connection: &Connection, locks: &Cell<CheckpointLocks>) {
    if locks.get() == CheckpointLocks::AsAsked {
        return;
    }
    // Without the write lock in hand a wait would be for those who begin meanwhile.
    let reader_wait = if locks.get() == CheckpointLocks::WithWriteLock {
        connection.database.barrier.waits().1
    } else {
        Duration::ZERO
    };
    let all_copied = connection.is_all_copied();
    // SAFETY: the caller's promise, here and below.
    let outcome = if all_copied && unsafe { are_out(base, WAL_LOG_READ_LOCKS, reader_wait) } {
        Outcome::Succeeded
    } else {
        // SAFETY: as above.
        let stays = |number: &usize| !unsafe { are_out(base, read_lock(*number), Duration::ZERO) };
        let in_the_way = |number: &usize| all_copied || connection.is_old_snapshot(*number);
        let slow_reader = (1..=4).filter(in_the_way).find(stays);
        slow_reader.map_or(Outcome::InVain, |number| connection.slow_reader(number))
    };
    // SAFETY: as above.
    unsafe { leave(base, connection, locks, outcome) };
}

unsafe fn leave(
    base: *mut sqlite3_file,
    connection: &Connection,
    locks: &Cell<CheckpointLocks>,
    outcome: Outcome,
) {
    // A lock that SQLite gave back may be another connection's by now.
    if locks.replace(CheckpointLocks::AsAsked) == CheckpointLocks::WithWriteLock {
        // SAFETY: the caller's promise.
        unsafe { unlock(base, LockRange::one(WAL_WRITE_LOCK)) };
        connection.write_lock_is_free();
    }
    connection.open_barrier(outcome);
}

/// Waits until nobody has these read locks, or `wait_max` is over.
unsafe fn are_out(base: *mut sqlite3_file, slots: LockRange, wait_max: Duration) -> bool {
    // SAFETY: the caller's promise.
    let out = unsafe { take(base, slots, wait_max) };
    if out {
        // SAFETY: as above.
        unsafe { unlock(base, slots) };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_locks_are_counted_from_the_one_of_readers_without_a_log() {
        // Slots of the wal-index: 0 to write, 1 for checkpoints, 2 for recovery, 3 to 7 to read.
        assert_eq!([1, 4].map(read_lock), [LockRange::one(4), LockRange::one(7)]);
        assert_eq!(WAL_LOG_READ_LOCKS, LockRange { slot: 4, count: 4 });
    }
}
