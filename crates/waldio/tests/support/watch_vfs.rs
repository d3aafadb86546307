//! A VFS above another one that changes nothing and tells the calling thread's watcher what SQLite asks, before it is
//! done and after: a test can let other connections act at an exact point inside a commit or a checkpoint.
//!
//! Memory:  | methods | kind |  the file structure of the VFS below ...
//! A thread without a watcher goes straight through.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::rc::Rc;

use libsqlite3_sys as ffi;
use libsqlite3_sys::{SQLITE_OK, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

/// What SQLite asks, or what was just done for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A write to the log comes next; whether it is the header of a commit's last frame.
    LogWrite {
        /// True for 24 bytes that end a transaction.
        commit: bool,
    },
    /// The log was synced.
    LogSynced,
    /// A flush of the log is done and has not returned: what others write now is not covered by it.
    LogFlushed,
    /// A write to the database comes next.
    DatabaseWrite,
    /// A barrier of shared memory is done.
    Barrier,
    /// The write lock was granted.
    WriteLocked,
    /// The write lock is given back next.
    WriteUnlock,
    /// It was given back.
    WriteUnlocked,
    /// A file control comes next.
    Control(c_int),
    /// It was answered.
    Controlled(c_int),
}

/// Hears what the connections of one thread do.
pub trait Watcher {
    /// One event. It may take as long as it likes, but must not panic: C is above it.
    fn hear(&self, event: Event);
}

thread_local! {
    static WATCHER: RefCell<Option<Rc<dyn Watcher>>> = const { RefCell::new(None) };
}

/// Lets `watcher` hear what this thread's connections do from now on.
pub fn watch(watcher: Option<Rc<dyn Watcher>>) {
    WATCHER.with(|place| *place.borrow_mut() = watcher);
}

/// Tells this thread's watcher.
pub fn tell(event: Event) {
    let watcher = WATCHER.with(|place| place.borrow().clone());
    if let Some(watcher) = watcher {
        watcher.hear(event);
    }
}

#[repr(C)]
struct Handle {
    methods: *const sqlite3_io_methods,
    kind: c_int,
}

const HANDLE_BYTES: usize = size_of::<Handle>();

/// Registers it as `name` over the registered VFS `base`; it stays for the life of the process.
pub fn register(name: &str, base: &str) {
    let base = CString::new(base).expect("no NUL");
    // SAFETY: the string ends with NUL and outlives the call.
    let base = unsafe { ffi::sqlite3_vfs_find(base.as_ptr()) };
    assert!(!base.is_null(), "no VFS to stand on");
    // SAFETY: registered, so complete and permanent.
    let fields = unsafe { &*base };
    let vfs = sqlite3_vfs {
        iVersion: 2,
        szOsFile: fields.szOsFile + c_int::try_from(HANDLE_BYTES).expect("small"),
        zName: CString::new(name).expect("no NUL").into_raw(),
        pAppData: base.cast(),
        pNext: ptr::null_mut(),
        mxPathname: fields.mxPathname,
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(get_last_error),
        xCurrentTimeInt64: Some(current_time_int64),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    };
    // SAFETY: complete, and leaked: it stays.
    let code = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0) };
    assert_eq!(code, SQLITE_OK);
}

/// # Safety
/// `vfs` was made by [`register`].
unsafe fn below(vfs: *mut sqlite3_vfs) -> *mut sqlite3_vfs {
    // SAFETY: the caller's promise.
    unsafe { (*vfs).pAppData }.cast()
}

/// A method of the VFS that goes to the one below with its own pointer.
macro_rules! vfs_methods {
    ($($name:ident = $field:ident($($argument:ident: $type:ty),*);)*) => {
        $(unsafe extern "C" fn $name(vfs: *mut sqlite3_vfs, $($argument: $type),*) -> c_int {
            // SAFETY: SQLite passes the VFS that it got from us.
            let base = unsafe { below(vfs) };
            // SAFETY: registered, so it lives as long as the process.
            let call = unsafe { (*base).$field }.expect("the VFS below has every method");
            // SAFETY: the arguments are SQLite's own, for the same method.
            unsafe { call(base, $($argument),*) }
        })*
    };
}

vfs_methods! {
    delete = xDelete(name: *const c_char, sync: c_int);
    access = xAccess(name: *const c_char, flags: c_int, out: *mut c_int);
    full_pathname = xFullPathname(name: *const c_char, bytes: c_int, out: *mut c_char);
    randomness = xRandomness(bytes: c_int, out: *mut c_char);
    sleep = xSleep(microseconds: c_int);
    current_time = xCurrentTime(out: *mut f64);
    get_last_error = xGetLastError(bytes: c_int, out: *mut c_char);
    current_time_int64 = xCurrentTimeInt64(out: *mut i64);
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes memory of our `szOsFile`.
    unsafe { (*file).pMethods = ptr::null() };
    // SAFETY: SQLite passes the VFS that it got from us.
    let base = unsafe { below(vfs) };
    // SAFETY: registered, so it lives as long as the process.
    let call = unsafe { (*base).xOpen }.expect("the VFS below has every method");
    // SAFETY: SQLite's own arguments, with the part of the memory of the one below.
    let code = unsafe { call(base, name, base_of(file), flags, flags_out) };
    // SAFETY: `xOpen` below set its methods, or left them null.
    if unsafe { (*base_of(file)).pMethods }.is_null() {
        return code;
    }
    let kind = flags & (ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_DB);
    // SAFETY: memory of our `szOsFile`, aligned by SQLite to 8 bytes.
    unsafe { file.cast::<Handle>().write(Handle { methods: &raw const METHODS, kind }) };
    code
}

