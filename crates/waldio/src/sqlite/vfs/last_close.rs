//! The last close: the log goes behind a sync of the database, and in the `embedded` layout also while SQLite without us has the
//! database open.
//!
//! SQLite takes the exclusive lock on the database for its last checkpoint. A connection without us that was refused keeps
//! its shared one, so that lock is not to be had, and the log would stay, and refuse everybody. But such a connection can
//! do nothing with the log as it is. So the last of *us* is who gets the exclusive lock on `app.db-waldio`, which each of
//! us shares; and it is given the lock on the database in name alone, for what SQLite does next: copy all frames, sync
//! the database, delete the log. The log is not deleted then, for the others have that very file open: it is emptied in
//! place, and they go on with it (`embedded_file::empty_in_place`).
//!
//! Invariants: 1. the lock is given in name only to a close: right after `SQLITE_FCNTL_HAS_MOVED`, and once. 2. the header
//! keeps SQLite out until the database is on the medium; when it is gone nobody of us touches the log again. 3. whoever of us comes
//! meanwhile waits for `app.db-waldio`, and then looks at the log's header anew.
//!
//! Source: pager.c (`sqlite3PagerClose`), wal.c (`sqlite3WalClose`).

use std::ffi::c_int;
use std::io;

use super::database_sync;
use super::handle::{base_of, connection, files_of, forward, handle, private_shm, shm_of};
use super::private_shm::Closing;
use crate::ffi::base_vfs::methods_of;
use crate::ffi::codes::*;
use crate::ffi::types::sqlite3_file;

/// How often the database's lock is asked for again where another of us was just closing, and the pause.
const TRIES: u32 = 5;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);

/// `SQLITE_FCNTL_HAS_MOVED` was answered.
pub(super) fn asked(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls methods of open files only.
    unsafe { handle(file) }.closing.set(Closing::Asked);
}

/// Another call than the one that a close makes next.
pub(super) fn goes_on(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls methods of open files only.
    let closing = &unsafe { handle(file) }.closing;
    match closing.get() {
        Closing::Asked => closing.set(Closing::No),
        Closing::NotLast => {
            closing.set(Closing::No);
            // SAFETY: as above.
            if let Some(private) = unsafe { private_shm(file) } {
                private.stay();
            }
        }
        Closing::No | Closing::InName | Closing::Copied => {}
    }
}

/// `xLock` of the database: SQLite's code where a close of ours asks; `None` where the base VFS should answer.
pub(super) fn lock(file: *mut sqlite3_file, level: c_int) -> Option<c_int> {
    // SAFETY: SQLite calls methods of open files only.
    let closing = &unsafe { handle(file) }.closing;
    let before = closing.get();
    if before == Closing::No {
        return None;
    }
    goes_on(file);
    // SAFETY: as above.
    let private = unsafe { private_shm(file) }?;
    match before {
        Closing::Asked if level == SQLITE_LOCK_EXCLUSIVE => {}
        // No close: that locks once.
        Closing::InName | Closing::Copied => {
            closing.set(Closing::No);
            private.stay();
            return Some(SQLITE_BUSY);
        }
        _ => return None,
    }
    // SAFETY: as above.
    let connection = unsafe { connection(file) };
    let database = &connection.database;
    // Who closes has unmapped the wal-index before it gives its locks back.
    let others_stay = || {
        // The lock itself tells of others in this process.
        if connection.is_last() { database.is_private_index_mapped_elsewhere() } else { None }
    };
    let Some(others_close) = private.become_last(others_stay) else {
        closing.set(Closing::NotLast);
        return Some(SQLITE_BUSY);
    };
    let code = lock_exclusive(file, if others_close { TRIES } else { 0 });
    if code == SQLITE_BUSY && database.is_private_index_mapped_elsewhere() != Some(true) {
        closing.set(Closing::InName);
        return Some(SQLITE_OK);
    }
    if code != SQLITE_OK {
        private.stay();
    }
    Some(code)
}

/// Asks for the exclusive lock on the database, and so often again while others have it.
fn lock_exclusive(file: *mut sqlite3_file, again: u32) -> c_int {
    let ask = || forward!(file, xLock(SQLITE_LOCK_EXCLUSIVE), SQLITE_IOERR);
    let mut code = ask();
    for _ in 0..again {
        if code != SQLITE_BUSY {
            break;
        }
        std::thread::sleep(PAUSE);
        code = ask();
    }
    code
}

/// `SQLITE_FCNTL_PERSIST_WAL`, asked for: 1 where the log stays; `answer` is the base VFS's. A close asks when all frames are in
/// the database, and with `synchronous=OFF` SQLite has not synced that: a log goes behind the sync, or stays.
pub(super) fn persists(file: *mut sqlite3_file, answer: c_int) -> c_int {
    // Never in the embedded layout, or a closed database would refuse SQLite.
    if shm_of(file) == base_of(file) && answer == 1 {
        return answer;
    }
    // SAFETY: SQLite calls methods of open files only.
    let handle = unsafe { handle(file) };
    // SAFETY: as above.
    let connection = unsafe { connection(file) };
    // An application may ask at any time.
    let goes = connection.may_be_all_copied();
    // SAFETY: as above, in a call of SQLite.
    let sync = || unsafe { database_sync::before_new_log_without_lock(files_of(file), connection) };
    let code = if goes { sync() } else { SQLITE_OK };
    if code != SQLITE_OK {
        let path = connection.database.log_path.display();
        handle.registered.api.log(code, &format!("{path} stays: the database cannot be synced"));
        return 1;
    }
    if handle.closing.get() == Closing::InName {
        handle.closing.set(Closing::Copied);
    }
    0
}

/// True where SQLite closes the log next for good, with a lock on the database that it has in name.
/// # Safety
/// As `end`.
pub(super) unsafe fn is_copied(file: *mut sqlite3_file) -> bool {
    // SAFETY: the caller's promise.
    unsafe { handle(file) }.closing.get() == Closing::Copied
}

/// The log is closed, and SQLite deletes it next: empties it instead where its lock was one in name. `header` is the log's, as
/// SQLite has it, where it could be read.
/// # Safety
/// `file` was filled by `fill` and not closed; SQLite uses it from this thread.
pub(super) unsafe fn end(file: *mut sqlite3_file, header: Option<&[u8; 32]>) {
    // SAFETY: the caller's promise.
    let handle = unsafe { handle(file) };
    if handle.closing.replace(Closing::No) != Closing::Copied {
        return;
    }
    // SAFETY: as above.
    let database = &unsafe { connection(file) }.database;
    // Whatever comes of it: others have this file open.
    database.keep_at_delete();
    let unread = || io::Error::other("it cannot be read");
    let emptied = header.ok_or_else(unread).and_then(|header| database.empty_in_place(header));
    if let Err(error) = emptied {
        let path = database.log_path.display();
        let text = format!("{path} stays as it is, and only waldio opens the database: {error}");
        handle.registered.api.log(SQLITE_IOERR, &text);
    }
}
