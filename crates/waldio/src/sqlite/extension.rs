//! How waldio comes into a SQLite library: entry points, registration, one call for each new connection.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use blockio::disk::Disk;
use blockio::real::disk::RealDisk;

use crate::ffi::api::{Api, VERSION_MIN};
use crate::ffi::base_vfs::BaseVfs;
use crate::ffi::codes::{
    FCNTL_RESERVED_WANTED, SQLITE_ERROR, SQLITE_FCNTL_RESERVE_BYTES, SQLITE_IOERR_NOMEM, SQLITE_NOMEM,
    SQLITE_OK,
};
use crate::ffi::guard;
use crate::ffi::types::{sqlite3, sqlite3_api_routines};
use crate::options::Options;
use crate::sqlite::vfs::registered::Registered;
use crate::sqlite::vfs::sql::this_connection::{self, Route};
use crate::sqlite::vfs::sql::{convert_function, register_table, status_table};
use crate::sqlite::vfs::vfs_methods;

/// VFSes of SQLite whose files are plain files of the operating system.
const PLAIN: [&str; 5] = ["unix", "unix-dotfile", "unix-excl", "unix-none", "unix-posix"];

/// What to register and over what.
#[derive(Debug)]
pub struct Registration {
    /// The new VFS's name.
    pub name: &'static CStr,
    /// The VFS below; `None` for the present default.
    pub base: Option<&'static CStr>,
    /// Where logs are.
    pub disk: Arc<dyn Disk>,
    /// Whether it becomes the default VFS.
    pub make_default: bool,
    /// Whether logs may be opened beside the base VFS though its name is not one of SQLite's own.
    pub treat_base_as_unix: bool,
    /// The options of every database that says nothing else.
    pub options: Options,
    /// Growth happens in the caller: for tests that must be repeatable.
    pub inline_worker: bool,
}

/// Loads waldio and makes it the default VFS: what `.load ./libwaldio` calls. The library stays loaded. An error where the environment
/// has a wrong value, and then nothing is loaded; and where `db` has a file open past waldio, though what is opened later has it.
/// # Safety
/// SQLite's contract for extension entry points; `routines` may be null where SQLite is linked in (`static-link`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_waldio_init(
    db: *mut sqlite3,
    error_out: *mut *mut c_char,
    routines: *const sqlite3_api_routines,
) -> c_int {
    // SAFETY: the caller's promise.
    guard::code_or(SQLITE_ERROR, || unsafe { load(db, error_out, routines, true) })
}

/// The same under the name that SQLite tries first, which does not depend on the file's: a library that was renamed loads, too.
/// # Safety
/// As `sqlite3_waldio_init`.
#[cfg(not(feature = "static-link"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    db: *mut sqlite3,
    error_out: *mut *mut c_char,
    routines: *const sqlite3_api_routines,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { sqlite3_waldio_init(db, error_out, routines) }
}

/// Loads waldio but leaves the default VFS as it is: `file:app.db?vfs=waldio` selects it.
/// # Safety
/// As `sqlite3_waldio_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_waldio_register_init(
    db: *mut sqlite3,
    error_out: *mut *mut c_char,
    routines: *const sqlite3_api_routines,
) -> c_int {
    // SAFETY: the caller's promise.
    guard::code_or(SQLITE_ERROR, || unsafe { load(db, error_out, routines, false) })
}

/// # Safety
/// As `sqlite3_waldio_init`.
unsafe fn load(
    db: *mut sqlite3,
    error_out: *mut *mut c_char,
    routines: *const sqlite3_api_routines,
    make_default: bool,
) -> c_int {
    #[cfg(feature = "static-link")]
    let routines = if routines.is_null() { crate::ffi::static_table::routines() } else { routines };
    // SAFETY: SQLite's own table, as the caller promises.
    let Some(api) = (unsafe { Api::new(routines) }) else { return SQLITE_ERROR };
    if api.version_number() < VERSION_MIN {
        let found = api.version_number();
        let text = format!(
            "waldio needs SQLite 3.32.0 or newer, and this is {}.{}.{}: load it into a newer library",
            found / 1_000_000,
            found / 1000 % 1000,
            found % 1000
        );
        // SAFETY: the caller's promise.
        unsafe { complain(api, error_out, &text) };
        return SQLITE_ERROR;
    }
    let (options, complaints) = Options::from_environment(|name| {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    });
    if !complaints.is_empty() {
        // SAFETY: the caller's promise.
        unsafe { complain(api, error_out, &format!("waldio is not loaded: {}", complaints.join("; "))) };
        return SQLITE_ERROR;
    }
    let registration = Registration {
        name: c"waldio",
        base: None,
        disk: Arc::new(RealDisk),
        make_default,
        treat_base_as_unix: false,
        options,
        inline_worker: false,
    };
    let existing = api.vfs_find(Some(registration.name));
    // SAFETY: SQLite found it registered.
    if !existing.is_null() && !unsafe { vfs_methods::is_ours(existing) } {
        let text = "another copy of waldio is loaded, from another file: load only one";
        // SAFETY: the caller's promise.
        unsafe { complain(api, error_out, text) };
        return SQLITE_ERROR;
    }
    // SAFETY: the table as above.
    let code = unsafe { register_with(routines, registration) };
    if code != SQLITE_OK {
        return code;
    }
    // SAFETY: an entry point of this library, which is linked with `nodelete` (build.rs).
    let code = unsafe { api.auto_extension(each_connection as *const c_void) };
    if code != SQLITE_OK || db.is_null() {
        return code;
    }
    // SAFETY: SQLite passes the connection that loads us.
    let code = unsafe { add_table(db, api) };
    if code != SQLITE_OK || !make_default {
        return code;
    }
    // SAFETY: as above.
    let Some(text) = (unsafe { not_active(db, api) }) else { return SQLITE_OK };
    // SAFETY: the caller's promise.
    unsafe { complain(api, error_out, &text) };
    SQLITE_ERROR
}

