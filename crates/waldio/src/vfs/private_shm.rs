//! A second file of the base VFS, for its wal-index alone: `app.db-waldio`, whose wal-index is `app.db-waldio-shm`.
//!
//! The unix VFS opens the wal-index of a database beside it, by its name, and a process without waldio that finds one in
//! use reads the log through it, whatever the log's header says. In the `embedded` layout it must find none.

use std::ffi::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::ffi::base_vfs::{BaseVfs, methods_of};
use crate::ffi::codes::*;
use crate::ffi::types::sqlite3_file;

/// What SQLite's `databaseName` (main.c) goes back to from a name in hand.
const NAME_FRONT: [u8; 4] = [0; 4];

/// See the file's head.
pub(super) struct PrivateShm {
    /// The base VFS's own structure, in words for its alignment.
    memory: Box<[u64]>,
    /// Its name, which the base VFS keeps a pointer to.
    _name: Box<[u8]>,
}

impl PrivateShm {
    /// Opens the file, which is there already. `readonly` is the database's `readonly_shm`, which the unix VFS looks for in the
    /// name's parameters.
    /// # Errors
    /// SQLite's code; nothing is open.
    pub(super) fn open(base: BaseVfs, path: &Path, readonly: bool) -> Result<PrivateShm, c_int> {
        let file_bytes = usize::try_from(base.fields().szOsFile).unwrap_or(0);
        let mut memory = vec![0_u64; file_bytes.div_ceil(8)].into_boxed_slice();
        // A database's name as SQLite has it: four zeros in front (it looks for them), its parameters behind.
        let parameters: &[u8] = if readonly { b"\0readonly_shm\x001" } else { b"" };
        let name = [&NAME_FRONT[..], path.as_os_str().as_bytes(), parameters, &[0; 8]];
        let name: Box<[u8]> = name.concat().into();
        let file = memory.as_mut_ptr().cast::<sqlite3_file>();
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB;
        // SAFETY: `szOsFile` zeroed bytes, and a terminated name; both live until `drop`.
        let code = unsafe {
            base.open(name[NAME_FRONT.len()..].as_ptr().cast::<c_char>(), file, flags, std::ptr::null_mut())
        };
        let shm = PrivateShm { memory, _name: name };
        if code == SQLITE_OK { Ok(shm) } else { Err(code) }
    }

    /// The base VFS's file.
    pub(super) fn file(&mut self) -> *mut sqlite3_file {
        self.memory.as_mut_ptr().cast()
    }
}

impl Drop for PrivateShm {
    fn drop(&mut self) {
        let file = self.file();
        // SAFETY: filled by the base VFS's `xOpen`, or zeroed; closed here alone.
        if let Some(close) = unsafe { methods_of(file) }.and_then(|methods| methods.xClose) {
            // SAFETY: as above.
            unsafe { close(file) };
        }
    }
}
