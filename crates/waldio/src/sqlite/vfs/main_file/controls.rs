//! File controls of an open database file: those that concern us, and the rest to the base VFS.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::chunks;
use crate::connection::Connection;
use crate::ffi::base_vfs::methods_of;
use crate::ffi::codes::*;
use crate::ffi::guard;
use crate::ffi::types::sqlite3_file;
use crate::log::embedded::RESERVED_BYTES;
use crate::log::layout::Layout;
use crate::sqlite::vfs::database_sync;
use crate::sqlite::vfs::handle::{base_of, connection, files_of, forward, handle, shm_of};
use crate::sqlite::vfs::last_close;
use crate::sqlite::vfs::registered::Registered;
use crate::sqlite::vfs::waiter::{self, Call};

pub(super) unsafe extern "C" fn file_control(
    file: *mut sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    guard::code_or(SQLITE_IOERR, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        last_close::goes_on(file);
        waiter::heard(connection, Call::Unlocks);
        match operation {
            SQLITE_FCNTL_HAS_MOVED => {
                let code = forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND);
                last_close::asked(file);
                code
            }
            // SAFETY: SQLite passes an int (SQLITE_FCNTL_PERSIST_WAL): negative where it asks.
            SQLITE_FCNTL_PERSIST_WAL if unsafe { asks(argument.cast()) } => {
                let code = forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND);
                // SAFETY: as above, and not null: an int of SQLite's, which nobody else uses meanwhile.
                let answer = unsafe { &mut *argument.cast::<c_int>() };
                *answer = last_close::persists(file, *answer);
                code
            }
            SQLITE_FCNTL_COMMIT_PHASETWO => {
                if let Err(failure) = connection.commit_phase_two() {
                    // IOERR_FSYNC and nothing else: an application repeats a transaction that ends with BUSY or
                    // FULL, and this one was published.
                    let _ = failure;
                    return SQLITE_IOERR_FSYNC;
                }
                forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND)
            }
            SQLITE_FCNTL_CKPT_START => {
                connection.checkpoint_begins();
                chunks::before_checkpoint(file, connection.options().db_chunk_bytes);
                forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND)
            }
            SQLITE_FCNTL_LOCK_TIMEOUT if !argument.is_null() => {
                // SAFETY: SQLite passes an int, in milliseconds (SQLITE_FCNTL_LOCK_TIMEOUT).
                let milliseconds = unsafe { argument.cast::<c_int>().read() };
                connection.set_lock_timeout(milliseconds);
                if shm_of(file) != base_of(file) {
                    // Whoever waits does so for a lock of that wal-index. The old time goes to SQLite from the database alone.
                    let mut milliseconds = milliseconds;
                    forward!(shm_of(file) => xFileControl(operation, (&raw mut milliseconds).cast()), SQLITE_NOTFOUND);
                }
                forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND)
            }
            // Readers are in the wal-index that is in use.
            SQLITE_FCNTL_EXTERNAL_READER => {
                forward!(shm_of(file) => xFileControl(operation, argument), SQLITE_NOTFOUND)
            }
            SQLITE_FCNTL_PRAGMA => {
                // SAFETY: as above.
                let registered = unsafe { handle(file) }.registered;
                // SAFETY: SQLite passes three string pointers (SQLITE_FCNTL_PRAGMA).
                match unsafe { pragma(connection, file, registered, argument.cast()) } {
                    Some(code) => code,
                    None => forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND),
                }
            }
            FCNTL_RESERVED_WANTED if !argument.is_null() => {
                let mut size_bytes = 0_i64;
                // SAFETY: as above.
                let registered = unsafe { handle(file) }.registered;
                // Bytes that no log of ours will use would be gone for a shim below that wants some, cksumvfs.
                let wanted = connection.database.options().layout == Layout::Embedded
                    && registered.base_is_strange().is_none()
                    && forward!(file, xFileSize(&raw mut size_bytes), SQLITE_IOERR) == SQLITE_OK
                    && size_bytes == 0;
                // SAFETY: only we send this control, with a place for an int.
                unsafe {
                    argument.cast::<c_int>().write(if wanted { c_int::from(RESERVED_BYTES) } else { 0 })
                };
                SQLITE_OK
            }
            SQLITE_FCNTL_VFSNAME => {
                let code = forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND);
                // SAFETY: as above.
                let registered = unsafe { handle(file) }.registered;
                // SAFETY: SQLite passes a place for a string of its own allocator (SQLITE_FCNTL_VFSNAME).
                unsafe { prefix_name(registered, code, argument.cast()) }
            }
            _ => forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND),
        }
    })
}

/// # Safety
/// `place` is null or holds an int.
unsafe fn asks(place: *const c_int) -> bool {
    // SAFETY: the caller's promise.
    !place.is_null() && unsafe { place.read() } < 0
}

/// # Safety
/// `strings` is the argument of `SQLITE_FCNTL_PRAGMA`: a place for the result, the name, the value or null.
unsafe fn pragma(
    connection: &Connection,
    file: *mut sqlite3_file,
    registered: &Registered,
    strings: *mut *mut c_char,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let [result, name, value] = unsafe { &mut *strings.cast::<[*mut c_char; 3]>() };
    // SAFETY: a terminated string or null.
    let name = unsafe { text(*name) }?;
    // SAFETY: as above.
    let value = unsafe { text(*value) };
    // SAFETY: the caller's promise.
    let database_first = || unsafe { database_sync::before_flush(files_of(file), connection) };
    let (text, code) = match connection.pragma(&name, value.as_deref(), database_first)? {
        Ok(answer) => (answer, SQLITE_OK),
        Err(complaint) => (complaint, SQLITE_ERROR),
    };
    *result = registered.api.string(&text);
    Some(code)
}

/// # Safety
/// `string` is null or terminated.
unsafe fn text(string: *const c_char) -> Option<String> {
    if string.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let string = unsafe { CStr::from_ptr(string) };
    Some(string.to_string_lossy().into_owned())
}

/// Puts our name in front of the base VFS's: "waldio/unix".
/// # Safety
/// `place` is the argument of `SQLITE_FCNTL_VFSNAME`, after the base VFS answered with `code`.
unsafe fn prefix_name(registered: &Registered, code: c_int, place: *mut *mut c_char) -> c_int {
    if code != SQLITE_OK {
        return code;
    }
    // SAFETY: the caller's promise.
    let place = unsafe { &mut *place };
    // Null: SQLite's own VFSes call that a success where memory is short.
    // SAFETY: the base VFS put a terminated string there, or null.
    let Some(below) = (unsafe { text(*place) }) else { return SQLITE_NOMEM };
    let name = registered.api.string(&format!("{}/{below}", registered.name()));
    if name.is_null() {
        return SQLITE_NOMEM;
    }
    // SAFETY: the base VFS allocated it with this SQLite's allocator, and nobody else has it.
    unsafe { registered.api.free((*place).cast()) };
    *place = name;
    SQLITE_OK
}
