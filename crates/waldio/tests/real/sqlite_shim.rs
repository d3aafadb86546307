//! A VFS that changes nothing and tells a hook what SQLite asks: other extensions stack like this, above waldio or
//! below it, and a test can act at an exact point inside SQLite.
//!
//! Memory:  | methods | shim | kind |  the base VFS's own file structure ...

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;

use super::sqlite::{Library, ffi};
use ffi::{sqlite3_file, sqlite3_io_methods, sqlite3_syscall_ptr, sqlite3_vfs};

/// What SQLite asks, before it is done or after; the hook runs in the thread that asks, and C is above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A file is opened next; its flags.
    Open(c_int),
    /// A write to the log comes next.
    LogWrite {
        /// True for a frame header that ends a transaction.
        commit: bool,
    },
    /// The log was synced.
    LogSynced,
    /// The database was synced.
    DatabaseSynced,
    /// A flush of the log is done and has not returned: what others write now is not covered by it. A disk below tells this.
    LogFlushed,
    /// A write to the database comes next.
    DatabaseWrite,
    /// `xUnfetch` on the database comes next.
    Unfetch,
    /// A barrier of shared memory is done.
    Barrier,
    /// The write lock is asked for next.
    WriteLock,
    /// It was granted.
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

type Hook = Box<dyn Fn(Event) + Send + Sync>;

struct Shim {
    base: *mut sqlite3_vfs,
    hook: Hook,
    keeps_pragmas: bool,
}

#[repr(C)]
struct Handle {
    methods: *const sqlite3_io_methods,
    shim: *const Shim,
    /// SQLITE_OPEN_WAL, SQLITE_OPEN_MAIN_DB, or 0 for what the hook hears nothing of.
    kind: c_int,
}

const HANDLE_BYTES: usize = size_of::<Handle>();

/// Registers a shim over `base` (the present default for `None`); it stays for the life of the process.
pub fn register(
    library: &Library,
    name: &'static CStr,
    base: Option<&CStr>,
    make_default: bool,
    hook: impl Fn(Event) + Send + Sync + 'static,
) {
    register_shim(library, name, base, make_default, (Box::new(hook), false));
}

/// As [`register`], not the default one, and the VFS below never hears of a pragma.
pub fn register_keeping_pragmas(
    library: &Library,
    name: &'static CStr,
    base: &CStr,
    hook: impl Fn(Event) + Send + Sync + 'static,
) {
    register_shim(library, name, Some(base), false, (Box::new(hook), true));
}

fn register_shim(
    library: &Library,
    name: &'static CStr,
    base: Option<&CStr>,
    make_default: bool,
    (hook, keeps_pragmas): (Hook, bool),
) {
    let base_name = base.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: null or terminated.
    let base = unsafe { (library.functions.sqlite3_vfs_find)(base_name) };
    assert!(!base.is_null(), "no VFS to stack on");
    let shim = Box::leak(Box::new(Shim { base, hook, keeps_pragmas }));
    // SAFETY: registered, so complete and permanent.
    let fields = unsafe { &*base };
    let vfs = Box::leak(Box::new(table(fields, name, ptr::from_mut(shim).cast())));
    // SAFETY: complete, and leaked: it stays.
    let code = unsafe { (library.functions.sqlite3_vfs_register)(vfs, c_int::from(make_default)) };
    assert_eq!(code, ffi::SQLITE_OK);
}

fn table(base: &sqlite3_vfs, name: &'static CStr, shim: *mut c_void) -> sqlite3_vfs {
    sqlite3_vfs {
        iVersion: 3,
        szOsFile: base.szOsFile + c_int::try_from(HANDLE_BYTES).unwrap(),
        mxPathname: base.mxPathname,
        pNext: ptr::null_mut(),
        zName: name.as_ptr(),
        pAppData: shim,
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: Some(dl_open),
        xDlError: Some(dl_error),
        // SAFETY: SQLite's header declares the result without its real arguments; both are one pointer.
        xDlSym: Some(unsafe { transmute::<DlSymHere, DlSym>(dl_sym) }),
        xDlClose: Some(dl_close),
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(get_last_error),
        xCurrentTimeInt64: Some(current_time_int64),
        xSetSystemCall: Some(set_system_call),
        xGetSystemCall: Some(get_system_call),
        xNextSystemCall: Some(next_system_call),
    }
}

type DlSymHere =
    unsafe extern "C" fn(*mut sqlite3_vfs, *mut c_void, *const c_char) -> Option<unsafe extern "C" fn()>;
