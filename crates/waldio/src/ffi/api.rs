//! The functions of one SQLite library, called through the table it handed to us.
//!
//! One `Api` per SQLite copy, kept in its registered VFS and never globally: a process may hold two copies (an
//! interpreter's and a module's), both load the same image of this extension, and memory from one must not be
//! freed by the other.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::codes::{SQLITE_FCNTL_VFSNAME, SQLITE_NOMEM, SQLITE_NOTFOUND, SQLITE_OK, SQLITE_OPEN_READWRITE};
use super::types::{
    Function, RowCallback, sqlite3, sqlite3_api_routines, sqlite3_context, sqlite3_module, sqlite3_value,
    sqlite3_vfs,
};

/// SQLite 3.32.0: the first with `SQLITE_FCNTL_CKPT_START` and `sqlite3_database_file_object`.
pub const VERSION_MIN: c_int = 3_032_000;

/// Slots of the table. Source: sqlite3ext.h; slots are only ever appended.
pub(crate) mod slot {
    pub const CLOSE: usize = 16;
    pub const DECLARE_VTAB: usize = 50;
    pub const ERRMSG: usize = 53;
    pub const EXEC: usize = 55;
    pub const FREE: usize = 58;
    pub const GET_AUTOCOMMIT: usize = 60;
    pub const LIBVERSION_NUMBER: usize = 67;
    pub const MPRINTF: usize = 69;
    pub const RESULT_DOUBLE: usize = 79;
    pub const RESULT_ERROR: usize = 80;
    pub const RESULT_INT64: usize = 83;
    pub const RESULT_NULL: usize = 84;
    pub const RESULT_TEXT: usize = 85;
    pub const VALUE_TEXT: usize = 109;
    pub const CREATE_MODULE_V2: usize = 119;
    pub const FILE_CONTROL: usize = 127;
    pub const MUTEX_ALLOC: usize = 130;
    pub const MUTEX_ENTER: usize = 131;
    pub const MUTEX_FREE: usize = 132;
    pub const MUTEX_LEAVE: usize = 133;
    pub const OPEN_V2: usize = 135;
    pub const VFS_FIND: usize = 141;
    pub const VFS_REGISTER: usize = 142;
    pub const THREADSAFE: usize = 144;
    pub const CONTEXT_DB_HANDLE: usize = 149;
    pub const CREATE_FUNCTION_V2: usize = 162;
    pub const LOG: usize = 167;
    pub const DB_FILENAME: usize = 180;
    pub const DB_READONLY: usize = 181;
    pub const URI_PARAMETER: usize = 189;
    pub const AUTO_EXTENSION: usize = 192;
    pub const URI_KEY: usize = 245;
    pub const FILENAME_DATABASE: usize = 246;
}

/// `SQLITE_TRANSIENT`: SQLite copies the text before the call returns.
const TRANSIENT: isize = -1;

/// A copyable handle on the table.
#[derive(Clone, Copy)]
pub struct Api {
    pub(super) routines: *const sqlite3_api_routines,
}

// SAFETY: the table is constant for the life of the SQLite library, and its functions may be called by any thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// Reads `slot` as a function of type `$function`.
macro_rules! routine {
    ($api:expr, $slot:expr, $function:ty) => {{
        // SAFETY: SQLite handed out the table and keeps it for its life (`Api::new`).
        let routines = unsafe { &*$api.routines };
        // SAFETY: the slot holds a function of this type since before 3.32 (sqlite3ext.h), or null: Option.
        unsafe { std::mem::transmute::<*const std::ffi::c_void, Option<$function>>(routines.slots[$slot]) }
    }};
}
pub(super) use routine;

impl Api {
    /// Takes the table that SQLite passed to the entry point.
    /// # Safety
    /// `routines` is SQLite's own table, of version 3.14 at least (older ones are shorter than what the version
    /// check reads).
    pub unsafe fn new(routines: *const sqlite3_api_routines) -> Option<Api> {
        (!routines.is_null()).then_some(Api { routines })
    }

    /// For example 3040001.
    pub fn version_number(self) -> c_int {
        let call = routine!(self, slot::LIBVERSION_NUMBER, unsafe extern "C" fn() -> c_int);
        // SAFETY: takes nothing, changes nothing.
        call.map_or(0, |call| unsafe { call() })
    }

