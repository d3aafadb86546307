//! What else a program asks of SQLite: a copy by the backup API, a nap.

use super::sqlite::{Connection, Library, ffi};

impl Connection {
    /// Copies the main database of this connection to that of `to`, `pages` at a time. The result codes of the last
    /// step and of the end.
    pub fn back_up(&self, to: &Connection, pages: i32) -> (i32, i32) {
        let functions = &self.library.functions;
        let (name, begin) = (c"main".as_ptr(), functions.sqlite3_backup_init);
        // SAFETY: two open connections and terminated names.
        let backup: *mut ffi::sqlite3_backup = unsafe { begin(to.raw, name, self.raw, name) };
        if backup.is_null() {
            // SAFETY: an open connection.
            return (unsafe { (functions.sqlite3_extended_errcode)(to.raw) }, ffi::SQLITE_ERROR);
        }
        let mut step = ffi::SQLITE_OK;
        while step == ffi::SQLITE_OK {
            // SAFETY: begun above.
            step = unsafe { (functions.sqlite3_backup_step)(backup, pages) };
        }
        // SAFETY: begun above, ended once.
        (step, unsafe { (functions.sqlite3_backup_finish)(backup) })
    }
}

impl Library {
    /// `sqlite3_sleep`, by the default VFS.
    pub fn sleep(&self, milliseconds: i32) {
        // SAFETY: takes a number.
        unsafe { (self.functions.sqlite3_sleep)(milliseconds) };
    }
}
