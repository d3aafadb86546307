//! Which layout a log has that SQLite opens now, and the locks that the `embedded` one begins under.
//!
//! SQLite opens a log while it has a shared lock on the database, and keeps that for as long as the log is open. So
//! whoever gets the exclusive lock then is alone: nobody has the log open in any layout. Under that lock the log gets a header
//! that keeps SQLite out (the guard); from then on, until the last close, newcomers see that header, and follow.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::sync::Arc;

use blockio::disk::{DiskFile, OpenOptions};
use rustix::io::Errno;

use super::private_shm::PrivateShm;
use super::registered::Registered;
use crate::connection::Connection;
use crate::database::Database;
use crate::durability::log_session::LogSession;
use crate::ffi::base_vfs::{give_back, methods_of};
use crate::ffi::codes::*;
use crate::ffi::types::sqlite3_file;
use crate::log::embedded::{LogStart, PAGE_BYTES, RESERVED_BYTES};
use crate::log::embedded_file::look_at;
use crate::log::layout::Layout;

/// What a database begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// How often a log that changes its layout under our eyes is looked at anew.
const TRIES: usize = 4;

/// Who opens a log.
pub(super) struct Opener<'call> {
    pub(super) registered: &'static Registered,
    pub(super) connection: &'call Arc<Connection>,
    /// The base VFS's open file of the connection's database, in a call of SQLite on it.
    pub(super) main: *mut sqlite3_file,
    /// `readonly_shm=1`: the connection begins no layout.
    pub(super) readonly_shm: bool,
    pub(super) create: bool,
}

/// A log that is open.
pub(super) struct Opened {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) session: Arc<LogSession>,
    /// The wal-index of the `embedded` layout.
    pub(super) shm: Option<PrivateShm>,
}

/// Why a log is not open.
pub(super) enum Refusal {
    /// It is the base VFS's to open: it has SQLite's own layout, or none of us could read it.
    NotOurs(String),
    /// The statement fails for this time, with SQLite's code; nothing is remembered, and the next one tries anew.
    Fails(c_int, String),
    /// It got another layout since it was looked at.
    Changed,
}

/// A layout, and what was done for it.
struct Decision {
    layout: Layout,
    /// The log has no header, and everybody else is kept out of the database: this layout begins now.
    begins: bool,
    /// The exclusive lock was taken for that, and is to be given back when the log is open.
    exclusive: bool,
}

