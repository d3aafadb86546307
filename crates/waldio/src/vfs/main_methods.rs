//! The methods of an open database file: all go to the base VFS; locks of the wal-index, barriers and file
//! controls are seen on the way.
//!
//! Memory:  | methods | connection | gated | registered | name |  the base VFS's own file structure ...

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use super::gated::{self, Gated};
use super::log_methods::code_of;
use super::registered::Registered;
use super::waiter;
use crate::connection::{Connection, Granted};
use crate::ffi::base_vfs::methods_of;
use crate::ffi::codes::*;
use crate::ffi::guard;
use crate::ffi::types::{sqlite3_file, sqlite3_io_methods};
use crate::ffi::wal_index::WalIndex;
use crate::process::Process;
use crate::queue::Turn;

/// What `xOpen` puts into SQLite's memory in front of the base VFS's file.
#[repr(C)]
pub(crate) struct MainHandle {
    methods: *const sqlite3_io_methods,
    connection: *const Connection,
    gated: Cell<Gated>,
    registered: &'static Registered,
    name: usize,
}

/// Where the base VFS's file starts, in bytes.
pub(crate) const HANDLE_BYTES: usize = size_of::<MainHandle>();
const _: () = assert!(HANDLE_BYTES.is_multiple_of(8));

/// One table for each version of methods that the base VFS may have: SQLite asks the version before it calls.
static METHODS: [sqlite3_io_methods; 3] = [methods(1), methods(2), methods(3)];

const fn methods(version: c_int) -> sqlite3_io_methods {
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
        xFileControl: Some(file_control),
        xSectorSize: Some(sector_size),
        xDeviceCharacteristics: Some(device_characteristics),
        xShmMap: Some(shm_map),
        xShmLock: Some(shm_lock),
        xShmBarrier: Some(shm_barrier),
        xShmUnmap: Some(shm_unmap),
        xFetch: Some(fetch),
        xUnfetch: Some(unfetch),
    }
}

/// Where the base VFS's file is.
pub(crate) fn base_of(file: *mut sqlite3_file) -> *mut sqlite3_file {
    file.wrapping_byte_add(HANDLE_BYTES)
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
    let base_version = unsafe { methods_of(base_of(file)) }.map_or(1, |methods| methods.iVersion);
    let table = usize::try_from(base_version - 1).unwrap_or(0).min(METHODS.len() - 1);
    let methods = &raw const METHODS[table];
    let handle = MainHandle {
        methods,
        connection: Arc::into_raw(connection),
        gated: Cell::new(Gated::No),
        registered,
        name,
    };
    // SAFETY: the caller's promise; SQLite aligns file structures to 8 bytes.
    unsafe { file.cast::<MainHandle>().write(handle) };
}

/// # Safety
/// `file` was filled by `fill` and not closed; the reference is used within the call alone.
unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a MainHandle {
    // SAFETY: the caller's promise.
    unsafe { &*file.cast::<MainHandle>() }
}

/// # Safety
/// As `handle`.
unsafe fn connection<'a>(file: *mut sqlite3_file) -> &'a Connection {
    // SAFETY: the caller's promise.
    let handle = unsafe { handle(file) };
    // SAFETY: `fill` keeps one reference count until `close`.
    unsafe { &*handle.connection }
}

/// # Safety
/// As `handle`.
unsafe fn shared_connection(file: *mut sqlite3_file) -> Arc<Connection> {
    // SAFETY: the caller's promise.
    let pointer = unsafe { handle(file) }.connection;
    // SAFETY: `fill` keeps one reference count until `close`; this adds another.
    unsafe { Arc::increment_strong_count(pointer) };
    // SAFETY: the count just added.
    unsafe { Arc::from_raw(pointer) }
}

/// Calls the same method of the base file; `$absent` where it has none.
macro_rules! forward {
    ($file:expr, $method:ident($($argument:expr),*), $absent:expr) => {{
        let base = base_of($file);
        // SAFETY: SQLite calls methods of open files only, and `fill` put ours in front of an open base file.
        match unsafe { methods_of(base) }.and_then(|methods| methods.$method) {
            // SAFETY: the arguments are SQLite's own, for the same method.
            Some(call) => unsafe { call(base $(, $argument)*) },
            None => $absent,
        }
    }};
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
        forward!(file, xClose(), SQLITE_OK)
    })
}

