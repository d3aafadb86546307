//! The read side of a connection: its snapshot, and the flush that this needs under `waldio_durable_reads` (`durable_reads`).

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::{Connection, HandleState};
use crate::failure::Failure;
use crate::ffi::codes::WAL_READ_LOCK_0;
use crate::ffi::wal_index::{LogView, WalIndex};
use crate::log::frame::{Salts, Version};
use crate::log::rewrite::Writers;
use crate::testing::planted::{self, Bug};

/// No log has so many frames.
pub(super) const NO_SNAPSHOT: u64 = u64::MAX;

impl HandleState {
    /// True where another connection committed after the snapshot was taken.
    pub(super) fn is_stale(&self) -> bool {
        self.snapshot.is_some() && self.snapshot != self.wal_index.map(WalIndex::newest)
    }

    fn is_known_durable(&self, version: Version) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_known_durable(version))
    }

    fn is_published_durable(&self) -> bool {
        let published = self.wal_index.and_then(WalIndex::published);
        let log = self.log.as_ref().zip(published);
        log.is_some_and(|(log, published)| log.session().durability.is_known(published))
    }

    /// The write lock is about to be given back: what SQLite's page cache holds is of the newest state, which is known to be
    /// on the medium where it was synced before it was published.
    pub(super) fn note_published(&mut self) {
        let Some(wal_index) = self.wal_index else { return };
        self.reads.published(wal_index.newest());
        self.is_published_durable();
    }
}

impl Connection {
    /// A shared read lock was granted: SQLite has a snapshot, of the database alone where `slot` is the lock that
    /// readers without a log have.
    /// # Errors
    /// With `waldio_durable_reads`: the snapshot may not be on the medium; the log is poisoned. SQLite has the lock.
    pub fn read_lock_granted(&self, slot: i32) -> Result<(), Failure> {
        let Ok(mut state) = self.state() else { return Ok(()) };
        let wal_index = state.wal_index;
        let newest = wal_index.map(WalIndex::newest);
        state.snapshot = newest;
        self.note_snapshot(newest);
        state.copy_synced = false;
        if !state.holds_write()
            && let Some(log) = state.log.as_mut()
        {
            // A transaction begins. The last one may have ended in exclusive mode, where a rollback is no call.
            log.end_write(None);
            self.note_pending(log);
        }
        // The lock keeps the log from a reset.
        if slot > WAL_READ_LOCK_0
            && let Some(log) = state.log.as_mut()
            && log.session().durability.take_owed_rewrite()
        {
            log.write_again(wal_index.and_then(WalIndex::published_end), Writers::Others);
        }
        let (true, Some(newest)) = (self.reads_durably(), newest) else { return Ok(()) };
        let from_cache = state.reads.may_answer_from_cache(newest);
        let durable = slot == WAL_READ_LOCK_0
            || state.wal_index.is_some_and(|wal_index| wal_index.is_copied(newest))
            || state.is_published_durable();
        state.reads.begin(newest, durable);
        self.may_be_volatile.store(state.reads.is_volatile(), Relaxed);
        if from_cache && !durable { self.make_durable(&mut state) } else { Ok(()) }
    }

    /// The generation of the log: its salts in the wal-index, where there is one.
    pub fn generation(&self) -> Option<Salts> {
        Some(self.state().ok()?.wal_index?.salts())
    }

    /// What the wal-index tells of the log, for any thread. `None` where the connection has none, or is at work in another thread: that may
    /// last as long as a flush.
    pub fn log_view(&self) -> Option<LogView> {
        self.state.try_lock().ok()?.wal_index?.log_view()
    }

    /// The newest commit when its transaction began, for any thread: its generation, folded, and its frames. `None` where it is in none.
    pub fn snapshot(&self) -> Option<(u32, u32)> {
        let snapshot = self.snapshot_now.load(Relaxed);
        let half = |value: u64| u32::try_from(value & u64::from(u32::MAX)).ok();
        if snapshot == NO_SNAPSHOT { None } else { half(snapshot >> 32).zip(half(snapshot)) }
    }

    fn note_snapshot(&self, snapshot: Option<Version>) {
        let noted = snapshot.map_or(NO_SNAPSHOT, |version| {
            u64::from(version.salts.folded()) << 32 | u64::from(version.frames)
        });
        self.snapshot_now.store(noted, Relaxed);
    }

    /// A shared read lock is about to be given back.
    pub fn before_read_unlock(&self) {
        let Ok(mut state) = self.state() else { return };
        state.snapshot = None;
        self.note_snapshot(None);
        // Where the snapshot is durable no page asked for a flush, so what its first page was excused from must not go to the next one.
        if self.may_be_volatile.swap(false, Relaxed)
            && let Some(version) = state.reads.end()
            && !state.is_known_durable(version)
        {
            // A failure poisons, and the next statement says so.
            let _ = self.make_durable(&mut state);
        }
    }

    /// A page is about to be read: with `waldio_durable_reads` the snapshot is durable when this returns.
    /// # Errors
    /// It may not be on the medium; the log is poisoned.
    pub fn before_page(&self) -> Result<(), Failure> {
        if !self.may_be_volatile.load(Relaxed) {
            return Ok(());
        }
        let mut state = self.state()?;
        let holds_write = state.holds_write();
        let Some(version) = state.reads.read(holds_write) else { return Ok(()) };
        if state.is_known_durable(version) {
            state.reads.made_durable();
            self.may_be_volatile.store(false, Relaxed);
            return Ok(());
        }
        self.make_durable(&mut state)
    }

    /// Makes all that is published durable; the caller has a read lock that keeps the log from a reset.
    fn make_durable(&self, state: &mut HandleState) -> Result<(), Failure> {
        if planted::is(Bug::ReadsDoNotWait) {
            return Ok(());
        }
        let began = Instant::now();
        let wal_index = state.wal_index;
        let log = state.log.as_mut().ok_or_else(|| Failure::Poisoned("the log is not open".to_owned()))?;
        log.flush_all(wal_index)?;
        self.database.stats.read_waits.record(began.elapsed());
        state.reads.made_durable();
        self.may_be_volatile.store(false, Relaxed);
        Ok(())
    }
}
