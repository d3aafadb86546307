//! `SELECT * FROM waldio_status`: the eponymous virtual table's methods.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use crate::database::Database;
use crate::ffi::api::Value;
use crate::ffi::codes::*;
use crate::ffi::guard;
use crate::ffi::types::*;
use crate::sqlite::advice::Asking;
use crate::sqlite::process::Process;
use crate::sqlite::status::{self, Row};
use crate::sqlite::vfs::registered::Registered;
use crate::sqlite::vfs::sql::this_connection::{self, Route};

/// The table's module. `xCreate` is null: the table exists without CREATE, and only so.
pub(crate) static MODULE: sqlite3_module = sqlite3_module {
    iVersion: 1,
    xCreate: None,
    xConnect: Some(connect),
    xBestIndex: Some(best_index),
    xDisconnect: Some(disconnect),
    xDestroy: None,
    xOpen: Some(open),
    xClose: Some(close),
    xFilter: Some(filter),
    xNext: Some(next),
    xEof: Some(eof),
    xColumn: Some(column),
    xRowid: Some(rowid),
    transaction_methods: [std::ptr::null(); 7],
};

#[repr(C)]
struct Table {
    base: sqlite3_vtab,
    registered: &'static Registered,
    db: *mut sqlite3,
}

#[repr(C)]
struct Cursor {
    base: sqlite3_vtab_cursor,
    registered: &'static Registered,
    db: *mut sqlite3,
    rows: Vec<Row>,
    at: usize,
}

unsafe extern "C" fn connect(
    db: *mut sqlite3,
    client: *mut c_void,
    _: c_int,
    _: *const *const c_char,
    table_out: *mut *mut sqlite3_vtab,
    _: *mut *mut c_char,
) -> c_int {
    guard::code_or(SQLITE_ERROR, || {
        // SAFETY: `extension` registered the module with a `Registered` that lives as long as the process.
        let registered: &'static Registered = unsafe { &*client.cast::<Registered>() };
        let columns = c"CREATE TABLE waldio_status(database TEXT, name TEXT, value, unit TEXT, source TEXT)";
        // SAFETY: SQLite passes its connection.
        let code = unsafe { registered.api.declare_vtab(db, columns) };
        if code != SQLITE_OK {
            return code;
        }
        let base = sqlite3_vtab { pModule: std::ptr::null(), nRef: 0, zErrMsg: std::ptr::null_mut() };
        let table = Box::into_raw(Box::new(Table { base, registered, db }));
        // SAFETY: SQLite passes a place for the table.
        unsafe { table_out.write(table.cast()) };
        SQLITE_OK
    })
}

unsafe extern "C" fn disconnect(table: *mut sqlite3_vtab) -> c_int {
    guard::code_or(SQLITE_ERROR, || {
        // SAFETY: `connect` made it, and SQLite disconnects once.
        drop(unsafe { Box::from_raw(table.cast::<Table>()) });
        SQLITE_OK
    })
}

unsafe extern "C" fn best_index(_: *mut sqlite3_vtab, index: *mut sqlite3_index_info) -> c_int {
    // SAFETY: SQLite passes its structure.
    unsafe { (*index).estimatedCost = 100.0 };
    SQLITE_OK
}

unsafe extern "C" fn open(table: *mut sqlite3_vtab, cursor_out: *mut *mut sqlite3_vtab_cursor) -> c_int {
    guard::code_or(SQLITE_ERROR, || {
        // SAFETY: `connect` made it.
        let table_of = unsafe { &*table.cast::<Table>() };
        let (registered, db) = (table_of.registered, table_of.db);
        let base = sqlite3_vtab_cursor { pVtab: table };
        let cursor = Box::into_raw(Box::new(Cursor { base, registered, db, rows: Vec::new(), at: 0 }));
        // SAFETY: SQLite passes a place for the cursor.
        unsafe { cursor_out.write(cursor.cast()) };
        SQLITE_OK
    })
}

unsafe extern "C" fn close(cursor: *mut sqlite3_vtab_cursor) -> c_int {
    guard::code_or(SQLITE_ERROR, || {
        // SAFETY: `open` made it, and SQLite closes once.
        drop(unsafe { Box::from_raw(cursor.cast::<Cursor>()) });
        SQLITE_OK
    })
}