impl MainHandle {
    fn parts(&self) -> (*const Connection, usize) {
        (self.connection, self.name)
    }
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    len_bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls methods of open files only.
    match guard::code_or(SQLITE_IOERR_READ, || unsafe { before_page(file) }) {
        SQLITE_OK => forward!(file, xRead(into, len_bytes, offset), SQLITE_IOERR_READ),
        code => code,
    }
}

/// # Safety
/// As `handle`.
unsafe fn before_page(file: *mut sqlite3_file) -> c_int {
    // SAFETY: the caller's promise.
    let read = unsafe { connection(file) }.before_page();
    read.map_or_else(|failure| code_of(&failure, SQLITE_IOERR_FSYNC), |()| SQLITE_OK)
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    data: *const c_void,
    len_bytes: c_int,
    offset: i64,
) -> c_int {
    forward!(file, xWrite(data, len_bytes, offset), SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size_bytes: i64) -> c_int {
    forward!(file, xTruncate(size_bytes), SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    forward!(file, xSync(flags), SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size_out: *mut i64) -> c_int {
    forward!(file, xFileSize(size_out), SQLITE_IOERR_FSTAT)
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    forward!(file, xLock(level), SQLITE_IOERR)
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
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
    match guard::code_or(SQLITE_IOERR, || unsafe { before_page(file) }) {
        SQLITE_OK => forward!(file, xFetch(offset, len_bytes, out), SQLITE_IOERR),
        code => code,
    }
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
    let code = forward!(file, xShmMap(region, region_bytes, extend, out), SQLITE_IOERR);
    if code == SQLITE_OK && region == 0 {
        // SAFETY: SQLite passes a valid place, which the base VFS just filled.
        let address = unsafe { out.read() };
        // SAFETY: region 0 as mapped; `shm_unmap` and `close` drop the value first.
        let wal_index = unsafe { WalIndex::new(address) };
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        return guard::code_or(SQLITE_IOERR, || {
            connection.set_wal_index(wal_index);
            code
        });
    }
    code
}

unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, slot: c_int, count: c_int, flags: c_int) -> c_int {
    guard::code_or(SQLITE_IOERR, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        let locks = flags & SQLITE_SHM_UNLOCK == 0;
        if flags & SQLITE_SHM_EXCLUSIVE == 0 {
            if locks && slot > WAL_READ_LOCK_0 && connection.pass_gate() {
                // To SQLite: the log changed meanwhile, look again.
                return SQLITE_BUSY;
            }
            if !locks && slot >= WAL_READ_LOCK_0 {
                connection.before_read_unlock();
            }
            let code = forward!(file, xShmLock(slot, count, flags), SQLITE_IOERR);
            if code == SQLITE_OK
                && locks
                && slot >= WAL_READ_LOCK_0
                && let Err(failure) = connection.read_lock_granted(slot)
            {
                connection.before_read_unlock();
                let _ = forward!(
                    file,
                    xShmLock(slot, count, SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED),
                    SQLITE_IOERR
                );
                return code_of(&failure, SQLITE_IOERR_FSYNC);
            }
            return code;
        }
        if locks {
            // SAFETY: as above.
            return unsafe { lock_exclusively(file, connection, slot, count) };
        }
        if slot == WAL_CKPT_LOCK {
            // SAFETY: as above.
            let gated = unsafe { gated_of(file) };
            // SAFETY: `fill` put our handle in front of an open base file.
            unsafe { gated::end(base_of(file), connection, gated) };
        }
        connection.before_unlock(slot);
        let code = forward!(file, xShmLock(slot, count, flags), SQLITE_IOERR);
        if slot == WAL_WRITE_LOCK {
            connection.write_released();
        }
        code
    })
}

/// # Safety
/// `file` is open, and `connection` its connection.
unsafe fn lock_exclusively(
    file: *mut sqlite3_file,
    connection: &Connection,
    slot: c_int,
    count: c_int,
) -> c_int {
    const LOCK: c_int = SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE;
    const UNLOCK: c_int = SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE;
    let writes = slot == WAL_WRITE_LOCK;
    // SAFETY: the caller's promise.
    let note_refusal = || waiter::refused(&unsafe { shared_connection(file) });
    // SAFETY: the caller's promise.
    if writes && gated::pass_write_lock(unsafe { gated_of(file) }) {
        return SQLITE_OK;
    }
    if writes && connection.ask_to_write() == Turn::Wait {
        note_refusal();
        return SQLITE_BUSY;
    }
    if let Err(failure) = connection.before_exclusive_lock(slot) {
        if writes {
            connection.write_released();
        }
        return code_of(&failure, SQLITE_IOERR_FSYNC);
    }
    let code = forward!(file, xShmLock(slot, count, LOCK), SQLITE_IOERR);
    if code != SQLITE_OK {
        if writes && code == SQLITE_BUSY {
            if connection.write_refused() {
                note_refusal();
            }
        } else if writes {
            connection.write_released();
        }
        return code;
    }
    let refused = match connection.before_recovery(slot, count) {
        Err(failure) => code_of(&failure, SQLITE_IOERR_FSYNC),
        Ok(()) => match connection.exclusive_lock_granted(slot) {
            Granted::TakeBack => SQLITE_BUSY,
            Granted::Keep => {
                if slot == WAL_CKPT_LOCK {
                    // SAFETY: the caller's promise.
                    let gated = unsafe { gated_of(file) };
                    // SAFETY: the caller's promise, and `fill` put our handle in front of an open base file.
                    unsafe { gated::begin(base_of(file), connection, gated) };
                }
                return SQLITE_OK;
            }
            Granted::KeepToWrite => {
                waiter::settled();
                return SQLITE_OK;
            }
            Granted::KeepInVain => {
                note_refusal();
                return SQLITE_OK;
            }
        },
    };
    let _ = forward!(file, xShmLock(slot, count, UNLOCK), SQLITE_IOERR);
    if writes {
        connection.write_released();
    }
    refused
}

/// # Safety
/// As `handle`.
unsafe fn gated_of<'a>(file: *mut sqlite3_file) -> &'a Cell<Gated> {
    // SAFETY: the caller's promise.
    let handle = unsafe { handle(file) };
    &handle.gated
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    guard::value_or((), || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        connection.shm_barrier();
    });
    forward!(file, xShmBarrier(), ());
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    guard::code_or(SQLITE_IOERR, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        connection.set_wal_index(None);
        forward!(file, xShmUnmap(delete), SQLITE_OK)
    })
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    guard::code_or(SQLITE_IOERR, || {
        // SAFETY: SQLite calls methods of open files only.
        let connection = unsafe { connection(file) };
        match operation {
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
                // SQLite does not look at the answer: what the failure poisoned stops the checkpoint's next step.
                let _ = connection.before_checkpoint();
                forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND)
            }
            SQLITE_FCNTL_LOCK_TIMEOUT if !argument.is_null() => {
                // SAFETY: SQLite passes an int, in milliseconds (SQLITE_FCNTL_LOCK_TIMEOUT).
                let milliseconds = unsafe { argument.cast::<c_int>().read() };
                connection.set_lock_timeout(milliseconds);
                forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND)
            }
            SQLITE_FCNTL_PRAGMA => {
                // SAFETY: as above.
                let registered = unsafe { handle(file) }.registered;
                // SAFETY: SQLite passes three string pointers (SQLITE_FCNTL_PRAGMA).
                match unsafe { pragma(connection, registered, argument.cast()) } {
                    Some(code) => code,
                    None => forward!(file, xFileControl(operation, argument), SQLITE_NOTFOUND),
                }
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
/// `strings` is the argument of `SQLITE_FCNTL_PRAGMA`: a place for the result, the name, the value or null.
unsafe fn pragma(
    connection: &Connection,
    registered: &Registered,
    strings: *mut *mut c_char,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let [result, name, value] = unsafe { &mut *strings.cast::<[*mut c_char; 3]>() };
    // SAFETY: a terminated string or null.
    let name = unsafe { text(*name) }?;
    // SAFETY: as above.
    let value = unsafe { text(*value) };
    let (text, code) = match connection.pragma(&name, value.as_deref())? {
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
    // SAFETY: the base VFS put a terminated string there, or null.
    let below = unsafe { text(*place) }.unwrap_or_default();
    let name = registered.api.string(&format!("{}/{below}", registered.name()));
    if name.is_null() {
        return SQLITE_NOMEM;
    }
    // SAFETY: the base VFS allocated it with this SQLite's allocator, and nobody else has it.
    unsafe { registered.api.free((*place).cast()) };
    *place = name;
    SQLITE_OK
}
