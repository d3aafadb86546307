//! The methods of our VFS: which files are ours, and everything else to the base VFS.

use std::ffi::{CStr, OsStr, c_char, c_double, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::embedding::{Opened, Opener, Refusal};
use super::handle::{self, base_of};
use super::log_methods;
use super::main_file::methods as main_methods;
use super::registered::Registered;
use super::waiter;
use blockio::disk::FileId;
use blockio::real::descriptors;

use crate::connection::Connection;
use crate::ffi::base_vfs::methods_of;
use crate::ffi::codes::*;
use crate::ffi::guard;
use crate::ffi::kernel::cancellation::Uncancelled;
use crate::ffi::memory;
use crate::ffi::taken_lock::TakenLock;
use crate::ffi::types::{SystemCall, sqlite3_file, sqlite3_vfs};
use crate::sqlite::process::{Opening, Process};

/// Fills a VFS structure whose methods are ours.
pub(crate) fn table(registered: &'static Registered) -> sqlite3_vfs {
    let base = registered.base.fields();
    let handle_bytes = c_int::try_from(handle::HANDLE_BYTES.max(log_methods::HANDLE_BYTES)).unwrap_or(64);
    sqlite3_vfs {
        iVersion: base.iVersion.min(3),
        szOsFile: handle_bytes + base.szOsFile.max(handle_bytes),
        mxPathname: base.mxPathname,
        pNext: std::ptr::null_mut(),
        zName: registered.name.as_ptr(),
        pAppData: (&raw const *registered).cast_mut().cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: Some(dl_open),
        xDlError: Some(dl_error),
        xDlSym: Some(dl_sym),
        xDlClose: Some(dl_close),
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(get_last_error),
        xCurrentTimeInt64: base.xCurrentTimeInt64.map(|_| current_time_int64 as _),
        xSetSystemCall: base.xSetSystemCall.map(|_| set_system_call as _),
        xGetSystemCall: base.xGetSystemCall.map(|_| get_system_call as _),
        xNextSystemCall: base.xNextSystemCall.map(|_| next_system_call as _),
    }
}

/// True for a VFS structure that `table` made, whichever SQLite library it is registered with.
/// # Safety
/// `vfs` is a registered VFS.
pub(crate) unsafe fn is_ours(vfs: *mut sqlite3_vfs) -> bool {
    // SAFETY: the caller's promise.
    let open_method = unsafe { (*vfs).xOpen };
    open_method.is_some_and(|method| std::ptr::fn_addr_eq(method, open as OpenMethod))
}

type OpenMethod =
    unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, *mut sqlite3_file, c_int, *mut c_int) -> c_int;

/// # Safety
/// `vfs` was made by `table`.
unsafe fn registered(vfs: *mut sqlite3_vfs) -> &'static Registered {
    // SAFETY: the caller's promise.
    let data = unsafe { (*vfs).pAppData };
    // SAFETY: `table` put a reference for the life of the process there.
    unsafe { &*data.cast::<Registered>() }
}

/// # Safety
/// `name` is terminated.
unsafe fn path_of(name: *const c_char) -> PathBuf {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    Path::new(OsStr::from_bytes(name.to_bytes())).to_path_buf()
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    guard::code_or(SQLITE_CANTOPEN, || {
        waiter::heard_elsewhere();
        if memory::is_short() {
            return SQLITE_NOMEM;
        }
        // SAFETY: SQLite passes the VFS that it got from us.
        let registered = unsafe { registered(vfs) };
        // SAFETY: SQLite passes memory of our `szOsFile`, which holds either structure.
        unsafe { (*file).pMethods = std::ptr::null() };
        if !name.is_null() && flags & SQLITE_OPEN_MAIN_DB != 0 {
            // SAFETY: as above, and a terminated name with its URI parameters.
            return unsafe { open_main(registered, name, file, flags, flags_out) };
        }
        if !name.is_null() && flags & SQLITE_OPEN_WAL != 0 {
            // SAFETY: as above, and the name of a log, behind which SQLite keeps its database's.
            let opened = unsafe { open_log(registered, name, file, flags) };
            if opened == OpenedLog::Ours && !flags_out.is_null() {
                // SAFETY: not null: SQLite's place for the flags.
                unsafe { flags_out.write(flags) };
            }
            match opened {
                OpenedLog::Ours => return SQLITE_OK,
                OpenedLog::Refused(code) => return code,
                OpenedLog::NotOurs => {}
            }
        }
        if !name.is_null() && flags & SQLITE_OPEN_SUPER_JOURNAL != 0 && flags & SQLITE_OPEN_CREATE != 0 {
            // SAFETY: a terminated name.
            Process::current().super_journals.created(&unsafe { path_of(name) });
        }
        if !name.is_null() && flags & SQLITE_OPEN_MAIN_JOURNAL != 0 {
            // SAFETY: a terminated name.
            Process::current().note_rollback_journal(&unsafe { path_of(name) });
        }
        // Journals, temporary files: the base VFS fills SQLite's memory itself, and we are out of the way.
        // SAFETY: SQLite's own arguments.
        unsafe { registered.base.open(name, file, flags, flags_out) }
    })
}

