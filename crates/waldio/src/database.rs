//! One database in this process: what its connections share beyond any one opening of the log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use blockio::disk::{Disk, DiskFile, OpenOptions};

use crate::embedded_file::{self, in_layout};
use crate::failure::Failure;
use crate::ffi::lock_probe::LockProbe;
use crate::gate::Gate;
use crate::layout::Layout;
use crate::options::Options;
use crate::queue::WriteQueue;
use crate::session::LogSession;
use crate::spare;
use crate::stats::Stats;
use crate::super_journal::SuperJournals;
use crate::tails;
use crate::tickets::Failed;
use crate::window::Flusher;
use crate::worker::{Growth, Worker};

/// See the file's head.
#[derive(Debug)]
pub struct Database {
    /// The database file, as SQLite names it.
    pub path: PathBuf,
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
    pub queue: WriteQueue,
    /// Closed for short checkpoints.
    pub gate: Gate,
    /// The log was last opened in the `embedded` layout.
    embedded: AtomicBool,
    kept_at_delete: AtomicBool,
    group_commit: AtomicBool,
    durable_reads: AtomicBool,
    poison: Arc<OnceLock<String>>,
    worker: Worker,
    flusher: Flusher,
    /// Those of this process.
    pub super_journals: Arc<SuperJournals>,
    /// Tells whether another process has the database open.
    pub open_probe: LockProbe,
    /// Tell whether another process writes: on the wal-index's file, SQLite's and ours.
    write_probe: LockProbe,
    private_write_probe: LockProbe,
    open: Mutex<OpenLog>,
}

#[derive(Debug)]
struct OpenLog {
    options: Options,
    session: Option<Arc<LogSession>>,
    handles: usize,
    /// The log was closed by us and not yet deleted: it may become a spare of at most this size.
    spare_bytes_max: Option<u64>,
    /// Why this database's log goes through the base VFS, if it does.
    passed_through: Option<String>,
    /// Why it has SQLite's own layout, if another was asked for.
    stays_stock: Option<String>,
}