    /// The VFS of this name, or the default for `None`; null where there is none.
    pub fn vfs_find(self, name: Option<&CStr>) -> *mut sqlite3_vfs {
        type Find = unsafe extern "C" fn(*const c_char) -> *mut sqlite3_vfs;
        let name = name.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: a null or terminated name, as documented.
        routine!(self, slot::VFS_FIND, Find).map_or(std::ptr::null_mut(), |call| unsafe { call(name) })
    }

    /// Registers a VFS.
    /// # Safety
    /// `vfs` is complete and stays where it is for the life of the process.
    pub unsafe fn vfs_register(self, vfs: *mut sqlite3_vfs, make_default: bool) -> c_int {
        type Register = unsafe extern "C" fn(*mut sqlite3_vfs, c_int) -> c_int;
        // SAFETY: the caller's promise.
        routine!(self, slot::VFS_REGISTER, Register)
            .map_or(1, |call| unsafe { call(vfs, c_int::from(make_default)) })
    }

    /// A parameter of a database's URI, as `file:app.db?name=value`.
    /// # Safety
    /// `filename` came to our `xOpen` with `SQLITE_OPEN_MAIN_DB`, or from `filename`.
    pub unsafe fn uri_parameter(self, filename: *const c_char, name: &CStr) -> Option<String> {
        type Parameter = unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char;
        let call = routine!(self, slot::URI_PARAMETER, Parameter)?;
        // SAFETY: the caller's promise, and a terminated name.
        let value = unsafe { call(filename, name.as_ptr()) };
        if value.is_null() {
            return None;
        }
        // SAFETY: SQLite returned a terminated string inside the filename's memory.
        let value = unsafe { CStr::from_ptr(value) };
        Some(value.to_string_lossy().into_owned())
    }

    /// The name of a parameter of a database's URI, by its place from 0.
    /// # Safety
    /// As `uri_parameter`.
    pub unsafe fn uri_key(self, filename: *const c_char, place: c_int) -> Option<String> {
        type Key = unsafe extern "C" fn(*const c_char, c_int) -> *const c_char;
        let call = routine!(self, slot::URI_KEY, Key)?;
        // SAFETY: the caller's promise.
        let key = unsafe { call(filename, place) };
        if key.is_null() {
            return None;
        }
        // SAFETY: as in `uri_parameter`.
        let key = unsafe { CStr::from_ptr(key) };
        Some(key.to_string_lossy().into_owned())
    }

    /// The very pointer that `xOpen` got for the database of this log.
    /// # Safety
    /// `log_name` came to our `xOpen` with `SQLITE_OPEN_WAL`.
    pub unsafe fn filename_database(self, log_name: *const c_char) -> *const c_char {
        type Database = unsafe extern "C" fn(*const c_char) -> *const c_char;
        // SAFETY: the caller's promise.
        routine!(self, slot::FILENAME_DATABASE, Database)
            .map_or(std::ptr::null(), |call| unsafe { call(log_name) })
    }

    /// A copy of `text` in SQLite's memory, which SQLite frees; null when memory is short.
    pub fn string(self, text: &str) -> *mut c_char {
        type Printf = unsafe extern "C" fn(*const c_char, ...) -> *mut c_char;
        let Some(call) = routine!(self, slot::MPRINTF, Printf) else { return std::ptr::null_mut() };
        let Ok(len_bytes) = c_int::try_from(text.len()) else { return std::ptr::null_mut() };
        // SAFETY: %.*s takes an int and at most that many bytes of the pointer, which `text` has.
        unsafe { call(c"%.*s".as_ptr(), len_bytes, text.as_ptr()) }
    }

    /// Frees what SQLite allocated.
    /// # Safety
    /// `memory` is null or came from this SQLite's allocator and is used no more.
    pub unsafe fn free(self, memory: *mut c_void) {
        if let Some(call) = routine!(self, slot::FREE, unsafe extern "C" fn(*mut c_void)) {
            // SAFETY: the caller's promise.
            unsafe { call(memory) }
        }
    }

    /// Sends a line to the application's error log (`SQLITE_CONFIG_LOG`).
    pub fn log(self, code: c_int, message: &str) {
        type Log = unsafe extern "C" fn(c_int, *const c_char, ...);
        let Some(call) = routine!(self, slot::LOG, Log) else { return };
        let len_bytes = c_int::try_from(message.len()).unwrap_or(0);
        // SAFETY: as `string`.
        unsafe { call(code, c"waldio: %.*s".as_ptr(), len_bytes, message.as_ptr()) }
    }