fn base_of(file: *mut sqlite3_file) -> *mut sqlite3_file {
    file.wrapping_byte_add(HANDLE_BYTES)
}

/// # Safety
/// `file` was opened by [`open`].
unsafe fn is_log(file: *mut sqlite3_file) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*file.cast::<Handle>()).kind == ffi::SQLITE_OPEN_WAL }
}

/// # Safety
/// `file` was opened by [`open`].
unsafe fn is_database(file: *mut sqlite3_file) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*file.cast::<Handle>()).kind == ffi::SQLITE_OPEN_MAIN_DB }
}

/// A method of a file that goes to the file below.
macro_rules! file_methods {
    ($($name:ident = $field:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(unsafe extern "C" fn $name(file: *mut sqlite3_file, $($argument: $type),*) -> $result {
            let base = base_of(file);
            // SAFETY: `open` put ours in front of an open file.
            let methods = unsafe { (*base).pMethods };
            // SAFETY: as above.
            let call = unsafe { (*methods).$field }.expect("SQLite asks for methods that the version has");
            // SAFETY: the arguments are SQLite's own, for the same method.
            unsafe { call(base, $($argument),*) }
        })*
    };
}

file_methods! {
    close = xClose() -> c_int;
    read = xRead(into: *mut c_void, bytes: c_int, offset: i64) -> c_int;
    write_below = xWrite(data: *const c_void, bytes: c_int, offset: i64) -> c_int;
    truncate = xTruncate(bytes: i64) -> c_int;
    sync_below = xSync(flags: c_int) -> c_int;
    file_size = xFileSize(out: *mut i64) -> c_int;
    lock = xLock(level: c_int) -> c_int;
    unlock = xUnlock(level: c_int) -> c_int;
    check_reserved_lock = xCheckReservedLock(out: *mut c_int) -> c_int;
    file_control_below = xFileControl(operation: c_int, argument: *mut c_void) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(region: c_int, bytes: c_int, extend: c_int, out: *mut *mut c_void) -> c_int;
    shm_lock_below = xShmLock(slot: c_int, count: c_int, flags: c_int) -> c_int;
    shm_barrier_below = xShmBarrier() -> ();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
    fetch = xFetch(offset: i64, bytes: c_int, out: *mut *mut c_void) -> c_int;
    unfetch = xUnfetch(offset: i64, page: *mut c_void) -> c_int;
}

unsafe extern "C" fn write(file: *mut sqlite3_file, data: *const c_void, bytes: c_int, offset: i64) -> c_int {
    // SAFETY: an open file of ours.
    if unsafe { is_log(file) } {
        let len = usize::try_from(bytes).expect("not negative");
        // SAFETY: SQLite passes `bytes` readable bytes.
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
        tell(Event::LogWrite { commit: len == 24 && data[4..8] != [0; 4] });
    // SAFETY: an open file of ours.
    } else if unsafe { is_database(file) } {
        tell(Event::DatabaseWrite);
    }
    // SAFETY: SQLite's own arguments.
    unsafe { write_below(file, data, bytes, offset) }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite's own arguments.
    let code = unsafe { sync_below(file, flags) };
    // SAFETY: an open file of ours.
    if code == SQLITE_OK && unsafe { is_log(file) } {
        tell(Event::LogSynced);
    }
    code
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    tell(Event::Control(operation));
    // SAFETY: SQLite's own arguments.
    let code = unsafe { file_control_below(file, operation, argument) };
    tell(Event::Controlled(operation));
    code
}

unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, slot: c_int, count: c_int, flags: c_int) -> c_int {
    // WAL_WRITE_LOCK.
    let write = slot == 0;
    let unlocks = flags & ffi::SQLITE_SHM_UNLOCK != 0;
    if write && unlocks {
        tell(Event::WriteUnlock);
    }
    // SAFETY: SQLite's own arguments.
    let code = unsafe { shm_lock_below(file, slot, count, flags) };
    if write && code == SQLITE_OK {
        tell(if unlocks { Event::WriteUnlocked } else { Event::WriteLocked });
    }
    code
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: SQLite's own argument.
    unsafe { shm_barrier_below(file) };
    tell(Event::Barrier);
}

/// A log that waldio opened has version 1 methods only; SQLite asks a log for none of the others.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 3,
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
};
