//! Goal: linked into the same program as SQLite, which then passes no function table, waldio registers and works.
//! Method: the entry point is called with nulls, as a build with SQLITE_OMIT_LOAD_EXTENSION would. A wrong variable comes first, in
//! the same test: waldio is registered once in a process.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

use libsqlite3_sys as sqlite;

#[test]
fn linked_in_without_a_function_table_it_registers_and_commits() {
    // SAFETY: the only thread of the only test here that reads or writes variables.
    unsafe { std::env::set_var("WALDIO_PERSIST", "flsh") };
    let told = waldio::register().unwrap_err().to_string();
    assert!(told.contains("auto, flush or fua"), "{told}");
    // SAFETY: as above.
    assert!(unsafe { sqlite::sqlite3_vfs_find(c"waldio".as_ptr()) }.is_null(), "registered all the same");
    // SAFETY: as above.
    unsafe { std::env::remove_var("WALDIO_PERSIST") };
    waldio::register().unwrap();
    waldio::register().unwrap();
    // SAFETY: null connection, message and table are what the `static-link` feature is for.
    let code = unsafe { waldio::sqlite3_waldio_init(null_mut(), null_mut(), std::ptr::null()) };
    assert_eq!(code, sqlite::SQLITE_OK);

    let folder = std::env::temp_dir().join(format!("waldio-static-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let name = std::ffi::CString::new(folder.join("a.db").to_str().unwrap()).unwrap();
    let mut db = null_mut();
    // SAFETY: a terminated name and a place for the connection.
    assert_eq!(unsafe { sqlite::sqlite3_open(name.as_ptr(), &raw mut db) }, sqlite::SQLITE_OK);
    let sql =
        c"PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1); INSERT INTO t VALUES(2);";
    let mut answers: Vec<String> = Vec::new();
    exec(db, sql, &mut answers);
    exec(db, c"SELECT value FROM waldio_status WHERE name = 'commits'; SELECT count(*) FROM t", &mut answers);
    assert_eq!(answers, ["wal", "3", "2"]);
    // SAFETY: an open connection, closed once.
    assert_eq!(unsafe { sqlite::sqlite3_close(db) }, sqlite::SQLITE_OK);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn exec(db: *mut sqlite::sqlite3, sql: &CStr, answers: &mut Vec<String>) {
    let answers_pointer: *mut Vec<String> = answers;
    // SAFETY: an open connection, terminated SQL, a callback of the right type with its own data.
    let code =
        unsafe { sqlite::sqlite3_exec(db, sql.as_ptr(), Some(take), answers_pointer.cast(), null_mut()) };
    assert_eq!(code, sqlite::SQLITE_OK, "{sql:?}");
}

extern "C" fn take(answers: *mut c_void, _: i32, values: *mut *mut c_char, _: *mut *mut c_char) -> i32 {
    // SAFETY: `exec` passes its vector.
    let answers = unsafe { &mut *answers.cast::<Vec<String>>() };
    // SAFETY: each row has one column at least.
    let first = unsafe { *values };
    // SAFETY: a terminated string; none of the columns asked for is NULL.
    let text = unsafe { CStr::from_ptr(first) };
    answers.push(text.to_string_lossy().into_owned());
    0
}
