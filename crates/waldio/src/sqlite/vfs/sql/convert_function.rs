//! `SELECT waldio_convert('main', 'embedded')`: makes room in a database for the `embedded` layout; and back to `stock`.
//!
//! Room is 24 reserved bytes in each page, which only `VACUUM` makes, on a connection of our own, because the caller's runs a
//! statement. It is one transaction of SQLite's: a power cut leaves the database before or after it. The log begins in
//! the other layout when it is next opened: every connection of every process has to agree on one.

use std::ffi::{CStr, CString, c_int};
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::database::Database;
use crate::ffi::api::{Api, Value};
use crate::ffi::codes::*;
use crate::ffi::guard;
use crate::ffi::own_connection::{OwnConnection, SqliteMessage, number_of};
use crate::ffi::types::{Function, sqlite3, sqlite3_context, sqlite3_value};
use crate::log::embedded::{PAGE_BYTES, RESERVED_BYTES};
use crate::log::layout::Layout;
use crate::options::{OptionError, layout_name};
use crate::sqlite::process::Process;
use crate::sqlite::vfs::embedding;
use crate::sqlite::vfs::registered::Registered;

/// Copies of SQLite in one process that get the function. A function is not told which library calls it before it asks
/// that library, so each has one of its own.
const LIBRARIES_MAX: usize = 4;
static LIBRARIES: [OnceLock<&'static Registered>; LIBRARIES_MAX] = [const { OnceLock::new() }; LIBRARIES_MAX];
const FUNCTIONS: [Function; LIBRARIES_MAX] = [convert::<0>, convert::<1>, convert::<2>, convert::<3>];

/// Gives a connection the function.
/// # Safety
/// `db` is a live connection of the library that `registered` belongs to.
pub(crate) unsafe fn add(db: *mut sqlite3, registered: &'static Registered) -> c_int {
    let is_ours =
        |place: &&OnceLock<&'static Registered>| std::ptr::eq(*place.get_or_init(|| registered), registered);
    let Some(index) = LIBRARIES.iter().position(|place| is_ours(&place)) else { return SQLITE_OK };
    // SAFETY: the caller's promise, and a function that stays.
    match unsafe { registered.api.create_function(db, c"waldio_convert", 2, FUNCTIONS[index]) } {
        // A statement runs, `SELECT load_extension(..)` perhaps, and the connection has the function: it got it when it was
        // opened. Only then SQLite says so (main.c, `sqlite3CreateFunc`).
        SQLITE_BUSY => SQLITE_OK,
        code => code,
    }
}

unsafe extern "C" fn convert<const LIBRARY: usize>(
    context: *mut sqlite3_context,
    count: c_int,
    arguments: *mut *mut sqlite3_value,
) {
    guard::value_or((), || {
        let Some(registered) = LIBRARIES[LIBRARY].get() else { return };
        let api = registered.api;
        // SAFETY: SQLite passes as many as were declared: two.
        let arguments = unsafe { std::slice::from_raw_parts(arguments, usize::try_from(count).unwrap_or(0)) };
        // SAFETY: values of this call.
        let texts: Vec<_> = arguments.iter().map(|value| unsafe { api.value_text(*value) }).collect();
        let [Some(schema), Some(layout)] = &texts[..] else {
            // SAFETY: SQLite's own context, here and below.
            return unsafe { api.result_error(context, USAGE) };
        };
        // SAFETY: as above.
        let db = unsafe { api.context_connection(context) };
        // SAFETY: the connection that calls.
        match unsafe { converted(registered, db, schema, layout) } {
            // SAFETY: as above.
            Ok(text) => unsafe { api.result(context, &Value::Text(text)) },
            // SAFETY: as above.
            Err(why) => unsafe { api.result_error(context, &format!("waldio_convert: {why}")) },
        }
    });
}

/// Why a database keeps its layout.
#[derive(Debug)]
enum ConvertError {
    /// There is no such layout.
    Layout(OptionError),
    /// The schema is in memory, or another VFS's.
    NotOpen(CString),
    /// The VFS below is none that waldio knows. Why that matters.
    Base(String),
    /// The connection was opened for reading.
    ReadOnly,
    /// The connection refuses changes.
    QueryOnly,
    /// SQLite does not say whether the connection may write.
    Unknown(SqliteMessage),
    /// The caller is in a transaction.
    InTransaction,
    /// VACUUM needs the database for itself.
    NotAlone,
    /// A connection of waldio's own cannot read the database.
    Encrypted(SqliteMessage),
    /// Pages have so many bytes.
    PageSize(i64),
    /// So many reserved bytes of a page are in use.
    SomebodyElses(c_int),
    /// SQLite is older than 3.33.
    OldSqlite,
    /// A statement of waldio's own failed.
    Statement(SqliteMessage),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            ConvertError::Layout(error) => return write!(formatter, "{error}"),
            ConvertError::NotOpen(schema) => {
                return write!(formatter, "{schema:?} is not a database in a file that waldio has open");
            }
            ConvertError::Base(why) => why,
            ConvertError::ReadOnly => "this connection may only read the database: open it for writing",
            ConvertError::QueryOnly => "this connection may only read: PRAGMA query_only=0 ends that",
            ConvertError::Unknown(why) => {
                return write!(formatter, "whether this connection may write is not known: {why}");
            }
            ConvertError::InTransaction => "a transaction is open: COMMIT or ROLLBACK first",
            ConvertError::NotAlone => "other connections have the database open: close them first",
            ConvertError::Encrypted(why) => {
                return write!(formatter, "a connection without a key cannot read it ({why})");
            }
            ConvertError::PageSize(found) => {
                return write!(
                    formatter,
                    "pages have {found} bytes, and the embedded layout needs {PAGE_BYTES}: set journal_mode=DELETE and \
                     page_size={PAGE_BYTES}, then VACUUM"
                );
            }
            ConvertError::SomebodyElses(bytes) => &embedding::somebody_elses(*bytes),
            ConvertError::OldSqlite => "this SQLite cannot reserve bytes: 3.33 or newer can",
            ConvertError::Statement(why) => return write!(formatter, "{why}"),
        };
        formatter.write_str(text)
    }
}

