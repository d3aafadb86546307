//! The methods of an open database file: all go to the base VFS; locks of the wal-index, barriers and file
//! controls are seen on the way.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::{chunks, controls, wal_index_file, wal_index_locks};
use crate::connection::Connection;
use crate::ffi::base_vfs::methods_of;
use crate::ffi::codes::*;
use crate::ffi::guard;
use crate::ffi::kernel::cancellation;
use crate::ffi::types::{sqlite3_file, sqlite3_io_methods};
use crate::ffi::wal_index::WalIndex;
use crate::sqlite::process::Process;
use crate::sqlite::vfs::answers::code_of;
use crate::sqlite::vfs::checkpoint_locks::CheckpointLocks;
use crate::sqlite::vfs::database_sync;
use crate::sqlite::vfs::handle::{
    MainHandle, base_of, connection, files_of, forward, handle, set_private_shm, shm_of,
};
use crate::sqlite::vfs::last_close;
use crate::sqlite::vfs::private_shm::Closing;
use crate::sqlite::vfs::registered::Registered;
use crate::sqlite::vfs::taking_back;
use crate::sqlite::vfs::waiter::{self, Call};

/// A table for each set of methods that a base file may have, by version: 1, 2 and 3. SQLite asks the version before it
/// calls, and whether there is an `xShmMap` before it offers WAL: `unix-none` has version 3 and none.
static METHODS: [sqlite3_io_methods; 3] = [methods(1, false), methods(2, false), methods(3, false)];
static METHODS_WITH_SHM: [sqlite3_io_methods; 3] = [methods(1, true), methods(2, true), methods(3, true)];

const fn methods(version: c_int, has_shm: bool) -> sqlite3_io_methods {
    sqlite3_io_methods {
        iVersion: version,
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xFileSize: Some(file_size),
        xLock: Some(lock),
        xUnlock: Some(unlock),
        xCheckReservedLock: Some(check_reserved_lock),
        xFileControl: Some(controls::file_control),
        xSectorSize: Some(sector_size),
        xDeviceCharacteristics: Some(device_characteristics),
        xShmMap: if has_shm { Some(shm_map) } else { None },
        xShmLock: Some(wal_index_locks::shm_lock),
        xShmBarrier: Some(shm_barrier),
        xShmUnmap: Some(shm_unmap),
        xFetch: Some(fetch),
        xUnfetch: Some(unfetch),
    }
}

/// The table that offers what a base file offers, and no more.
fn methods_like(base: Option<&sqlite3_io_methods>) -> &'static sqlite3_io_methods {
    let Some(base) = base else { return &METHODS[0] };
    // SQLite does not ask before it calls `xFetch` of version 3.
    let version = if base.xFetch.is_some() && base.xUnfetch.is_some() { 3 } else { 2 };
    let tables = if base.xShmMap.is_some() { &METHODS_WITH_SHM } else { &METHODS };
    &tables[usize::try_from(base.iVersion.clamp(1, version) - 1).unwrap_or(0)]
}

/// Fills SQLite's memory in front of a base file that is open.
/// # Safety
/// `file` has `HANDLE_BYTES` and the base VFS's `szOsFile`, and the base file behind is open.
pub(crate) unsafe fn fill(
    file: *mut sqlite3_file,
    connection: Arc<Connection>,
    registered: &'static Registered,
    name: usize,
) {
    // SAFETY: the caller's promise.
    let methods: *const sqlite3_io_methods = methods_like(unsafe { methods_of(base_of(file)) });
    connection.set_main_file(file.expose_provenance());
    let handle = MainHandle {
        methods,
        connection: Arc::into_raw(connection),
        checkpoint_locks: Cell::new(CheckpointLocks::AsAsked),
        closing: Cell::new(Closing::No),
        private_shm: UnsafeCell::new(None),
        registered,
        name,
    };
    // SAFETY: the caller's promise; SQLite aligns file structures to 8 bytes.
    unsafe { file.cast::<MainHandle>().write(handle) };
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    guard::code_or(SQLITE_IOERR, || {
        // SAFETY: SQLite closes an open file, once.
        let (pointer, name) = unsafe { handle(file) }.parts();
        // SAFETY: the count that `fill` kept.
        let connection = unsafe { Arc::from_raw(pointer) };
        connection.set_wal_index(None);
        connection.leave();
        Process::current().remove_connection(name);
        drop(connection);
        // SAFETY: as above.
        unsafe { set_private_shm(file, None) };
        forward!(file, xClose(), SQLITE_OK)
    })
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    len_bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls methods of open files only.
    guard::code_or(SQLITE_IOERR_READ, || match unsafe { before_page(file) } {
        SQLITE_OK => forward!(file, xRead(into, len_bytes, offset), SQLITE_IOERR_READ),
        code => code,
    })
}

/// Tells what SQLite does with an open file.
fn heard(file: *mut sqlite3_file, call: Call) {
    guard::value_or((), || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        waiter::heard(connection, call);
    });
}

