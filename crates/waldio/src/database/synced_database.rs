//! What is known of the database file: how much of it is on the medium, and under which log.
//!
//! SQLite syncs the database behind a checkpoint that copied every frame, and not with `synchronous=OFF`. Whoever begins the log
//! anew, or flushes what others began anew, must know whether the pages that the old log was copied to are on the medium.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::log::frame::{Salts, Version};

/// How much of the database file is on the medium. What other processes write is not counted: `since` and `copied` name states of the log, which they change.
#[derive(Debug, Default)]
pub struct SyncedDatabase {
    /// Bytes that this process wrote to the database so far, and how many of them were written when its last sync began.
    written: AtomicU64,
    synced: AtomicU64,
    since: Mutex<Option<Salts>>,
    copied: Mutex<Option<Version>>,
}

/// What was written when a sync began.
#[derive(Debug, Clone, Copy)]
pub struct Written(u64);

impl SyncedDatabase {
    /// A write of so many bytes has ended, well or not. Counted before, a sync that began meanwhile would count for it.
    pub fn wrote(&self, bytes: u64) {
        self.written.fetch_add(bytes, SeqCst);
    }

    /// A sync begins.
    pub fn begin(&self) -> Written {
        Written(self.written.load(SeqCst))
    }

    /// The sync that began with `written` succeeded.
    pub fn end(&self, written: Written) {
        self.synced.fetch_max(written.0, SeqCst);
    }

    /// Bytes that this process wrote and nobody of it synced.
    pub fn unsynced_bytes(&self) -> u64 {
        let synced = self.synced.load(SeqCst);
        self.written.load(SeqCst).saturating_sub(synced)
    }

    /// The generation of the log since whose beginning this process synced the database.
    pub fn since(&self) -> MutexGuard<'_, Option<Salts>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A state of the log, all copied to the database, behind which this process synced the database.
    pub fn copied(&self) -> MutexGuard<'_, Option<Version>> {
        self.copied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True where this process synced the database since the log's `generation` began, and wrote nothing to it since.
    pub fn is_synced_since(&self, generation: Option<Salts>) -> bool {
        generation.is_some() && self.unsynced_bytes() == 0 && *self.since() == generation
    }

    /// True where everything in front of and in the log's state `newest`, which is the newest, was copied and synced.
    pub fn is_synced_up_to(&self, newest: Version) -> bool {
        let is_empty = newest.frames == 0;
        self.unsynced_bytes() == 0 && *self.copied() == Some(newest)
            || is_empty && self.is_synced_since(Some(newest.salts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Salts = Salts([1; 8]);
    const NEW: Salts = Salts([2; 8]);

    fn version(salts: Salts, frames: u32) -> Version {
        Version { salts, frames }
    }

    #[test]
    fn a_sync_counts_for_what_was_written_when_it_began() {
        let database = SyncedDatabase::default();
        database.wrote(4096);
        let early = database.begin();
        database.wrote(100);
        let late = database.begin();
        database.end(late);
        assert_eq!(database.unsynced_bytes(), 0);
        database.wrote(8);
        database.end(early);
        assert_eq!(
            database.unsynced_bytes(),
            8,
            "a sync that began earlier and ends later takes nothing back"
        );
    }

    #[test]
    fn a_synced_database_is_known_by_a_state_of_the_log() {
        let database = SyncedDatabase::default();
        assert!(!database.is_synced_since(None) && !database.is_synced_up_to(version(OLD, 0)));
        *database.copied() = Some(version(OLD, 7));
        assert!(database.is_synced_up_to(version(OLD, 7)));
        assert!(!database.is_synced_up_to(version(OLD, 8)) && !database.is_synced_up_to(version(NEW, 7)));
        *database.since() = Some(NEW);
        assert!(database.is_synced_since(Some(NEW)) && !database.is_synced_since(Some(OLD)));
        assert!(database.is_synced_up_to(version(NEW, 0)), "a log without frames");
        assert!(!database.is_synced_up_to(version(NEW, 1)), "that frame may have been copied");
        database.wrote(1);
        assert!(!database.is_synced_since(Some(NEW)) && !database.is_synced_up_to(version(NEW, 0)));
        assert!(!database.is_synced_up_to(version(OLD, 7)), "pages were written since");
    }
}
