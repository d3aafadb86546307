//! A SQLite library as a user's program has it, by its C API: the system's shared one, opened when the test runs,
//! or the bundled one. Safe words around raw calls; this is the border, so `unsafe` stands here.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::mem::transmute;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use blockio::disk::Disk;
pub use libsqlite3_sys as ffi;

use super::sqlite_config;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

type EntryPoint =
    unsafe extern "C" fn(*mut ffi::sqlite3, *mut *mut c_char, *const ffi::sqlite3_api_routines) -> c_int;

/// Declares the functions that tests call, and the two places they come from.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of one library.
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn shared(handle: *mut c_void) -> Functions {
                Functions {
                    $($name: {
                        let symbol = symbol(handle, concat!(stringify!($name), "\0"));
                        // SAFETY: SQLite's function of this name has this type (sqlite3.h).
                        unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(symbol) }
                    },)*
                }
            }

            fn bundled() -> Functions {
                Functions { $($name: ffi::$name,)* }
            }
        }
    };
}

functions! {
    sqlite3_open_v2: fn(*const c_char, *mut *mut ffi::sqlite3, c_int, *const c_char) -> c_int;
    sqlite3_close: fn(*mut ffi::sqlite3) -> c_int;
    sqlite3_prepare_v2: fn(*mut ffi::sqlite3, *const c_char, c_int, *mut *mut ffi::sqlite3_stmt, *mut *const c_char) -> c_int;
    sqlite3_step: fn(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_finalize: fn(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_column_count: fn(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_column_type: fn(*mut ffi::sqlite3_stmt, c_int) -> c_int;
    sqlite3_column_blob: fn(*mut ffi::sqlite3_stmt, c_int) -> *const c_void;
    sqlite3_column_bytes: fn(*mut ffi::sqlite3_stmt, c_int) -> c_int;
    sqlite3_file_control: fn(*mut ffi::sqlite3, *const c_char, c_int, *mut c_void) -> c_int;
    sqlite3_errmsg: fn(*mut ffi::sqlite3) -> *const c_char;
    sqlite3_extended_errcode: fn(*mut ffi::sqlite3) -> c_int;
    sqlite3_sleep: fn(c_int) -> c_int;
    sqlite3_busy_timeout: fn(*mut ffi::sqlite3, c_int) -> c_int;
    sqlite3_wal_checkpoint_v2: fn(*mut ffi::sqlite3, *const c_char, c_int, *mut c_int, *mut c_int) -> c_int;
    sqlite3_libversion_number: fn() -> c_int;
    sqlite3_vfs_find: fn(*const c_char) -> *mut ffi::sqlite3_vfs;
    sqlite3_vfs_register: fn(*mut ffi::sqlite3_vfs, c_int) -> c_int;
    sqlite3_enable_load_extension: fn(*mut ffi::sqlite3, c_int) -> c_int;
    sqlite3_load_extension: fn(*mut ffi::sqlite3, *const c_char, *const c_char, *mut *mut c_char) -> c_int;
    sqlite3_auto_extension: fn(Option<EntryPoint>) -> c_int;
    sqlite3_cancel_auto_extension: fn(Option<EntryPoint>) -> c_int;
    sqlite3_free: fn(*mut c_void) -> ();
    sqlite3_memory_used: fn() -> i64;
    sqlite3_shutdown: fn() -> c_int;
    sqlite3_initialize: fn() -> c_int;
}

fn symbol(handle: *mut c_void, name: &'static str) -> *mut c_void {
    // SAFETY: an open library and a terminated name.
    let found = unsafe { dlsym(handle, name.as_ptr().cast()) };
    assert!(!found.is_null(), "the library has no {name}");
    found
}

/// A result code that is not OK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// The extended result code.
    pub code: c_int,
    /// SQLite's words.
    pub message: String,
}

impl SqlError {
    /// The primary result code.
    pub fn primary(&self) -> c_int {
        self.code & 0xff
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

/// One row, each value as text: NULL, numbers in decimal, blobs in hex.
pub type Row = Vec<String>;

/// One copy of SQLite in this process.
pub struct Library {
    pub functions: Functions,
}

/// Debian's library, with its error log collected. Panics where there is none: every machine that runs these tests has it.
pub fn system() -> &'static Library {
    static SYSTEM: OnceLock<Library> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        const RTLD_NOW: c_int = 2;
        // SAFETY: a terminated name; SQLite's library has no constructors that need anything.
        let handle = unsafe { dlopen(c"libsqlite3.so.0".as_ptr(), RTLD_NOW) };
        assert!(!handle.is_null(), "libsqlite3.so.0 is missing: install libsqlite3-0");
        // SAFETY: nobody used the library yet.
        unsafe { sqlite_config::configure(symbol(handle, "sqlite3_config\0")) };
        Library { functions: Functions::shared(handle) }
    })
}

/// SQLCipher's library: the one that SQLCIPHER_LIBRARY names, or the distribution's; `None` where there is none.
pub fn sqlcipher() -> Option<&'static Library> {
    static SQLCIPHER: OnceLock<Option<Library>> = OnceLock::new();
    let open = || {
        const RTLD_NOW: c_int = 2;
        let named = std::env::var("SQLCIPHER_LIBRARY").ok();
        let names = named
            .map_or_else(|| vec!["libsqlcipher.so.1".into(), "libsqlcipher.so.0".into()], |name| vec![name]);
        // SAFETY: a terminated name; SQLite's library has no constructors that need anything.
        let opened = names.iter().map(|name| unsafe { dlopen(terminated(name).as_ptr(), RTLD_NOW) });
        let handle = opened.into_iter().find(|handle| !handle.is_null())?;
        Some(Library { functions: Functions::shared(handle) })
    };
    SQLCIPHER.get_or_init(open).as_ref()
}

