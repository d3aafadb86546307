//! A second file of the base VFS, for its wal-index and its locks: `app.db-waldio`, whose wal-index is `app.db-waldio-shm`.
//!
//! Whoever has the log open in the `embedded` layout holds a shared lock on it: who gets the exclusive one is the last.
//!
//! The unix VFS opens the wal-index of a database beside it, by its name, and a process without waldio that finds one in
//! use reads the log through it, whatever the log's header says. In the `embedded` layout it must find none.

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use blockio::disk::{Disk, OpenOptions};

use super::registered::Registered;
use crate::connection::Connection;
use crate::database::Database;
use crate::ffi::base_vfs::{give_back, methods_of};
use crate::ffi::codes::*;
use crate::ffi::types::sqlite3_file;
use crate::testing::planted::{self, Bug};

/// What SQLite's `databaseName` (main.c) goes back to from a name in hand.
const NAME_FRONT: [u8; 4] = [0; 4];
/// How often who comes while another looks whether it is the last tries again, and the pause. SQLite's busy handler does so after that.
const JOINS: (u32, Duration) = (20, Duration::from_millis(1));
/// How long who closes waits for another who closes, and the pauses: mostly that takes some 10 us.
const CLOSE_MAX: Duration = Duration::from_secs(1);
const CLOSE_PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];
/// So many of the first kind.
const SHORT_PAUSES: u32 = 50;

/// The file `app.db-waldio`, opened by the base VFS.
pub(super) struct PrivateShm {
    /// The base VFS's own structure, in words for its alignment.
    memory: Box<[u64]>,
    /// Its name, which the base VFS keeps a pointer to.
    _name: Box<[u8]>,
}

/// How far a connection is with its close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// It is not closing.
    No,
    /// SQLite asked whether the database has moved, as it does before it locks it to close the log.
    Asked,
    /// It is not the last of us, and keeps others who close waiting until it is gone.
    NotLast,
    /// It has the exclusive lock on the database in name.
    InName,
    /// It had, and all frames are in the database.
    Copied,
}

impl PrivateShm {
    /// Opens the file, and makes it where it is missing; holds a shared lock on it until it is dropped. `readonly` is the
    /// database's `readonly_shm`, which the unix VFS looks for in the name's parameters.
    /// # Errors
    /// SQLite's code; nothing is open. `SQLITE_BUSY`: somebody is closing the log for good.
    pub(super) fn join(
        registered: &Registered,
        connection: &Connection,
        readonly: bool,
    ) -> Result<PrivateShm, c_int> {
        for _ in 0..JOINS.0 {
            let mut shm = PrivateShm::open(registered, connection, readonly)?;
            match shm.lock(SQLITE_LOCK_SHARED) {
                SQLITE_OK if !shm.has_moved() => return Ok(shm),
                // Its last user removed it between our opening and our lock: the name leads to another file now, or to none.
                SQLITE_OK => {}
                SQLITE_BUSY => {
                    drop(shm);
                    std::thread::sleep(JOINS.1);
                }
                code => return Err(code),
            }
        }
        Err(SQLITE_BUSY)
    }

    fn open(registered: &Registered, connection: &Connection, readonly: bool) -> Result<PrivateShm, c_int> {
        let database = &connection.database;
        // A descriptor of ours on this file ends, when it is closed, every lock that this process has on it: it is there
        // only while the file is new, and while nobody else of this process opens it.
        static MAKING: Mutex<()> = Mutex::new(());
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        make_missing(&*registered.disk, database).map_err(|_| SQLITE_CANTOPEN)?;
        let base = registered.base;
        let file_bytes = usize::try_from(base.fields().szOsFile).unwrap_or(0);
        let mut memory = vec![0_u64; file_bytes.div_ceil(8)].into_boxed_slice();
        // A database's name as SQLite has it: four zeros in front (it looks for them), its parameters behind.
        let parameters: &[u8] = if readonly { b"\0readonly_shm\x001" } else { b"" };
        let path = database.private_path.as_os_str().as_bytes();
        let name: Box<[u8]> = [&NAME_FRONT[..], path, parameters, &[0; 8]].concat().into();
        let file = memory.as_mut_ptr().cast::<sqlite3_file>();
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB;
        let mut got: c_int = 0;
        // SAFETY: `szOsFile` zeroed bytes, and a terminated name; both live until `drop`.
        let code = unsafe {
            base.open(name[NAME_FRONT.len()..].as_ptr().cast::<c_char>(), file, flags, &raw mut got)
        };
        let shm = PrivateShm { memory, _name: name };
        match code {
            // The unix VFS is content with a file that it can only read. Whoever may write the database must be able to become
            // the last of us: else the close leaves the log as it is, and nobody without us can open the database.
            SQLITE_OK if got & SQLITE_OPEN_READONLY != 0 && !readonly && !connection.reads_only() => {
                Err(SQLITE_CANTOPEN)
            }
            SQLITE_OK => Ok(shm),
            code => Err(code),
        }
    }

