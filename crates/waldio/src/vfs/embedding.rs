//! Which layout a log has that SQLite opens now, and the locks that the `embedded` one begins under.
//!
//! SQLite opens a log while it has a shared lock on the database, and keeps that for as long as the log is open. So
//! whoever gets the exclusive lock then is alone: nobody has the log open in any layout. Under that lock the log gets a header
//! that keeps SQLite out (the guard); from then on, until the last close, newcomers see that header, and follow.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use blockio::disk::OpenOptions;

use super::private_shm::PrivateShm;
use super::registered::Registered;
use crate::connection::Connection;
use crate::database::Database;
use crate::embedded::{Found, PAGE_BYTES, RESERVED_BYTES};
use crate::embedded_file::look_at;
use crate::ffi::base_vfs::methods_of;
use crate::ffi::codes::*;
use crate::ffi::types::sqlite3_file;
use crate::layout::Layout;

/// What a database begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A layout, and what was done for it.
pub(super) struct Decision {
    pub(super) layout: Layout,
    /// The exclusive lock was taken for it, and is to be given back when the log is open.
    exclusive: bool,
}

/// Decides which layout the log gets. It is open nowhere in this connection, which begins none where it is `readonly`.
/// # Safety
/// `main` is the base VFS's open file of the connection's database, in a call of SQLite on it.
pub(super) unsafe fn decide(connection: &Connection, main: *mut sqlite3_file, readonly: bool) -> Decision {
    let database = &*connection.database;
    let settled = |layout| Decision { layout, exclusive: false };
    if let Some(session) = database.session() {
        return settled(session.layout);
    }
    match found(database) {
        Found::Embedded => return settled(Layout::Embedded),
        Found::Stock => {
            database.stay_stock("the log was begun by SQLite, or by waldio with waldio_layout=stock");
            return settled(Layout::Stock);
        }
        Found::Nothing if database.options().layout == Layout::Stock => return settled(Layout::Stock),
        Found::Nothing if readonly => {
            database.stay_stock("the log was begun with readonly_shm=1");
            return settled(Layout::Stock);
        }
        Found::Nothing => {}
    }
    // SAFETY: the caller's promise, here and below.
    if let Err(why) = unsafe { check_database(main) } {
        database.stay_stock(&why);
        return settled(Layout::Stock);
    }
    // SAFETY: as above.
    let Some(exclusive) = (unsafe { lock_exclusively(main) }) else {
        database.stay_stock("another connection had the database open when the log was begun");
        return settled(Layout::Stock);
    };
    let decision = |layout| Decision { layout, exclusive };
    // Somebody may have begun a log, and left, before the lock came.
    if found(database) == Found::Stock {
        database.stay_stock("another process began the log at the same moment");
        return decision(Layout::Stock);
    }
    decision(Layout::Embedded)
}

/// Gives the exclusive lock back that was taken for a decision.
/// # Safety
/// As `decide`.
pub(super) unsafe fn settle(decision: &Decision, main: *mut sqlite3_file) {
    if decision.exclusive {
        // SAFETY: the caller's promise.
        unsafe { unlock_to_shared(main) };
    }
}

/// Opens the wal-index of the `embedded` layout.
/// # Errors
/// SQLite's code; nothing is open.
pub(super) fn open_shm(
    registered: &Registered,
    database: &Database,
    readonly: bool,
) -> Result<PrivateShm, c_int> {
    let made = registered.disk.mode_and_owner(&database.path).and_then(|(mode, owner)| {
        let options = OpenOptions { create: true, mode, owner: Some(owner), ..OpenOptions::EXISTING };
        registered.disk.open(&database.private_path, options)
    });
    made.map_err(|_| SQLITE_CANTOPEN)?;
    PrivateShm::open(registered.base, &database.private_path, readonly)
}

fn found(database: &Database) -> Found {
    match database.disk.open(&database.log_path, OpenOptions::EXISTING) {
        Ok(log) => look_at(&*log).unwrap_or(Found::Stock),
        Err(_) => Found::Nothing,
    }
}

/// Whether the database can have the layout; why not.
unsafe fn check_database(main: *mut sqlite3_file) -> Result<(), String> {
    let mut header = [0_u8; 100];
    let len_bytes = c_int::try_from(header.len()).unwrap_or(0);
    // SAFETY: the caller's promise.
    let read = unsafe { methods_of(main) }.and_then(|methods| methods.xRead);
    let read = read.ok_or_else(|| "the database cannot be read".to_owned())?;
    // SAFETY: as above, with room for so many bytes.
    if unsafe { read(main, header.as_mut_ptr().cast(), len_bytes, 0) } != SQLITE_OK {
        return Err("the database has no header yet".to_owned());
    }
    if !header.starts_with(MAGIC) {
        return Err("the database does not begin as SQLite's do: is it encrypted?".to_owned());
    }
    let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65536,
        size => u32::from(size),
    };
    if page_bytes != PAGE_BYTES {
        return Err(format!("pages have {page_bytes} bytes, and the embedded layout needs {PAGE_BYTES}"));
    }
    match header[20] {
        RESERVED_BYTES => Ok(()),
        0 => Err(format!(
            "pages have 0 reserved bytes, and the embedded layout needs {RESERVED_BYTES}: \
             SELECT waldio_convert('main', 'embedded') makes room"
        )),
        // No remedy is named: there is none that leaves their owner what it needs.
        reserved => Err(format!(
            "{}, and the embedded layout needs {RESERVED_BYTES}",
            somebody_elses(c_int::from(reserved))
        )),
    }
}

/// That a database's reserved bytes are in use, and whose they are.
pub(super) fn somebody_elses(reserved_bytes: c_int) -> String {
    match reserved_bytes {
        8 => "pages have 8 reserved bytes, cksumvfs's checksums".to_owned(),
        _ => {
            format!("pages have {reserved_bytes} reserved bytes, which are somebody else's: an encryption's?")
        }
    }
}

/// Takes the exclusive lock; whether it is to be given back. `None`: somebody else has the database.
unsafe fn lock_exclusively(main: *mut sqlite3_file) -> Option<bool> {
    let level = Cell::new(0_i32);
    // SAFETY: the caller's promise.
    let methods = unsafe { methods_of(main) }?;
    let (control, lock) = (methods.xFileControl?, methods.xLock?);
    // SAFETY: as above; this control writes an int.
    unsafe { control(main, SQLITE_FCNTL_LOCKSTATE, level.as_ptr().cast::<c_void>()) };
    if level.get() == SQLITE_LOCK_EXCLUSIVE {
        return Some(false);
    }
    // Nobody may lose a lock that SQLite believes in.
    if level.get() != SQLITE_LOCK_SHARED {
        return None;
    }
    // SAFETY: as above.
    if unsafe { lock(main, SQLITE_LOCK_EXCLUSIVE) } == SQLITE_OK {
        return Some(true);
    }
    // The lock in between may have been taken.
    // SAFETY: as above.
    unsafe { unlock_to_shared(main) };
    None
}

unsafe fn unlock_to_shared(main: *mut sqlite3_file) {
    // SAFETY: the caller's promise.
    if let Some(unlock) = unsafe { methods_of(main) }.and_then(|methods| methods.xUnlock) {
        // SAFETY: as above.
        unsafe { unlock(main, SQLITE_LOCK_SHARED) };
    }
}