    /// Has SQLite call `entry` for every connection opened from now on.
    /// # Safety
    /// `entry` is an extension entry point that stays loaded.
    pub unsafe fn auto_extension(self, entry: *const c_void) -> c_int {
        type Auto = unsafe extern "C" fn(*const c_void) -> c_int;
        // SAFETY: the caller's promise.
        routine!(self, slot::AUTO_EXTENSION, Auto).map_or(1, |call| unsafe { call(entry) })
    }

    /// Sends a file control that takes an int to a database; what the int is then.
    /// # Errors
    /// SQLite's code: nobody knew the control, or it failed.
    /// # Safety
    /// `db` is a live connection, and the control takes an int.
    pub unsafe fn control(
        self,
        db: *mut sqlite3,
        schema: &CStr,
        operation: c_int,
        argument: c_int,
    ) -> Result<c_int, c_int> {
        type Control = unsafe extern "C" fn(*mut sqlite3, *const c_char, c_int, *mut c_void) -> c_int;
        let call = routine!(self, slot::FILE_CONTROL, Control).ok_or(SQLITE_NOTFOUND)?;
        let mut argument = argument;
        // SAFETY: the caller's promise, and a terminated name.
        let code = unsafe { call(db, schema.as_ptr(), operation, (&raw mut argument).cast()) };
        if code == SQLITE_OK { Ok(argument) } else { Err(code) }
    }

    /// The names of the VFSes that a database is opened through, from the top, for example "waldio/unix".
    /// # Errors
    /// SQLite's code.
    /// # Safety
    /// `db` is a live connection.
    pub unsafe fn vfs_names(self, db: *mut sqlite3, schema: &CStr) -> Result<String, c_int> {
        type Control = unsafe extern "C" fn(*mut sqlite3, *const c_char, c_int, *mut c_void) -> c_int;
        let call = routine!(self, slot::FILE_CONTROL, Control).ok_or(SQLITE_NOTFOUND)?;
        let mut names = std::ptr::null_mut::<c_char>();
        // SAFETY: the caller's promise, a terminated name, and a place for a string (SQLITE_FCNTL_VFSNAME).
        let code = unsafe { call(db, schema.as_ptr(), SQLITE_FCNTL_VFSNAME, (&raw mut names).cast()) };
        if names.is_null() {
            return Err(if code == SQLITE_OK { SQLITE_NOMEM } else { code });
        }
        // SAFETY: terminated.
        let text = unsafe { CStr::from_ptr(names) }.to_string_lossy().into_owned();
        // SAFETY: allocated by this SQLite for the caller, and used no more.
        unsafe { self.free(names.cast()) };
        if code == SQLITE_OK { Ok(text) } else { Err(code) }
    }

    /// Opens an existing database for reading and writing: the code, and what is to be closed in any case.
    /// # Safety
    /// None but that: the connection is closed.
    pub unsafe fn open(self, name: &CStr, vfs: &CStr) -> (c_int, *mut sqlite3) {
        type Open = unsafe extern "C" fn(*const c_char, *mut *mut sqlite3, c_int, *const c_char) -> c_int;
        let mut db = std::ptr::null_mut();
        // SAFETY: terminated names, and a place for the connection.
        let code = routine!(self, slot::OPEN_V2, Open).map_or(1, |call| unsafe {
            call(name.as_ptr(), &raw mut db, SQLITE_OPEN_READWRITE, vfs.as_ptr())
        });
        (code, db)
    }

    /// Closes a connection.
    /// # Safety
    /// `db` came from `open`, and nothing of it is in use.
    pub unsafe fn close(self, db: *mut sqlite3) {
        if let Some(call) = routine!(self, slot::CLOSE, unsafe extern "C" fn(*mut sqlite3) -> c_int) {
            // SAFETY: the caller's promise.
            unsafe { call(db) };
        }
    }

    /// Runs statements; `take` gets each row, and `place` with it.
    /// # Safety
    /// `db` is a live connection, and `place` is what `take` wants.
    pub unsafe fn exec(self, db: *mut sqlite3, sql: &CStr, take: RowCallback, place: *mut c_void) -> c_int {
        type Exec = unsafe extern "C" fn(
            *mut sqlite3,
            *const c_char,
            RowCallback,
            *mut c_void,
            *mut *mut c_char,
        ) -> c_int;
        let call = routine!(self, slot::EXEC, Exec);
        // SAFETY: the caller's promise, and terminated text.
        call.map_or(1, |call| unsafe { call(db, sql.as_ptr(), take, place, std::ptr::null_mut()) })
    }

