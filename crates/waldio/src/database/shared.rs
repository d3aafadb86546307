//! One database in this process: what its connections share beyond any one opening of the log.

use std::ffi::c_int;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use blockio::disk::{Disk, DiskFile, FileId, OpenOptions};

use crate::checkpoint::barrier::Barrier;
use crate::database::old_spare;
use crate::database::super_journal::SuperJournals;
use crate::database::synced_database::SyncedDatabase;
use crate::durability::delayed_flush::Flusher;
use crate::durability::flush::{self, Poison};
use crate::durability::growth::{Growth, Worker};
use crate::durability::log_session::{FoundLog, LogSession};
use crate::failure::Failure;
use crate::ffi::kernel::lock_probe::LockProbe;
use crate::log::embedded_file::{self, in_layout};
use crate::log::layout::Layout;
use crate::log::reserved_bytes;
use crate::options::{OptionError, Options};
use crate::stats::Stats;
use crate::threads::origin::Origin;
use crate::threads::timer::Timer;
use crate::write_lock::lock_queue::LockQueue;

/// One database of this process.
#[derive(Debug)]
pub struct Database {
    /// The database file, as SQLite names it.
    pub path: PathBuf,
    /// Which file that was when it was opened; `None` where nobody could tell.
    pub file_id: Option<FileId>,
    /// Its log.
    pub log_path: PathBuf,
    /// A file of ours whose wal-index the `embedded` layout has: SQLite without us must not find one.
    pub private_path: PathBuf,
    /// Name of the VFS that everything else goes to.
    pub base_name: String,
    /// Where the log is.
    pub disk: Arc<dyn Disk>,
    /// What happened so far.
    pub stats: Arc<Stats>,
    /// Who may write next.
    pub queue: LockQueue,
    /// Closed for short checkpoints.
    pub barrier: Barrier,
    /// The log was last opened in the `embedded` layout.
    embedded: AtomicBool,
    kept_at_delete: AtomicBool,
    /// Who opened it.
    pub origin: Origin,
    /// How much of the database file is on the medium.
    pub synced: SyncedDatabase,
    /// What the process lends it.
    pub helpers: Helpers,
    /// Tells whether another process has the database open.
    pub open_probe: LockProbe,
    /// Tell whether another process has the wal-index mapped: SQLite's and ours.
    shm_probe: LockProbe,
    private_shm_probe: LockProbe,
    open: Mutex<OpenLog>,
}

/// What a process lends to each of its databases.
#[derive(Debug)]
pub struct Helpers {
    /// Grows logs.
    pub worker: Worker,
    /// Flushes when a delay is over.
    pub flusher: Flusher,
    /// Gives back locks that connections got and did not use.
    pub lock_watch: Timer,
    /// The super-journals that are open in this process.
    pub super_journals: Arc<SuperJournals>,
}

#[cfg(any(test, feature = "model"))]
impl Helpers {
    /// Those of tests that must be repeatable: growth happens in the caller, and delayed flushes never.
    pub fn inline() -> Helpers {
        Helpers {
            worker: Worker::Inline,
            flusher: Flusher::Never,
            lock_watch: Timer::new("test"),
            super_journals: Arc::default(),
        }
    }
}

#[derive(Debug)]
struct OpenLog {
    options: Options,
    session: Option<Arc<LogSession>>,
    /// Which file the log was when it was last opened, and why it is out of use, if it is.
    log: Option<FileId>,
    poison: Poison,
    /// Why this database's log goes through the base VFS, if it does.
    passed_through: Option<String>,
    /// SQLite opened a rollback journal, and no log since.
    rolls_back: bool,
    /// Why it has SQLite's own layout, if another was asked for.
    stays_stock: Option<String>,
}

