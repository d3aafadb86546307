//! The methods of an open log: C calls become calls on its `Connection`.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use blockio::disk::DiskFile;

use super::answers::{answer, code_of};
use super::database_sync;
use super::handle;
use super::last_close;
use super::waiter::{self, Call};
use crate::connection::Connection;
use crate::durability::log_session::LogSession;
use crate::failure::Failure;
use crate::ffi::codes::*;
use crate::ffi::guard;
use crate::ffi::memory;
use crate::ffi::sync_observer;
use crate::ffi::types::{sqlite3_file, sqlite3_io_methods};

/// What `xOpen` puts into SQLite's memory for a log.
#[repr(C)]
pub(crate) struct LogHandle {
    methods: *const sqlite3_io_methods,
    connection: Arc<Connection>,
    file: Arc<dyn DiskFile>,
    session: Arc<LogSession>,
}

/// `SQLITE_IOCAP_POWERSAFE_OVERWRITE`, as the unix VFS has it.
const POWERSAFE_OVERWRITE: c_int = 0x1000;
/// As the unix VFS has it, in bytes.
const SECTOR_BYTES: c_int = 4096;

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// Bytes of SQLite's memory that an open log takes.
pub(crate) const HANDLE_BYTES: usize = size_of::<LogHandle>();

/// Fills SQLite's memory for an open log.
/// # Safety
/// `file` has at least `HANDLE_BYTES`.
pub(crate) unsafe fn fill(
    file: *mut sqlite3_file,
    connection: Arc<Connection>,
    disk_file: Arc<dyn DiskFile>,
    session: Arc<LogSession>,
) {
    let handle = LogHandle { methods: &raw const METHODS, connection, file: disk_file, session };
    // SAFETY: the caller's promise; SQLite aligns file structures to 8 bytes.
    unsafe { file.cast::<LogHandle>().write(handle) };
}

/// # Safety
/// `file` was filled by `fill` and not closed; the reference is used within the call alone.
unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a LogHandle {
    // SAFETY: the caller's promise.
    unsafe { &*file.cast::<LogHandle>() }
}

/// # Safety
/// As `handle`.
unsafe fn connection<'a>(file: *mut sqlite3_file) -> &'a Connection {
    // SAFETY: the caller's promise.
    &unsafe { handle(file) }.connection
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    guard::code_or(SQLITE_IOERR, || {
        // SAFETY: SQLite closes a file that `fill` filled, once; what is read out here is dropped here.
        let LogHandle { connection, file: disk_file, session, .. } =
            unsafe { file.cast::<LogHandle>().read() };
        // SAFETY: SQLite's memory of an open file; null tells it that the file is closed.
        unsafe { (*file).pMethods = std::ptr::null() };
        let main = std::ptr::with_exposed_provenance_mut(connection.main_file());
        let mut header = [0; 32];
        // SAFETY: as below.
        let read = unsafe { last_close::is_copied(main) }.then(|| disk_file.read_at(&mut header, 0));
        let whole = matches!(read, Some(Ok(read)) if read == header.len());
        drop((disk_file, session));
        connection.log_close();
        // SAFETY: as below.
        unsafe { last_close::end(main, whole.then_some(&header)) };
        // SAFETY: SQLite closes a log before its database, on the same thread, and has unmapped the wal-index.
        unsafe { handle::set_private_shm(main, None) };
        SQLITE_OK
    })
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    len_bytes: c_int,
    offset: i64,
) -> c_int {
    guard::code_or(SQLITE_IOERR_READ, || {
        let (Ok(len_bytes), Ok(offset)) = (usize::try_from(len_bytes), u64::try_from(offset)) else {
            return SQLITE_IOERR_READ;
        };
        // SAFETY: SQLite passes `into` with `len_bytes` writable bytes (xRead contract); u8 has no alignment rule.
        let into = unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), len_bytes) };
        // SAFETY: SQLite calls methods of open files only.
        let handle = unsafe { handle(file) };
        waiter::heard(&handle.connection, Call::Reads);
        if let Err(failure) = handle.connection.before_page() {
            return code_of(&failure, SQLITE_IOERR_FSYNC);
        }
        // Nothing waits and nothing goes past the page cache: the file has it all, and reads cost what stock's do.
        let plain = offset > 0 && !handle.connection.is_pending() && !handle.session.is_fua();
        let read = if plain {
            handle.file.read_at(into, offset).map_err(Failure::from)
        } else {
            let main = std::ptr::with_exposed_provenance_mut(handle.connection.main_file());
            let files = handle::files_of(main);
            // SAFETY: SQLite opens a log behind its database, and closes it in front of it.
            let database_first = || unsafe { database_sync::before_recovery(files, &handle.connection) };
            handle.connection.log_read(into, offset, database_first)
        };
        match read {
            Ok(read) if read == into.len() && !is_never_written(&handle.connection, into, offset) => {
                SQLITE_OK
            }
            Ok(read) => {
                into[read..].fill(0);
                SQLITE_IOERR_SHORT_READ
            }
            Err(failure) => code_of(&failure, SQLITE_IOERR_READ),
        }
    })
}