/// That the connection which loads us has a file open past us, as a sentence: it would go on without a word. All that is opened
/// later has us.
/// # Safety
/// As `add_table`.
unsafe fn not_active(db: *mut sqlite3, api: Api) -> Option<String> {
    let client = register_table::client(api, c"waldio")?;
    // SAFETY: `register_table` found our VFS, whose data it is.
    let registered = unsafe { &*client.cast::<Registered>() };
    // SAFETY: the caller's promise.
    let databases = unsafe { this_connection::in_files(registered, db) }?;
    databases.iter().find_map(|database| match &database.route {
        Route::PassedBy(vfs) => Some(format!(
            "waldio is loaded now, but not active on this connection: {} was opened before, or with another VFS ({vfs}). \
             Open the database again, or load waldio on a :memory: connection first. For databases that name vfs=waldio \
             the entry point is sqlite3_waldio_register_init",
            database.file
        )),
        Route::Ours | Route::LeftOut => None,
    })
}

/// Why waldio does not load.
/// # Safety
/// `error_out` is null, or SQLite's place for a message of its allocator, which it frees.
unsafe fn complain(api: Api, error_out: *mut *mut c_char, text: &str) {
    if !error_out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { error_out.write(api.string(text)) };
    }
}

/// Why `register` did nothing, as a sentence.
#[cfg(feature = "static-link")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRegistered(String);

#[cfg(feature = "static-link")]
impl std::fmt::Display for NotRegistered {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(feature = "static-link")]
impl std::error::Error for NotRegistered {}

/// Makes waldio the default VFS of the SQLite that is linked into this program (rusqlite or sqlx with their bundled one): what is
/// opened afterwards has it, and needs no `load_extension`. What is open already stays as it is; `PRAGMA waldio` tells of each
/// connection. Calls after the first change nothing.
///
/// ```text
/// waldio::register()?;
/// let connection = rusqlite::Connection::open("app.db")?;
/// ```
/// # Errors
/// SQLite is older than 3.32, or a `WALDIO_` variable has a wrong value. Databases then work as without waldio.
#[cfg(feature = "static-link")]
pub fn register() -> Result<(), NotRegistered> {
    let mut message: *mut c_char = std::ptr::null_mut();
    // SAFETY: no connection, a place for the message; a null table means the SQLite that is linked in.
    let code = unsafe { sqlite3_waldio_init(std::ptr::null_mut(), &raw mut message, std::ptr::null()) };
    if code == SQLITE_OK {
        return Ok(());
    }
    if message.is_null() {
        return Err(NotRegistered(format!("SQLite does not take waldio: error {code}")));
    }
    // SAFETY: a terminated string of SQLite's.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    // SAFETY: the table of the SQLite that is linked in.
    if let Some(api) = unsafe { Api::new(crate::ffi::static_table::routines()) } {
        // SAFETY: of that library's allocator, and not used again.
        unsafe { api.free(message.cast()) };
    }
    Err(NotRegistered(text))
}

/// Registers waldio with one SQLite library; does nothing but make it the default where it is registered already.
/// # Safety
/// `routines` is SQLite's own table, of version 3.32 at least.
pub unsafe fn register_with(routines: *const sqlite3_api_routines, registration: Registration) -> c_int {
    // SAFETY: the caller's promise.
    let Some(api) = (unsafe { Api::new(routines) }) else { return SQLITE_ERROR };
    // Two threads that load at once would both find it missing, and register it over itself.
    // SAFETY: the caller's promise.
    api.alone(|| unsafe { register_alone(api, registration) })
}