/// True where the URI of a database says `waldio=off`.
/// # Safety
/// `name` is a database's name that SQLite gave.
pub(super) unsafe fn is_left_out(registered: &Registered, name: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let value = unsafe { registered.api.uri_parameter(name, c"waldio") };
    value.is_some_and(|value| matches!(value.as_str(), "off" | "0" | "no" | "false"))
}

/// # Safety
/// As SQLite's `xOpen` with `SQLITE_OPEN_MAIN_DB`.
unsafe fn open_main(
    registered: &'static Registered,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // The base VFS would close a database at a standard stream's descriptor again, and with that give back all locks on it.
    descriptors::fill_streams();
    // SAFETY: a database's name, as the caller promises.
    let parameter = |key: &CStr| unsafe { registered.api.uri_parameter(name, key) };
    // SAFETY: as above.
    if unsafe { is_left_out(registered, name) } {
        // SAFETY: SQLite's own arguments.
        return unsafe { registered.base.open(name, file, flags, flags_out) };
    }
    let mut options = registered.options;
    options.shares_cache = parameter(c"cache").is_some_and(|value| value == "shared");
    // SAFETY: as above.
    let keys = (0..).map_while(|place| unsafe { registered.api.uri_key(name, place) });
    // SQLite ignores what nobody knows, and the user would believe that it holds.
    for key in keys.filter(|key| key.to_ascii_lowercase().starts_with("waldio_")) {
        let value = parameter(&std::ffi::CString::new(&*key).unwrap_or_default()).unwrap_or_default();
        if let Err(complaint) = options.set(&key, &value) {
            registered
                .api
                .log(SQLITE_CANTOPEN, &format!("cannot open the database: its URI says {complaint}"));
            return SQLITE_CANTOPEN;
        }
    }
    let base_file = base_of(file);
    let mut got = flags;
    // SAFETY: behind our handle there is room for the base VFS's file (`szOsFile`).
    let code = unsafe { registered.base.open(name, base_file, flags, &raw mut got) };
    if !flags_out.is_null() {
        // SAFETY: not null: SQLite's place for the flags.
        unsafe { flags_out.write(got) };
    }
    if code != SQLITE_OK {
        // SAFETY: `xOpen` set its methods, or left them null.
        if let Some(close) = unsafe { methods_of(base_file) }.and_then(|methods| methods.xClose) {
            // SAFETY: a file whose methods are set must be closed even when it failed to open.
            unsafe { close(base_file) };
        }
        return code;
    }
    // SAFETY: terminated, as the caller promises.
    let path = unsafe { path_of(name) };
    // SAFETY: the base file is open.
    let file_id = unsafe { file_id(registered, base_file, &path) };
    let opening = Opening {
        path,
        file_id,
        base_name: registered.base.name(),
        disk: Arc::clone(&registered.disk),
        inline_worker: registered.inline_worker,
        options,
    };
    let connection = Process::current().connect(opening, name.addr());
    if got & SQLITE_OPEN_READONLY != 0 {
        connection.note_reads_only();
    }
    // SAFETY: room as above, and the base file is open.
    unsafe { main_methods::fill(file, connection, registered, name.addr()) };
    SQLITE_OK
}

/// Which file a database is that the base VFS has just opened; `None` where its name leads to another one by now.
/// # Safety
/// `base_file` is open.
unsafe fn file_id(registered: &Registered, base_file: *mut sqlite3_file, path: &Path) -> Option<FileId> {
    let named = registered.disk.identity_of(path).ok()?;
    let mut moved: c_int = 0;
    // SAFETY: the caller's promise.
    let control = unsafe { methods_of(base_file) }.and_then(|methods| methods.xFileControl)?;
    // SAFETY: as above; this control writes an int.
    let code = unsafe { control(base_file, SQLITE_FCNTL_HAS_MOVED, (&raw mut moved).cast()) };
    (code != SQLITE_OK || moved == 0).then_some(named)
}