/// The copy that was compiled into this test.
pub fn bundled() -> &'static Library {
    static BUNDLED: OnceLock<Library> = OnceLock::new();
    BUNDLED.get_or_init(|| Library { functions: Functions::bundled() })
}

/// The library under test, beside the test's own executable.
pub fn extension_path() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    let found = executable.ancestors().skip(1).map(|folder| folder.join("libwaldio.so"));
    found.into_iter().find(|path| path.exists()).expect("libwaldio.so beside the test's executable")
}

fn terminated(text: &str) -> CString {
    CString::new(text).expect("no NUL in it")
}

impl Library {
    /// Opens a database; `vfs` picks other than the default one. Names may be URIs.
    pub fn open_with(&'static self, name: &str, vfs: Option<&str>) -> Result<Connection, SqlError> {
        let mut raw = ptr::null_mut();
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_URI;
        let (name, vfs) = (terminated(name), vfs.map(terminated));
        let vfs = vfs.as_ref().map_or(ptr::null(), |vfs| vfs.as_ptr());
        // SAFETY: terminated names, or null for the default VFS.
        let code = unsafe { (self.functions.sqlite3_open_v2)(name.as_ptr(), &raw mut raw, flags, vfs) };
        let connection = Connection { library: self, raw };
        if code != ffi::SQLITE_OK {
            return Err(connection.error());
        }
        connection.busy_timeout(20_000);
        Ok(connection)
    }

