//! One connection of one SQLite build, with safe methods.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::ptr;

use libsqlite3_sys as ffi;

use crate::machine::sqlite::sqlite_api::Api;

/// What SQLite said, and while doing what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteError {
    /// SQLite's primary result code.
    pub code: i32,
    /// Its message, with the statement or file.
    pub message: String,
}

impl fmt::Display for SqliteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (SQLite code {})", self.message, self.code)
    }
}

impl std::error::Error for SqliteError {}

/// A C string of SQLite's as a Rust one; empty for none.
fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: SQLite's strings end with a zero; this one stays valid until the next call on its connection.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn c_string(text: &str) -> Result<CString, SqliteError> {
    CString::new(text)
        .map_err(|_| SqliteError { code: ffi::SQLITE_MISUSE, message: format!("{text:?} has a zero") })
}

/// `sqlite3_libversion` and `sqlite3_sourceid` of `api`.
pub fn version(api: &Api) -> (String, String) {
    // SAFETY: it takes nothing and gives a static string.
    let number = unsafe { (api.libversion)() };
    // SAFETY: as above.
    let source = unsafe { (api.sourceid)() };
    (text_of(number), text_of(source))
}

/// Whether SQLite was compiled with `option`, its name without `SQLITE_`.
/// # Errors
/// As sqlite3_open_v2.
pub fn is_compiled_with(api: &Api, option: &str) -> Result<bool, SqliteError> {
    let connection = Connection::open(api, ":memory:")?;
    let used = connection.value(&format!("SELECT sqlite_compileoption_used('{option}')"))?;
    connection.close()?;
    Ok(used == "1")
}

/// A text as part of a URI.
fn in_uri(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-,".contains(byte);
    text.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// An open connection; dropping it closes it.
#[derive(Debug)]
pub struct Connection<'api> {
    api: &'api Api,
    db: *mut ffi::sqlite3,
}

impl<'api> Connection<'api> {
    /// Opens or creates the database `path`.
    /// # Errors
    /// As sqlite3_open_v2; nothing stays open.
    pub fn open(api: &'api Api, path: &str) -> Result<Self, SqliteError> {
        Self::open_as_named(api, path, 0)
    }

    /// As [`Connection::open`], with options of waldio's (their names without `waldio_`), which hold from the first byte of a new
    /// database.
    /// # Errors
    /// As sqlite3_open_v2; an option that waldio refuses is in SQLite's error log.
    pub fn open_with(api: &'api Api, path: &str, options: &[(String, String)]) -> Result<Self, SqliteError> {
        if options.is_empty() {
            return Self::open(api, path);
        }
        let options: Vec<String> =
            options.iter().map(|(name, value)| format!("waldio_{name}={}", in_uri(value))).collect();
        let uri = format!("file:{}?{}", in_uri(path), options.join("&"));
        Self::open_as_named(api, &uri, ffi::SQLITE_OPEN_URI)
    }

    fn open_as_named(api: &'api Api, path: &str, more_flags: c_int) -> Result<Self, SqliteError> {
        let name = c_string(path)?;
        let mut db = ptr::null_mut();
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | more_flags;
        // SAFETY: `name` ends with a zero and outlives the call; `db` is written to.
        let code = unsafe { (api.open_v2)(name.as_ptr(), &raw mut db, flags, ptr::null()) };
        let connection = Connection { api, db };
        if code == ffi::SQLITE_OK { Ok(connection) } else { Err(connection.error(code, path)) }
    }

    fn error(&self, code: c_int, doing: &str) -> SqliteError {
        // SAFETY: the connection is open, or null, for which errmsg has a text too.
        let text = unsafe { (self.api.errmsg)(self.db) };
        SqliteError { code: code & 0xff, message: format!("{}: {doing}", text_of(text)) }
    }

