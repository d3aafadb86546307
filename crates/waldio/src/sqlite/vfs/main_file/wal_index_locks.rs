//! `xShmLock`: the locks of the wal-index, each of which the connection is asked about first.

use std::cell::Cell;
use std::ffi::c_int;

use crate::connection::{Connection, Granted};
use crate::ffi::base_vfs::{self, methods_of};
use crate::ffi::codes::*;
use crate::ffi::guard;
use crate::ffi::kernel::cancellation;
use crate::ffi::memory;
use crate::ffi::types::sqlite3_file;
use crate::sqlite::vfs::answers::code_of;
use crate::sqlite::vfs::checkpoint_locks::{self, CheckpointLocks};
use crate::sqlite::vfs::database_sync;
use crate::sqlite::vfs::handle::{connection, files_of, forward, handle, shared_connection, shm_of};
use crate::sqlite::vfs::last_close;
use crate::sqlite::vfs::taking_back;
use crate::sqlite::vfs::waiter::{self, Call};
use crate::write_lock::queue_state::Turn;

pub(super) unsafe extern "C-unwind" fn shm_lock(
    file: *mut sqlite3_file,
    slot: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // A transaction begins; or a writer has begun the log anew, and looks for a place in it.
    // SAFETY: SQLite calls methods of open files only.
    if flags == SQLITE_SHM_LOCK | SQLITE_SHM_SHARED && !unsafe { connection(file) }.may_have_write_lock() {
        cancellation::point();
    }
    guard::code_or(SQLITE_IOERR, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        last_close::goes_on(file);
        let locks = flags & SQLITE_SHM_UNLOCK == 0;
        waiter::heard(connection, call_of(slot, locks));
        if locks && memory::is_short() {
            return SQLITE_IOERR_NOMEM;
        }
        if flags & SQLITE_SHM_EXCLUSIVE == 0 {
            // SAFETY: as above.
            return unsafe { lock_shared(file, connection, LockRange { slot, count }, flags) };
        }
        if locks {
            // SAFETY: as above.
            return unsafe { lock_exclusively(file, connection, slot, count) };
        }
        if slot == WAL_CKPT_LOCK {
            // SAFETY: as above.
            let checkpoint_locks = unsafe { checkpoint_locks_of(file) };
            // SAFETY: `fill` put our handle in front of an open base file.
            unsafe { checkpoint_locks::end(shm_of(file), connection, checkpoint_locks) };
        }
        connection.before_unlock(slot);
        if slot >= WAL_READ_LOCK_0 {
            connection.before_read_unlock_of_all(slot, count);
        }
        let code = forward!(shm_of(file) => xShmLock(slot, count, flags), SQLITE_IOERR);
        if slot == WAL_WRITE_LOCK {
            connection.transaction_ended();
        }
        code
    })
}

/// What SQLite is about with a lock of the wal-index. A reader may take a read lock alone, to write its mark.
fn call_of(slot: c_int, locks: bool) -> Call {
    match slot {
        WAL_CKPT_LOCK | WAL_RECOVER_LOCK => Call::Other,
        WAL_WRITE_LOCK if locks => Call::Asks,
        _ if locks => Call::Begins,
        _ => Call::Unlocks,
    }
}

/// Takes a shared lock, or gives one back.
/// # Safety
/// `file` is open, and `connection` its connection.
unsafe fn lock_shared(
    file: *mut sqlite3_file,
    connection: &Connection,
    LockRange { slot, count }: LockRange,
    flags: c_int,
) -> c_int {
    const UNLOCK: c_int = SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED;
    let locks = flags & SQLITE_SHM_UNLOCK == 0;
    if locks && slot > WAL_READ_LOCK_0 && connection.pass_barrier() {
        // To SQLite: the log changed meanwhile, look again.
        return SQLITE_BUSY;
    }
    if !locks && slot >= WAL_READ_LOCK_0 {
        connection.before_read_unlock();
    }
    let code = forward!(shm_of(file) => xShmLock(slot, count, flags), SQLITE_IOERR);
    if !locks && slot >= WAL_READ_LOCK_0 {
        taking_back::after_transaction(file);
    }
    if code != SQLITE_OK || !locks || slot < WAL_READ_LOCK_0 {
        return code;
    }
    // SAFETY: the caller's promise.
    let refused = match unsafe { database_sync::for_readers(files_of(file), connection) } {
        SQLITE_OK => match connection.read_lock_granted(slot) {
            Ok(()) => return SQLITE_OK,
            Err(failure) => code_of(&failure, SQLITE_IOERR_FSYNC),
        },
        code => code,
    };
    connection.before_read_unlock();
    let _ = forward!(shm_of(file) => xShmLock(slot, count, UNLOCK), SQLITE_IOERR);
    refused
}

