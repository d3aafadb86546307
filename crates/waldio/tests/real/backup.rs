//! What the generator's workers ask of the system's SQLite besides: a copy by the backup API, whether a transaction is open.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

use super::sqlite::{Connection, ffi};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

type OfConnection = unsafe extern "C" fn(*mut ffi::sqlite3) -> c_int;
type Begin = unsafe extern "C" fn(
    *mut ffi::sqlite3,
    *const c_char,
    *mut ffi::sqlite3,
    *const c_char,
) -> *mut ffi::sqlite3_backup;
type Step = unsafe extern "C" fn(*mut ffi::sqlite3_backup, c_int) -> c_int;
type End = unsafe extern "C" fn(*mut ffi::sqlite3_backup) -> c_int;

/// A function of the library that `sqlite::system` opened.
fn function(name: &CStr) -> *mut c_void {
    const RTLD_NOW: c_int = 2;
    // SAFETY: a terminated name; it is open already.
    let library = unsafe { dlopen(c"libsqlite3.so.0".as_ptr(), RTLD_NOW) };
    // SAFETY: an open library and a terminated name.
    let found = unsafe { dlsym(library, name.as_ptr()) };
    assert!(!found.is_null(), "the library has no {name:?}");
    found
}

impl Connection {
    /// Copies the main database of this connection to that of `to`, `pages` at a time. The result codes of the last
    /// step and of the end. Both are the system library's.
    pub fn back_up(&self, to: &Connection, pages: i32) -> (i32, i32) {
        let [begin, step, end] =
            [c"sqlite3_backup_init", c"sqlite3_backup_step", c"sqlite3_backup_finish"].map(function);
        // SAFETY: SQLite's function of this name has this type (sqlite3.h).
        let begin = unsafe { transmute::<*mut c_void, Begin>(begin) };
        // SAFETY: as above.
        let step = unsafe { transmute::<*mut c_void, Step>(step) };
        // SAFETY: as above.
        let end = unsafe { transmute::<*mut c_void, End>(end) };
        let name = c"main".as_ptr();
        // SAFETY: two open connections and terminated names.
        let backup = unsafe { begin(to.raw, name, self.raw, name) };
        if backup.is_null() {
            return (ffi::SQLITE_ERROR, ffi::SQLITE_ERROR);
        }
        let mut code = ffi::SQLITE_OK;
        while code == ffi::SQLITE_OK {
            // SAFETY: begun above.
            code = unsafe { step(backup, pages) };
        }
        // SAFETY: begun above, ended once.
        (code, unsafe { end(backup) })
    }

    /// Whether no transaction is open, on a connection of the system library.
    pub fn is_autocommit(&self) -> bool {
        let call = function(c"sqlite3_get_autocommit");
        // SAFETY: SQLite's function of this name has this type (sqlite3.h).
        let call = unsafe { transmute::<*mut c_void, OfConnection>(call) };
        // SAFETY: an open connection.
        unsafe { call(self.raw) != 0 }
    }
}
