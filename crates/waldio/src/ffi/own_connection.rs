//! A connection that waldio opens itself, for what an application's connection cannot do in the middle of a statement.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use super::api::Api;
use super::codes::SQLITE_FCNTL_RESERVE_BYTES;
use super::types::sqlite3;

/// What SQLite says of a statement that failed.
#[derive(Debug)]
pub(crate) struct SqliteMessage(String);

impl fmt::Display for SqliteMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A connection of waldio's own to a database. Closed when dropped.
pub(crate) struct OwnConnection {
    api: Api,
    db: *mut sqlite3,
}

impl OwnConnection {
    /// Opens an existing database through a VFS.
    /// # Errors
    /// A sentence; nothing is open.
    pub(crate) fn open(api: Api, path: &OsStr, vfs: &CStr) -> Result<OwnConnection, SqliteMessage> {
        let name = CString::new(path.as_bytes())
            .map_err(|_| SqliteMessage("its name has a zero in it".to_owned()))?;
        // SAFETY: terminated names; the connection is closed in `drop`, as SQLite wants it after a failure too.
        let (code, db) = unsafe { api.open(&name, vfs) };
        let own = OwnConnection { api, db };
        if code == 0 { Ok(own) } else { Err(own.complaint()) }
    }

    fn complaint(&self) -> SqliteMessage {
        // SAFETY: an open connection, or the half-open one that a failed open leaves for this very purpose.
        SqliteMessage(unsafe { self.api.message(self.db) })
    }

    /// Runs statements.
    /// # Errors
    /// SQLite's words.
    pub(crate) fn run(&self, sql: &CStr) -> Result<(), SqliteMessage> {
        self.number(sql).map(|_| ())
    }

    /// Runs statements; the first value of the last row, where it is a number.
    /// # Errors
    /// SQLite's words.
    pub(crate) fn number(&self, sql: &CStr) -> Result<Option<i64>, SqliteMessage> {
        // SAFETY: an open connection.
        unsafe { number_of(self.api, self.db, sql) }
    }

    /// How many bytes of each page the database reserves, or shall reserve from its next `VACUUM` on; `None` where
    /// this SQLite has no such thing. The database must have been read.
    pub(crate) fn reserved_bytes(&self) -> Option<c_int> {
        // SAFETY: an open connection, and a control that takes an int: -1 only asks.
        unsafe { self.api.control(self.db, c"main", SQLITE_FCNTL_RESERVE_BYTES, -1) }.ok()
    }

    /// Has the next `VACUUM` reserve so many bytes of each page.
    pub(crate) fn reserve_bytes(&self, bytes: c_int) {
        // SAFETY: as in `reserved_bytes`.
        let _ = unsafe { self.api.control(self.db, c"main", SQLITE_FCNTL_RESERVE_BYTES, bytes) };
    }
}

/// A row: the text of each value, `None` for NULL.
pub(crate) type Texts = Vec<Option<CString>>;

/// Runs statements on somebody's connection; the first value of the last row, where it is a number.
/// # Errors
/// SQLite's words.
/// # Safety
/// `db` is a live connection.
pub(crate) unsafe fn number_of(api: Api, db: *mut sqlite3, sql: &CStr) -> Result<Option<i64>, SqliteMessage> {
    // SAFETY: the caller's promise.
    let rows = unsafe { rows_of(api, db, sql) }?;
    let first = rows.last().and_then(|row| row.first()?.as_ref());
    Ok(first.and_then(|text| text.to_str().ok()?.parse().ok()))
}

/// Runs statements on the application's connection; their rows.
/// # Errors
/// SQLite's words.
/// # Safety
/// `db` is a live connection.
pub(crate) unsafe fn rows_of(api: Api, db: *mut sqlite3, sql: &CStr) -> Result<Vec<Texts>, SqliteMessage> {
    let mut rows: Vec<Texts> = Vec::new();
    // SAFETY: the caller's promise, terminated text, and a callback that takes such rows.
    let code = unsafe { api.exec(db, sql, take_row, (&raw mut rows).cast()) };
    if code == 0 {
        return Ok(rows);
    }
    // SAFETY: as above.
    Err(SqliteMessage(unsafe { api.message(db) }))
}

impl Drop for OwnConnection {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, with no statement left.
        unsafe { self.api.close(self.db) };
    }
}

unsafe extern "C" fn take_row(
    place: *mut c_void,
    count: c_int,
    values: *mut *mut c_char,
    _: *mut *mut c_char,
) -> c_int {
    // SAFETY: `rows_of` passes the place.
    let rows = unsafe { &mut *place.cast::<Vec<Texts>>() };
    let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else { return 0 };
    // SAFETY: SQLite passes so many values, one at least.
    let values = unsafe { std::slice::from_raw_parts(values, count) };
    // SAFETY: SQLite's values are terminated.
    let text = |value: &*mut c_char| unsafe { CStr::from_ptr(*value) }.to_owned();
    rows.push(values.iter().map(|value| (!value.is_null()).then(|| text(value))).collect());
    0
}
