//! The part of a connection that is about its close on a poisoned log: commits that failed are taken back (`log_file/taking_back`).
//!
//! Where a checkpoint copied a part of such a commit, it is not taken back: pages of it would stay in the database. Checkpoints of this
//! process copy nothing that is not durable. One of another process may have begun to, and been killed. The wal-index says how far a
//! checkpoint may have come. SQLite's own attempt at the close changes that, though it copies nothing. So the wal-index is read before
//! that, when SQLite gets the database for itself.

use crate::connection::handle::{Connection, State};
use crate::connection::log_file::LogFile;
use crate::ffi::wal_index::WalIndex;

impl Connection {
    /// A lock keeps all other connections out of the database or the log from here on.
    pub fn note_alone(&self) {
        if let Ok(mut state) = self.state() {
            state.copied_when_alone = Some(state.wal_index.map_or(0, WalIndex::copied_at_most));
        }
    }

    /// SQLite is about to unmap the wal-index, and closes the log then. On a poisoned one: `is_alone` finds out whether nobody else
    /// uses it. It is given whether this is the process's last, which should wait for that.
    pub fn before_unmap(&self, is_alone: impl FnOnce(bool) -> bool) {
        if self.database.check_poison().is_ok() {
            return;
        }
        let is_last = self.state().is_ok_and(|mut state| state.log.as_mut().is_some_and(LogFile::leaves));
        if !is_alone(is_last) {
            return;
        }
        if let Ok(state) = self.state()
            && let State { log: Some(log), wal_index: Some(wal_index), copied_when_alone, .. } = &*state
        {
            log.take_back_failed(*wal_index, copied_when_alone.unwrap_or_else(|| wal_index.copied_at_most()));
        }
    }
}