/// Who opens a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenedLog {
    /// It is open.
    Ours,
    /// The base VFS should.
    NotOurs,
    /// Nobody: the base VFS could not keep what `waldio_durable_reads` promises, or the layout needs what cannot be had; SQLite's code.
    Refused(c_int),
}

/// Opens a log ourselves where that is possible.
/// # Safety
/// As SQLite's `xOpen` with `SQLITE_OPEN_WAL`.
unsafe fn open_log(
    registered: &'static Registered,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
) -> OpenedLog {
    // SAFETY: a log's name, as the caller promises.
    let database_name = unsafe { registered.api.filename_database(name) };
    let Some(connection) = Process::current().connection(database_name.addr()) else {
        return OpenedLog::NotOurs;
    };
    // SAFETY: the caller's promise.
    let opened = unsafe { open_own_log(registered, name, file, flags, &connection) };
    if opened != OpenedLog::NotOurs || !connection.reads_durably() {
        return opened;
    }
    let why =
        connection.database.passed_through().unwrap_or_else(|| "it is opened for reading only".to_owned());
    registered.api.log(
        SQLITE_CANTOPEN,
        &format!(
            "waldio_durable_reads cannot hold for {}: {why}. Open the database without it, or mend that",
            connection.database.path.display()
        ),
    );
    OpenedLog::Refused(SQLITE_CANTOPEN)
}

/// # Safety
/// As `open_log`.
unsafe fn open_own_log(
    registered: &'static Registered,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    connection: &Arc<Connection>,
) -> OpenedLog {
    if let Some(why) = registered.base_is_strange() {
        connection.database.pass_through(&why);
        return OpenedLog::NotOurs;
    }
    // SAFETY: terminated, as the caller promises.
    if unsafe { path_of(name) } != connection.database.log_path {
        connection.database.pass_through("the log has an unusual name");
        return OpenedLog::NotOurs;
    }
    if flags & SQLITE_OPEN_READWRITE == 0 {
        return OpenedLog::NotOurs;
    }
    // SAFETY: `main_methods::fill` noted it, and SQLite opens a log while its database is open.
    let main = std::ptr::with_exposed_provenance_mut(connection.main_file());
    // SAFETY: as above.
    let database_name = unsafe { registered.api.filename_database(name) };
    // SAFETY: a database's name, from SQLite.
    let readonly_shm = unsafe { registered.api.uri_parameter(database_name, c"readonly_shm") };
    let readonly_shm =
        readonly_shm.is_some_and(|value| matches!(value.as_str(), "1" | "on" | "yes" | "true"));
    if readonly_shm {
        connection.note_reads_only_wal_index();
    }
    let opener = Opener {
        registered,
        connection,
        main: base_of(main),
        readonly_shm,
        create: flags & SQLITE_OPEN_CREATE != 0,
    };
    // SAFETY: `main` as above.
    match unsafe { opener.open() } {
        Ok(Opened { file: log, session, shm }) => {
            if shm.is_some() {
                // SAFETY: as above, in a call of SQLite on it, and no wal-index is mapped while no log is open.
                unsafe { handle::set_private_shm(main, shm) };
            }
            // SAFETY: our `szOsFile` holds a log handle.
            unsafe { log_methods::fill(file, Arc::clone(connection), log, session) };
            OpenedLog::Ours
        }
        Err(Refusal::NotOurs(why)) => {
            connection.database.pass_through(&why);
            OpenedLog::NotOurs
        }
        Err(refusal) => OpenedLog::Refused(told(registered, connection, &refusal)),
    }
}

/// Tells the error log why a log is not open; SQLite's code.
fn told(registered: &Registered, connection: &Connection, refusal: &Refusal) -> c_int {
    let (code, why) = match refusal {
        Refusal::Fails(code, why) => (*code, why.as_str()),
        Refusal::Changed | Refusal::NotOurs(_) => (SQLITE_CANTOPEN, "its layout changes"),
    };
    let path = connection.database.log_path.display();
    // A busy handler may ask a hundred times.
    if code != SQLITE_BUSY {
        registered.api.log(code, &format!("cannot open {path} for now: {why}"));
    }
    code
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    guard::code_or(SQLITE_IOERR, || {
        waiter::heard_elsewhere();
        // SAFETY: SQLite passes the VFS that it got from us.
        let registered = unsafe { registered(vfs) };
        // SAFETY: SQLite passes a terminated name.
        let path = unsafe { path_of(name) };
        if path.as_os_str().as_bytes().ends_with(b"-wal") {
            let database = Process::current().database_of_log(&path, &registered.disk);
            if let Some(database) = &database {
                if database.take_kept_at_delete() {
                    return SQLITE_OK;
                }
                database.remove_private_files();
            }
        }
        Process::current().super_journals.deleted(&path);
        // SAFETY: SQLite's own arguments.
        unsafe { registered.base.delete(name, sync_dir) }
    })
}