impl Opener<'_> {
    /// Opens the log in the layout that it has, or that it gets now. What cannot be looked at is not taken for nothing.
    /// # Errors
    /// Nothing is open.
    /// # Safety
    /// `main` is what its field says.
    pub(super) unsafe fn open(&self) -> Result<Opened, Refusal> {
        for _ in 0..TRIES {
            // SAFETY: the caller's promise.
            match unsafe { self.attempt() } {
                Err(Refusal::Changed) => {}
                other => return other,
            }
        }
        Err(Refusal::Fails(
            SQLITE_CANTOPEN,
            "its layout is not the one that others have it open in".to_owned(),
        ))
    }

    /// # Safety
    /// As `open`.
    unsafe fn attempt(&self) -> Result<Opened, Refusal> {
        // SAFETY: the caller's promise.
        let decision = unsafe { self.decide() }?;
        let opened = self.open_as(decision.layout, decision.begins);
        if decision.exclusive
            // SAFETY: as above.
            && let Err(refusal) = unsafe { unlock_to_shared(self.main) }
        {
            if let Ok(Opened { file, session, shm }) = opened {
                drop((file, session));
                self.connection.log_close();
                drop(shm);
            }
            return Err(refusal);
        }
        opened
    }

    fn open_as(&self, layout: Layout, begins: bool) -> Result<Opened, Refusal> {
        let database = &self.connection.database;
        let shm = match layout {
            Layout::Stock => None,
            Layout::Embedded => match PrivateShm::join(self.registered, self.connection, self.readonly_shm) {
                Ok(shm) => Some(shm),
                Err(code) if begins && code != SQLITE_BUSY => {
                    // It may have been made. Nobody else has the database.
                    let _ = database.disk.remove(&database.private_path);
                    database.stay_stock(
                        "the file beside the database that the embedded layout needs cannot be made",
                    );
                    return self.open_as(Layout::Stock, false);
                }
                Err(code) => {
                    let path = database.private_path.display();
                    return Err(Refusal::Fails(code, format!("the log's layout needs {path}")));
                }
            },
        };
        // A log that went away meanwhile is made anew by whoever may choose its layout.
        let create = self.create && (begins || layout == Layout::Stock);
        let refusal = match until_told(|| self.connection.log_open(create, layout, begins)) {
            Ok((file, session)) => return Ok(Opened { file, session, shm }),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Refusal::Changed,
            Err(error) if layout == Layout::Stock => not_opened(&error),
            Err(error) if begins && is_full(&error) => {
                // Nobody else has the database.
                let _ = database.disk.remove(&database.private_path);
                drop(shm);
                database.stay_stock("the disk is full");
                return self.open_as(Layout::Stock, false);
            }
            Err(error) if !begins && error.kind() == io::ErrorKind::NotFound => Refusal::Changed,
            // The base VFS would read another layout than it has, or may have got a moment ago.
            Err(error) => fails(&error),
        };
        if let Some(shm) = shm {
            shm.leave(database);
        }
        Err(refusal)
    }

    /// Decides which layout the log gets. It is open nowhere in this connection.
    /// # Safety
    /// As `open`.
    unsafe fn decide(&self) -> Result<Decision, Refusal> {
        let database = &*self.connection.database;
        let settled = |layout| Ok(Decision { layout, begins: false, exclusive: false });
        let stock = |why: &str| {
            database.stay_stock(why);
            settled(Layout::Stock)
        };
        if let Some(session) = database.session() {
            return settled(session.layout);
        }
        match found(database)? {
            LogStart::Embedded if self.registered.base_cannot_embed() => {
                let why = "its layout needs a VFS below with locks and shared memory";
                return Err(Refusal::Fails(SQLITE_CANTOPEN, why.to_owned()));
            }
            LogStart::Embedded => return settled(Layout::Embedded),
            LogStart::Stock => {
                return stock("the log was begun by SQLite, or by waldio with waldio_layout=stock");
            }
            LogStart::Nothing if database.options().layout == Layout::Stock => return settled(Layout::Stock),
            LogStart::Nothing if self.readonly_shm => return stock("the log was begun with readonly_shm=1"),
            LogStart::Nothing => {}
        }
        // SAFETY: the caller's promise, here and below.
        if let Err(why) = unsafe { self.check_possible() } {
            return stock(&why);
        }
        // SAFETY: as above.
        let Some(exclusive) = (unsafe { lock_exclusively(self.main) })? else {
            return stock("another connection had the database open when the log was begun");
        };
        // Somebody may have begun a log, and left, before the lock came.
        let again = found(database);
        let begins = matches!(again, Ok(LogStart::Nothing));
        if exclusive && matches!(again, Err(_) | Ok(LogStart::Stock)) {
            // SAFETY: as above.
            unsafe { unlock_to_shared(self.main) }?;
        }
        if again? == LogStart::Stock {
            return stock("another process began the log at the same moment");
        }
        Ok(Decision { layout: Layout::Embedded, begins, exclusive })
    }

    /// Whether the database can have the layout; why not.
    /// # Safety
    /// As `open`.
    unsafe fn check_possible(&self) -> Result<(), String> {
        if self.registered.base_cannot_embed() {
            return Err(format!(
                "the embedded layout needs locks and shared memory, which {} has not",
                self.registered.base.name()
            ));
        }
        // stat(2) alone: to open and close a file that this process has locks on would end them.
        let database = &*self.connection.database;
        let longest = database.longest_private_path();
        if let Err(error) = database.disk.mode_and_owner(&longest)
            && Errno::from_io_error(&error) == Some(Errno::NAMETOOLONG)
        {
            let name_bytes = longest.file_name().map_or(0, |name| name.len());
            return Err(format!(
                "the embedded layout needs a file beside the database whose name has {name_bytes} bytes, \
                 which is too long"
            ));
        }
        // SAFETY: the caller's promise.
        unsafe { check_database(self.main) }
    }
}

/// Calls until it is told what came of it: an interrupted call says nothing.
fn until_told<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            told => return told,
        }
    }
}