/// True where SQLite reads a frame's page from room that was only reserved: both it and the frame's header are zeros. The wal-index then
/// tells of another file's frames (`app.db-wal` was removed under a connection), and stock finds the end of the file there. A page of
/// zeros is not to be copied into the database.
fn is_never_written(connection: &Connection, page: &[u8], offset: u64) -> bool {
    page.iter().all(|byte| *byte == 0) && connection.is_reserved_page(page.len(), offset)
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    data: *const c_void,
    len_bytes: c_int,
    offset: i64,
) -> c_int {
    guard::code_or(SQLITE_IOERR_WRITE, || {
        if memory::is_short() {
            return SQLITE_IOERR_NOMEM;
        }
        let (Ok(len_bytes), Ok(offset)) = (usize::try_from(len_bytes), u64::try_from(offset)) else {
            return SQLITE_IOERR_WRITE;
        };
        // SAFETY: SQLite passes `data` with `len_bytes` readable bytes (xWrite contract).
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len_bytes) };
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        if offset == 0
            && let Err(code) = before_new_log(connection)
        {
            return code;
        }
        let written = connection.log_write(data, offset);
        if offset == 0 && written.is_ok() {
            connection.database.barrier.note_new_log();
        }
        answer(written, SQLITE_IOERR_WRITE)
    })
}

/// The log is about to be begun anew or emptied. A connection with locks took those for it, and the database was synced then.
fn before_new_log(connection: &Connection) -> Result<(), c_int> {
    let main = std::ptr::with_exposed_provenance_mut(connection.main_file());
    // SAFETY: SQLite opens a log behind its database, and closes it in front of it.
    match unsafe { database_sync::before_new_log_without_lock(handle::files_of(main), connection) } {
        SQLITE_OK => Ok(()),
        code => Err(code),
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size_bytes: i64) -> c_int {
    guard::code_or(SQLITE_IOERR_TRUNCATE, || {
        let Ok(size_bytes) = u64::try_from(size_bytes) else { return SQLITE_IOERR_TRUNCATE };
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        if size_bytes == 0
            && let Err(code) = before_new_log(connection)
        {
            return code;
        }
        answer(connection.log_truncate(size_bytes), SQLITE_IOERR_TRUNCATE)
    })
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    guard::code_or(SQLITE_IOERR_FSYNC, || {
        sync_observer::notify(flags);
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        connection.database.barrier.synced_log();
        answer(connection.log_sync(), SQLITE_IOERR_FSYNC)
    })
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size_out: *mut i64) -> c_int {
    guard::code_or(SQLITE_IOERR_FSTAT, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        match connection.log_size().map(i64::try_from) {
            Ok(Ok(size)) => {
                // SAFETY: SQLite passes a valid place for the size.
                unsafe { size_out.write(size) };
                SQLITE_OK
            }
            _ => SQLITE_IOERR_FSTAT,
        }
    })
}

/// A log carries no file locks.
unsafe extern "C-unwind" fn lock(_: *mut sqlite3_file, _: c_int) -> c_int {
    SQLITE_OK
}

unsafe extern "C" fn unlock(_: *mut sqlite3_file, _: c_int) -> c_int {
    SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(_: *mut sqlite3_file, reserved_out: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a valid place for the answer.
    unsafe { reserved_out.write(0) };
    SQLITE_OK
}

unsafe extern "C" fn file_control(_: *mut sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut sqlite3_file) -> c_int {
    SECTOR_BYTES
}

unsafe extern "C" fn device_characteristics(_: *mut sqlite3_file) -> c_int {
    POWERSAFE_OVERWRITE
}
