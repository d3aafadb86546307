//! The file of SQLite's wal-index, before SQLite makes it.

use crate::ffi::codes::*;
use crate::ffi::guard;
use crate::ffi::types::sqlite3_file;
use crate::sqlite::vfs::handle::{base_of, connection, shm_of};

/// SQLite is about to map the beginning of the wal-index, for the first time in this connection.
pub(super) fn before_map(file: *mut sqlite3_file) {
    guard::code_or(SQLITE_IOERR, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        if connection.may_make_wal_index() {
            connection.database.make_wal_index(shm_of(file) != base_of(file));
        }
        SQLITE_OK
    });
}