/// # Safety
/// As `handle`.
unsafe fn before_page(file: *mut sqlite3_file) -> c_int {
    // SAFETY: the caller's promise.
    let connection = unsafe { connection(file) };
    waiter::heard(connection, Call::Reads);
    connection.before_page().map_or_else(|failure| code_of(&failure, SQLITE_IOERR_FSYNC), |()| SQLITE_OK)
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    data: *const c_void,
    len_bytes: c_int,
    offset: i64,
) -> c_int {
    heard(file, Call::Other);
    guard::code_or(SQLITE_IOERR_WRITE, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        if connection.takes_first_page()
            // SAFETY: `fill` put our handle in front of an open base file.
            && let Err(code) = unsafe { database_sync::before_first_page(files_of(file), connection) }
        {
            return code;
        }
        let code = forward!(file, xWrite(data, len_bytes, offset), SQLITE_IOERR_WRITE);
        connection.database.synced.wrote(u64::try_from(len_bytes).unwrap_or(0));
        code
    })
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size_bytes: i64) -> c_int {
    heard(file, Call::Other);
    guard::code_or(SQLITE_IOERR_TRUNCATE, || {
        // SAFETY: SQLite calls methods of open files only.
        let chunk_bytes = unsafe { connection(file) }.options().db_chunk_bytes;
        chunks::before_truncation(file, size_bytes, chunk_bytes);
        forward!(file, xTruncate(size_bytes), SQLITE_IOERR_TRUNCATE)
    })
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    heard(file, Call::Other);
    guard::code_or(SQLITE_IOERR_FSYNC, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        let written = connection.database.synced.begin();
        let files = files_of(file);
        // SAFETY: as above.
        let code = unsafe { database_sync::by_base(files, flags) };
        // SAFETY: as above.
        unsafe { database_sync::ended(files, connection, written, code) };
        if code == SQLITE_OK {
            connection.database_synced();
        }
        code
    })
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size_out: *mut i64) -> c_int {
    heard(file, Call::Begins);
    forward!(file, xFileSize(size_out), SQLITE_IOERR_FSTAT)
}

unsafe extern "C-unwind" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    if level == SQLITE_LOCK_SHARED {
        cancellation::point();
    }
    heard(file, Call::Begins);
    guard::code_or(SQLITE_IOERR, || {
        let code =
            last_close::lock(file, level).unwrap_or_else(|| forward!(file, xLock(level), SQLITE_IOERR));
        if code == SQLITE_OK && level == SQLITE_LOCK_EXCLUSIVE {
            taking_back::when_alone(file);
        }
        code
    })
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    heard(file, Call::Unlocks);
    forward!(file, xUnlock(level), SQLITE_IOERR)
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, reserved_out: *mut c_int) -> c_int {
    forward!(file, xCheckReservedLock(reserved_out), SQLITE_IOERR)
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    forward!(file, xSectorSize(), 4096)
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    forward!(file, xDeviceCharacteristics(), 0)
}

unsafe extern "C" fn fetch(
    file: *mut sqlite3_file,
    offset: i64,
    len_bytes: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls methods of open files only.
    guard::code_or(SQLITE_IOERR, || match unsafe { before_page(file) } {
        SQLITE_OK => forward!(file, xFetch(offset, len_bytes, out), SQLITE_IOERR),
        code => code,
    })
}

unsafe extern "C" fn unfetch(file: *mut sqlite3_file, offset: i64, page: *mut c_void) -> c_int {
    forward!(file, xUnfetch(offset, page), SQLITE_IOERR)
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    region: c_int,
    region_bytes: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    heard(file, Call::Begins);
    if region == 0 {
        wal_index_file::before_map(file);
    }
    let code = forward!(shm_of(file) => xShmMap(region, region_bytes, extend, out), SQLITE_IOERR);
    if code == SQLITE_OK && region == 0 {
        // SAFETY: SQLite passes a valid place, which the base VFS just filled.
        let address = unsafe { out.read() };
        // SAFETY: region 0 as mapped; `shm_unmap` and `close` drop the value first.
        let wal_index = unsafe { WalIndex::new(address) };
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        return guard::code_or(SQLITE_IOERR, || {
            connection.note_mapped(true);
            connection.set_wal_index(wal_index);
            code
        });
    }
    code
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    guard::value_or((), || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        connection.shm_barrier();
    });
    forward!(shm_of(file) => xShmBarrier(), ());
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    guard::code_or(SQLITE_IOERR, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        taking_back::before_close(file);
        connection.note_mapped(false);
        connection.set_wal_index(None);
        forward!(shm_of(file) => xShmUnmap(delete), SQLITE_OK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What SQLite looks at: version, shared memory, memory mapping.
    #[test]
    fn a_file_offers_what_the_base_file_offers() {
        for (version, has_shm, fetches) in (1..5).flat_map(|version| {
            [(true, true), (true, false), (false, true), (false, false)]
                .map(|(shm, fetch)| (version, shm, fetch))
        }) {
            let mut base = methods(version, has_shm);
            if !fetches {
                base.xFetch = None;
            }
            let ours = methods_like(Some(&base));
            let most = if fetches { 3 } else { 2 };
            assert_eq!((ours.iVersion, ours.xShmMap.is_some()), (version.min(most), has_shm), "{version}");
        }
        assert_eq!(methods_like(None).iVersion, 1);
    }
}