/// What SQLite is told that asks for the write lock; `SQLITE_OK`: the base VFS's answer.
fn refusal_of(turn: Turn) -> c_int {
    match turn {
        Turn::Try => SQLITE_OK,
        Turn::Wait => SQLITE_BUSY,
        Turn::Stale => SQLITE_BUSY_SNAPSHOT,
    }
}

/// # Safety
/// `file` is open, and `connection` its connection.
unsafe fn lock_exclusively(
    file: *mut sqlite3_file,
    connection: &Connection,
    slot: c_int,
    count: c_int,
) -> c_int {
    const LOCK: c_int = SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE;
    const UNLOCK: c_int = SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE;
    let writes = slot == WAL_WRITE_LOCK;
    // SAFETY: the caller's promise.
    let note_refusal = || waiter::refused(&unsafe { shared_connection(file) });
    // SAFETY: the caller's promise.
    if writes && checkpoint_locks::pass_write_lock(unsafe { checkpoint_locks_of(file) }) {
        return SQLITE_OK;
    }
    let has_it = writes && connection.hold_write_lock();
    let refusal = if writes && !has_it { refusal_of(connection.ask_to_write()) } else { SQLITE_OK };
    if refusal != SQLITE_OK {
        connection.write_lock_is_free();
        note_refusal();
        return refusal;
    }
    let give_back = |has_it: bool| {
        if has_it {
            base_vfs::give_back(|| forward!(shm_of(file) => xShmLock(slot, count, UNLOCK), SQLITE_OK));
        }
        if writes {
            connection.write_lock_is_free();
            connection.write_released();
        }
    };
    if let Err(failure) = connection.before_exclusive_lock(slot, count) {
        give_back(has_it);
        return code_of(&failure, SQLITE_IOERR_FSYNC);
    }
    if (LockRange { slot, count }) == WAL_LOG_READ_LOCKS {
        // Before the lock, which keeps readers out: who asks for it has the write lock, and nothing is copied meanwhile.
        // SAFETY: the caller's promise, and `fill` put our handle in front of an open base file.
        match unsafe { database_sync::before_new_log(files_of(file), connection) } {
            SQLITE_OK => {}
            code => return code,
        }
    }
    let code =
        if has_it { SQLITE_OK } else { forward!(shm_of(file) => xShmLock(slot, count, LOCK), SQLITE_IOERR) };
    if code != SQLITE_OK {
        if !writes || code != SQLITE_BUSY {
            give_back(false);
            return code;
        }
        connection.write_lock_is_free();
        if connection.write_refused() {
            note_refusal();
        }
        return code;
    }
    // SAFETY: the caller's promise, and `fill` put our handle in front of an open base file.
    let database_first = || unsafe { database_sync::before_recovery(files_of(file), connection) };
    let refused = match connection.before_recovery(slot, count, database_first) {
        Err(failure) => code_of(&failure, SQLITE_IOERR_FSYNC),
        Ok(()) => match connection.exclusive_lock_granted(slot) {
            Granted::TakeBack => SQLITE_BUSY,
            // SAFETY: the caller's promise.
            Granted::Keep if slot == WAL_CKPT_LOCK => match unsafe { begin_checkpoint(file, connection) } {
                SQLITE_OK => return SQLITE_OK,
                code => code,
            },
            Granted::Keep => return SQLITE_OK,
            Granted::KeepToWrite => return SQLITE_OK,
            Granted::KeepInVain => {
                note_refusal();
                return SQLITE_OK;
            }
        },
    };
    give_back(true);
    refused
}

/// The connection got the checkpoint lock: `SQLITE_OK`, or the code that its checkpoint ends with.
/// # Safety
/// `file` is open, and `connection` its connection.
unsafe fn begin_checkpoint(file: *mut sqlite3_file, connection: &Connection) -> c_int {
    // SAFETY: the caller's promise.
    let locks = unsafe { checkpoint_locks_of(file) };
    // SAFETY: the caller's promise.
    let code = unsafe { checkpoint_locks::begin(files_of(file), connection, locks) };
    if code != SQLITE_OK {
        connection.before_unlock(WAL_CKPT_LOCK);
    }
    code
}

/// # Safety
/// As `handle`.
unsafe fn checkpoint_locks_of<'a>(file: *mut sqlite3_file) -> &'a Cell<CheckpointLocks> {
    // SAFETY: the caller's promise.
    let handle = unsafe { handle(file) };
    &handle.checkpoint_locks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_the_wal_index_tell_what_sqlite_is_about() {
        let calls = |slot| [call_of(slot, true), call_of(slot, false)];
        assert_eq!(calls(WAL_WRITE_LOCK), [Call::Asks, Call::Unlocks]);
        assert_eq!(calls(WAL_READ_LOCK_0 + 1), [Call::Begins, Call::Unlocks]);
        for slot in [WAL_CKPT_LOCK, WAL_RECOVER_LOCK] {
            assert_eq!(calls(slot), [Call::Other; 2]);
        }
    }
}