/// # Safety
/// `cursor` was made by `open` and not closed; the reference is used within the call alone.
unsafe fn cursor_of<'a>(cursor: *mut sqlite3_vtab_cursor) -> &'a mut Cursor {
    // SAFETY: the caller's promise; SQLite uses a cursor from one thread at a time.
    unsafe { &mut *cursor.cast::<Cursor>() }
}

unsafe extern "C" fn filter(
    cursor: *mut sqlite3_vtab_cursor,
    _: c_int,
    _: *const c_char,
    _: c_int,
    _: *mut *mut c_void,
) -> c_int {
    guard::code_or(SQLITE_ERROR, || {
        // SAFETY: SQLite passes an open cursor.
        let cursor = unsafe { cursor_of(cursor) };
        // SAFETY: the connection that asks.
        let listed = unsafe { this_connection::in_files(cursor.registered, cursor.db) };
        let (is_listed, own) = (listed.is_some(), listed.unwrap_or_default());
        // SAFETY: as above.
        let ask = |database| unsafe { this_connection::ask(cursor.registered, cursor.db, database) };
        let asked: Vec<Asking> = own.iter().map(ask).collect();
        let process = Process::current();
        let open = process.open_databases();
        let rows = |database: &Arc<Database>| {
            let of_the_name = open.iter().filter(|other| other.path == database.path).count();
            let place =
                own.iter().position(|own| of_the_name == 1 && Some(&*own.file) == database.path.to_str());
            let asking = place.map(|place| &asked[place]);
            status::rows(database, &process.connections_of(database), of_the_name > 1, asking)
        };
        let own_rows = own.iter().zip(&asked).map(|(own, asking)| status::of_connection(&own.file, asking));
        cursor.rows = own_rows.flatten().chain(open.iter().flat_map(rows)).collect();
        cursor.rows.extend(own.iter().flat_map(|own| match &own.route {
            Route::PassedBy(vfs) => status::passed_by(&own.file, vfs),
            Route::Ours | Route::LeftOut => Vec::new(),
        }));
        if own.is_empty() {
            cursor.rows.insert(0, status::without_file(is_listed));
        }
        cursor.at = 0;
        SQLITE_OK
    })
}

unsafe extern "C" fn next(cursor: *mut sqlite3_vtab_cursor) -> c_int {
    // SAFETY: SQLite passes an open cursor.
    unsafe { cursor_of(cursor) }.at += 1;
    SQLITE_OK
}

unsafe extern "C" fn eof(cursor: *mut sqlite3_vtab_cursor) -> c_int {
    // SAFETY: SQLite passes an open cursor.
    let cursor = unsafe { cursor_of(cursor) };
    c_int::from(cursor.at >= cursor.rows.len())
}

unsafe extern "C" fn column(
    cursor: *mut sqlite3_vtab_cursor,
    context: *mut sqlite3_context,
    index: c_int,
) -> c_int {
    guard::code_or(SQLITE_ERROR, || {
        // SAFETY: SQLite passes an open cursor.
        let cursor = unsafe { cursor_of(cursor) };
        let Some(row) = cursor.rows.get(cursor.at) else { return SQLITE_ERROR };
        let value = match index {
            0 => Value::Text(row.database.clone()),
            1 => Value::Text(row.name.to_owned()),
            2 => row.value.clone(),
            3 => Value::Text(row.unit.to_owned()),
            _ => Value::Text(row.source.clone()),
        };
        // SAFETY: SQLite passes its context.
        unsafe { cursor.registered.api.result(context, &value) };
        SQLITE_OK
    })
}

unsafe extern "C" fn rowid(cursor: *mut sqlite3_vtab_cursor, out: *mut i64) -> c_int {
    // SAFETY: SQLite passes an open cursor.
    let at = unsafe { cursor_of(cursor) }.at;
    // SAFETY: SQLite passes a place for the number.
    unsafe { out.write(i64::try_from(at).unwrap_or(i64::MAX)) };
    SQLITE_OK
}