/// # Safety
/// As `register_with`.
unsafe fn register_alone(api: Api, registration: Registration) -> c_int {
    let existing = api.vfs_find(Some(registration.name));
    let base = api.vfs_find(registration.base);
    if !existing.is_null() {
        // SAFETY: SQLite found it registered.
        if !unsafe { vfs_methods::is_ours(existing) } {
            return SQLITE_ERROR;
        }
        // SAFETY: as above, or null.
        let default_is_plain = unsafe { BaseVfs::new(base) }.is_some_and(is_plain);
        // A shim that was registered above us since stays above us; SQLite's own, which sqlite3_initialize puts in
        // front again, does not.
        if !registration.make_default || !default_is_plain {
            return SQLITE_OK;
        }
        // SAFETY: registered before, so complete and permanent.
        return unsafe { api.vfs_register(existing, true) };
    }
    // SAFETY: SQLite found it registered, or gave null.
    let Some(base) = (unsafe { BaseVfs::new(base) }) else { return SQLITE_ERROR };
    let registered: &'static Registered = Box::leak(Box::new(Registered {
        api,
        base,
        disk: registration.disk,
        inline_worker: registration.inline_worker,
        options: registration.options,
        base_is_plain: registration.treat_base_as_unix || is_plain(base),
        name: registration.name,
        has_mutexes: api.has_mutexes(),
    }));
    // SAFETY: the table as above; leaked, so permanent.
    unsafe { register_table::register(api, registered, registration.make_default) }
}

fn is_plain(base: BaseVfs) -> bool {
    PLAIN.contains(&base.name().as_str())
}

/// SQLite calls this for each connection opened after loading: they all have `waldio_status`.
unsafe extern "C" fn each_connection(
    db: *mut sqlite3,
    _: *mut *mut c_char,
    routines: *const sqlite3_api_routines,
) -> c_int {
    guard::code_or(SQLITE_OK, || {
        #[cfg(feature = "static-link")]
        let routines = if routines.is_null() { crate::ffi::static_table::routines() } else { routines };
        // SAFETY: SQLite's own table.
        let Some(api) = (unsafe { Api::new(routines) }) else { return SQLITE_OK };
        // SAFETY: SQLite passes the connection that is being opened.
        unsafe { add_table(db, api) }
    })
}

/// Has a database that is about to be made reserve what `waldio_layout=embedded` needs. SQLite has that control since
/// 3.33; before, such a database stays in SQLite's own layout.
/// # Errors
/// `SQLITE_NOMEM`: whoever opens the database has to know, as where SQLite itself was short of memory.
/// # Safety
/// As `add_table`.
unsafe fn reserve_bytes(db: *mut sqlite3, api: Api) -> Result<(), c_int> {
    // SAFETY: the caller's promise; ours, which takes an int.
    let wanted = or_short_of_memory(unsafe { api.control(db, c"main", FCNTL_RESERVED_WANTED, 0) })?;
    let Some(wanted) = wanted.filter(|wanted| *wanted > 0) else { return Ok(()) };
    // SAFETY: the caller's promise.
    let names = or_short_of_memory(unsafe { api.vfs_names(db, c"main") })?.unwrap_or_default();
    // cksumvfs above us wants exactly 8 bytes for its checksums. SQLite takes no byte back, so with ours it would be silent.
    if names.split('/').any(|name| name == "cksm") {
        return Ok(());
    }
    // SAFETY: the caller's promise; SQLite's, which takes an int.
    or_short_of_memory(unsafe { api.control(db, c"main", SQLITE_FCNTL_RESERVE_BYTES, wanted) }).map(|_| ())
}

/// What came; nothing where the control is not known, or failed for a reason that is nobody's concern.
fn or_short_of_memory<T>(answer: Result<T, c_int>) -> Result<Option<T>, c_int> {
    match answer {
        Err(SQLITE_NOMEM | SQLITE_IOERR_NOMEM) => Err(SQLITE_NOMEM),
        answer => Ok(answer.ok()),
    }
}

/// # Safety
/// `db` is a live connection of the library that `api` belongs to.
unsafe fn add_table(db: *mut sqlite3, api: Api) -> c_int {
    let Some(client) = register_table::client(api, c"waldio") else { return SQLITE_OK };
    // SAFETY: the caller's promise.
    if let Err(code) = unsafe { reserve_bytes(db, api) } {
        return code;
    }
    // SAFETY: `register_table` found our VFS, whose data it is.
    let registered = unsafe { &*client.cast::<Registered>() };
    // SAFETY: the caller's promise.
    let code = unsafe { convert_function::add(db, registered) };
    if code != SQLITE_OK {
        return code;
    }
    // SAFETY: the caller's promise; the client lives as long as the process.
    unsafe { api.create_module(db, c"waldio_status", &status_table::MODULE, client) }
}