impl Database {
    /// A database whose log is not open yet.
    pub fn new(
        path: PathBuf,
        base_name: String,
        disk: Arc<dyn Disk>,
        (worker, flusher, super_journals): (Worker, Flusher, Arc<SuperJournals>),
        options: Options,
    ) -> Database {
        let open = OpenLog {
            options,
            session: None,
            handles: 0,
            spare_bytes_max: None,
            passed_through: None,
            stays_stock: None,
        };
        let stats = Arc::<Stats>::default();
        // POSIX locks are what "unix" uses; other variants lock in other ways.
        let locked = |path: PathBuf| LockProbe::new((base_name == "unix").then_some(path));
        Database {
            open_probe: locked(path.clone()),
            write_probe: locked(with_suffix(&path, "-shm")),
            private_write_probe: locked(with_suffix(&path, "-waldio-shm")),
            private_path: with_suffix(&path, "-waldio"),
            embedded: AtomicBool::new(false),
            kept_at_delete: AtomicBool::new(false),
            group_commit: AtomicBool::new(options.group_commit),
            durable_reads: AtomicBool::new(options.durable_reads),
            gate: Gate::default(),
            queue: WriteQueue::new((base_name == "unix").then_some(&*path), Arc::clone(&stats)),
            log_path: with_suffix(&path, "-wal"),
            path,
            base_name,
            disk,
            stats,
            poison: Arc::default(),
            worker,
            flusher,
            super_journals,
            open: Mutex::new(open),
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenLog> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On the wal-index that is in use: true when no other process holds the write lock; `None`: nobody knows.
    pub fn is_write_lock_free(&self) -> Option<bool> {
        let probe = if self.embedded.load(Relaxed) { &self.private_write_probe } else { &self.write_probe };
        probe.is_write_lock_free()
    }

    /// Opens the log for one connection: what it shares with the others, and a file of its own. Where it `begins` the
    /// `embedded` layout the caller keeps everybody else out of the database.
    /// # Errors
    /// Nothing is open. `InvalidData`: the log has another layout.
    pub fn open_log_as(
        &self,
        create: bool,
        layout: Layout,
        begins: bool,
    ) -> io::Result<(Arc<LogSession>, Arc<dyn DiskFile>)> {
        let mut open = self.open();
        let (file, origin) = self.open_file(create, &open.options)?;
        if open.session.as_ref().is_some_and(|session| session.layout != layout) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "others have another layout"));
        }
        embedded_file::prove(&*file, layout, begins)?;
        let file = in_layout(layout, file, &self.disk, (&self.log_path, open.options.no_sync));
        let session = match &open.session {
            Some(session) => Arc::clone(session),
            None => {
                let size = file.size()?;
                let shared = (Arc::clone(&self.stats), Arc::clone(&self.poison));
                let facts = file.facts();
                let session = LogSession::new(
                    (self.log_path.clone(), layout),
                    open.options,
                    facts,
                    (size, origin != Origin::Existing),
                    shared,
                );
                if size > 0 {
                    session.assume_filled();
                }
                Arc::new(session)
            }
        };
        self.embedded.store(session.layout == Layout::Embedded, Relaxed);
        open.session = Some(Arc::clone(&session));
        open.handles += 1;
        open.spare_bytes_max = None;
        open.passed_through = None;
        Ok((session, file))
    }

    /// As `open_log_as`, of a log that is there or SQLite's.
    #[cfg(test)]
    pub fn open_log(&self, create: bool, layout: Layout) -> io::Result<(Arc<LogSession>, Arc<dyn DiskFile>)> {
        self.open_log_as(create, layout, false)
    }

    fn open_file(&self, create: bool, options: &Options) -> io::Result<(Box<dyn DiskFile>, Origin)> {
        let existing = OpenOptions::EXISTING;
        match self.disk.open(&self.log_path, existing) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && create => {}
            other => return Ok((other?, Origin::Existing)),
        }
        let (mode, owner) = self.disk.mode_and_owner(&self.path)?;
        if !options.strict && spare::take(&*self.disk, &self.log_path, (mode, owner))? {
            Stats::add(&self.stats.spares_taken, 1);
            return Ok((self.disk.open(&self.log_path, existing)?, Origin::Spare));
        }
        // Not another process's that was faster: what stands in that one is not known.
        let created = OpenOptions { create: true, exclusive: true, mode, owner: Some(owner), ..existing };
        match self.disk.open(&self.log_path, created) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok((self.disk.open(&self.log_path, existing)?, Origin::Existing))
            }
            other => Ok((other?, Origin::Created)),
        }
    }

    /// One connection closed its log. Unless its last write was synced, the log is not kept as a spare: clearing
    /// it durably would be ahead of a database file that `synchronous=OFF` left to the kernel.
    ///
    /// SQLite leaves a log that another process has open as it is. What the window of `waldio_group` left outstanding there
    /// is flushed now: nobody of this process would do so later. A failure poisons; nobody is there to be told.
    pub fn close_log(&self, file: &dyn DiskFile, synced: bool) {
        let mut open = self.open();
        open.handles = open.handles.saturating_sub(1);
        if open.handles == 0
            && let Some(session) = open.session.take()
        {
            if session.tickets.is_outstanding() {
                let _ = session.flush_now(file);
            }
            session.close();
            open.spare_bytes_max = (synced && session.is_worth_keeping()).then(|| session.spare_bytes_max());
        }
    }

    /// The log is about to go: so does what the `embedded` layout has beside it. Nobody else has the database open.
    pub fn remove_private_files(&self) {
        if self.embedded.swap(false, Relaxed) {
            // What stays behind is empty, or counts for no other log.
            let _ = self.disk.remove(&self.private_path);
            // A power cut may keep the log and take its tails: the frames in front of the first that needs one would
            // stand for the whole log (found by `crash_embedded`).
            if tails::exist(&*self.disk, &self.log_path)
                && spare::clear_at(&*self.disk, &self.log_path, self.options().no_sync).is_ok()
            {
                tails::remove(&*self.disk, &self.log_path);
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

    /// True where another process has the wal-index of the `embedded` layout mapped.
    pub fn is_private_index_mapped_elsewhere(&self) -> bool {
        self.private_write_probe.is_mapped_elsewhere()
    }

    /// The file beside the database with the longest name.
    pub fn longest_private_path(&self) -> PathBuf {
        with_suffix(&self.private_path, "-shm")
    }

    /// `xDelete` of the log: keeps it as a spare where that is worth it; false where SQLite should delete it.
    pub fn keep_as_spare(&self) -> bool {
        let mut open = self.open();
        let Some(bytes_max) = open.spare_bytes_max.take() else { return false };
        if open.options.strict || open.handles > 0 || self.poison.get().is_some() {
            return false;
        }
        let kept = spare::keep(&*self.disk, &self.log_path, bytes_max, open.options.no_sync);
        if kept {
            Stats::add(&self.stats.spares_kept, 1);
        }
        kept
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
        self.open().passed_through = Some(why.to_owned());
    }

    /// Why the log goes through the base VFS, if it does.
    pub fn passed_through(&self) -> Option<String> {
        self.open().passed_through.clone()
    }

    /// The session under way, if any.
    pub fn session(&self) -> Option<Arc<LogSession>> {
        self.open().session.clone()
    }

    /// The options that the next opening of the log will have.
    pub fn options(&self) -> Options {
        self.open().options
    }

    /// Changes an option before the log is opened.
    /// # Errors
    /// A sentence; nothing is changed.
    pub fn set_option(&self, name: &str, value: &str) -> Result<(), String> {
        let mut open = self.open();
        if open.session.is_some() {
            return Err(format!(
                "{name} cannot change while the log is open: set it before the first statement that touches the \
                 database, in the URI (file:app.db?{name}=...) or in the environment ({})",
                name.to_uppercase()
            ));
        }
        open.options.set(name, value)?;
        self.group_commit.store(open.options.group_commit, Relaxed);
        self.durable_reads.store(open.options.durable_reads, Relaxed);
        Ok(())
    }

    /// The layout that the next opening of the log asks for.
    pub fn set_layout(&self, layout: Layout) {
        self.open().options.layout = layout;
    }

    /// Whether commits share flushes and writers stand in line.
    pub fn shares_commits(&self) -> bool {
        self.group_commit.load(Relaxed)
    }

    /// Whether a reader waits until what it sees is durable.
    pub fn reads_durably(&self) -> bool {
        self.durable_reads.load(Relaxed)
    }

    /// Fails once the log is poisoned.
    /// # Errors
    /// `Poisoned`, with the reason.
    pub fn check_poison(&self) -> Result<(), Failure> {
        self.poison.get().map_or(Ok(()), |why| Err(Failure::Poisoned(why.clone())))
    }

    /// What poisoned the log, if anything did.
    pub fn poisoned(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    /// Takes the log out of use until the last connection of this process closed and the log was recovered: after
    /// a failed sync the kernel may have dropped the data and call the next sync a success.
    pub fn poison(&self, what: &str, error: io::Error) -> Failure {
        let text = format!("{what} of {} failed: {error}", self.log_path.display());
        self.stats.error(&text);
        let _ = self.poison.set(text);
        Failure::Io(error)
    }

    /// Makes everything in the log durable for a connection that has not opened it; false where there is no log.
    /// # Errors
    /// The log cannot be opened for writing, or a sync failed, which poisons it.
    pub fn flush_now(&self) -> Result<bool, Failure> {
        self.check_poison()?;
        let file = match self.disk.open(&self.log_path, OpenOptions::EXISTING) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        };
        match self.session() {
            Some(session) => self.flush_session(&session, &*file)?,
            None if self.options().no_sync => {}
            None => file.sync_data().map_err(|error| self.poison("sync", error))?,
        }
        Ok(true)
    }

    /// Makes everything in the log durable, without any lock of SQLite's.
    /// # Errors
    /// The log is poisoned.
    pub fn flush_session(&self, session: &Arc<LogSession>, file: &dyn DiskFile) -> Result<(), Failure> {
        self.check_poison()?;
        session.flush_now(file).map_err(|Failed| {
            let unknown = || Failure::Poisoned("a flush failed".to_owned());
            self.check_poison().err().unwrap_or_else(unknown)
        })
    }

    /// Has what is outstanding in the log flushed after `time`; false where nobody can.
    pub fn flush_within(&self, session: &Arc<LogSession>, file: &Arc<dyn DiskFile>, time: Duration) -> bool {
        self.flusher.flush_within(session, file, time)
    }

    /// Has space reserved ahead, in the background.
    pub fn grow_soon(&self, session: &Arc<LogSession>, used_bytes: u64) {
        let growth = Growth { session: Arc::downgrade(session), disk: Arc::clone(&self.disk), used_bytes };
        self.worker.grow(growth);
    }
}

/// How a log came to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Existing,
    Spare,
    Created,
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
