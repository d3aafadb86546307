//! The C side of a simulated VFS: SQLite's calls become calls of [`Host`] and [`Handle`].
//!
//! Each registered VFS lives until the process ends, as SQLite may keep a pointer to it.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use libsqlite3_sys as ffi;
use libsqlite3_sys::{SQLITE_NOTFOUND, SQLITE_OK, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

use super::sim_host::{Handle, Host};

const IO_METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 3,
    xClose: Some(x_close),
    xRead: Some(x_read),
    xWrite: Some(x_write),
    xTruncate: Some(x_truncate),
    xSync: Some(x_sync),
    xFileSize: Some(x_file_size),
    xLock: Some(x_lock),
    xUnlock: Some(x_unlock),
    xCheckReservedLock: Some(x_check_reserved_lock),
    xFileControl: Some(x_file_control),
    xSectorSize: Some(x_sector_size),
    xDeviceCharacteristics: Some(x_device_characteristics),
    xShmMap: Some(x_shm_map),
    xShmLock: Some(x_shm_lock),
    xShmBarrier: Some(x_shm_barrier),
    xShmUnmap: Some(x_shm_unmap),
    xFetch: Some(x_fetch),
    xUnfetch: Some(x_unfetch),
};

static METHODS: sqlite3_io_methods = IO_METHODS;

/// What SQLite allocates for a file (szOsFile bytes).
#[repr(C)]
struct Slot {
    base: sqlite3_file,
    handle: *mut Handle,
}

/// Registers a VFS called `name` on `host`, not as the default.
pub fn register(name: &str, host: Arc<Host>) {
    let name = CString::new(name).expect("a name without NUL").into_raw();
    let vfs = sqlite3_vfs {
        iVersion: 2,
        szOsFile: c_int::try_from(size_of::<Slot>()).expect("small"),
        mxPathname: 512,
        pNext: ptr::null_mut(),
        zName: name,
        pAppData: Box::into_raw(Box::new(host)).cast(),
        xOpen: Some(x_open),
        xDelete: Some(x_delete),
        xAccess: Some(x_access),
        xFullPathname: Some(x_full_pathname),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(x_randomness),
        xSleep: Some(x_sleep),
        xCurrentTime: Some(x_current_time),
        xGetLastError: Some(x_get_last_error),
        xCurrentTimeInt64: Some(x_current_time_int64),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    };
    let vfs = Box::leak(Box::new(vfs));
    // SAFETY: `vfs` and what it points to are never freed.
    let code = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
    assert_eq!(code, SQLITE_OK);
}

/// The host behind a VFS.
///
/// # Safety
/// `vfs` was registered by [`register`].
unsafe fn host<'vfs>(vfs: *mut sqlite3_vfs) -> &'vfs Arc<Host> {
    // SAFETY: the caller's promise.
    let data = unsafe { (*vfs).pAppData };
    // SAFETY: `register` put an `Arc<Host>` there that is never freed.
    unsafe { &*data.cast::<Arc<Host>>() }
}

/// The handle behind a file.
///
/// # Safety
/// `file` was opened by [`x_open`] and is not closed; SQLite uses a file from one thread at a time.
unsafe fn handle<'file>(file: *mut sqlite3_file) -> &'file mut Handle {
    // SAFETY: the caller's promise; a file of ours is a `Slot`.
    let handle = unsafe { (*file.cast::<Slot>()).handle };
    // SAFETY: `x_open` made it from a box, and `x_close` has not run.
    unsafe { &mut *handle }
}

/// A name from SQLite.
///
/// # Safety
/// `name` is null or ends with NUL and outlives the result.
unsafe fn path<'name>(name: *const c_char) -> Option<&'name Path> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    Some(Path::new(OsStr::from_bytes(name.to_bytes())))
}

/// Stores a result where SQLite asked for it.
///
/// # Safety
/// `place` is writable.
unsafe fn put<T>(place: *mut T, value: T) {
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
}

fn offset_of(offset: i64) -> u64 {
    u64::try_from(offset).expect("SQLite's offsets are not negative")
}