    /// SQLite's words for the last failure.
    /// # Safety
    /// `db` came from `open`, or is a live connection.
    pub unsafe fn message(self, db: *mut sqlite3) -> String {
        let call = routine!(self, slot::ERRMSG, unsafe extern "C" fn(*mut sqlite3) -> *const c_char);
        // SAFETY: the caller's promise.
        let text = call.map_or(std::ptr::null(), |call| unsafe { call(db) });
        if text.is_null() {
            return String::new();
        }
        // SAFETY: terminated, until the connection is used again.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into_owned()
    }

    /// True between BEGIN and COMMIT.
    /// # Safety
    /// `db` is a live connection.
    pub unsafe fn is_in_transaction(self, db: *mut sqlite3) -> bool {
        let call = routine!(self, slot::GET_AUTOCOMMIT, unsafe extern "C" fn(*mut sqlite3) -> c_int);
        // SAFETY: the caller's promise.
        call.is_none_or(|call| unsafe { call(db) } == 0)
    }

    /// True where a database of a connection cannot be written through it: `mode=ro`, `immutable=1`, a file without
    /// write permission. True where that is not known.
    /// # Safety
    /// `db` is a live connection.
    pub unsafe fn is_read_only(self, db: *mut sqlite3, schema: &CStr) -> bool {
        type ReadOnly = unsafe extern "C" fn(*mut sqlite3, *const c_char) -> c_int;
        let call = routine!(self, slot::DB_READONLY, ReadOnly);
        // SAFETY: the caller's promise, and a terminated name.
        call.is_none_or(|call| unsafe { call(db, schema.as_ptr()) } != 0)
    }

    /// SQLite's name of a database's file, which `uri_parameter` takes; null where it has none.
    /// # Safety
    /// `db` is a live connection. The name is there as long as the database is.
    pub unsafe fn filename(self, db: *mut sqlite3, schema: &CStr) -> *const c_char {
        type Filename = unsafe extern "C" fn(*mut sqlite3, *const c_char) -> *const c_char;
        let call = routine!(self, slot::DB_FILENAME, Filename);
        // SAFETY: the caller's promise, and a terminated name.
        call.map_or(std::ptr::null(), |call| unsafe { call(db, schema.as_ptr()) })
    }

    /// The file of a database of a connection.
    /// # Safety
    /// `db` is a live connection.
    pub unsafe fn database_path(self, db: *mut sqlite3, schema: &CStr) -> Option<PathBuf> {
        // SAFETY: the caller's promise.
        let name = unsafe { self.filename(db, schema) };
        if name.is_null() {
            return None;
        }
        // SAFETY: terminated, and there as long as the database is.
        let name = unsafe { CStr::from_ptr(name) };
        Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
    }

    /// Gives a connection a function, which triggers and views may not call.
    /// # Safety
    /// `db` is a live connection; `function` stays, and takes `count` values.
    pub unsafe fn create_function(
        self,
        db: *mut sqlite3,
        name: &CStr,
        count: c_int,
        function: Function,
    ) -> c_int {
        type Create = unsafe extern "C" fn(
            *mut sqlite3,
            *const c_char,
            c_int,
            c_int,
            *mut c_void,
            Option<Function>,
            *const c_void,
            *const c_void,
            *const c_void,
        ) -> c_int;
        const UTF8_AND_DIRECT_ONLY: c_int = 0x8_0001;
        let (name, null) = (name.as_ptr(), std::ptr::null());
        // SAFETY: the caller's promise; a scalar function has no other callbacks.
        routine!(self, slot::CREATE_FUNCTION_V2, Create).map_or(1, |call| unsafe {
            call(
                db,
                name,
                count,
                UTF8_AND_DIRECT_ONLY,
                std::ptr::null_mut(),
                Some(function),
                null,
                null,
                null,
            )
        })
    }

    /// The connection that calls a function.
    /// # Safety
    /// `context` is the one that the function got.
    pub unsafe fn context_connection(self, context: *mut sqlite3_context) -> *mut sqlite3 {
        type Handle = unsafe extern "C" fn(*mut sqlite3_context) -> *mut sqlite3;
        // SAFETY: the caller's promise.
        routine!(self, slot::CONTEXT_DB_HANDLE, Handle)
            .map_or(std::ptr::null_mut(), |call| unsafe { call(context) })
    }

