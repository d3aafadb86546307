//! Closes the WAL-reset corruption of every SQLite before 3.51.3.
//!
//! There a checkpoint works from the log header that it read after taking the checkpoint lock. A writer needs no
//! checkpoint lock to reset the log. If it does so between that read and the moment the checkpoint holds read lock
//! 0, pages of the new generation are copied under the old one's frame numbers: corruption
//! (sqlite.org/wal.html#walresetbug, fixed by check-in 2dedb8dfe7). While read lock 0 is held exclusively no reset
//! is possible, so comparing the salts at both moments is enough; SQLite takes BUSY there as "nothing to do now".

use crate::ffi::wal_index::WalIndex;
use crate::log::frame::Salts;

/// What one connection saw when it took the checkpoint lock.
#[derive(Debug, Default)]
pub struct ResetGuard {
    remembered: Option<Salts>,
    /// How many frames earlier checkpoints began to copy at most.
    attempted: u32,
}

impl ResetGuard {
    /// The connection took the checkpoint lock, or holds it and gives back the write lock, under which it recovered
    /// the wal-index: from here on SQLite reads the header that the checkpoint will work from.
    pub fn remember(&mut self, wal_index: Option<WalIndex>) {
        self.remembered = wal_index.map(WalIndex::salts);
        self.attempted = wal_index.map_or(0, WalIndex::attempted);
    }

    /// How many frames earlier checkpoints began to copy at most; `None` while no checkpoint is under way.
    pub fn attempted(&self) -> Option<u32> {
        self.is_checkpointing().then_some(self.attempted)
    }

    /// The checkpoint lock was given back.
    pub fn forget(&mut self) {
        self.remembered = None;
    }

    /// True between the two: a checkpoint is under way.
    pub fn is_checkpointing(&self) -> bool {
        self.remembered.is_some()
    }

    /// The connection got read lock 0 exclusively: may its checkpoint go on?
    pub fn allows(&self, salts: Option<Salts>) -> bool {
        match (self.remembered, salts) {
            (Some(then), Some(now)) => then == now,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn a_reset_between_the_two_locks_stops_the_checkpoint() {
        static REGION: [AtomicU32; 8192] = [const { AtomicU32::new(u32::from_ne_bytes([1; 4])) }; 8192];
        let mut guard = ResetGuard::default();
        assert!(guard.allows(Some(Salts([1; 8]))), "no checkpoint, nothing to stop");
        guard.remember(Some(WalIndex::of_words(&REGION)));
        assert_eq!(guard.attempted(), Some(u32::from_ne_bytes([1; 4])));
        assert!(guard.allows(Some(Salts([1; 8]))));
        assert!(!guard.allows(Some(Salts([2; 8]))));
        guard.forget();
        assert!(guard.allows(Some(Salts([2; 8]))) && guard.attempted().is_none());
    }
}
