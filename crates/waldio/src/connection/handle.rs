//! One connection's database file, its log and what lies between them: locks of the wal-index and file controls.
//!
//! SQLite uses a connection from one thread at a time; the mutex costs some ten nanoseconds and turns a panic that
//! happened inside into I/O errors instead of half-changed state.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blockio::disk::DiskFile;

use crate::checkpoint::reset_guard::ResetGuard;
use crate::connection::log_file::{LogFile, Share};
use crate::database::Database;
use crate::durability::durable_reads::DurableReads;
use crate::durability::log_session::LogSession;
use crate::failure::Failure;
use crate::ffi::codes::{WAL_CKPT_LOCK, WAL_READ_LOCK_0, WAL_RECOVER_LOCK, WAL_WRITE_LOCK};
use crate::ffi::wal_index::WalIndex;
use crate::log::frame::{FRAME_HEADER_BYTES, Version};
use crate::log::layout::{Layout, frame_at};
use crate::options::{DurabilityChoice, Options};
use crate::stats::Stats;
use crate::testing::planted::{self, Bug};
use crate::threads::primitives::now;
use crate::write_lock::busy_timeout::BusyTimeout;
use crate::write_lock::queue_state::Sleeper;

use early_lock::EarlyLock;

mod copying;
mod checkpoints;
mod early_lock;
mod failed_commits;
mod reading;
mod settings;
mod waiting;

pub use checkpoints::Way;

/// The database file that one connection has open.
#[derive(Debug)]
pub struct Connection {
    /// The database it is connected to.
    pub database: Arc<Database>,
    state: Mutex<HandleState>,
    /// Bytes of the log wait. Written under the mutex by the thread that uses the connection, and read by
    /// the same thread without it: `xShmBarrier` or a read with nothing pending must cost nothing.
    pending: AtomicBool,
    /// Its number in this process.
    id: usize,
    sleeper: Arc<Sleeper>,
    busy_timeout: Mutex<BusyTimeout>,
    /// The write lock that it got in its sleep.
    early_lock: EarlyLock,
    /// The snapshot under way, for any thread: its generation, folded, and its frames.
    snapshot_now: AtomicU64,
    /// The snapshot under way may not be durable: as `pending`, for a look without the mutex.
    may_be_volatile: AtomicBool,
    /// SQLite waits for locks inside the base VFS (builds with `SQLITE_ENABLE_SETLK_TIMEOUT`).
    blocks_in_base: AtomicBool,
    /// What this connection asked for: another one's options neither weaken nor strengthen what its commits promise.
    options: Mutex<Options>,
    /// Where SQLite has its file, for who may use it there.
    main_file: AtomicUsize,
    /// As `LogFile::is_unsynced`, for any thread.
    is_unsynced: AtomicBool,
    /// What of its options the log does not have.
    not_had: Mutex<Option<String>>,
    /// The base VFS opened the database for reading only.
    reads_only: AtomicBool,
    reads_only_wal_index: AtomicBool,
    /// A checkpoint begins, and nobody synced the log since: as `pending`, for a look without the mutex.
    copies_next: AtomicBool,
    /// Its COMMIT failed, and it ended no transaction since.
    commit_failed: AtomicBool,
}

#[derive(Debug, Default)]
struct HandleState {
    wal_index: Option<WalIndex>,
    guard: ResetGuard,
    log: Option<LogFile>,
    publish_failed: bool,
    write_lock: WriteLock,
    /// The newest commit when SQLite took its snapshot.
    snapshot: Option<Version>,
    /// SQLite synced the database behind its checkpoint, and took no lock of the wal-index since.
    copy_synced: bool,
    reads: DurableReads,
}

/// The write lock, as one connection has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum WriteLock {
    #[default]
    NotHeld,
    Held,
    /// Others wanted it when this connection got it, or had it a moment before.
    Contended,
}

impl HandleState {
    fn holds_write(&self) -> bool {
        self.write_lock != WriteLock::NotHeld
    }
}

/// What became of an exclusive wal-index lock that the base VFS granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// SQLite may have it.
    Keep,
    /// Give it back and answer BUSY: the log was reset under a checkpoint.
    TakeBack,
    /// SQLite may have it: the write lock.
    KeepToWrite,
    /// SQLite gives it back at once (`SQLITE_BUSY_SNAPSHOT`); if its transaction only begins, the busy handler naps next.
    KeepInVain,
}