    /// A function's argument as text; `None` for NULL.
    /// # Safety
    /// `value` is one that the function got.
    pub unsafe fn value_text(self, value: *mut sqlite3_value) -> Option<CString> {
        let call =
            routine!(self, slot::VALUE_TEXT, unsafe extern "C" fn(*mut sqlite3_value) -> *const c_char)?;
        // SAFETY: the caller's promise.
        let text = unsafe { call(value) };
        // SAFETY: terminated, until the value is used again.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
    }

    /// Ends a function with an error.
    /// # Safety
    /// `context` is the one that the function got.
    pub unsafe fn result_error(self, context: *mut sqlite3_context, text: &str) {
        type Set = unsafe extern "C" fn(*mut sqlite3_context, *const c_char, c_int);
        let len_bytes = c_int::try_from(text.len()).unwrap_or(0);
        if let Some(call) = routine!(self, slot::RESULT_ERROR, Set) {
            // SAFETY: the caller's promise; SQLite copies so many bytes.
            unsafe { call(context, text.as_ptr().cast(), len_bytes) }
        }
    }

    /// Registers an eponymous virtual table on a connection. Builds without virtual tables have no such slot: OK.
    /// # Safety
    /// `db` is a live connection; `module` and `client` live as long as the process.
    pub unsafe fn create_module(
        self,
        db: *mut sqlite3,
        name: &CStr,
        module: &'static sqlite3_module,
        client: *mut c_void,
    ) -> c_int {
        type Create = unsafe extern "C" fn(
            *mut sqlite3,
            *const c_char,
            *const sqlite3_module,
            *mut c_void,
            *const c_void,
        ) -> c_int;
        let call = routine!(self, slot::CREATE_MODULE_V2, Create);
        // SAFETY: the caller's promise; no destructor.
        call.map_or(0, |call| unsafe { call(db, name.as_ptr(), module, client, std::ptr::null()) })
    }

    /// Declares the columns of a virtual table inside `xConnect`.
    /// # Safety
    /// `db` is the connection that `xConnect` got.
    pub unsafe fn declare_vtab(self, db: *mut sqlite3, sql: &CStr) -> c_int {
        type Declare = unsafe extern "C" fn(*mut sqlite3, *const c_char) -> c_int;
        // SAFETY: the caller's promise, and a terminated string.
        routine!(self, slot::DECLARE_VTAB, Declare).map_or(1, |call| unsafe { call(db, sql.as_ptr()) })
    }

    /// Sets a column's value.
    /// # Safety
    /// `context` is the one that `xColumn` got.
    pub unsafe fn result(self, context: *mut sqlite3_context, value: &Value) {
        match value {
            Value::Null => {
                if let Some(call) =
                    routine!(self, slot::RESULT_NULL, unsafe extern "C" fn(*mut sqlite3_context))
                {
                    // SAFETY: the caller's promise.
                    unsafe { call(context) }
                }
            }
            Value::Integer(number) => {
                type Set = unsafe extern "C" fn(*mut sqlite3_context, i64);
                if let Some(call) = routine!(self, slot::RESULT_INT64, Set) {
                    // SAFETY: the caller's promise.
                    unsafe { call(context, *number) }
                }
            }
            Value::Real(number) => {
                type Set = unsafe extern "C" fn(*mut sqlite3_context, f64);
                if let Some(call) = routine!(self, slot::RESULT_DOUBLE, Set) {
                    // SAFETY: the caller's promise.
                    unsafe { call(context, *number) }
                }
            }
            Value::Text(text) => {
                type Set = unsafe extern "C" fn(*mut sqlite3_context, *const c_char, c_int, isize);
                let len_bytes = c_int::try_from(text.len()).unwrap_or(0);
                if let Some(call) = routine!(self, slot::RESULT_TEXT, Set) {
                    // SAFETY: the caller's promise; SQLite copies the bytes (SQLITE_TRANSIENT).
                    unsafe { call(context, text.as_ptr().cast(), len_bytes, TRANSIENT) }
                }
            }
        }
    }
}

/// What a column of a virtual table may hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A double.
    Real(f64),
    /// UTF-8 text.
    Text(String),
}
