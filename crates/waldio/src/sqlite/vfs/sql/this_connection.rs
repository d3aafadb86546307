//! How the databases of one connection go: through waldio or past it, in which journal mode, with which `synchronous`.

use std::ffi::{CStr, CString};

use crate::ffi::own_connection::rows_of;
use crate::ffi::types::sqlite3;
use crate::sqlite::advice::Asking;
use crate::sqlite::vfs::registered::Registered;
use crate::sqlite::vfs::vfs_methods::is_left_out;

/// A database of a connection, in a file.
pub(crate) struct OwnDatabase {
    /// Its name in SQL.
    schema: CString,
    /// Its path.
    pub(crate) file: String,
    /// Which way its reads and writes go.
    pub(crate) route: Route,
}

/// Where a database's reads and writes go.
pub(crate) enum Route {
    /// Through our VFS.
    Ours,
    /// Past it: its URI says `waldio=off`.
    LeftOut,
    /// Through these VFSes, the top one first.
    PassedBy(String),
}

/// The databases of a connection that are files; `None` where SQLite does not list them, as an authorizer may have it.
/// # Safety
/// `db` is a live connection of the library that `registered` belongs to.
pub(crate) unsafe fn in_files(registered: &Registered, db: *mut sqlite3) -> Option<Vec<OwnDatabase>> {
    let api = registered.api;
    // SAFETY: the caller's promise.
    let listed = unsafe { rows_of(api, db, c"PRAGMA database_list") }.ok()?;
    let in_files = listed.into_iter().filter_map(|row| match &row[..] {
        [_, Some(schema), Some(file)] if !file.is_empty() => Some((schema.clone(), file.clone())),
        _ => None,
    });
    let databases = in_files.filter_map(|(schema, file)| {
        // SAFETY: as above.
        let vfs = unsafe { api.vfs_names(db, &schema) }.ok()?;
        // SAFETY: as above.
        let name = unsafe { api.filename(db, &schema) };
        let route = if vfs.split('/').any(|one| one == registered.name()) {
            Route::Ours
        // SAFETY: SQLite's name of a database that is open.
        } else if unsafe { is_left_out(registered, name) } {
            Route::LeftOut
        } else if vfs.starts_with("memdb") {
            // SQLite's database in memory that connections share, "memdb(ADDRESS,SIZE)": its name is no file's.
            return None;
        } else {
            Route::PassedBy(vfs)
        };
        Some(OwnDatabase { schema, file: file.to_string_lossy().into_owned(), route })
    });
    Some(databases.collect())
}

/// What the connection says of one of its databases.
/// # Safety
/// As `in_files`, which gave the database.
pub(crate) unsafe fn ask(registered: &Registered, db: *mut sqlite3, database: &OwnDatabase) -> Asking {
    let schema = database.schema.to_string_lossy().replace('"', "\"\"");
    let answer = |pragma: &str| {
        let sql = CString::new(format!("PRAGMA \"{schema}\".{pragma}")).ok()?;
        // SAFETY: the caller's promise; pragmas that only ask.
        let rows = unsafe { rows_of(registered.api, db, &sql) }.ok()?;
        let text: Option<&CStr> = rows.first()?.first()?.as_deref();
        Some(text?.to_string_lossy().into_owned())
    };
    let number = answer("synchronous");
    let synchronous = match number.as_deref() {
        Some("0") => Some("OFF"),
        Some("1") => Some("NORMAL"),
        Some("2") => Some("FULL"),
        Some("3") => Some("EXTRA"),
        _ => None,
    };
    let ours = matches!(database.route, Route::Ours);
    let state = match &database.route {
        Route::Ours => answer("waldio"),
        Route::LeftOut => Some("inactive: its URI says waldio=off".to_owned()),
        Route::PassedBy(vfs) => Some(format!(
            "inactive: it was opened before waldio was loaded, or asked for another VFS: it goes through {vfs}"
        )),
    };
    Asking {
        state,
        journal_mode: answer("journal_mode"),
        synchronous,
        durability: ours.then(|| answer("waldio_durability")).flatten(),
    }
}