impl From<SqliteMessage> for ConvertError {
    fn from(why: SqliteMessage) -> Self {
        ConvertError::Statement(why)
    }
}

const USAGE: &str =
    "waldio_convert wants a schema and a layout: waldio_convert('main', 'embedded') or ('main', 'stock')";

/// # Safety
/// `db` is a live connection of this library.
unsafe fn converted(
    registered: &'static Registered,
    db: *mut sqlite3,
    schema: &CStr,
    layout: &CStr,
) -> Result<String, ConvertError> {
    let api = registered.api;
    let layout = layout.to_str().unwrap_or_default();
    let mut options = registered.options;
    options.set("waldio_layout", layout).map_err(ConvertError::Layout)?;
    // SAFETY: the caller's promise, and ours, which takes an int.
    let ours = unsafe { api.control(db, schema, FCNTL_RESERVED_WANTED, 0) };
    // SAFETY: the caller's promise.
    let path = unsafe { api.database_path(db, schema) };
    let database = Process::current()
        .open_databases()
        .into_iter()
        .find(|database| Some(&database.path) == path.as_ref());
    let (Ok(_), Some(database)) = (ours, database) else {
        return Err(ConvertError::NotOpen(schema.to_owned()));
    };
    // SAFETY: the caller's promise.
    unsafe { check_writable(api, db, schema) }?;
    if layout == "embedded" {
        registered.base_is_strange().map_or(Ok(()), |why| Err(ConvertError::Base(why)))?;
        // SAFETY: the caller's promise.
        unsafe { make_room(registered, db, &database) }?;
    }
    database.set_layout(options.layout);
    let how = match options.layout {
        Layout::Embedded => {
            ": here after journal_mode=DELETE and then WAL, elsewhere with waldio_layout=embedded"
        }
        Layout::Stock => ". Close every connection, or set journal_mode=DELETE and then WAL",
    };
    Ok(format!("{}: from the next opening of the log on{how}", layout_name(options.layout)))
}

/// Refuses where INSERT is refused: the connection of our own, which rewrites the file, would not be.
/// # Safety
/// As `converted`.
unsafe fn check_writable(api: Api, db: *mut sqlite3, schema: &CStr) -> Result<(), ConvertError> {
    // SAFETY: the caller's promise, here and below.
    if unsafe { api.is_read_only(db, schema) } {
        return Err(ConvertError::ReadOnly);
    }
    // SAFETY: as above; a pragma that SQLite answers without touching any database.
    match unsafe { number_of(api, db, c"PRAGMA query_only") } {
        Ok(Some(0)) => Ok(()),
        Ok(_) => Err(ConvertError::QueryOnly),
        Err(why) => Err(ConvertError::Unknown(why)),
    }
}

/// # Safety
/// As `converted`.
unsafe fn make_room(
    registered: &Registered,
    db: *mut sqlite3,
    database: &Arc<Database>,
) -> Result<(), ConvertError> {
    let api = registered.api;
    // SAFETY: the caller's promise.
    if unsafe { api.is_in_transaction(db) } {
        return Err(ConvertError::InTransaction);
    }
    if Process::current().connections_of(database).len() > 1 || !database.open_probe.is_alone() {
        return Err(ConvertError::NotAlone);
    }
    let own = OwnConnection::open(api, database.path.as_os_str(), registered.name)?;
    // Reads the first page, which tells what it reserves.
    let page_bytes = own
        .number(c"SELECT count(*) FROM sqlite_master; PRAGMA page_size")
        .map_err(ConvertError::Encrypted)?;
    if page_bytes != Some(i64::from(PAGE_BYTES)) {
        return Err(ConvertError::PageSize(page_bytes.unwrap_or(0)));
    }
    match own.reserved_bytes() {
        Some(bytes) if bytes == c_int::from(RESERVED_BYTES) => return Ok(()),
        Some(0) => {}
        Some(bytes) => return Err(ConvertError::SomebodyElses(bytes)),
        None => return Err(ConvertError::OldSqlite),
    }
    own.reserve_bytes(c_int::from(RESERVED_BYTES));
    own.run(c"VACUUM")?;
    // The next opening finds it in the database, and not in the log, which keeps its layout while it has frames.
    let _ = own.run(c"PRAGMA wal_checkpoint(TRUNCATE)");
    Ok(())
}