impl Connection {
    /// A connection whose log is not open yet.
    pub fn new(database: Arc<Database>, options: Options) -> Connection {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        Connection {
            database,
            state: Mutex::default(),
            pending: AtomicBool::new(false),
            id: NEXT.fetch_add(1, Relaxed),
            sleeper: Arc::default(),
            busy_timeout: Mutex::default(),
            early_lock: EarlyLock::default(),
            snapshot_now: AtomicU64::new(reading::NO_SNAPSHOT),
            may_be_volatile: AtomicBool::new(false),
            blocks_in_base: AtomicBool::new(false),
            options: Mutex::new(options),
            main_file: AtomicUsize::new(0),
            is_unsynced: AtomicBool::new(false),
            not_had: Mutex::default(),
            reads_only: AtomicBool::new(false),
            reads_only_wal_index: AtomicBool::new(false),
            copies_next: AtomicBool::new(false),
            commit_failed: AtomicBool::new(false),
        }
    }

    /// Notes the address of SQLite's file structure for this connection.
    pub fn set_main_file(&self, address: usize) {
        self.main_file.store(address, Relaxed);
    }

    /// That address.
    pub fn main_file(&self) -> usize {
        self.main_file.load(Relaxed)
    }

    /// Fails after a panic in an earlier call on this connection.
    fn state(&self) -> Result<MutexGuard<'_, HandleState>, Failure> {
        let broken = || Failure::Poisoned("an internal error in waldio; its message is on stderr".to_owned());
        self.state.lock().map_err(|_| broken())
    }

    /// Opens the log and returns its file and session; see `Database::open_log_as`.
    /// # Errors
    /// Nothing is open. `InvalidData`: the log has another layout.
    pub fn log_open(
        &self,
        create: bool,
        layout: Layout,
        begins: bool,
    ) -> io::Result<(Arc<dyn DiskFile>, Arc<LogSession>)> {
        let mut state = self.state().map_err(|failure| io::Error::other(failure.to_string()))?;
        if state.log.is_some() {
            return Err(io::Error::other("this connection has a log open already"));
        }
        let (session, file) = self.database.open_log_as(create, layout, begins)?;
        *self.not_had.lock().unwrap_or_else(PoisonError::into_inner) =
            self.options().not_had(&session.options);
        let (database, shared) = (Arc::clone(&self.database), Arc::clone(&session));
        state.log = Some(LogFile::new(database, shared, Arc::clone(&file)));
        Ok((file, session))
    }

    /// True where bytes of the log wait, in memory or for a sync.
    pub fn is_pending(&self) -> bool {
        self.pending.load(Relaxed)
    }

    /// Closes the log.
    pub fn log_close(&self) {
        let log = self.state().ok().and_then(|mut state| state.log.take());
        if let Some(log) = log {
            *self.not_had.lock().unwrap_or_else(PoisonError::into_inner) = None;
            self.database.close_log(log.session(), log.file());
        }
    }

    fn with_log<T>(
        &self,
        act: impl FnOnce(&mut LogFile, Option<WalIndex>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut state = self.state()?;
        let wal_index = state.wal_index;
        let log = state.log.as_mut().ok_or_else(|| Failure::Poisoned("the log is not open".to_owned()))?;
        let result = act(log, wal_index);
        self.note_pending(log);
        result
    }

    /// `xRead` of the log. `database_first` syncs the database, where the log is recovered next.
    /// # Errors
    /// As `LogFile::read`.
    pub fn log_read(
        &self,
        into: &mut [u8],
        offset: u64,
        database_first: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
        self.with_log(|log, wal_index| {
            // Without a wal-index (exclusive locking mode) recovery shows only by its reading the header.
            if offset == 0 && wal_index.is_none() {
                log.make_certain(database_first);
            }
            log.read(into, offset, wal_index)
        })
    }

    /// True where a read of `len_bytes` at `offset` is one of a page, and its frame has no header.
    pub fn is_reserved_page(&self, len_bytes: usize, offset: u64) -> bool {
        let mut header = [0; 24];
        let Some(start) = offset.checked_sub(FRAME_HEADER_BYTES) else { return false };
        let read = self.with_log(|log, wal_index| {
            let page_bytes = wal_index.and_then(WalIndex::page_bytes);
            let is_page = page_bytes.is_some_and(|bytes| bytes as usize == len_bytes);
            let is_there = page_bytes.is_some_and(|bytes| frame_at(start, bytes).is_some());
            if is_page && is_there { log.read(&mut header, start, wal_index) } else { Ok(0) }
        });
        read.is_ok_and(|read| read == header.len()) && header == [0; 24]
    }

    /// `xWrite` of the log.
    /// # Errors
    /// As `LogFile::write`.
    pub fn log_write(&self, data: &[u8], offset: u64) -> Result<(), Failure> {
        self.with_log(|log, wal_index| log.write(data, offset, wal_index))
    }

    /// Notes whether bytes wait, and whether commits are unsynced, after each call that may change it.
    fn note_pending(&self, log: &LogFile) {
        self.pending.store(log.is_pending(), Relaxed);
        self.is_unsynced.store(log.is_unsynced(), Relaxed);
    }

    /// `xSync` of the log.
    /// # Errors
    /// As `LogFile::sync`.
    pub fn log_sync(&self) -> Result<(), Failure> {
        let mut state = self.state()?;
        let checkpointing = state.guard.is_checkpointing();
        let contended = state.write_lock == WriteLock::Contended || self.database.queue.is_awaited();
        let (wal_index, holds_write) = (state.wal_index, state.holds_write());
        let log = state.log.as_mut().ok_or_else(|| Failure::Poisoned("the log is not open".to_owned()))?;
        let alone = self.database.helpers.super_journals.is_any_open();
        let share = match self.options().durability {
            DurabilityChoice::Normal if holds_write => Share::Leave,
            _ if alone => Share::No,
            DurabilityChoice::Bounded(delay) if holds_write => Share::FlushDelay(delay),
            _ if holds_write && self.shares_commits() && (contended || log.is_flush_awaited()) => Share::Wait,
            _ => Share::No,
        };
        let result = log.sync(checkpointing, share, wal_index);
        self.note_pending(log);
        if result.is_ok() {
            self.copies_next.store(false, Relaxed);
        } else if let (Some(attempted), Some(wal_index)) = (state.guard.attempted(), wal_index) {
            // SQLite announced what it would copy next, and gives the checkpoint up.
            wal_index.put_attempted(attempted);
        }
        result
    }

    /// `xTruncate` of the log.
    /// # Errors
    /// As `LogFile::truncate`.
    pub fn log_truncate(&self, size_bytes: u64) -> Result<(), Failure> {
        self.with_log(|log, _| log.truncate(size_bytes))
    }

    /// `xFileSize` of the log.
    /// # Errors
    /// As `LogFile::size`.
    pub fn log_size(&self) -> Result<u64, Failure> {
        self.with_log(|log, _| log.size())
    }

    /// Region 0 of the wal-index was mapped, or is about to be unmapped (`None`); returns what was mapped until now.
    pub fn set_wal_index(&self, wal_index: Option<WalIndex>) -> Option<WalIndex> {
        std::mem::replace(&mut self.state().ok()?.wal_index, wal_index)
    }

    /// Exclusive wal-index locks are wanted, `count` from `slot`. On a poisoned log neither a writer nor a checkpoint may begin.
    /// # Errors
    /// `Poisoned`.
    pub fn before_exclusive_lock(&self, slot: i32, count: i32) -> Result<(), Failure> {
        if slot != WAL_WRITE_LOCK && slot != WAL_CKPT_LOCK {
            return Ok(());
        }
        let state = self.state()?;
        // A reader that finds no wal-index to read makes it anew, with the locks of a writer and of a recovery.
        let is_unmade = |index: WalIndex| index.page_bytes().is_none() || index.published().is_none();
        if (slot, count) != (WAL_CKPT_LOCK, 1) && state.wal_index.is_some_and(is_unmade) {
            return Ok(());
        }
        match &state.log {
            Some(log) => log.session().durability.check(),
            None => self.database.check_poison(),
        }
    }

    /// The base VFS granted an exclusive lock on `count` slots from `slot`: where the recovery lock is among them,
    /// SQLite recovers the log next, and what it finds must be certain before anything is built on it.
    /// # Errors
    /// Only after a panic in an earlier call.
    pub fn before_recovery(
        &self,
        slot: i32,
        count: i32,
        database_first: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if (slot..slot + count).contains(&WAL_RECOVER_LOCK)
            && let Some(log) = self.state()?.log.as_mut()
        {
            log.make_certain(database_first);
        }
        Ok(())
    }

    /// The base VFS granted an exclusive wal-index lock.
    pub fn exclusive_lock_granted(&self, slot: i32) -> Granted {
        let Ok(mut state) = self.state() else { return Granted::Keep };
        state.copy_synced = false;
        let salts = state.wal_index.map(WalIndex::salts);
        if slot == WAL_CKPT_LOCK {
            let wal_index = state.wal_index;
            state.guard.remember(wal_index);
        }
        if slot == WAL_WRITE_LOCK {
            state.write_lock = WriteLock::Held;
            if let Some(log) = state.log.as_mut() {
                // What an earlier transaction left waits for nobody.
                log.end_write(None);
                self.note_pending(log);
            }
            state.reads.asked_to_write();
            if self.queues() && state.is_stale() {
                self.database.queue.granted_in_vain(self.id);
                self.busy_timeout().refused(true);
                return Granted::KeepInVain;
            }
            if self.database.queue.granted(self.id, now()) {
                state.write_lock = WriteLock::Contended;
            }
            self.busy_timeout().granted(state.snapshot.is_some());
            return Granted::KeepToWrite;
        }
        // With the write lock in its own hand a checkpoint needs no guard: nobody else can reset the log.
        let unguarded = state.holds_write() || planted::is(Bug::ResetGuardOff);
        if slot == WAL_READ_LOCK_0 && !unguarded && !state.guard.allows(salts) {
            Stats::add(&self.database.stats.resets_caught, 1);
            return Granted::TakeBack;
        }
        Granted::Keep
    }

    /// A wal-index lock is about to be given back.
    pub fn before_unlock(&self, slot: i32) {
        let delay = self.options().durability.delay();
        let Ok(mut state) = self.state() else { return };
        if slot == WAL_CKPT_LOCK {
            state.guard.forget();
        }
        if slot == WAL_WRITE_LOCK {
            state.write_lock = WriteLock::NotHeld;
            if state.guard.is_checkpointing() {
                // A checkpoint that found the wal-index broken recovered it under this lock: the header that it
                // works from is the one of now.
                let wal_index = state.wal_index;
                state.guard.remember(wal_index);
            }
            state.note_published();
            if let Some(log) = state.log.as_mut() {
                log.end_write(delay);
                self.note_pending(log);
            }
        }
    }

    /// `xShmBarrier`: frames may be published next.
    pub fn shm_barrier(&self) {
        if !self.pending.load(Relaxed) {
            return;
        }
        let Ok(mut state) = self.state() else { return };
        let HandleState { log, publish_failed, wal_index, .. } = &mut *state;
        if let Some(log) = log.as_mut() {
            // `xShmBarrier` returns nothing; COMMIT will, in its second phase.
            *publish_failed |= log.before_publish(*wal_index).is_err();
            self.note_pending(log);
        }
    }

    /// `SQLITE_FCNTL_COMMIT_PHASETWO`: its result becomes COMMIT's. In exclusive locking mode, where no lock is
    /// given back, nothing else tells that the transaction is over.
    /// # Errors
    /// Frames were published that could not be written.
    pub fn commit_phase_two(&self) -> Result<(), Failure> {
        let delay = self.options().durability.delay();
        let mut state = self.state()?;
        let wal_index = state.wal_index;
        if let Some(log) = state.log.as_mut() {
            log.before_publish(wal_index)?;
            log.end_commit(delay);
            self.note_pending(log);
            if log.awaits_flush() {
                self.database.queue.note_pause(self.id);
            }
            log.await_flush(wal_index).inspect_err(|_| self.commit_failed.store(true, Relaxed))?;
        }
        if std::mem::take(&mut state.publish_failed) {
            return Err(Failure::Poisoned("frames were published that could not be written".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "handle/tests/bench.rs"]
mod bench;
#[cfg(test)]
pub(crate) use bench::connection as tests_connection;
#[cfg(test)]
#[path = "handle/tests/mod.rs"]
mod tests;
