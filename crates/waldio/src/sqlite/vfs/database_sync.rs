//! Syncs of the database that SQLite does not ask for.
//!
//! ```text
//! checkpoint with synchronous=OFF: database written, not synced -> log begun anew -> flushed by us -> power cut
//!                                  the new frames are there, and the pages of the old ones are not
//! ```
//!
//! A connection that syncs knows what it does, and stock SQLite has the same gap there. But whoever flushes a log where stock
//! would not, for others' promises or after a crash, syncs the database first.

use std::ffi::c_int;
use std::io;
use std::time::Duration;

use rustix::io::Errno;

use crate::connection::Connection;
use crate::database::synced_database::Written;
use crate::failure::Failure;
use crate::ffi::base_vfs::methods_of;
use crate::ffi::codes::*;
use crate::ffi::taken_lock::{take, unlock};
use crate::ffi::types::sqlite3_file;
use crate::log::frame::Salts;

/// The base VFS's files of one open database.
#[derive(Debug, Clone, Copy)]
pub(super) struct BaseFiles {
    /// The database's own.
    pub(super) database: *mut sqlite3_file,
    /// The one whose wal-index is in use.
    pub(super) shm: *mut sqlite3_file,
}

/// Syncs the database. Its error is the kernel's only word about what was written: whoever copies or reads ends with it.
/// # Safety
/// `files` are those of `connection`, open, in a call of SQLite on it.
pub(super) unsafe fn sync(files: BaseFiles, connection: &Connection) -> c_int {
    let written = connection.database.synced.begin();
    // SAFETY: the caller's promise.
    let code = unsafe { sync_file(files, connection) };
    // SAFETY: the caller's promise.
    unsafe { ended(files, connection, written, code) };
    code
}

/// # Safety
/// As `sync`.
unsafe fn sync_file(files: BaseFiles, connection: &Connection) -> c_int {
    if connection.options().no_sync {
        return SQLITE_OK;
    }
    // SAFETY: the caller's promise.
    unsafe { by_base(files, SQLITE_SYNC_NORMAL) }
}

/// Has the base VFS sync the database. Again where a signal interrupted that, which says nothing of what was written; but not for ever:
/// somebody may answer so each time.
/// # Safety
/// As `sync`.
pub(super) unsafe fn by_base(files: BaseFiles, flags: c_int) -> c_int {
    const TIMES: usize = 100;
    // SAFETY: the caller's promise.
    let methods = unsafe { methods_of(files.database) };
    let Some(sync) = methods.and_then(|methods| methods.xSync) else { return SQLITE_OK };
    let was_interrupted = || {
        let Some(control) = methods.and_then(|methods| methods.xFileControl) else { return false };
        let mut errno: c_int = 0;
        // SAFETY: as above; this control writes an int.
        let code = unsafe { control(files.database, SQLITE_FCNTL_LAST_ERRNO, (&raw mut errno).cast()) };
        code == SQLITE_OK && errno == Errno::INTR.raw_os_error()
    };
    for _ in 1..TIMES {
        // SAFETY: as above.
        match unsafe { sync(files.database, flags) } {
            SQLITE_OK => return SQLITE_OK,
            _ if was_interrupted() => {}
            code => return code,
        }
    }
    // SAFETY: as above.
    unsafe { sync(files.database, flags) }
}

/// How long another process's checkpoint is waited for, at the most.
const CHECKPOINT_WAIT_MAX: Duration = Duration::from_secs(1);

/// A sync of the database that began with `written` ended with SQLite's `code`. One that failed may have dropped pages, and the next one is
/// a success without them. So frames that were copied in front of it are to be copied again, by whoever checkpoints next; and this process
/// does not use the log until it is recovered.
/// # Safety
/// As `sync`.
pub(super) unsafe fn ended(files: BaseFiles, connection: &Connection, written: Written, code: c_int) {
    if code == SQLITE_OK {
        connection.database.synced.end(written);
    } else if connection.has_copied() {
        connection.database.poison(IN_FRONT, code);
        // SAFETY: the caller's promise.
        unsafe { forget_copies(files, connection) };
    }
}

/// What failed.
const IN_FRONT: &str = "sync of the database in front";