impl Database {
    /// A database whose log is not open yet.
    pub fn new(
        path: PathBuf,
        file_id: Option<FileId>,
        base_name: String,
        disk: Arc<dyn Disk>,
        helpers: Helpers,
        options: Options,
    ) -> Database {
        let open = OpenLog {
            options,
            session: None,
            log: None,
            poison: Poison::default(),
            passed_through: None,
            rolls_back: false,
            stays_stock: None,
        };
        let stats = Arc::<Stats>::default();
        // POSIX locks are what "unix" uses; other variants lock in other ways.
        let locked = |path: PathBuf| LockProbe::new((base_name == "unix").then_some(path));
        Database {
            open_probe: locked(path.clone()),
            shm_probe: locked(with_suffix(&path, "-shm")),
            private_shm_probe: locked(with_suffix(&path, "-waldio-shm")),
            private_path: with_suffix(&path, "-waldio"),
            embedded: AtomicBool::new(false),
            kept_at_delete: AtomicBool::new(false),
            origin: Origin::default(),
            synced: SyncedDatabase::default(),
            barrier: Barrier::default(),
            queue: LockQueue::new((base_name == "unix").then_some(&*path), Arc::clone(&stats)),
            log_path: with_suffix(&path, "-wal"),
            path,
            file_id,
            base_name,
            disk,
            stats,
            helpers,
            open: Mutex::new(open),
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenLog> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the log for one connection: what it shares with the others that have the same file open, and a file of its own.
    /// Where it `begins` the `embedded` layout the caller keeps everybody else out of the database.
    /// # Errors
    /// Nothing is open. `InvalidData`: the log has another layout.
    pub fn open_log_as(
        &self,
        create: bool,
        layout: Layout,
        begins: bool,
    ) -> io::Result<(Arc<LogSession>, Arc<dyn DiskFile>)> {
        let mut open = self.open();
        let (file, created) = self.open_file(create)?;
        embedded_file::prove(&*file, layout, begins)?;
        let file_id = file.identity()?;
        if open.log != Some(file_id) {
            // Another log under the same name: what was known of the old one holds for those who still have it open.
            (open.log, open.session, open.poison) = (Some(file_id), None, Poison::default());
        }
        if open.session.as_ref().is_some_and(|session| session.layout != layout) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "others have another layout"));
        }
        let file = in_layout(layout, file, &self.disk, &self.log_path, open.options.no_sync);
        let session = match &open.session {
            Some(session) => Arc::clone(session),
            None => {
                old_spare::remove(&*self.disk, &self.log_path);
                let found = FoundLog {
                    path: self.log_path.clone(),
                    file_id,
                    layout,
                    file_bytes: file.size()?,
                    is_new: created,
                    facts: file.facts(),
                };
                let (stats, poison) = (Arc::clone(&self.stats), Arc::clone(&open.poison));
                Arc::new(LogSession::new(found, open.options, stats, poison))
            }
        };
        self.embedded.store(session.layout == Layout::Embedded, Relaxed);
        open.session = Some(Arc::clone(&session));
        session.handles.fetch_add(1, SeqCst);
        open.passed_through = None;
        open.rolls_back = false;
        Ok((session, file))
    }

    /// As `open_log_as`, of a log that is there or SQLite's.
    #[cfg(test)]
    pub fn open_log(&self, create: bool, layout: Layout) -> io::Result<(Arc<LogSession>, Arc<dyn DiskFile>)> {
        self.open_log_as(create, layout, false)
    }

    /// The log, and whether it was created.
    fn open_file(&self, create: bool) -> io::Result<(Box<dyn DiskFile>, bool)> {
        let existing = OpenOptions::EXISTING;
        match self.disk.open(&self.log_path, existing) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && create => {}
            other => return Ok((other?, false)),
        }
        let (mode, owner) = self.disk.mode_and_owner(&self.path)?;
        // Not another process's that was faster: what stands in that one is not known.
        let created = OpenOptions { create: true, exclusive: true, mode, owner: Some(owner), ..existing };
        match self.disk.open(&self.log_path, created) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok((self.disk.open(&self.log_path, existing)?, false))
            }
            other => Ok((other?, true)),
        }
    }

    /// One connection closed its log.
    ///
    /// SQLite leaves a log that another process has open as it is. What the delayed flush of `waldio_group` left outstanding there
    /// is flushed now: nobody of this process would do so later. A failure poisons; nobody is there to be told.
    pub fn close_log(&self, session: &Arc<LogSession>, file: &dyn DiskFile) {
        let mut open = self.open();
        if session.handles.fetch_sub(1, SeqCst) > 1 {
            return;
        }
        if session.durability.group_commit.is_outstanding() {
            let _ = session.durability.flush_unlocked(file, false);
        }
        session.space.close();
        if open.session.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            open.session = None;
        }
    }

    /// The log is about to go: so does what the `embedded` layout has beside it. Nobody else has the database open.
    pub fn remove_private_files(&self) {
        old_spare::remove(&*self.disk, &self.log_path);
        if self.embedded.swap(false, Relaxed) {
            // What stays behind is empty, or counts for no other log.
            let _ = self.disk.remove(&self.private_path);
            // Of a connection that could only read, or was refused: SQLite removes the one of its own layout alone.
            let _ = self.disk.remove(&with_suffix(&self.path, "-shm"));
            // A power cut may keep the log and take its reserved bytes: the frames in front of the first that needs one would
            // stand for the whole log (found by `crash/embedded`).
            if reserved_bytes::exist(&*self.disk, &self.log_path)
                && embedded_file::clear_at(&*self.disk, &self.log_path, self.options().no_sync).is_ok()
            {
                reserved_bytes::remove(&*self.disk, &self.log_path);
            }
        }
    }

    /// The log is closed for good and not to be deleted: others have it open. Holds for the next `xDelete`.
    pub fn keep_at_delete(&self) {
        self.kept_at_delete.store(true, Relaxed);
    }

    /// Whether the log that is to be deleted now stays.
    pub fn take_kept_at_delete(&self) -> bool {
        self.kept_at_delete.swap(false, Relaxed)
    }

    /// Makes the log, whose header is `header` and whose frames are all in the database and on the medium, an empty one of
    /// SQLite's, in its place. Nobody else of us has it open.
    /// # Errors
    /// It keeps SQLite out as before, or does so after a power cut.
    pub fn empty_in_place(&self, header: &[u8; 32]) -> io::Result<()> {
        embedded_file::empty_in_place(&*self.disk, &self.log_path, header, self.options().no_sync)?;
        self.embedded.store(false, Relaxed);
        // Whoever of us waits for its lock finds that it has gone, and looks at the log anew.
        let _ = self.disk.remove(&self.private_path);
        Ok(())
    }

    /// Whether another process has the wal-index of the `embedded` layout mapped; `None` where that cannot be asked.
    pub fn is_private_index_mapped_elsewhere(&self) -> Option<bool> {
        self.private_shm_probe.is_mapped_elsewhere()
    }

    /// The file beside the database with the longest name.
    pub fn longest_private_path(&self) -> PathBuf {
        with_suffix(&self.private_path, "-shm")
    }

    /// The log gets SQLite's own layout, and why where another was asked for.
    pub fn stay_stock(&self, why: &str) {
        self.open().stays_stock = Some(why.to_owned());
    }

    /// Why the log has SQLite's own layout though another was asked for.
    pub fn stays_stock(&self) -> Option<String> {
        self.open().stays_stock.clone()
    }

    /// The log goes through the base VFS, and why.
    pub fn pass_through(&self, why: &str) {
        let mut open = self.open();
        open.passed_through = Some(why.to_owned());
        open.rolls_back = false;
    }

    /// SQLite opens a rollback journal.
    pub fn note_rollback_journal(&self) {
        self.open().rolls_back = true;
    }

    /// True where SQLite opened a rollback journal, and no log since.
    pub fn rolls_back(&self) -> bool {
        self.open().rolls_back
    }

    /// Why the log goes through the base VFS, if it does.
    pub fn passed_through(&self) -> Option<String> {
        self.open().passed_through.clone()
    }

    /// The session under way, if any.
    pub fn session(&self) -> Option<Arc<LogSession>> {
        self.open().session.clone()
    }

    /// SQLite is about to open its wal-index. Where there is none on Btrfs, this makes one whose pages are overwritten in place, as the
    /// log's are. Otherwise a full disk takes commits until a store into the wal-index finds no room: the kernel ends the process (SIGBUS).
    pub fn make_wal_index(&self, is_private: bool) {
        let probe = if is_private { &self.private_shm_probe } else { &self.shm_probe };
        let Some(path) = probe.path() else { return };
        if let Ok((mode, owner)) = self.disk.mode_and_owner(&self.path) {
            // Where that fails SQLite makes it.
            let _ = self.disk.make_overwritten_in_place(path, mode & 0o777, owner);
        }
    }

    /// The options that the next opening of the log will have.
    pub fn options(&self) -> Options {
        self.open().options
    }

    /// Changes an option before the log is opened.
    /// # Errors
    /// Why not; nothing is changed.
    pub fn set_option(&self, name: &str, value: &str) -> Result<(), OptionError> {
        let mut open = self.open();
        if open.session.is_some() {
            return Err(OptionError::LogIsOpen(name.to_owned()));
        }
        open.options.set(name, value)
    }

    /// The layout that the next opening of the log asks for.
    pub fn set_layout(&self, layout: Layout) {
        self.open().options.layout = layout;
    }

    /// Whether a process other than this one has a read lock of the wal-index, 0 to 4; false where nobody knows.
    pub fn is_read_elsewhere(&self, number: usize) -> bool {
        let is_private = self.embedded.load(Relaxed);
        let probe = if is_private { &self.private_shm_probe } else { &self.shm_probe };
        probe.is_read_elsewhere(number)
    }

    /// Fails once the log is poisoned.
    /// # Errors
    /// `Poisoned`, with the reason.
    pub fn check_poison(&self) -> Result<(), Failure> {
        flush::check(&self.open().poison)
    }

    /// Takes the log out of use until the last connection of this process closed and the log was recovered. `what` failed, with
    /// SQLite's `code`.
    pub fn poison(&self, what: &str, code: c_int) {
        let error = io::Error::other(format!("SQLite's code {code}"));
        match self.session() {
            Some(session) => drop(session.durability.poison(what, error)),
            None => {
                drop(self.open().poison.set(format!("{what} of {} failed: {error}", self.log_path.display())))
            }
        }
    }

    /// What poisoned the log, if anything did.
    pub fn poisoned(&self) -> Option<String> {
        self.open().poison.get().cloned()
    }

    /// Makes everything in the log durable for a connection that has not opened it; false where there is no log. The database
    /// is synced.
    /// # Errors
    /// The log cannot be opened for writing, or a sync failed, which poisons it.
    pub fn flush_now(&self) -> Result<bool, Failure> {
        self.check_poison()?;
        let file = match self.disk.open(&self.log_path, OpenOptions::EXISTING) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        };
        let file_id = file.identity()?;
        match self.session().filter(|session| session.file_id == file_id) {
            Some(session) => self.flush_session(&session, &*file)?,
            None if self.options().no_sync => {}
            None => file.sync_data()?,
        }
        if !self.options().no_sync {
            self.disk.sync_dir_of(&self.log_path)?;
        }
        Ok(true)
    }

    /// Makes everything in the log durable, without any lock of SQLite's. The database is synced.
    /// # Errors
    /// The log is poisoned, or its recovered frames are not certain to be on the medium.
    pub fn flush_session(&self, session: &Arc<LogSession>, file: &dyn DiskFile) -> Result<(), Failure> {
        session.durability.check()?;
        session.durability.flush_unlocked(file, true).map_err(|_| {
            let unknown = || Failure::Poisoned("recovered frames are not certain to be durable".to_owned());
            session.durability.check().err().unwrap_or_else(unknown)
        })
    }

    /// Has what is outstanding in the log flushed after `time`; false where nobody can, as in a child of fork.
    pub fn flush_within(&self, session: &Arc<LogSession>, file: &Arc<dyn DiskFile>, time: Duration) -> bool {
        !self.origin.is_parent() && self.helpers.flusher.flush_within(session, file, time)
    }

    /// Has space reserved ahead, in the background.
    pub fn grow_soon(&self, session: &Arc<LogSession>, file: &Arc<dyn DiskFile>, used_bytes: u64) {
        let (session, file) = (Arc::downgrade(session), Arc::downgrade(file));
        self.helpers.worker.grow(Growth { session, file, used_bytes });
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