    /// Opens a database through the default VFS.
    pub fn open(&'static self, path: &Path) -> Connection {
        let opened = self.open_with(path.to_str().unwrap(), None);
        opened.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Opens a database without waldio, whatever is the default.
    pub fn open_stock(&'static self, path: &Path) -> Connection {
        let opened = self.open_with(path.to_str().unwrap(), Some("unix"));
        opened.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Loads the extension as a program does: into an unrelated connection, by path.
    pub fn load(&'static self, entry: Option<&str>) -> Result<(), String> {
        let connection = self.open_with(":memory:", None).map_err(|error| error.to_string())?;
        connection.load_extension(&extension_path(), entry)
    }

    /// Hands this library's function table to `waldio` as it is linked into the test, with its planted bugs, and
    /// makes it the default VFS.
    pub fn load_linked(&'static self) {
        let routines = self.routines();
        // SAFETY: this library's own table; null is allowed for the connection and the message.
        let code = unsafe { waldio::sqlite3_waldio_init(ptr::null_mut(), ptr::null_mut(), routines) };
        assert_eq!(code, ffi::SQLITE_OK, "waldio refused to load");
    }

    /// Registers `waldio` as it is linked into the test over the default VFS, and makes it the default.
    pub fn register_as_default(&'static self, name: &'static CStr) {
        self.register(name, None, Arc::new(blockio::real::disk::RealDisk));
    }

    /// Registers `waldio` as it is linked into the test over a VFS that counts as a plain one. Not the default.
    pub fn register_over(&'static self, name: &'static CStr, base: &'static CStr) {
        self.register_on(name, base, Arc::new(blockio::real::disk::RealDisk));
    }

    /// As `register_over`, with the log on a disk of the test's.
    pub fn register_on(&'static self, name: &'static CStr, base: &'static CStr, disk: Arc<dyn Disk>) {
        self.register(name, Some(base), disk);
    }

    fn register(&'static self, name: &'static CStr, base: Option<&'static CStr>, disk: Arc<dyn Disk>) {
        let registration = waldio::Registration {
            name,
            base,
            disk,
            make_default: base.is_none(),
            treat_base_as_unix: base.is_some(),
            options: waldio::options::Options::default(),
            inline_worker: false,
        };
        // SAFETY: this library's own table, of a version later than 3.32.
        let code = unsafe { waldio::register_with(self.routines(), registration) };
        assert_eq!(code, ffi::SQLITE_OK);
    }

    /// The function table that this library hands to extensions.
    pub fn routines(&'static self) -> *const waldio::ffi::types::sqlite3_api_routines {
        static FOUND: AtomicPtr<ffi::sqlite3_api_routines> = AtomicPtr::new(ptr::null_mut());
        static ALONE: Mutex<()> = Mutex::new(());
        unsafe extern "C" fn take(
            _: *mut ffi::sqlite3,
            _: *mut *mut c_char,
            routines: *const ffi::sqlite3_api_routines,
        ) -> c_int {
            FOUND.store(routines.cast_mut(), SeqCst);
            ffi::SQLITE_OK
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a function of this test, which stays.
        unsafe { (self.functions.sqlite3_auto_extension)(Some(take)) };
        drop(self.open_with(":memory:", None));
        // SAFETY: as above.
        unsafe { (self.functions.sqlite3_cancel_auto_extension)(Some(take)) };
        FOUND.load(SeqCst).cast_const().cast()
    }

    /// What waldio's entry point answers to this library's table when that calls itself SQLite 3.31.1.
    pub fn load_as_3_31(&'static self) -> (c_int, String) {
        unsafe extern "C" fn version() -> c_int {
            3_031_001
        }
        const LIBVERSION_NUMBER: usize = 67;
        // SAFETY: SQLite's own table, which is longer than this truncated type.
        let mut table = unsafe { self.routines().read() };
        table.slots[LIBVERSION_NUMBER] = (version as *const ()).cast();
        let table = Box::leak(Box::new(table));
        let mut message = ptr::null_mut();
        // SAFETY: a whole table that stays, no connection, a place for the message.
        let code = unsafe { waldio::sqlite3_waldio_init(ptr::null_mut(), &raw mut message, table) };
        (code, self.take_message(message))
    }

    /// Sleeps, as an application does through the API.
    pub fn sleep(&self, milliseconds: i32) {
        // SAFETY: a registered VFS sleeps.
        unsafe { (self.functions.sqlite3_sleep)(milliseconds) };
    }

    /// Bytes that this library has allocated.
    pub fn memory_used(&self) -> i64 {
        // SAFETY: takes nothing, changes nothing.
        unsafe { (self.functions.sqlite3_memory_used)() }
    }

    /// For example 3040001.
    pub fn version_number(&self) -> i32 {
        // SAFETY: takes nothing, changes nothing.
        unsafe { (self.functions.sqlite3_libversion_number)() }
    }

    /// The names of all VFSes, the default first.
    pub fn vfs_names(&self) -> Vec<String> {
        // SAFETY: the default, or null.
        let mut vfs = unsafe { (self.functions.sqlite3_vfs_find)(ptr::null()) };
        let mut names = Vec::new();
        // SAFETY: registered, so complete, and no other thread registers or takes away.
        while let Some(registered) = unsafe { vfs.as_ref() } {
            // SAFETY: terminated, for as long as it is registered.
            names.push(unsafe { CStr::from_ptr(registered.zName) }.to_string_lossy().into_owned());
            vfs = registered.pNext;
        }
        names
    }

    /// The name of the default VFS, or of the one asked for; `None` where there is none.
    pub fn vfs_name(&self, name: Option<&str>) -> Option<String> {
        let name = name.map(terminated);
        let name = name.as_ref().map_or(ptr::null(), |name| name.as_ptr());
        // SAFETY: null or terminated.
        let vfs = unsafe { (self.functions.sqlite3_vfs_find)(name) };
        if vfs.is_null() {
            return None;
        }
        // SAFETY: registered, so it has a name.
        let name = unsafe { (*vfs).zName };
        // SAFETY: terminated, for as long as it is registered.
        let name = unsafe { CStr::from_ptr(name) };
        Some(name.to_string_lossy().into_owned())
    }
}

/// An open connection; closed when dropped.
pub struct Connection {
    pub library: &'static Library,
    pub raw: *mut ffi::sqlite3,
}

// SAFETY: both copies of SQLite are built thread-safe and serialise the calls of one connection.
unsafe impl Send for Connection {}

impl Connection {
    fn error(&self) -> SqlError {
        let functions = &self.library.functions;
        // SAFETY: open, or the half-open handle that a failed open leaves for this very purpose.
        let code = unsafe { (functions.sqlite3_extended_errcode)(self.raw) };
        // SAFETY: as above.
        let message = unsafe { (functions.sqlite3_errmsg)(self.raw) };
        // SAFETY: terminated, until the next call on this connection.
        let message = unsafe { CStr::from_ptr(message) };
        SqlError { code, message: message.to_string_lossy().into_owned() }
    }

    /// How long to wait for locks, in milliseconds.
    pub fn busy_timeout(&self, milliseconds: i32) {
        // SAFETY: an open connection.
        unsafe { (self.library.functions.sqlite3_busy_timeout)(self.raw, milliseconds) };
    }

    /// Has a database that is about to be made reserve so much of each page, in bytes.
    pub fn reserve_bytes(&self, bytes: u8) {
        let (code, _) = self.control(ffi::SQLITE_FCNTL_RESERVE_BYTES, c_int::from(bytes));
        assert_eq!(code, ffi::SQLITE_OK);
    }

    /// A file control of the main database that takes an int: its code, and what the int is then.
    pub fn control(&self, operation: c_int, argument: c_int) -> (c_int, c_int) {
        let mut argument = argument;
        let place = (&raw mut argument).cast::<c_void>();
        let call = self.library.functions.sqlite3_file_control;
        // SAFETY: an open connection, a terminated name, and a control that takes an int.
        let code = unsafe { call(self.raw, c"main".as_ptr(), operation, place) };
        (code, argument)
    }

    /// Runs all statements of `sql` up to the first error; the rows of all of them, and how it ended.
    pub fn run(&self, sql: &str) -> (Vec<Row>, Option<SqlError>) {
        let functions = &self.library.functions;
        let text = terminated(sql);
        let mut rest = text.as_ptr();
        let mut rows = Vec::new();
        loop {
            let mut statement = ptr::null_mut();
            let (from, out) = (rest, &raw mut rest);
            // SAFETY: terminated text, an open connection, places for the results.
            let code = unsafe { (functions.sqlite3_prepare_v2)(self.raw, from, -1, &raw mut statement, out) };
            if code != ffi::SQLITE_OK {
                return (rows, Some(self.error()));
            }
            if statement.is_null() {
                return (rows, None);
            }
            // SAFETY: a prepared statement.
            while unsafe { (functions.sqlite3_step)(statement) } == ffi::SQLITE_ROW {
                rows.push(self.row(statement));
            }
            // SAFETY: prepared above, and not used again. Its result repeats that of the last step.
            if unsafe { (functions.sqlite3_finalize)(statement) } != ffi::SQLITE_OK {
                return (rows, Some(self.error()));
            }
        }
    }

    fn row(&self, statement: *mut ffi::sqlite3_stmt) -> Row {
        // SAFETY: a statement that has a row.
        let count = unsafe { (self.library.functions.sqlite3_column_count)(statement) };
        (0..count).map(|column| self.value(statement, column)).collect()
    }

    fn value(&self, statement: *mut ffi::sqlite3_stmt, column: c_int) -> String {
        let functions = &self.library.functions;
        // SAFETY: a statement that has a row, and one of its columns.
        let kind = unsafe { (functions.sqlite3_column_type)(statement, column) };
        // SAFETY: as above; numbers are turned into text.
        let data = unsafe { (functions.sqlite3_column_blob)(statement, column) };
        // SAFETY: as above.
        let len_bytes = unsafe { (functions.sqlite3_column_bytes)(statement, column) };
        if kind == ffi::SQLITE_NULL {
            return "NULL".to_owned();
        }
        if data.is_null() {
            return String::new();
        }
        let len_bytes = usize::try_from(len_bytes).unwrap();
        // SAFETY: SQLite keeps that many bytes there until the next step.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len_bytes) };
        if kind == ffi::SQLITE_BLOB {
            return bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        }
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Runs statements that must succeed; their rows.
    #[track_caller]
    pub fn rows(&self, sql: &str) -> Vec<Row> {
        let (rows, error) = self.run(sql);
        assert!(error.is_none(), "{sql}: {}", error.unwrap());
        rows
    }

    /// Runs statements that must succeed; the first value, empty where there is none.
    #[track_caller]
    pub fn one(&self, sql: &str) -> String {
        self.rows(sql).into_iter().flatten().next().unwrap_or_default()
    }

    /// A value of `waldio_status` of this connection's database; NULL is "NULL".
    #[track_caller]
    pub fn status(&self, name: &str) -> String {
        self.status_row(name)[0].clone()
    }

    /// Value and source of a row of `waldio_status`.
    #[track_caller]
    pub fn status_row(&self, name: &str) -> Row {
        let rows = self.rows(&format!(
            "SELECT value, source FROM waldio_status WHERE name = '{name}'
             AND database = (SELECT file FROM pragma_database_list WHERE name = 'main')"
        ));
        rows.into_iter().next().unwrap_or_else(|| panic!("waldio_status has no {name} of this database"))
    }

    /// What a checkpoint answers: its result, frames in the log, frames copied.
    pub fn checkpoint(&self, mode: c_int) -> (c_int, c_int, c_int) {
        let (mut frames, mut copied) = (0, 0);
        let call = self.library.functions.sqlite3_wal_checkpoint_v2;
        // SAFETY: an open connection, every attached database, places for the counts.
        let code = unsafe { call(self.raw, ptr::null(), mode, &raw mut frames, &raw mut copied) };
        (code, frames, copied)
    }

    /// `load_extension` through this connection.
    pub fn load_extension(&self, path: &Path, entry: Option<&str>) -> Result<(), String> {
        let functions = &self.library.functions;
        // SAFETY: an open connection.
        unsafe { (functions.sqlite3_enable_load_extension)(self.raw, 1) };
        let (path, entry) = (terminated(path.to_str().unwrap()), entry.map(terminated));
        let entry = entry.as_ref().map_or(ptr::null(), |entry| entry.as_ptr());
        let mut message = ptr::null_mut();
        let call = functions.sqlite3_load_extension;
        // SAFETY: terminated names, a place for the message.
        let code = unsafe { call(self.raw, path.as_ptr(), entry, &raw mut message) };
        if code == ffi::SQLITE_OK {
            return Ok(());
        }
        Err(self.library.take_message(message))
    }
}

impl Library {
    fn take_message(&self, message: *mut c_char) -> String {
        if message.is_null() {
            return "no message".to_owned();
        }
        // SAFETY: SQLite's terminated message.
        let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        // SAFETY: allocated by this library for us to free.
        unsafe { (self.functions.sqlite3_free)(message.cast()) };
        text
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: opened by this library, closed once; `run` leaves no statement behind.
        unsafe { (self.library.functions.sqlite3_close)(self.raw) };
    }
}
