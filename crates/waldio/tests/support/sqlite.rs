//! A connection to the bundled SQLite in safe words, no larger than the tests need.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::ptr;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use libsqlite3_sys as ffi;

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

/// A value of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// NULL, or a float: the tests use none.
    Null,
    /// An integer.
    Int(i64),
    /// Text or a blob.
    Bytes(Vec<u8>),
}

impl Value {
    /// The integer, 0 for anything else.
    pub fn int(&self) -> i64 {
        if let Value::Int(value) = self { *value } else { 0 }
    }

    /// The bytes as text, empty for anything else.
    pub fn text(&self) -> String {
        if let Value::Bytes(bytes) = self {
            String::from_utf8_lossy(bytes).into_owned()
        } else {
            String::new()
        }
    }
}

/// An open connection; closed when dropped.
#[derive(Debug)]
pub struct Connection {
    raw: *mut ffi::sqlite3,
}

// SAFETY: the bundled SQLite is built thread-safe and serialises the calls of one connection.
unsafe impl Send for Connection {}

/// The source of random bytes is one for the whole process: who needs the same bytes again takes it alone.
static RANDOM: RwLock<()> = RwLock::new(());

/// Takes SQLite's random source alone and starts it from `seed`.
pub fn with_seed(seed: c_int) -> RwLockWriteGuard<'static, ()> {
    let guard = RANDOM.write().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: this control takes an int and a connection or null.
    unsafe {
        ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_PRNG_SEED, seed, ptr::null_mut::<ffi::sqlite3>())
    };
    guard
}

/// Uses SQLite's random source beside others.
pub fn with_any_random() -> RwLockReadGuard<'static, ()> {
    RANDOM.read().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Opens `path` through the VFS `vfs`.
    pub fn open(path: &str, vfs: &str) -> Result<Connection, SqlError> {
        let path = CString::new(path).expect("no NUL");
        let vfs = CString::new(vfs).expect("no NUL");
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_URI;
        let mut raw = ptr::null_mut();
        // SAFETY: the strings end with NUL and outlive the call; `raw` is writable.
        let code = unsafe { ffi::sqlite3_open_v2(path.as_ptr(), &raw mut raw, flags, vfs.as_ptr()) };
        let connection = Connection { raw };
        // SAFETY: a connection, open or failed, or null, which SQLite accepts.
        unsafe { ffi::sqlite3_extended_result_codes(raw, 1) };
        connection.check(code).map(|()| connection)
    }

    /// Runs all statements of `sql` and drops their rows.
    pub fn exec(&self, sql: &str) -> Result<(), SqlError> {
        let sql = CString::new(sql).expect("no NUL");
        // SAFETY: the string ends with NUL and outlives the call; no callback.
        let code =
            unsafe { ffi::sqlite3_exec(self.raw, sql.as_ptr(), None, ptr::null_mut(), ptr::null_mut()) };
        self.check(code)
    }

    /// Runs one statement and returns its rows.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<Value>>, SqlError> {
        let sql = CString::new(sql).expect("no NUL");
        let mut statement = ptr::null_mut();
        // SAFETY: the string ends with NUL and outlives the call; `statement` is writable.
        let code = unsafe {
            ffi::sqlite3_prepare_v2(self.raw, sql.as_ptr(), -1, &raw mut statement, ptr::null_mut())
        };
        self.check(code)?;
        let mut rows = Vec::new();
        let outcome = loop {
            // SAFETY: a prepared statement.
            match unsafe { ffi::sqlite3_step(statement) } {
                ffi::SQLITE_ROW => rows.push(row_of(statement)),
                ffi::SQLITE_DONE => break Ok(rows),
                code => break self.check(code).map(|()| Vec::new()),
            }
        };
        // SAFETY: a prepared statement, not used again.
        unsafe { ffi::sqlite3_finalize(statement) };
        outcome
    }

    /// Closes; SQLite's last checkpoint may fail, which this does not tell.
    pub fn close(self) {}

    /// Sets the busy handler's patience.
    pub fn busy_timeout(&self, millis: c_int) {
        // SAFETY: an open connection.
        unsafe { ffi::sqlite3_busy_timeout(self.raw, millis) };
    }

    fn check(&self, code: c_int) -> Result<(), SqlError> {
        if code == ffi::SQLITE_OK {
            return Ok(());
        }
        // SAFETY: a connection or null; the text lives until the next call.
        let message = unsafe { ffi::sqlite3_errmsg(self.raw) };
        // SAFETY: it ends with NUL.
        let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        Err(SqlError { code, message })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once; null is accepted.
        unsafe { ffi::sqlite3_close(self.raw) };
    }
}

fn row_of(statement: *mut ffi::sqlite3_stmt) -> Vec<Value> {
    // SAFETY: a statement that stands on a row.
    let count = unsafe { ffi::sqlite3_column_count(statement) };
    (0..count).map(|column| value_of(statement, column)).collect()
}

fn value_of(statement: *mut ffi::sqlite3_stmt, column: c_int) -> Value {
    // SAFETY: a statement on a row, and one of its columns.
    match unsafe { ffi::sqlite3_column_type(statement, column) } {
        // SAFETY: as above.
        ffi::SQLITE_INTEGER => Value::Int(unsafe { ffi::sqlite3_column_int64(statement, column) }),
        ffi::SQLITE_TEXT | ffi::SQLITE_BLOB => {
            // SAFETY: as above.
            let data = unsafe { ffi::sqlite3_column_blob(statement, column) };
            // SAFETY: as above.
            let len = unsafe { ffi::sqlite3_column_bytes(statement, column) };
            if data.is_null() {
                return Value::Bytes(Vec::new());
            }
            let len = usize::try_from(len).expect("not negative");
            // SAFETY: SQLite's `len` bytes, valid until the statement moves on.
            Value::Bytes(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }.to_vec())
        }
        _ => Value::Null,
    }
}

static API: Mutex<usize> = Mutex::new(0);

unsafe extern "C" fn keep_api(
    _connection: *mut ffi::sqlite3,
    _message: *mut *mut c_char,
    api: *const ffi::sqlite3_api_routines,
) -> c_int {
    *API.lock().unwrap_or_else(PoisonError::into_inner) = api.expose_provenance();
    ffi::SQLITE_OK
}

/// The table of the bundled SQLite's functions, as a loaded extension gets it.
pub fn api_routines() -> *const ffi::sqlite3_api_routines {
    let known = *API.lock().unwrap_or_else(PoisonError::into_inner);
    if known == 0 {
        // SAFETY: a function that lives as long as the process.
        unsafe { ffi::sqlite3_auto_extension(Some(keep_api)) };
        drop(Connection::open(":memory:", "unix"));
        // SAFETY: the same function.
        unsafe { ffi::sqlite3_cancel_auto_extension(Some(keep_api)) };
    }
    let known = *API.lock().unwrap_or_else(PoisonError::into_inner);
    assert_ne!(known, 0, "SQLite called the entry point");
    ptr::with_exposed_provenance(known)
}