unsafe extern "C" fn x_open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let slot = file.cast::<Slot>();
    // SAFETY: SQLite gives szOsFile bytes; null methods say that there is nothing to close.
    unsafe { put(slot, Slot { base: sqlite3_file { pMethods: ptr::null() }, handle: ptr::null_mut() }) };
    // SAFETY: SQLite passes the VFS that it calls, and a name that lives as long as the file.
    let (host, name) = (unsafe { host(vfs) }, unsafe { path(name) });
    let handle = match host.open(name, flags) {
        Ok(handle) => Box::into_raw(Box::new(handle)),
        Err(code) => return code,
    };
    // SAFETY: as above.
    unsafe { put(slot, Slot { base: sqlite3_file { pMethods: &raw const METHODS }, handle }) };
    if !out_flags.is_null() {
        // SAFETY: SQLite's place for an int.
        unsafe { put(out_flags, flags) };
    }
    SQLITE_OK
}

unsafe extern "C" fn x_close(file: *mut sqlite3_file) -> c_int {
    let slot = file.cast::<Slot>();
    // SAFETY: an open file of ours.
    let raw = unsafe { (*slot).handle };
    // SAFETY: SQLite closes a file once; `x_open` made the box.
    let handle = unsafe { Box::from_raw(raw) };
    handle.close()
}

unsafe extern "C" fn x_read(file: *mut sqlite3_file, into: *mut c_void, len: c_int, offset: i64) -> c_int {
    let len = usize::try_from(len).expect("not negative");
    // SAFETY: SQLite passes `len` writable bytes.
    let into = unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), len) };
    // SAFETY: an open file of ours.
    unsafe { handle(file) }.read(into, offset_of(offset))
}

unsafe extern "C" fn x_write(file: *mut sqlite3_file, data: *const c_void, len: c_int, offset: i64) -> c_int {
    let len = usize::try_from(len).expect("not negative");
    // SAFETY: SQLite passes `len` readable bytes.
    let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
    // SAFETY: an open file of ours.
    unsafe { handle(file) }.write(data, offset_of(offset))
}

unsafe extern "C" fn x_truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: an open file of ours.
    unsafe { handle(file) }.truncate(offset_of(size))
}

unsafe extern "C" fn x_sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: an open file of ours.
    unsafe { handle(file) }.sync()
}

unsafe extern "C" fn x_file_size(file: *mut sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: an open file of ours.
    let Some(bytes) = (unsafe { handle(file) }).size() else { return ffi::SQLITE_IOERR_FSTAT };
    // SAFETY: SQLite's place for the size.
    unsafe { put(size, i64::try_from(bytes).expect("small")) };
    SQLITE_OK
}

unsafe extern "C" fn x_lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let handle = unsafe { handle(file) };
    let code = handle.with_share(|share, id| share.lock(id, level));
    if code == SQLITE_OK {
        handle.level = handle.level.max(level);
    }
    code
}

unsafe extern "C" fn x_unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let handle = unsafe { handle(file) };
    handle.with_share(|share, id| share.unlock(id, level));
    handle.level = handle.level.min(level);
    SQLITE_OK
}

unsafe extern "C" fn x_check_reserved_lock(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: an open file of ours.
    let reserved = unsafe { handle(file) }.with_share(|share, _| share.is_reserved());
    // SAFETY: SQLite's place for an int.
    unsafe { put(out, c_int::from(reserved)) };
    SQLITE_OK
}

unsafe extern "C" fn x_file_control(file: *mut sqlite3_file, op: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: an open file of ours.
    let handle = unsafe { handle(file) };
    let place = argument.cast::<c_int>();
    match op {
        // SAFETY: these controls take an int.
        ffi::SQLITE_FCNTL_LOCKSTATE => unsafe { put(place, handle.level) },
        // SAFETY: as above.
        ffi::SQLITE_FCNTL_HAS_MOVED => unsafe { put(place, c_int::from(handle.has_moved())) },
        ffi::SQLITE_FCNTL_PERSIST_WAL => {
            // SAFETY: as above.
            let wanted = unsafe { place.read() };
            if wanted >= 0 {
                handle.persist_wal = wanted != 0;
            }
            // SAFETY: as above.
            unsafe { put(place, c_int::from(handle.persist_wal)) };
        }
        // SAFETY: as above.
        ffi::SQLITE_FCNTL_CHUNK_SIZE => handle.chunk_bytes = offset_of(i64::from(unsafe { place.read() })),
        ffi::SQLITE_FCNTL_SIZE_HINT => {}
        _ => return SQLITE_NOTFOUND,
    }
    SQLITE_OK
}