type DlSym =
    unsafe extern "C" fn(
        *mut sqlite3_vfs,
        *mut c_void,
        *const c_char,
    ) -> Option<unsafe extern "C" fn(*mut sqlite3_vfs, *mut c_void, *const c_char)>;

/// # Safety
/// `vfs` was made by `table`.
unsafe fn shim_of<'a>(vfs: *mut sqlite3_vfs) -> &'a Shim {
    // SAFETY: the caller's promise.
    let shim = unsafe { (*vfs).pAppData };
    // SAFETY: `register` leaked it.
    unsafe { &*shim.cast::<Shim>() }
}

/// A method of the VFS that goes to the base VFS with its own pointer.
macro_rules! vfs_methods {
    ($($name:ident = $field:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(unsafe extern "C" fn $name(vfs: *mut sqlite3_vfs, $($argument: $type),*) -> $result {
            // SAFETY: SQLite passes the VFS that it got from us.
            let base = unsafe { shim_of(vfs) }.base;
            // SAFETY: registered, so it lives as long as the process.
            let call = unsafe { (*base).$field }.expect("the base VFS has every method");
            // SAFETY: the arguments are SQLite's own, for the same method.
            unsafe { call(base, $($argument),*) }
        })*
    };
}

vfs_methods! {
    delete = xDelete(name: *const c_char, sync: c_int) -> c_int;
    access = xAccess(name: *const c_char, flags: c_int, out: *mut c_int) -> c_int;
    full_pathname = xFullPathname(name: *const c_char, bytes: c_int, out: *mut c_char) -> c_int;
    dl_open = xDlOpen(name: *const c_char) -> *mut c_void;
    dl_error = xDlError(bytes: c_int, out: *mut c_char) -> ();
    dl_close = xDlClose(library: *mut c_void) -> ();
    randomness = xRandomness(bytes: c_int, out: *mut c_char) -> c_int;
    sleep = xSleep(microseconds: c_int) -> c_int;
    current_time = xCurrentTime(out: *mut f64) -> c_int;
    get_last_error = xGetLastError(bytes: c_int, out: *mut c_char) -> c_int;
    current_time_int64 = xCurrentTimeInt64(out: *mut i64) -> c_int;
    set_system_call = xSetSystemCall(name: *const c_char, call: sqlite3_syscall_ptr) -> c_int;
    get_system_call = xGetSystemCall(name: *const c_char) -> sqlite3_syscall_ptr;
    next_system_call = xNextSystemCall(name: *const c_char) -> *const c_char;
}

unsafe extern "C" fn dl_sym(
    vfs: *mut sqlite3_vfs,
    library: *mut c_void,
    name: *const c_char,
) -> Option<unsafe extern "C" fn()> {
    // SAFETY: SQLite passes the VFS that it got from us.
    let base = unsafe { shim_of(vfs) }.base;
    // SAFETY: registered, so it lives as long as the process.
    let call = unsafe { (*base).xDlSym }.expect("the base VFS has every method");
    // SAFETY: as in `table`, the other way round.
    let call = unsafe { transmute::<DlSym, DlSymHere>(call) };
    // SAFETY: SQLite's own arguments.
    unsafe { call(base, library, name) }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes the VFS that it got from us.
    let shim = unsafe { shim_of(vfs) };
    (shim.hook)(Event::Open(flags));
    // SAFETY: SQLite passes memory of our `szOsFile`.
    unsafe { (*file).pMethods = ptr::null() };
    // SAFETY: registered, so it lives as long as the process.
    let call = unsafe { (*shim.base).xOpen }.expect("the base VFS has every method");
    // SAFETY: SQLite's own arguments, with the base's own part of the memory.
    let code = unsafe { call(shim.base, name, base_of(file), flags, flags_out) };
    // SAFETY: `xOpen` of the base set its methods, or left them null.
    if unsafe { (*base_of(file)).pMethods }.is_null() {
        return code;
    }
    let kind = flags & (ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_DB);
    let handle = Handle { methods: &raw const METHODS, shim, kind };
    // SAFETY: memory of our `szOsFile`, aligned by SQLite to 8 bytes.
    unsafe { file.cast::<Handle>().write(handle) };
    code
}

fn base_of(file: *mut sqlite3_file) -> *mut sqlite3_file {
    file.wrapping_byte_add(HANDLE_BYTES)
}

/// A method of a file that goes to the base file.
macro_rules! file_methods {
    ($($name:ident = $field:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(unsafe extern "C" fn $name(file: *mut sqlite3_file, $($argument: $type),*) -> $result {
            let base = base_of(file);
            // SAFETY: `open` put ours in front of an open base file.
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
    control_below = xFileControl(operation: c_int, argument: *mut c_void) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(region: c_int, bytes: c_int, extend: c_int, out: *mut *mut c_void) -> c_int;
    shm_lock_below = xShmLock(slot: c_int, count: c_int, flags: c_int) -> c_int;
    barrier_below = xShmBarrier() -> ();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
    fetch = xFetch(offset: i64, bytes: c_int, out: *mut *mut c_void) -> c_int;
    unfetch_below = xUnfetch(offset: i64, page: *mut c_void) -> c_int;
}

/// # Safety
/// `file` was filled by `open`.
unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a Handle {
    // SAFETY: the caller's promise.
    unsafe { &*file.cast::<Handle>() }
}

fn shim_of_file(handle: &Handle) -> &Shim {
    // SAFETY: `register` leaked it.
    unsafe { &*handle.shim }
}

/// # Safety
/// `file` was filled by `open`.
unsafe fn tell(file: *mut sqlite3_file, event: Event) {
    // SAFETY: the caller's promise.
    let handle = unsafe { handle(file) };
    (shim_of_file(handle).hook)(event);
}

unsafe extern "C" fn write(file: *mut sqlite3_file, data: *const c_void, bytes: c_int, offset: i64) -> c_int {
    const FRAME_HEADER_BYTES: usize = 24;
    // SAFETY: SQLite calls methods of open files only.
    let kind = unsafe { handle(file) }.kind;
    let len = usize::try_from(bytes).expect("not negative");
    // SAFETY: SQLite passes `bytes` readable bytes.
    let content = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
    let commit = len == FRAME_HEADER_BYTES && content[4..8] != [0; 4];
    match kind {
        // SAFETY: SQLite calls methods of open files only.
        ffi::SQLITE_OPEN_WAL => unsafe { tell(file, Event::LogWrite { commit }) },
        // SAFETY: as above.
        ffi::SQLITE_OPEN_MAIN_DB => unsafe { tell(file, Event::DatabaseWrite) },
        _ => {}
    }
    // SAFETY: SQLite's own arguments.
    unsafe { write_below(file, data, bytes, offset) }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite's own arguments.
    let code = unsafe { sync_below(file, flags) };
    // SAFETY: SQLite calls methods of open files only.
    let event = match unsafe { handle(file) }.kind {
        ffi::SQLITE_OPEN_WAL => Event::LogSynced,
        ffi::SQLITE_OPEN_MAIN_DB => Event::DatabaseSynced,
        _ => return code,
    };
    if code == ffi::SQLITE_OK {
        // SAFETY: as above.
        unsafe { tell(file, event) };
    }
    code
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: SQLite calls methods of open files only.
    let handle = unsafe { handle(file) };
    if operation == ffi::SQLITE_FCNTL_PRAGMA && shim_of_file(handle).keeps_pragmas {
        return ffi::SQLITE_NOTFOUND;
    }
    // SAFETY: SQLite calls methods of open files only.
    unsafe { tell(file, Event::Control(operation)) };
    // SAFETY: SQLite's own arguments.
    let code = unsafe { control_below(file, operation, argument) };
    // SAFETY: SQLite calls methods of open files only.
    unsafe { tell(file, Event::Controlled(operation)) };
    code
}

unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, slot: c_int, count: c_int, flags: c_int) -> c_int {
    const WRITE_LOCK: c_int = 0;
    let (writes, unlocks) = (slot == WRITE_LOCK, flags & ffi::SQLITE_SHM_UNLOCK != 0);
    if writes {
        // SAFETY: SQLite calls methods of open files only.
        unsafe { tell(file, if unlocks { Event::WriteUnlock } else { Event::WriteLock }) };
    }
    // SAFETY: SQLite's own arguments.
    let code = unsafe { shm_lock_below(file, slot, count, flags) };
    if writes && code == ffi::SQLITE_OK {
        // SAFETY: SQLite calls methods of open files only.
        unsafe { tell(file, if unlocks { Event::WriteUnlocked } else { Event::WriteLocked }) };
    }
    code
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: SQLite's own argument.
    unsafe { barrier_below(file) };
    // SAFETY: SQLite calls methods of open files only.
    unsafe { tell(file, Event::Barrier) };
}

unsafe extern "C" fn unfetch(file: *mut sqlite3_file, offset: i64, page: *mut c_void) -> c_int {
    // SAFETY: SQLite calls methods of open files only.
    unsafe { tell(file, Event::Unfetch) };
    // SAFETY: SQLite's own arguments.
    unsafe { unfetch_below(file, offset, page) }
}

/// Version 3 as Debian's unix VFS has. A log that waldio opened has version 1 methods only; SQLite asks a log for none of
/// the others.
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
