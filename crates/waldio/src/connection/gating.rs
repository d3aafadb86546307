//! The part of a connection that closes the gate for its checkpoint, or stands at it (`gate`, `vfs/gated.rs`).

use super::Connection;
use crate::ffi::wal_index::WalIndex;
use crate::planted::{self, Bug};
use crate::primitives::now;
use crate::stats::Stats;

impl Connection {
    /// A checkpoint begins: true where it should run with the gate closed, which is closed then.
    pub fn close_gate(&self) -> bool {
        if !self.database.shares_commits() {
            return false;
        }
        let Ok(state) = self.state() else { return false };
        let (Some(wal_index), Some(session)) = (state.wal_index, self.database.session()) else {
            return false;
        };
        let (frames, copied) = wal_index.frames_and_copied();
        let end = wal_index.published_end().unwrap_or(0);
        // The bulk is copied beside the writers; a log that is short costs nothing.
        let bulk_copied = copied > 0 && frames - copied.min(frames) <= frames / 2;
        if state.holds_write || !bulk_copied || end < session.options.log_bytes / 4 * 3 {
            return false;
        }
        if !self.database.gate.close(now()) {
            return false;
        }
        self.database.queue.shut();
        true
    }

    /// The gate is closed and the write lock held: lets those who wait for a flush go on.
    pub fn flush_shared(&self) {
        if let Ok(mut state) = self.state() {
            state.holds_write = true;
            let wal_index = state.wal_index;
            if let Some(log) = state.log.as_mut()
                && log.is_flush_awaited()
            {
                // A failure poisons: the checkpoint's own sync will say so.
                let _ = log.flush_all(wal_index);
            }
        }
    }

    /// True where read lock `number` (1 to 4) may keep a checkpoint from copying the newest frames.
    pub fn is_old_snapshot(&self, number: usize) -> bool {
        self.state().is_ok_and(|state| state.wal_index.is_some_and(|index| index.is_old_snapshot(number)))
    }

    /// True where checkpoints have copied every frame: from here on new readers need no log, until somebody commits.
    pub fn is_all_copied(&self) -> bool {
        let all = |index: WalIndex| index.is_copied(index.newest());
        self.state().is_ok_and(|state| state.wal_index.is_some_and(all))
    }

    /// The checkpoint that ran with the gate closed is over, or could not have it.
    pub fn open_gate(&self, succeeded: bool) {
        if let Ok(mut state) = self.state() {
            state.holds_write = false;
        }
        let closed_for = self.database.gate.open(now(), succeeded);
        let stats = &self.database.stats;
        if succeeded {
            stats.gate_times.record(closed_for);
        } else {
            Stats::add(&stats.gates_failed, 1);
        }
        self.database.queue.reopen();
    }

    /// A read lock is wanted: waits while the gate is closed. True if it opened: SQLite should look at the log again.
    pub fn pass_gate(&self) -> bool {
        // A writer that starts the log anew reads it in the middle of its transaction: the gate waits for it.
        let closed = self.database.gate.is_closed();
        let holds_write =
            self.state().is_ok_and(|state| state.holds_write) && !planted::is(Bug::WriterHeldAtGate);
        closed && !holds_write && self.database.gate.pass()
    }
}