    /// Compiles one statement.
    /// # Errors
    /// As sqlite3_prepare_v2.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>, SqliteError> {
        let text = c_string(sql)?;
        let mut handle = ptr::null_mut();
        // SAFETY: `text` ends with a zero, -1 says so; `handle` is written to; the tail is not asked for.
        let code =
            unsafe { (self.api.prepare_v2)(self.db, text.as_ptr(), -1, &raw mut handle, ptr::null_mut()) };
        let statement = Statement { connection: self, handle, sql: sql.to_owned() };
        if code == ffi::SQLITE_OK { Ok(statement) } else { Err(self.error(code, sql)) }
    }

    /// Runs one statement to its end and drops what it returns.
    /// # Errors
    /// As sqlite3_step.
    pub fn run(&self, sql: &str) -> Result<(), SqliteError> {
        self.prepare(sql)?.run()
    }

    /// Compiles and runs the statements of a text one after another, and drops what they return.
    /// # Errors
    /// As sqlite3_exec: those after the one that failed do not run.
    pub fn run_all(&self, sql: &str) -> Result<(), SqliteError> {
        let text = c_string(sql)?;
        // SAFETY: `text` ends with a zero; without a callback rows are dropped, and no message is asked for.
        let code = unsafe { (self.api.exec)(self.db, text.as_ptr(), None, ptr::null_mut(), ptr::null_mut()) };
        // Which of the statements it was, SQLite's message says where it is about one.
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(self.error(code, &format!("{sql:.80}"))) }
    }

    /// All rows of one statement, every column as text.
    /// # Errors
    /// As sqlite3_step.
    pub fn rows(&self, sql: &str, columns: i32) -> Result<Vec<Vec<String>>, SqliteError> {
        let mut statement = self.prepare(sql)?;
        let mut rows = Vec::new();
        while statement.step()? {
            rows.push((0..columns).map(|column| statement.column(column)).collect());
        }
        Ok(rows)
    }

    /// The first column of the first row, empty where there is none.
    /// # Errors
    /// As sqlite3_step.
    pub fn value(&self, sql: &str) -> Result<String, SqliteError> {
        let rows = self.rows(sql, 1)?;
        Ok(rows.into_iter().flatten().next().unwrap_or_default())
    }

    /// Loads the extension `file`; its entry point is the one SQLite derives from the name.
    /// # Errors
    /// What SQLite or the extension said.
    pub fn load_extension(&self, file: &str) -> Result<(), SqliteError> {
        let name = c_string(file)?;
        // SAFETY: the connection is open.
        let code = unsafe { (self.api.enable_load_extension)(self.db, 1) };
        if code != ffi::SQLITE_OK {
            return Err(self.error(code, file));
        }
        let mut message: *mut c_char = ptr::null_mut();
        // SAFETY: `name` ends with a zero; a null entry point asks for the default; `message` is written to.
        let code =
            unsafe { (self.api.load_extension)(self.db, name.as_ptr(), ptr::null(), &raw mut message) };
        if code == ffi::SQLITE_OK {
            return Ok(());
        }
        let text = text_of(message);
        // SAFETY: the message is SQLite's to free, null or not, and is not used again.
        unsafe { (self.api.free)(message.cast()) };
        Err(SqliteError { code: code & 0xff, message: text })
    }

    /// Pages that this connection wrote since it was opened, or since they were last set to 0, which `starts_over` does: to its databases,
    /// or as frames to their logs. `None` where this SQLite, older than 3.7.12, does not count them.
    pub fn pages_written(&self, starts_over: bool) -> Option<u64> {
        let (mut pages, mut highest): (c_int, c_int) = (0, 0);
        let (operation, reset) = (ffi::SQLITE_DBSTATUS_CACHE_WRITE, c_int::from(starts_over));
        // SAFETY: the connection is open; both numbers are written to.
        let code =
            unsafe { (self.api.db_status)(self.db, operation, &raw mut pages, &raw mut highest, reset) };
        if code == ffi::SQLITE_OK { u64::try_from(pages).ok() } else { None }
    }

    /// Closes the connection and says whether that went well.
    /// # Errors
    /// As sqlite3_close, which leaves the connection open then: a bug of ours, a statement is not finalised.
    pub fn close(mut self) -> Result<(), SqliteError> {
        // SAFETY: the connection is open and, taken by value, not used afterwards.
        let code = unsafe { (self.api.close)(self.db) };
        if code != ffi::SQLITE_OK {
            return Err(self.error(code, "close"));
        }
        self.db = ptr::null_mut();
        Ok(())
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // SAFETY: open or null, and close takes both; every Statement borrows us, so none is left.
        unsafe { (self.api.close)(self.db) };
    }
}

/// A compiled statement.
#[derive(Debug)]
pub struct Statement<'connection> {
    connection: &'connection Connection<'connection>,
    handle: *mut ffi::sqlite3_stmt,
    sql: String,
}

