//! Calls to the VFS below ours, and its files.

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

use super::codes::{SQLITE_CANTOPEN, SQLITE_OK};
use super::types::{sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

/// How often a lock that does not go is given back again, and the pause.
const GIVES: (u32, Duration) = (20, Duration::from_millis(1));

/// The VFS that was the default when ours was registered.
#[derive(Clone, Copy)]
pub(crate) struct BaseVfs {
    vfs: *mut sqlite3_vfs,
}

// SAFETY: a registered VFS is constant but for its list pointer, and its methods may be called by any thread.
unsafe impl Send for BaseVfs {}
// SAFETY: as above.
unsafe impl Sync for BaseVfs {}

impl BaseVfs {
    /// Wraps a registered VFS.
    /// # Safety
    /// `vfs` came from this SQLite's `sqlite3_vfs_find` and is never unregistered (SQLite's own are not; a shim
    /// that takes itself away breaks every shim above it).
    pub(crate) unsafe fn new(vfs: *mut sqlite3_vfs) -> Option<BaseVfs> {
        (!vfs.is_null()).then_some(BaseVfs { vfs })
    }

    /// The pointer that its methods want.
    pub(crate) fn pointer(self) -> *mut sqlite3_vfs {
        self.vfs
    }

    /// Its fields.
    pub(crate) fn fields(self) -> &'static sqlite3_vfs {
        // SAFETY: `new`: never unregistered, so it lives as long as the process.
        unsafe { &*self.vfs }
    }

    /// For example "unix".
    pub(crate) fn name(self) -> String {
        let name = self.fields().zName;
        if name.is_null() {
            return String::new();
        }
        // SAFETY: a registered VFS has a terminated name.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    }

    /// Opens a file below.
    /// # Safety
    /// As SQLite's `xOpen`: `file` has at least this VFS's `szOsFile` bytes.
    pub(crate) unsafe fn open(
        self,
        name: *const c_char,
        file: *mut sqlite3_file,
        flags: c_int,
        flags_out: *mut c_int,
    ) -> c_int {
        let Some(open) = self.fields().xOpen else { return SQLITE_CANTOPEN };
        // SAFETY: the caller's promise.
        unsafe { open(self.vfs, name, file, flags, flags_out) }
    }

    /// Deletes a file below.
    /// # Safety
    /// As SQLite's `xDelete`.
    pub(crate) unsafe fn delete(self, name: *const c_char, sync_dir: c_int) -> c_int {
        let Some(delete) = self.fields().xDelete else { return SQLITE_OK };
        // SAFETY: the caller's promise.
        unsafe { delete(self.vfs, name, sync_dir) }
    }
}

/// The methods of an open file; `None` for one that is not open.
/// # Safety
/// `file` points to a file structure that `xOpen` filled, or to zeroed memory of its size.
pub(crate) unsafe fn methods_of(file: *mut sqlite3_file) -> Option<&'static sqlite3_io_methods> {
    // SAFETY: the caller's promise.
    let methods = unsafe { (*file).pMethods };
    // SAFETY: a file's methods are a static table, or null.
    unsafe { methods.as_ref() }
}

/// Gives back a lock that waldio took for itself: SQLite knows nothing of it, and would never do so. Again where that fails, as the
/// kernel may be short of memory for a moment; SQLite's code at last, and the lock stays.
pub(crate) fn give_back(mut unlock: impl FnMut() -> c_int) -> c_int {
    let mut code = unlock();
    for _ in 1..GIVES.0 {
        if code == SQLITE_OK {
            break;
        }
        std::thread::sleep(GIVES.1);
        code = unlock();
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::codes::SQLITE_IOERR;

    #[test]
    fn a_lock_is_given_back_until_it_is_or_for_so_often() {
        for (failures, tries, last) in [(0, 1, SQLITE_OK), (19, 20, SQLITE_OK), (20, 20, SQLITE_IOERR)] {
            let mut calls = 0;
            let code = give_back(|| {
                calls += 1;
                if calls > failures { SQLITE_OK } else { SQLITE_IOERR }
            });
            assert_eq!((calls, code), (tries, last));
        }
    }
}