unsafe extern "C" fn x_sector_size(_file: *mut sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn x_device_characteristics(_file: *mut sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE | ffi::SQLITE_IOCAP_SUBPAGE_READ
}

unsafe extern "C" fn x_shm_map(
    file: *mut sqlite3_file,
    index: c_int,
    region_bytes: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    assert_eq!(usize::try_from(region_bytes).expect("not negative"), super::sim_locks::REGION_BYTES);
    let index = usize::try_from(index).expect("not negative");
    // SAFETY: an open file of ours.
    let address = unsafe { handle(file) }.with_share(|share, id| {
        share
            .map(id, index, extend != 0)
            .map_or(ptr::null_mut(), |region| region.as_ptr().cast_mut().cast::<c_void>())
    });
    // SAFETY: SQLite's place for the address.
    unsafe { put(out, address) };
    SQLITE_OK
}

unsafe extern "C" fn x_shm_lock(file: *mut sqlite3_file, offset: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: an open file of ours.
    unsafe { handle(file) }.with_share(|share, id| share.shm_lock(id, offset, count, flags))
}

unsafe extern "C" fn x_shm_barrier(_file: *mut sqlite3_file) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

unsafe extern "C" fn x_shm_unmap(file: *mut sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: an open file of ours.
    unsafe { handle(file) }.with_share(|share, id| share.unmap(id));
    SQLITE_OK
}

unsafe extern "C" fn x_fetch(
    _file: *mut sqlite3_file,
    _offset: i64,
    _len: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite's place for the address; null means that it shall read instead.
    unsafe { put(out, ptr::null_mut()) };
    SQLITE_OK
}

unsafe extern "C" fn x_unfetch(_file: *mut sqlite3_file, _offset: i64, _page: *mut c_void) -> c_int {
    SQLITE_OK
}

unsafe extern "C" fn x_delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    // SAFETY: SQLite passes the VFS that it calls, and a name.
    let (host, name) = (unsafe { host(vfs) }, unsafe { path(name) });
    host.delete(name.expect("a name to delete"), sync_dir != 0)
}

unsafe extern "C" fn x_access(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes the VFS that it calls, and a name.
    let (host, name) = (unsafe { host(vfs) }, unsafe { path(name) });
    let exists = host.exists(name.expect("a name to look for"), flags == ffi::SQLITE_ACCESS_EXISTS);
    // SAFETY: SQLite's place for an int.
    unsafe { put(out, c_int::from(exists)) };
    SQLITE_OK
}

unsafe extern "C" fn x_full_pathname(
    _vfs: *mut sqlite3_vfs,
    name: *const c_char,
    out_bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes a name.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    assert!(name.starts_with(b"/"), "tests use absolute names");
    if name.len() > usize::try_from(out_bytes).expect("not negative") {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has room for `out_bytes`, which is enough.
    unsafe { ptr::copy_nonoverlapping(name.as_ptr().cast(), out, name.len()) };
    SQLITE_OK
}

unsafe extern "C" fn x_randomness(vfs: *mut sqlite3_vfs, len: c_int, out: *mut c_char) -> c_int {
    let count = usize::try_from(len).expect("not negative");
    // SAFETY: SQLite passes `len` writable bytes.
    let into = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), count) };
    // SAFETY: SQLite passes the VFS that it calls.
    unsafe { host(vfs) }.randomness(into);
    len
}

unsafe extern "C" fn x_sleep(vfs: *mut sqlite3_vfs, micros: c_int) -> c_int {
    // SAFETY: SQLite passes the VFS that it calls.
    unsafe { host(vfs) }.sleep(micros);
    micros
}

unsafe extern "C" fn x_current_time(vfs: *mut sqlite3_vfs, out: *mut f64) -> c_int {
    const DAY_MS: f64 = 86_400_000.0;
    // SAFETY: SQLite passes the VFS that it calls.
    let now_ms = unsafe { host(vfs) }.now_ms();
    #[allow(clippy::cast_precision_loss, reason = "a date")]
    let days = now_ms as f64 / DAY_MS;
    // SAFETY: SQLite's place for the time.
    unsafe { put(out, days) };
    SQLITE_OK
}

unsafe extern "C" fn x_current_time_int64(vfs: *mut sqlite3_vfs, out: *mut i64) -> c_int {
    // SAFETY: SQLite passes the VFS that it calls.
    let now_ms = unsafe { host(vfs) }.now_ms();
    // SAFETY: SQLite's place for the time.
    unsafe { put(out, now_ms) };
    SQLITE_OK
}

unsafe extern "C" fn x_get_last_error(_vfs: *mut sqlite3_vfs, _len: c_int, _out: *mut c_char) -> c_int {
    0
}
