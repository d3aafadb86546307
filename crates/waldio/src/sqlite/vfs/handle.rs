//! What stands in SQLite's memory of an open database file.
//!
//! Memory:  | methods | connection | checkpoint locks | closing | private wal-index | registered | name |  the base VFS's own file structure ...

use std::cell::{Cell, UnsafeCell};
use std::sync::Arc;

use super::checkpoint_locks::CheckpointLocks;
use super::database_sync::BaseFiles;
use super::private_shm::{Closing, PrivateShm};
use super::registered::Registered;
use crate::connection::Connection;
use crate::ffi::types::{sqlite3_file, sqlite3_io_methods};

/// What `xOpen` puts into SQLite's memory in front of the base VFS's file.
#[repr(C)]
pub(crate) struct MainHandle {
    pub(super) methods: *const sqlite3_io_methods,
    pub(super) connection: *const Connection,
    pub(super) checkpoint_locks: Cell<CheckpointLocks>,
    pub(super) closing: Cell<Closing>,
    /// Whose wal-index is used instead of the base file's, while the log has the `embedded` layout.
    pub(super) private_shm: UnsafeCell<Option<PrivateShm>>,
    pub(super) registered: &'static Registered,
    pub(super) name: usize,
}

/// Where the base VFS's file starts, in bytes.
pub(crate) const HANDLE_BYTES: usize = size_of::<MainHandle>();
const _: () = assert!(HANDLE_BYTES.is_multiple_of(8));

/// Where the base VFS's file is.
pub(crate) fn base_of(file: *mut sqlite3_file) -> *mut sqlite3_file {
    file.wrapping_byte_add(HANDLE_BYTES)
}

/// # Safety
/// `file` was filled by `fill` and not closed; the reference is used within the call alone.
pub(super) unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a MainHandle {
    // SAFETY: the caller's promise.
    unsafe { &*file.cast::<MainHandle>() }
}

/// # Safety
/// As `handle`.
pub(super) unsafe fn connection<'a>(file: *mut sqlite3_file) -> &'a Connection {
    // SAFETY: the caller's promise.
    let handle = unsafe { handle(file) };
    // SAFETY: `fill` keeps one reference count until `close`.
    unsafe { &*handle.connection }
}

/// # Safety
/// As `handle`.
pub(super) unsafe fn shared_connection(file: *mut sqlite3_file) -> Arc<Connection> {
    // SAFETY: the caller's promise.
    let pointer = unsafe { handle(file) }.connection;
    // SAFETY: `fill` keeps one reference count until `close`; this adds another.
    unsafe { Arc::increment_strong_count(pointer) };
    // SAFETY: the count just added.
    unsafe { Arc::from_raw(pointer) }
}

impl MainHandle {
    pub(super) fn parts(&self) -> (*const Connection, usize) {
        (self.connection, self.name)
    }
}

/// What the `embedded` layout has beside the database, while the log has that layout.
/// # Safety
/// As `handle`; SQLite uses the file from this thread.
pub(super) unsafe fn private_shm<'a>(file: *mut sqlite3_file) -> Option<&'a mut PrivateShm> {
    // SAFETY: the caller's promise.
    let place = unsafe { handle(file) }.private_shm.get();
    // SAFETY: SQLite uses a file from one thread at a time, and no reference to what is there outlives a call.
    unsafe { &mut *place }.as_mut()
}

/// The base VFS's file whose wal-index is in use.
pub(super) fn shm_of(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: SQLite calls methods of open files only.
    let private = unsafe { private_shm(file) };
    private.map_or_else(|| base_of(file), PrivateShm::file)
}

/// The base VFS's files of this one.
pub(super) fn files_of(file: *mut sqlite3_file) -> BaseFiles {
    BaseFiles { database: base_of(file), shm: shm_of(file) }
}

/// Uses another wal-index from now on, while none is mapped.
/// # Safety
/// `file` was filled by `fill` and not closed; SQLite uses it from this thread.
pub(super) unsafe fn set_private_shm(file: *mut sqlite3_file, private: Option<PrivateShm>) {
    // SAFETY: the caller's promise.
    let place = unsafe { handle(file) }.private_shm.get();
    // SAFETY: as in `shm_of`.
    let place = unsafe { &mut *place };
    *place = private;
}

/// Calls the same method of the base file, or of another one of the base VFS; `$absent` where it has none.
macro_rules! forward {
    ($file:expr, $method:ident($($argument:expr),*), $absent:expr) => {
        forward!(base_of($file) => $method($($argument),*), $absent)
    };
    ($base:expr => $method:ident($($argument:expr),*), $absent:expr) => {{
        let base = $base;
        let _uncancelled = $crate::ffi::kernel::cancellation::Uncancelled::begin();
        // SAFETY: SQLite calls methods of open files only, and `fill` put ours in front of an open base file.
        match unsafe { methods_of(base) }.and_then(|methods| methods.$method) {
            // SAFETY: the arguments are SQLite's own, for the same method.
            Some(call) => unsafe { call(base $(, $argument)*) },
            None => $absent,
        }
    }};
}

pub(super) use forward;
