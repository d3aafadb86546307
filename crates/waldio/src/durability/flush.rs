//! What of a log is on the medium: the one place that flushes it, counts that, and takes it out of use after a failure.
//!
//! ```text
//! commit, checkpoint, group, delayed flush, growth -> flush -> fdatasync | direct durable write
//!                                                       ok  -> known prefix, numbers
//!                                                       failed -> poison: no commit and no checkpoint from here on
//! ```
//!
//! Poison is for a log whose medium nobody knows any more: a sync that failed, a direct write that failed, published frames
//! that could not be written. A write that failed before its frames were published is SQLite's to report; it rolls back.

pub mod known_prefix;
pub mod recent_frames;
pub mod sync_turn;
pub mod unsynced;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use blockio::disk::DiskFile;

use crate::durability::group_commit::{Failed, GroupCommit, NotDurable};
use crate::failure::Failure;
use crate::ffi::wal_index::WalIndex;
use crate::log::frame::{LOG_SALTS_AT, Prefix, Salts};
use crate::log::rewrite::{self, Writers};
use crate::stats::Stats;
use crate::testing::planted::{self, Bug};
use crate::threads::origin::Origin;
use known_prefix::KnownPrefix;
use recent_frames::RecentFrames;
use sync_turn::{SyncTurn, TurnHeld};
use unsynced::Unsynced;

/// Why a log is out of use, once it is: shared with whoever must ask before there is a log.
pub type Poison = Arc<OnceLock<String>>;

/// Fails once the log is poisoned.
/// # Errors
/// `Poisoned`, with the reason.
pub fn check(poison: &Poison) -> Result<(), Failure> {
    poison.get().map_or(Ok(()), |why| Err(Failure::Poisoned(why.clone())))
}

/// What came of a piece of space and its flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grown {
    /// How long both took.
    Synced(Duration),
    /// It failed, and the log is poisoned.
    NotSynced,
}

/// What is known of one log's durability, and what it took.
#[derive(Debug)]
pub struct Durability {
    log_path: PathBuf,
    /// Tests only: no flush at all.
    no_sync: bool,
    stats: Arc<Stats>,
    poison: Poison,
    /// Held from the beginning of a sync of the log until it is told what came of it.
    turn: SyncTurn,
    origin: Origin,
    /// Commits that wait for a shared flush.
    pub group_commit: GroupCommit,
    /// Commits that wait for none.
    pub unsynced: Unsynced,
    /// The longest prefix that is known to be on the medium.
    pub known: KnownPrefix,
    recent: Mutex<RecentFrames>,
    /// Commits that were published before their flush failed.
    failed: Mutex<Vec<Prefix>>,
    /// Each commit that leaves its flush to the group has one more of these until its COMMIT is told what came of it.
    untold: Arc<()>,
    /// Until when no attempt to take failed commits back keeps readers out: the last one did so in vain.
    rest_until: Mutex<Option<Instant>>,
    /// Recovered frames could not be written over themselves (`rewrite`): no flush vouches for them before that is done.
    uncertain: AtomicBool,
    /// Something failed, and nobody with a lock of SQLite's has written the frames again since.
    rewrite_owed: AtomicBool,
    /// The generation of the log that flushes without any lock of SQLite's are for: that of this process's newest commit.
    generation: Mutex<Option<Salts>>,
}

impl Durability {
    /// Nothing is known of the log.
    pub fn new(log_path: PathBuf, no_sync: bool, stats: Arc<Stats>, poison: Poison) -> Durability {
        Durability {
            log_path,
            no_sync,
            stats,
            poison,
            turn: SyncTurn::default(),
            origin: Origin::default(),
            group_commit: GroupCommit::default(),
            unsynced: Unsynced::default(),
            known: KnownPrefix::default(),
            recent: Mutex::default(),
            failed: Mutex::default(),
            untold: Arc::default(),
            rest_until: Mutex::default(),
            uncertain: AtomicBool::new(false),
            rewrite_owed: AtomicBool::new(false),
            generation: Mutex::default(),
        }
    }