impl Statement<'_> {
    fn check(&self, code: c_int) -> Result<(), SqliteError> {
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(self.connection.error(code, &self.sql)) }
    }

    /// Binds a number to parameter `index`; the first is 1.
    /// # Errors
    /// As sqlite3_bind_int64.
    pub fn bind_number(&mut self, index: i32, value: i64) -> Result<(), SqliteError> {
        // SAFETY: the statement is compiled and between two runs.
        let code = unsafe { (self.connection.api.bind_int64)(self.handle, index, value) };
        self.check(code)
    }

    /// Binds a copy of `value` to parameter `index`; the first is 1.
    /// # Errors
    /// As sqlite3_bind_text.
    pub fn bind_text(&mut self, index: i32, value: &str) -> Result<(), SqliteError> {
        let length = c_int::try_from(value.len()).unwrap_or(0);
        // SAFETY: `value` has `length` bytes, and SQLITE_TRANSIENT makes SQLite copy them before it returns.
        let code = unsafe {
            (self.connection.api.bind_text)(
                self.handle,
                index,
                value.as_ptr().cast(),
                length,
                ffi::SQLITE_TRANSIENT(),
            )
        };
        self.check(code)
    }

    /// Goes to the next row; false at the end, where the statement is ready to run again.
    /// # Errors
    /// As sqlite3_step; the statement is ready to run again.
    pub fn step(&mut self) -> Result<bool, SqliteError> {
        // SAFETY: the statement is compiled.
        let code = unsafe { (self.connection.api.step)(self.handle) };
        if code == ffi::SQLITE_ROW {
            return Ok(true);
        }
        let result =
            if code == ffi::SQLITE_DONE { Ok(false) } else { Err(self.connection.error(code, &self.sql)) };
        // SAFETY: as above; reset repeats the step's error, which is in `result` already.
        unsafe { (self.connection.api.reset)(self.handle) };
        result
    }

    /// Runs to the end.
    /// # Errors
    /// As [`Statement::step`].
    pub fn run(&mut self) -> Result<(), SqliteError> {
        while self.step()? {}
        Ok(())
    }

    /// Column `index` of the row as text; the first is 0.
    pub fn column(&self, index: i32) -> String {
        // SAFETY: the statement stands on a row, or else SQLite gives null.
        let text = unsafe { (self.connection.api.column_text)(self.handle, index) };
        text_of(text.cast())
    }

    /// Length in bytes of column `index` as text, which makes SQLite read all of it.
    pub fn column_bytes(&self, index: i32) -> i32 {
        // SAFETY: as in `column`.
        unsafe { (self.connection.api.column_bytes)(self.handle, index) }
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: compiled or null, finalize takes both, and nobody uses it afterwards.
        unsafe { (self.connection.api.finalize)(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_sqlite_is_compiled_for_atomic_writes() {
        assert!(is_compiled_with(&Api::bundled(), "ENABLE_BATCH_ATOMIC_WRITE").unwrap());
        assert!(!is_compiled_with(&Api::bundled(), "NO_SUCH_OPTION").unwrap());
    }

    #[test]
    fn values_go_in_and_come_out() {
        let api = Api::bundled();
        let connection = Connection::open(&api, ":memory:").unwrap();
        connection.run("CREATE TABLE t(a INTEGER, b TEXT)").unwrap();
        let mut insert = connection.prepare("INSERT INTO t VALUES(?1, ?2)").unwrap();
        for number in 0..3 {
            insert.bind_number(1, number).unwrap();
            insert.bind_text(2, "text").unwrap();
            insert.run().unwrap();
        }
        drop(insert);
        assert_eq!(connection.value("SELECT count(*) FROM t WHERE b = 'text'").unwrap(), "3");
        let mut select = connection.prepare("SELECT b FROM t WHERE a = 1").unwrap();
        assert!(select.step().unwrap());
        assert_eq!(select.column_bytes(0), 4);
        drop(select);
        connection.close().unwrap();
        assert!(version(&api).0.starts_with("3."));
    }

    #[test]
    fn the_statements_of_a_text_run_until_one_fails() {
        let api = Api::bundled();
        let connection = Connection::open(&api, ":memory:").unwrap();
        connection.run_all("CREATE TABLE t(a); BEGIN; INSERT INTO t VALUES(1); COMMIT;").unwrap();
        let error =
            connection.run_all("INSERT INTO t VALUES(2); SELEKT; INSERT INTO t VALUES(3)").unwrap_err();
        assert!(error.message.contains("SELEKT"), "{error}");
        assert_eq!(connection.value("SELECT group_concat(a) FROM t").unwrap(), "1,2");
    }

    #[test]
    fn errors_name_the_statement_or_the_file() {
        let api = Api::bundled();
        let missing = Connection::open(&api, "/nonexistent/x.db").unwrap_err();
        assert!(missing.message.contains("/nonexistent/x.db"), "{missing}");
        let connection = Connection::open(&api, ":memory:").unwrap();
        let wrong = connection.run("SELEKT 1").unwrap_err();
        assert!(wrong.message.contains("SELEKT 1"), "{wrong}");
        let extension = connection.load_extension("/nonexistent/libwaldio.so").unwrap_err();
        assert!(extension.message.contains("/nonexistent"), "{extension}");
    }
}
