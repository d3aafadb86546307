//! The functions of one SQLite library, called through the table it handed to us.
//!
//! One `Api` per SQLite copy, kept in its registered VFS and never globally: a process may hold two copies (an
//! interpreter's and a module's), both load the same image of this extension, and memory from one must not be
//! freed by the other.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

use super::types::{sqlite3, sqlite3_api_routines, sqlite3_context, sqlite3_module, sqlite3_vfs};

/// SQLite 3.32.0: the first with `SQLITE_FCNTL_CKPT_START` and `sqlite3_database_file_object`.
pub const VERSION_MIN: c_int = 3_032_000;

/// Slots of the table. Source: sqlite3ext.h; slots are only ever appended.
pub(crate) mod slot {
    pub const DECLARE_VTAB: usize = 50;
    pub const FREE: usize = 58;
    pub const LIBVERSION_NUMBER: usize = 67;
    pub const MPRINTF: usize = 69;
    pub const RESULT_DOUBLE: usize = 79;
    pub const RESULT_INT64: usize = 83;
    pub const RESULT_NULL: usize = 84;
    pub const RESULT_TEXT: usize = 85;
    pub const CREATE_MODULE_V2: usize = 119;
    pub const FILE_CONTROL: usize = 127;
    pub const VFS_FIND: usize = 141;
    pub const VFS_REGISTER: usize = 142;
    pub const LOG: usize = 167;
    pub const URI_PARAMETER: usize = 189;
    pub const AUTO_EXTENSION: usize = 192;
    pub const FILENAME_DATABASE: usize = 246;
}

/// `SQLITE_TRANSIENT`: SQLite copies the text before the call returns.
const TRANSIENT: isize = -1;

/// A copyable handle on the table.
#[derive(Clone, Copy)]
pub struct Api {
    routines: *const sqlite3_api_routines,
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
        unsafe { transmute::<*const c_void, Option<$function>>(routines.slots[$slot]) }
    }};
}

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
    /// `filename` came to our `xOpen` with `SQLITE_OPEN_MAIN_DB`.
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

    /// Sends a file control that takes an int to the main database; whether somebody knew it, and what the int is then.
    /// # Safety
    /// `db` is a live connection, and the control takes an int.
    pub unsafe fn control_main(self, db: *mut sqlite3, operation: c_int, argument: c_int) -> Option<c_int> {
        type Control = unsafe extern "C" fn(*mut sqlite3, *const c_char, c_int, *mut c_void) -> c_int;
        let call = routine!(self, slot::FILE_CONTROL, Control)?;
        let mut argument = argument;
        // SAFETY: the caller's promise, and a terminated name.
        let code = unsafe { call(db, c"main".as_ptr(), operation, (&raw mut argument).cast()) };
        (code == 0).then_some(argument)
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
