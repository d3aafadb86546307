//! What few tests ask of SQLite's C API.

use std::ffi::{CString, c_int};
use std::ptr;

use super::sqlite::{Connection, Library, ffi};

/// `sqlite3_shutdown`, then `sqlite3_initialize`; no connection is open.
pub fn restart(library: &Library) {
    // SAFETY: takes nothing; nobody else uses the library, as the caller says.
    let down = unsafe { (library.functions.sqlite3_shutdown)() };
    // SAFETY: as above.
    let up = unsafe { (library.functions.sqlite3_initialize)() };
    assert_eq!((down, up), (ffi::SQLITE_OK, ffi::SQLITE_OK));
}

/// A statement that was prepared and not run.
pub struct Statement<'connection> {
    connection: &'connection Connection,
    statement: *mut ffi::sqlite3_stmt,
}

impl Statement<'_> {
    /// Prepares it.
    pub fn new<'connection>(connection: &'connection Connection, sql: &str) -> Statement<'connection> {
        let (text, mut statement) = (CString::new(sql).unwrap(), ptr::null_mut());
        let prepare = connection.library.functions.sqlite3_prepare_v2;
        // SAFETY: terminated text, an open connection, a place for the statement.
        let code = unsafe { prepare(connection.raw, text.as_ptr(), -1, &raw mut statement, ptr::null_mut()) };
        assert_eq!(code, ffi::SQLITE_OK, "{sql}");
        Statement { connection, statement }
    }

    /// Runs it to its first row, or its end; the primary code.
    pub fn step_and_finalize(self) -> c_int {
        let functions = &self.connection.library.functions;
        // SAFETY: prepared, on a connection that is open.
        let code = unsafe { (functions.sqlite3_step)(self.statement) };
        // SAFETY: as above, and not used again.
        unsafe { (functions.sqlite3_finalize)(self.statement) };
        code & 0xff
    }
}