    /// Bytes of the newest frames. A panic while they were held leaves a name that matches nothing half done: they are
    /// cleared.
    pub fn recent(&self) -> MutexGuard<'_, RecentFrames> {
        self.recent.lock().unwrap_or_else(|poisoned| {
            let mut recent = poisoned.into_inner();
            recent.clear();
            recent
        })
    }

    /// As `check`.
    /// # Errors
    /// As `check`.
    pub fn check(&self) -> Result<(), Failure> {
        check(&self.poison)
    }

    /// Takes the log out of use until the last connection of this process closed and the log was recovered: after
    /// a failed sync the kernel may have dropped the data and call the next sync a success. So its published frames are written over
    /// themselves (`rewrite`), by whoever has a lock that keeps them in place: the caller, or the next of this process.
    pub fn poison(&self, what: &str, error: io::Error) -> Failure {
        let text = format!("{what} of {} failed: {error}", self.log_path.display());
        self.stats.error(&text);
        let _ = self.poison.set(text);
        self.rewrite_owed.store(true, SeqCst);
        self.group_commit.fail();
        Failure::Sync(error)
    }

    /// Everything in the file is on the medium when this returns, and whoever waits for that is told. The caller has a lock
    /// of SQLite's that keeps the log from a reset, or is alone.
    /// # Errors
    /// `sync` failed, and the log is poisoned; or recovered frames could not be made certain, and nothing was done.
    pub fn flush(&self, file: &dyn DiskFile, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        let covers = self.group_commit.is_outstanding().then(|| self.group_commit.issued());
        self.sync(file, wal_index)?;
        if let Some(covers) = covers {
            self.group_commit.covered(covers);
        }
        Ok(())
    }

    /// The same for whoever leads a shared flush: `GroupCommit::wait` tells the others.
    /// # Errors
    /// As `flush`.
    pub fn sync(&self, file: &dyn DiskFile, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        let uncertain = self.uncertain.load(SeqCst);
        if uncertain {
            rewrite::published(file, wal_index.and_then(WalIndex::published_end), Writers::Others)?;
        }
        // Before the flush: what is published meanwhile may not be covered.
        let published = wal_index.and_then(WalIndex::published);
        self.timed_sync(file)?;
        // Another one failed in front of it, or meanwhile: it may have dropped what this one was to write.
        self.check()?;
        if uncertain {
            self.uncertain.store(false, SeqCst);
        }
        if let Some(published) = published {
            self.known.flushed(published);
        }
        Ok(())
    }

    /// The kernel tells one sync of an open file that a write was lost, and calls the next one a success. So one that begins while
    /// another runs, which a thread of ours may do with the same file, would vouch for what that one knows to be lost. Not for syncs of
    /// the filesystem: those take no error away from the file.
    fn turn(&self) -> Option<TurnHeld<'_>> {
        // A thread of the parent that has the turn is none of the child's.
        let is_alone = self.origin.is_parent() || planted::is(Bug::SyncsOverlap);
        (!is_alone).then(|| self.turn.take())
    }

    fn in_turn(&self, what: &str, sync: impl FnOnce() -> io::Result<()>) -> Result<(), Failure> {
        let _turn = self.turn();
        sync().map_err(|error| self.poison(what, error))
    }

    fn timed_sync(&self, file: &dyn DiskFile) -> Result<(), Failure> {
        self.in_turn("sync", || self.timed(|| file.sync_data()))
    }

    fn timed(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.no_sync {
            return Ok(());
        }
        let began = Instant::now();
        let mark = self.unsynced.flush_begins(began);
        let result = sync();
        self.stats.flush_times.record(began.elapsed());
        Stats::add(&self.stats.flushes, 1);
        if result.is_ok() && self.poison.get().is_none() {
            self.unsynced.covered(mark);
        }
        result
    }

    /// Commits of this process that no flush of it covers yet; `None` where there are none.
    pub fn not_durable(&self) -> Option<NotDurable> {
        let deferred = self.group_commit.not_durable();
        let Some(unsynced) = self.unsynced.not_durable() else { return deferred };
        let add = |deferred: NotDurable| NotDurable {
            bytes: deferred.bytes + unsynced.bytes,
            since: deferred.since.min(unsynced.since),
        };
        Some(deferred.map_or(unsynced, add))
    }

    /// Reserves a piece of space by `extend` and flushes it, on a thread of its own: whoever waits for the frames in front of it is told,
    /// too. Both in one turn: a commit that waits would have to write this piece with its own frames.
    /// # Errors
    /// Those of `extend`: nothing was flushed.
    pub fn grow(&self, file: &dyn DiskFile, extend: impl FnOnce() -> io::Result<()>) -> io::Result<Grown> {
        let _turn = self.turn();
        let began = Instant::now();
        extend()?;
        let is_synced = self.no_sync || self.sync_growth(file).is_ok();
        Ok(if is_synced { Grown::Synced(began.elapsed()) } else { Grown::NotSynced })
    }

    /// In its caller's turn.
    /// # Errors
    /// As `flush_unlocked`. It may be another's loss: it is reported to this open file, and maybe to no other.
    fn sync_growth(&self, file: &dyn DiskFile) -> Result<(), Failure> {
        let covers =
            (self.group_commit.is_outstanding() && !self.is_uncertain()).then(|| self.group_commit.issued());
        Stats::add(&self.stats.growth_flushes, 1);
        let mark = self.unsynced.flush_begins(Instant::now());
        file.sync_data().map_err(|error| self.poison("sync of a growth", error))?;
        if self.poison.get().is_none() && !self.is_uncertain() {
            self.unsynced.covered(mark);
        }
        if let Some(covers) = covers {
            self.group_commit.covered(covers);
        }
        Ok(())
    }

    /// COMMIT told this one's writer that it failed.
    pub fn note_failed(&self, commit: Prefix) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(commit);
    }

    /// For a commit that is published next and waits for its flush, until its COMMIT returns.
    pub fn untold(&self) -> Arc<()> {
        Arc::clone(&self.untold)
    }

    /// True while a commit that is published may still be noted.
    pub fn is_any_untold(&self) -> bool {
        Arc::strong_count(&self.untold) > 1
    }

    /// Until when no attempt to take failed commits back may keep readers out.
    pub fn rest_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.rest_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True for a commit that was noted.
    pub fn has_failed(&self, commit: Prefix) -> bool {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).contains(&commit)
    }

    /// A commit of `generation` is about to leave its flush to somebody without a lock. `None`: it is unknown.
    pub fn note_generation(&self, generation: Option<Salts>) {
        *self.generation() = generation;
    }

    /// This process begins the log anew: `write` writes its header, with the salts of `generation`. All that the log had before is in the
    /// database, and that on the medium: flushes without a lock go on with the new log, and never see the one without the other.
    /// # Errors
    /// Those of `write`.
    pub fn begin_anew(&self, generation: Salts, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut noted = self.generation();
        write()?;
        *noted = Some(generation);
        Ok(())
    }

    /// This process cuts the log to nothing by `cut`: all that it had is in the database, and that on the medium. Until the next commit is
    /// noted no flush without a lock has anything to vouch for.
    /// # Errors
    /// Those of `cut`.
    pub fn empty(&self, cut: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut noted = self.generation();
        cut()?;
        *noted = None;
        Ok(())
    }

    /// True where the log was begun anew, or cut, since the commit that was noted.
    pub fn was_begun_anew(&self, file: &dyn DiskFile) -> bool {
        let noted = self.generation();
        let Some(generation) = *noted else { return false };
        let mut salts = [0; 8];
        // What cannot be read is the flush's to tell.
        file.read_at(&mut salts, LOG_SALTS_AT).is_ok_and(|_| Salts(salts) != generation)
    }

    fn generation(&self) -> MutexGuard<'_, Option<Salts>> {
        self.generation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has no lock may come when another process has copied his commits into the database and begun the log anew. Where it did so by
    /// a checkpoint with `synchronous=OFF` the database is not synced, and must be, before or together with the new log.
    fn sync_unlocked(&self, file: &dyn DiskFile) -> Result<(), Failure> {
        if !self.was_begun_anew(file) {
            self.timed_sync(file)?;
            if !self.was_begun_anew(file) {
                return Ok(());
            }
        }
        Stats::add(&self.stats.filesystem_flushes, 1);
        self.timed(|| file.sync_filesystem()).map_err(|error| self.poison("sync of the filesystem", error))
    }

    /// Makes everything in the file durable without any lock of SQLite's, together with whoever waits for that. What calls this is
    /// due: no leader puts the flush off for others who may join.
    /// `is_database_synced`: what the log builds on is durable.
    /// # Errors
    /// The log is poisoned, and its published frames are written over themselves (`rewrite`) by the next who has a lock that
    /// keeps them in place. Or recovered frames are uncertain, which only a lock can mend: then nothing was done.
    pub fn flush_unlocked(&self, file: &dyn DiskFile, is_database_synced: bool) -> Result<(), Failed> {
        if self.is_uncertain() {
            return Err(Failed);
        }
        let sync = || {
            let done = if is_database_synced { self.timed_sync(file) } else { self.sync_unlocked(file) };
            done.map_err(|_| Failed)
        };
        self.group_commit.wait(self.group_commit.hurry(), &Arc::default(), sync).map(|_| ())
    }

    /// One write of whole blocks past the page cache that is on the medium when this returns; false, and nothing done, where
    /// the file takes none.
    /// # Errors
    /// The log is poisoned: its first block holds frames in front of these, too.
    pub fn write_durable(&self, file: &dyn DiskFile, blocks: &[u8], base: u64) -> Result<bool, Failure> {
        let began = Instant::now();
        match file.write_durable(blocks, base) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(false),
            // A full disk, or a limit of the process: refused before anything was written.
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Err(Failure::Write(error)),
            Err(error) => match Failure::from(error) {
                Failure::Io(error) => return Err(self.poison("direct write", error)),
                full => return Err(full),
            },
            Ok(()) => {}
        }
        self.stats.flush_times.record(began.elapsed());
        for count in [&self.stats.flushes, &self.stats.durable_writes, &self.stats.writes] {
            Stats::add(count, 1);
        }
        Stats::add(&self.stats.bytes_written, blocks.len() as u64);
        Ok(true)
    }

    /// True where everything up to `published`, which the wal-index has now, is on the medium.
    pub fn is_known(&self, published: Prefix) -> bool {
        !self.is_uncertain() && self.known.covers(published)
    }

    /// SQLite is about to recover this log, and nobody else can use it meanwhile: what it will find is made durable
    /// first. After a failed sync, or a kill before one, the page cache may hold frames that the medium does not have
    /// and that no later sync would write, because their pages count as clean; commits built on them would be lost
    /// with them. So the valid frames are written over themselves, past the page cache. Where that fails (a full disk),
    /// reads go on, and each flush tries again before it promises anything. What the frames build on comes first:
    /// `database_first` syncs the database.
    pub fn make_certain(&self, file: &dyn DiskFile, database_first: impl FnOnce() -> Result<(), Failure>) {
        self.uncertain.store(true, SeqCst);
        let certain = rewrite::valid_end(file).map_err(Failure::from).and_then(|end| {
            if end > 0 {
                database_first()?;
                rewrite::over_itself(file, end)?;
            }
            Ok(end)
        });
        let synced = match certain {
            Ok(0) => Ok(()),
            // It may have dropped them once more.
            Ok(end) => {
                self.sync_until_there(file, end).inspect_err(|_| self.write_again(file, None, Writers::None))
            }
            Err(failure) => Err(failure),
        };
        match synced {
            Ok(()) => self.uncertain.store(false, SeqCst),
            Err(failure) => self.stats.error(&format!("cannot make the recovered log certain: {failure}")),
        }
    }

    /// Syncs, and looks whether the medium has the frames; those that it lacks are written and synced anew.
    fn sync_until_there(&self, file: &dyn DiskFile, end: u64) -> Result<(), Failure> {
        const TIMES: usize = 3;
        for _ in 0..TIMES {
            self.timed_sync(file)?;
            if !file.write_what_is_missing(end)? {
                // What failed behind them is none of theirs, and is not to be built on.
                file.forget_cached(end);
                return Ok(());
            }
        }
        Err(Failure::Sync(io::Error::other("the medium does not have what was synced")))
    }

    /// True where recovered frames may not be on the medium though every read shows them.
    pub fn is_uncertain(&self) -> bool {
        self.uncertain.load(SeqCst)
    }

    /// Writes the published frames over themselves, while a lock of SQLite's, or that nobody else is there, keeps them in place. Where
    /// that fails the next one tries again. And syncs them: another process may have had a sync that began before, and its COMMIT may
    /// have returned, though it lies behind what was lost. Where that sync fails as well they are written once more, for whoever
    /// syncs next: a disk that fails for good is not asked at each read. The log is poisoned already.
    pub fn write_again(&self, file: &dyn DiskFile, published_end: Option<u64>, writers: Writers) {
        // First: what fails on another thread meanwhile is owed again.
        self.rewrite_owed.store(false, SeqCst);
        let write = || rewrite::published(file, published_end, writers);
        let sync = || {
            let _turn = self.turn();
            self.timed(|| file.sync_data())
        };
        if write().is_err() || (sync().is_err() && write().is_err()) {
            self.rewrite_owed.store(true, SeqCst);
        }
    }

    /// A commit that failed was made none by a write: it is on the medium when this returns, as far as that can be had.
    pub fn sync_taken_back(&self, file: &dyn DiskFile) {
        // The log is poisoned already.
        let _ = self.in_turn("sync of what was taken back", || file.sync_data());
    }

    /// True once after something failed where nobody had a lock.
    pub fn take_owed_rewrite(&self) -> bool {
        self.rewrite_owed.load(SeqCst) && self.rewrite_owed.swap(false, SeqCst)
    }
}

#[cfg(test)]
#[path = "tests/flush.rs"]
mod tests;