/// Calls the same method of the base VFS, with its own pointer; `$absent` where it has none.
macro_rules! forward {
    ($vfs:expr, $method:ident($($argument:expr),*), $absent:expr) => {{
        // SAFETY: SQLite passes the VFS that it got from us.
        let base = unsafe { registered($vfs) }.base;
        let _uncancelled = Uncancelled::begin();
        match base.fields().$method {
            // SAFETY: the arguments are SQLite's own, for the same method.
            Some(call) => unsafe { call(base.pointer() $(, $argument)*) },
            None => $absent,
        }
    }};
}

unsafe extern "C" fn access(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    waiter::heard_elsewhere();
    forward!(vfs, xAccess(name, flags, out), SQLITE_IOERR)
}

unsafe extern "C" fn full_pathname(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    out_bytes: c_int,
    out: *mut c_char,
) -> c_int {
    forward!(vfs, xFullPathname(name, out_bytes, out), SQLITE_CANTOPEN)
}

unsafe extern "C" fn dl_open(vfs: *mut sqlite3_vfs, name: *const c_char) -> *mut c_void {
    forward!(vfs, xDlOpen(name), std::ptr::null_mut())
}

unsafe extern "C" fn dl_error(vfs: *mut sqlite3_vfs, out_bytes: c_int, out: *mut c_char) {
    forward!(vfs, xDlError(out_bytes, out), ());
}

unsafe extern "C" fn dl_sym(vfs: *mut sqlite3_vfs, library: *mut c_void, name: *const c_char) -> SystemCall {
    forward!(vfs, xDlSym(library, name), None)
}

unsafe extern "C" fn dl_close(vfs: *mut sqlite3_vfs, library: *mut c_void) {
    forward!(vfs, xDlClose(library), ());
}

unsafe extern "C" fn randomness(vfs: *mut sqlite3_vfs, out_bytes: c_int, out: *mut c_char) -> c_int {
    forward!(vfs, xRandomness(out_bytes, out), 0)
}

unsafe extern "C" fn sleep(vfs: *mut sqlite3_vfs, microseconds: c_int) -> c_int {
    let nominal = Duration::from_micros(u64::try_from(microseconds).unwrap_or(0));
    // SAFETY: SQLite passes a VFS of ours.
    let has_mutexes = unsafe { registered(vfs) }.has_mutexes;
    let take = |connection: &Connection| {
        let main = std::ptr::with_exposed_provenance_mut(connection.main_file());
        // SAFETY: it asked for the write lock just now, on this thread, which is asleep in SQLite's busy handler: the file is open, and
        // its wal-index mapped. `shm_unmap` and `close` end what is taken here.
        unsafe { TakenLock::take(handle::shm_of(main)) }
    };
    if guard::value_or(false, || waiter::nap(nominal, has_mutexes.then_some(take))) {
        return microseconds;
    }
    forward!(vfs, xSleep(microseconds), 0)
}

unsafe extern "C" fn current_time(vfs: *mut sqlite3_vfs, out: *mut c_double) -> c_int {
    forward!(vfs, xCurrentTime(out), SQLITE_ERROR)
}

unsafe extern "C" fn get_last_error(vfs: *mut sqlite3_vfs, out_bytes: c_int, out: *mut c_char) -> c_int {
    forward!(vfs, xGetLastError(out_bytes, out), 0)
}

unsafe extern "C" fn current_time_int64(vfs: *mut sqlite3_vfs, out: *mut i64) -> c_int {
    forward!(vfs, xCurrentTimeInt64(out), SQLITE_ERROR)
}

unsafe extern "C" fn set_system_call(vfs: *mut sqlite3_vfs, name: *const c_char, call: SystemCall) -> c_int {
    forward!(vfs, xSetSystemCall(name, call), SQLITE_NOTFOUND)
}

unsafe extern "C" fn get_system_call(vfs: *mut sqlite3_vfs, name: *const c_char) -> SystemCall {
    forward!(vfs, xGetSystemCall(name), None)
}

unsafe extern "C" fn next_system_call(vfs: *mut sqlite3_vfs, name: *const c_char) -> *const c_char {
    forward!(vfs, xNextSystemCall(name), std::ptr::null())
}
