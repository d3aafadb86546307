//! The part of a connection that is about COMMITs that failed and are published all the same (`log_file/taking_back`).

use std::sync::atomic::Ordering::Relaxed;

use crate::connection::handle::Connection;
use crate::ffi::wal_index::{self, WalIndex};

impl Connection {
    /// True where the newest commit of the log is one of this process that failed, all that failed with it are known, and this
    /// connection does not write.
    pub fn has_failed_commit(&self) -> bool {
        if self.database.check_poison().is_ok() {
            return false;
        }
        let Ok(state) = self.state() else { return false };
        let (Some(log), Some(published)) = (&state.log, state.wal_index.and_then(WalIndex::published)) else {
            return false;
        };
        let durability = &log.session().durability;
        !state.holds_write && !durability.is_any_untold() && durability.has_failed(published)
    }

    /// True once after this connection's own COMMIT failed: then it is worth a wait that nobody sees it.
    pub fn take_commit_failed(&self) -> bool {
        self.commit_failed.swap(false, Relaxed)
    }

    /// Where the first of the commits that may be taken back now has its commit frame. The caller has the locks of a writer and of a checkpoint, or is alone.
    pub fn first_failed(&self) -> Option<u64> {
        let state = self.state().ok()?;
        state.log.as_ref()?.first_failed(state.wal_index?)
    }

    /// Takes the wal-index's header away: as long as that, and the locks of a recovery, are kept nobody begins to read.
    pub fn hide_commits(&self) -> Option<wal_index::Header> {
        Some(self.state().ok()?.wal_index?.take_header())
    }

    /// Puts it back.
    pub fn show_commits(&self, header: &wal_index::Header) {
        if let Ok(state) = self.state()
            && let Some(wal_index) = state.wal_index
        {
            wal_index.put_header(header);
        }
    }

    /// Makes the commit there, and all behind it, none. Nobody reads. True where it is none from now on.
    pub fn take_back(&self, offset: u64) -> bool {
        self.state().is_ok_and(|state| state.log.as_ref().is_some_and(|log| log.take_back(offset)))
    }
}
