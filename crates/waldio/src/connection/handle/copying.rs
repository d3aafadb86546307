//! Checkpoints of a connection: frames are copied into the database, and then the log may be begun anew.

use std::sync::atomic::Ordering::Relaxed;

use super::{Connection, HandleState};
use crate::failure::Failure;
use crate::ffi::codes::{LockRange, WAL_LOG_READ_LOCKS, WAL_READ_LOCK_0};
use crate::ffi::wal_index::WalIndex;
use crate::log::frame::Version;
use crate::stats::Stats;

impl HandleState {
    /// The newest state of the log, where all of it is copied into the database.
    fn copied(&self) -> Option<Version> {
        let wal_index = self.wal_index?;
        let newest = wal_index.newest();
        wal_index.is_copied(newest).then_some(newest)
    }
}

impl Connection {
    /// `SQLITE_FCNTL_CKPT_START`: frames are copied into the database next, once SQLite has synced the log. With
    /// `synchronous=OFF` it does not: the first page finds out.
    pub fn checkpoint_begins(&self) {
        Stats::add(&self.database.stats.checkpoints, 1);
        self.copies_next.store(true, Relaxed);
    }

    /// True for the first page of a checkpoint in front of which nobody synced the log.
    pub fn takes_first_page(&self) -> bool {
        self.copies_next.load(Relaxed) && self.copies_next.swap(false, Relaxed)
    }

    /// True where there is no log of ours, or all that is published is known to be on the medium.
    pub fn is_log_durable(&self) -> bool {
        let Ok(state) = self.state() else { return false };
        state.log.as_ref().is_none_or(|log| log.is_all_durable(state.wal_index))
    }

    /// Frames are about to be copied into the database.
    /// # Errors
    /// They may not be on the medium; the log is poisoned.
    pub fn before_checkpoint(&self) -> Result<(), Failure> {
        let mut state = self.state()?;
        let wal_index = state.wal_index;
        state.log.as_mut().map_or(Ok(()), |log| log.before_checkpoint(wal_index))
    }

    /// SQLite synced the database: its checkpoint has copied every frame.
    pub fn database_synced(&self) {
        if let Ok(mut state) = self.state() {
            state.copy_synced = true;
        }
    }

    /// True where checkpoints have copied frames of the log, or nobody knows: in exclusive locking mode.
    pub fn has_copied(&self) -> bool {
        let Ok(state) = self.state() else { return true };
        match state.wal_index {
            Some(wal_index) => wal_index.frames_and_copied().1 > 0,
            None => state.log.is_some(),
        }
    }

    /// True while this connection has the checkpoint lock.
    pub fn is_checkpointing(&self) -> bool {
        self.state().is_ok_and(|state| state.guard.is_checkpointing())
    }

    /// No frame counts as copied any more. The checkpoint lock is held.
    pub fn forget_copies(&self) {
        if let Ok(state) = self.state()
            && let Some(wal_index) = state.wal_index
        {
            wal_index.put_copied(0);
        }
    }

    /// True where the database is known to hold, on the medium, everything that the log's frames are copied to.
    pub fn is_copy_synced(&self) -> bool {
        let Ok(state) = self.state() else { return false };
        let synced = &self.database.synced;
        let is_known = |newest| synced.is_synced_up_to(newest);
        // Without locks of the wal-index nobody else is there, and its frames are not told apart by its header.
        state.copy_synced && synced.unsynced_bytes() == 0
            || state.wal_index.map(WalIndex::newest).is_some_and(is_known)
    }

    /// The database was synced, and the write lock is held: what is copied stays synced.
    pub fn note_copy_synced(&self) {
        if let Ok(state) = self.state()
            && let Some(newest) = state.copied()
        {
            *self.database.synced.copied() = Some(newest);
        }
    }

    /// True where SQLite writes without locks of the wal-index: in exclusive locking mode, and at the last close.
    pub fn writes_without_lock(&self) -> bool {
        self.state().is_ok_and(|state| !state.holds_write())
    }

    /// Exclusive read locks are about to be given back: `count` from `slot`.
    pub fn before_read_unlock_of_all(&self, slot: i32, count: i32) {
        let Ok(mut state) = self.state() else { return };
        let Some(newest) = state.wal_index.map(WalIndex::newest) else { return };
        // A checkpoint is over. It synced the database if it left no frame behind, and has said so in the wal-index now.
        if slot == WAL_READ_LOCK_0 && std::mem::take(&mut state.copy_synced) {
            *self.database.synced.copied() = state.copied();
        }
        // The log was begun anew, and the database synced before these locks were granted.
        if (LockRange { slot, count }) == WAL_LOG_READ_LOCKS && newest.frames == 0 {
            *self.database.synced.since() = Some(newest.salts);
        }
    }
}