    /// Takes a lock of SQLite's levels; SQLite's code.
    fn lock(&mut self, level: c_int) -> c_int {
        let file = self.file();
        // SAFETY: open, or zeroed.
        let lock = unsafe { methods_of(file) }.and_then(|methods| methods.xLock);
        // SAFETY: as above.
        lock.map_or(SQLITE_OK, |lock| unsafe { lock(file, level) })
    }

    /// Makes this the last of us, where no other of us has the log open: until it is dropped, or stays. Whether another was just
    /// closing. `None`: it is not the last, and others who close wait until it is dropped, or stays. `others_stay` says whether one of the
    /// others is not about to go, where that is known.
    pub(super) fn become_last(&mut self, others_stay: impl Fn() -> Option<bool>) -> Option<bool> {
        let (mut others_close, mut is_reserved) = (false, false);
        let until = Instant::now() + CLOSE_MAX;
        for pause in 0_u32.. {
            if !is_reserved {
                match self.lock(SQLITE_LOCK_RESERVED) {
                    SQLITE_OK => is_reserved = true,
                    SQLITE_BUSY => {}
                    _ => return None,
                }
            }
            if is_reserved {
                // To ask for the exclusive lock keeps those out who come.
                let others_stay = others_stay();
                let code =
                    if others_stay == Some(true) { SQLITE_BUSY } else { self.lock(SQLITE_LOCK_EXCLUSIVE) };
                match code {
                    SQLITE_OK => return Some(others_close),
                    // It is about to go, and has its shared lock still: the unix VFS gives the one back first that this one has now.
                    SQLITE_BUSY if others_stay == Some(false) => {}
                    _ => {
                        if planted::is(Bug::SlowClose) {
                            std::thread::sleep(Duration::from_millis(100));
                        }
                        return None;
                    }
                }
            }
            // It will be gone, and then this may be the last.
            others_close = true;
            if Instant::now() >= until {
                break;
            }
            std::thread::sleep(CLOSE_PAUSES[usize::from(pause >= SHORT_PAUSES)]);
        }
        None
    }

    /// The log was not opened. Removes the file, where nobody else of us has it.
    pub(super) fn leave(mut self, database: &Database) {
        // It has no wal-index to ask about.
        if self.become_last(|| None).is_some() {
            // Whoever waits for its lock finds that it has gone.
            let _ = database.disk.remove(&database.private_path);
        }
    }

    /// This is one of several again.
    pub(super) fn stay(&mut self) {
        let file = self.file();
        // SAFETY: open, or zeroed.
        if let Some(unlock) = unsafe { methods_of(file) }.and_then(|methods| methods.xUnlock) {
            // SAFETY: as above.
            give_back(|| unsafe { unlock(file, SQLITE_LOCK_SHARED) });
        }
    }

    /// True where the name leads to another file, or to none.
    fn has_moved(&mut self) -> bool {
        let (file, moved) = (self.file(), Cell::new(0_i32));
        // SAFETY: open, or zeroed.
        let control = unsafe { methods_of(file) }.and_then(|methods| methods.xFileControl);
        // SAFETY: as above; this control writes an int.
        let code = control.map_or(SQLITE_NOTFOUND, |control| unsafe {
            control(file, SQLITE_FCNTL_HAS_MOVED, moved.as_ptr().cast())
        });
        code == SQLITE_OK && moved.get() != 0
    }

    /// The base VFS's file.
    pub(super) fn file(&mut self) -> *mut sqlite3_file {
        self.memory.as_mut_ptr().cast()
    }
}

impl Drop for PrivateShm {
    fn drop(&mut self) {
        let file = self.file();
        // SAFETY: filled by the base VFS's `xOpen`, or zeroed; closed here alone.
        if let Some(close) = unsafe { methods_of(file) }.and_then(|methods| methods.xClose) {
            // SAFETY: as above.
            unsafe { close(file) };
        }
    }
}

/// Makes the file where it is missing, with the database's owner and permissions.
fn make_missing(disk: &dyn Disk, database: &Database) -> io::Result<()> {
    // stat(2) says nothing of who may open it; the base VFS will.
    if disk.mode_and_owner(&database.private_path).is_ok() {
        return Ok(());
    }
    let (mode, owner) = disk.mode_and_owner(&database.path)?;
    let options =
        OpenOptions { create: true, exclusive: true, mode, owner: Some(owner), ..OpenOptions::EXISTING };
    match disk.open(&database.private_path, options) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(|_| ()),
    }
}