/// What a log is now.
/// # Errors
/// It is not known. Where the base VFS should look: only if the log cannot be in our layout as far as anybody of this process could
/// tell.
fn found(database: &Database) -> Result<LogStart, Refusal> {
    let open = |options| until_told(|| database.disk.open(&database.log_path, options));
    let look = |log: Box<dyn DiskFile>| until_told(|| look_at(&*log)).map_err(|error| fails(&error));
    match open(OpenOptions::EXISTING) {
        Ok(log) => look(log),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LogStart::Nothing),
        Err(error) if is_forbidden(&error) => {
            // SQLite goes on with a log that it may only read.
            let read_only = OpenOptions { read_only: true, ..OpenOptions::EXISTING };
            match look(open(read_only).map_err(|error| fails(&error))?)? {
                LogStart::Embedded => Err(fails(&error)),
                LogStart::Stock | LogStart::Nothing => Err(not_opened(&error)),
            }
        }
        Err(error) => Err(not_opened(&error)),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// What a statement gets to hear of an error that may be gone with the next one.
fn fails(error: &io::Error) -> Refusal {
    let code =
        if Errno::from_io_error(error) == Some(Errno::IO) { SQLITE_IOERR_READ } else { SQLITE_CANTOPEN };
    Refusal::Fails(code, error.to_string())
}

/// A log that cannot be in our layout was not opened: an error that may be gone with the next statement fails this one, as it
/// would without us; any other is the base VFS's to deal with.
fn not_opened(error: &io::Error) -> Refusal {
    const PASSING: [Errno; 13] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOBUFS,
        Errno::AGAIN,
        Errno::BUSY,
        Errno::IO,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::STALE,
        Errno::OVERFLOW,
        Errno::TIMEDOUT,
        Errno::INTR,
    ];
    match Errno::from_io_error(error) {
        Some(errno) if PASSING.contains(&errno) => fails(error),
        _ => Refusal::NotOurs(format!("cannot open the log for writing: {error}")),
    }
}

/// Whether the database's pages can have the layout; why not.
/// # Safety
/// `main` is an open file of the base VFS.
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
unsafe fn lock_exclusively(main: *mut sqlite3_file) -> Result<Option<bool>, Refusal> {
    let level = Cell::new(0_i32);
    // SAFETY: the caller's promise.
    let methods = unsafe { methods_of(main) };
    let Some((control, lock)) = methods.and_then(|methods| methods.xFileControl.zip(methods.xLock)) else {
        return Ok(None);
    };
    // SAFETY: as above; this control writes an int.
    unsafe { control(main, SQLITE_FCNTL_LOCKSTATE, level.as_ptr().cast::<c_void>()) };
    if level.get() == SQLITE_LOCK_EXCLUSIVE {
        return Ok(Some(false));
    }
    // Nobody may lose a lock that SQLite believes in.
    if level.get() != SQLITE_LOCK_SHARED {
        return Ok(None);
    }
    // SAFETY: as above.
    if unsafe { lock(main, SQLITE_LOCK_EXCLUSIVE) } == SQLITE_OK {
        return Ok(Some(true));
    }
    // The lock in between may have been taken.
    // SAFETY: as above.
    unsafe { unlock_to_shared(main) }.map(|()| None)
}

unsafe fn unlock_to_shared(main: *mut sqlite3_file) -> Result<(), Refusal> {
    // SAFETY: the caller's promise.
    let unlock = unsafe { methods_of(main) }.and_then(|methods| methods.xUnlock);
    // SAFETY: as above.
    match unlock.map_or(SQLITE_OK, |unlock| give_back(|| unsafe { unlock(main, SQLITE_LOCK_SHARED) })) {
        SQLITE_OK => Ok(()),
        // SQLite gives all of its locks back where a statement fails.
        code => Err(Refusal::Fails(code, "the database's lock cannot be given back".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_is_made_again_and_any_other_answer_counts() {
        let mut answers = vec![Ok(3), Err(io::ErrorKind::Interrupted), Err(io::ErrorKind::Interrupted)];
        assert_eq!(until_told(|| answers.pop().unwrap().map_err(io::Error::from)).unwrap(), 3);
        let mut calls = 0;
        let told = until_told(|| {
            calls += 1;
            Err::<(), _>(io::ErrorKind::PermissionDenied.into())
        });
        assert_eq!((told.unwrap_err().kind(), calls), (io::ErrorKind::PermissionDenied, 1));
    }

    #[test]
    fn errors_are_told_apart_by_what_may_be_done_about_them() {
        let kinds = [libc_error(28), libc_error(122), libc_error(13), libc_error(30), libc_error(5)];
        assert_eq!(kinds.each_ref().map(is_full), [true, true, false, false, false]);
        assert_eq!(kinds.each_ref().map(is_forbidden), [false, false, true, true, false]);
    }

    #[test]
    fn an_error_that_may_be_gone_with_the_next_statement_fails_this_one_alone() {
        // EMFILE, ENOSPC, EIO; ELOOP, ENOTDIR.
        let codes = [24, 28, 5, 40, 20].map(|number| match not_opened(&libc_error(number)) {
            Refusal::Fails(code, _) => Some(code),
            Refusal::NotOurs(_) | Refusal::Changed => None,
        });
        let expected = [Some(SQLITE_CANTOPEN), Some(SQLITE_CANTOPEN), Some(SQLITE_IOERR_READ), None, None];
        assert_eq!(codes, expected);
    }

    /// ENOSPC, EDQUOT, EACCES, EROFS, EIO.
    fn libc_error(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }
}