/// Makes all frames of the log count as not copied: other processes hear nothing of the failure, and would begin the log anew. Not
/// where one of them checkpoints all the time.
/// # Safety
/// As `sync`.
unsafe fn forget_copies(files: BaseFiles, connection: &Connection) {
    let lock = LockRange::one(WAL_CKPT_LOCK);
    if connection.is_checkpointing() {
        connection.forget_copies();
    // SAFETY: the caller's promise, and SQLite has not taken that lock.
    } else if unsafe { take(files.shm, lock, CHECKPOINT_WAIT_MAX) } {
        connection.forget_copies();
        // SAFETY: as above.
        unsafe { unlock(files.shm, lock) };
    }
}

/// Syncs the database once for each generation of the log, and where this process wrote to it since. `None`: the generation
/// is unknown.
/// # Safety
/// As `sync`.
unsafe fn sync_for(files: BaseFiles, connection: &Connection, generation: Option<Salts>) -> c_int {
    let synced = &connection.database.synced;
    if synced.is_synced_since(generation) {
        return SQLITE_OK;
    }
    // SAFETY: the caller's promise.
    let code = unsafe { sync(files, connection) };
    if code == SQLITE_OK {
        *synced.since() = generation;
    }
    code
}

/// A read lock was granted: with `waldio_durable_reads` its snapshot counts as durable only then.
/// # Safety
/// As `sync`.
pub(super) unsafe fn for_readers(files: BaseFiles, connection: &Connection) -> c_int {
    if !connection.reads_durably() {
        return SQLITE_OK;
    }
    // SAFETY: the caller's promise.
    unsafe { sync_for(files, connection, connection.generation()) }
}

/// A checkpoint is about to write its first page, and SQLite synced nothing: `synchronous=OFF`. The frames may be those of
/// others who were promised something: they are durable when this returns, and what they build on is so first.
/// # Safety
/// As `sync`.
pub(super) unsafe fn before_first_page(files: BaseFiles, connection: &Connection) -> Result<(), c_int> {
    if connection.is_log_durable() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    match unsafe { sync_for(files, connection, connection.generation()) } {
        SQLITE_OK => connection.before_checkpoint().map_err(|_| SQLITE_IOERR_FSYNC),
        code => Err(code),
    }
}

/// The log is about to be flushed because somebody asked for it: what it builds on is durable first.
/// # Safety
/// As `sync`.
/// # Errors
/// The database may not be on the medium.
pub(super) unsafe fn before_flush(files: BaseFiles, connection: &Connection) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    result_of(unsafe { sync_for(files, connection, connection.generation()) })
}

/// The log is about to be begun anew or emptied, so what it was copied to must be on the medium. Behind a checkpoint of this process
/// SQLite has seen to that, but with `synchronous=OFF`.
/// # Safety
/// As `sync`.
pub(super) unsafe fn before_new_log(files: BaseFiles, connection: &Connection) -> c_int {
    if connection.database.check_poison().is_err() {
        return SQLITE_IOERR_FSYNC;
    }
    if connection.is_copy_synced() {
        return SQLITE_OK;
    }
    // SAFETY: the caller's promise.
    let code = unsafe { sync(files, connection) };
    if code == SQLITE_OK {
        connection.note_copy_synced();
    } else {
        // In exclusive locking mode the wal-index is anew already, and does not tell of copies.
        connection.database.poison(IN_FRONT, code);
    }
    code
}

/// The same for a write to the log's header, or a truncation, by a connection that takes no locks.
/// # Safety
/// As `sync`.
pub(super) unsafe fn before_new_log_without_lock(files: BaseFiles, connection: &Connection) -> c_int {
    let has_log = connection.writes_without_lock() && connection.log_size().is_ok_and(|bytes| bytes > 0);
    // SAFETY: the caller's promise.
    if has_log { unsafe { before_new_log(files, connection) } } else { SQLITE_OK }
}

/// SQLite is about to recover a log that has frames, and they are made durable: the database first.
/// # Safety
/// As `sync`.
/// # Errors
/// The database may not be on the medium.
pub(super) unsafe fn before_recovery(files: BaseFiles, connection: &Connection) -> Result<(), Failure> {
    let written = connection.database.synced.begin();
    // Whatever comes of it: all frames count as not copied from then on.
    // SAFETY: the caller's promise.
    let code = unsafe { sync_file(files, connection) };
    if code == SQLITE_OK {
        connection.database.synced.end(written);
    }
    result_of(code)
}

fn result_of(code: c_int) -> Result<(), Failure> {
    let failed = || io::Error::other(format!("the sync of the database ended with SQLite's code {code}"));
    if code == SQLITE_OK { Ok(()) } else { Err(Failure::Io(failed())) }
}
