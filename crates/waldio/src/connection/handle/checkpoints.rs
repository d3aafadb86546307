//! The part of a connection that closes the barrier for its checkpoint, or stands at it (`barrier`, `sqlite/vfs/checkpoint_locks.rs`).

use std::sync::atomic::Ordering::Relaxed;

use super::{Connection, WriteLock};
use crate::checkpoint::barrier::{Extent, Outcome, SlowReader};
use crate::ffi::wal_index::WalIndex;
use crate::stats::Stats;
use crate::testing::planted::{self, Bug};
use crate::threads::primitives::now;

/// At half as much again as the working size a log is much too long: copying beside the writers does not keep up.
const fn too_long(log_bytes: u64) -> u64 {
    log_bytes / 2 * 3
}

/// Up to so many times its working size a log may grow for a brief barrier.
const BRIEF_UNTIL: u64 = 4;

/// How a checkpoint should run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Beside the writers.
    Beside,
    /// The same, when the database is flushed: the next one need not wait for that behind the barrier.
    BesideOnceSynced,
    /// With the barrier closed, which it is.
    Closed,
}

impl Connection {
    /// A checkpoint begins: how it should run. The barrier is closed then where it should be. `is_free` tells whether nobody
    /// has a read lock, 1 to 4.
    pub fn close_barrier(&self, is_free: impl FnOnce(usize) -> bool) -> Way {
        if !self.shares_commits() {
            return Way::Beside;
        }
        let Ok(state) = self.state() else { return Way::Beside };
        let (Some(wal_index), Some(session)) = (state.wal_index, self.database.session()) else {
            return Way::Beside;
        };
        let barrier = &self.database.barrier;
        let unsynced_bytes = self.database.synced.unsynced_bytes();
        let (frames, copied) = wal_index.frames_and_copied();
        let left = frames - copied.min(frames);
        let end = wal_index.published_end().unwrap_or(0);
        let left_bytes = end / u64::from(frames.max(1)) * u64::from(left) + unsynced_bytes;
        let log_bytes = session.options.log_bytes;
        // The bulk is copied beside the writers; a log that is short costs nothing. From half as much again on it need not
        // be the bulk: on a busy machine a checkpoint beside the writers may lose the race.
        let is_long = left <= frames / 2 && end >= log_bytes / 4 * 3 || end >= too_long(log_bytes);
        let extent = Extent { frames, copied, left_bytes };
        if copied == 0 || !is_long || state.holds_write() {
            return Way::Beside;
        }
        // Commits that wait for no flush wait for the barrier alone. Those that do would also wait for a flush of the database during their
        // own.
        let is_newest_unsynced = self.database.stats.is_newest_unsynced.load(Relaxed);
        let waits_for_none = self.options().durability.delay().is_some() || is_newest_unsynced;
        let is_brief = waits_for_none && end < log_bytes.saturating_mul(BRIEF_UNTIL);
        if !barrier.may_close_on(extent, is_brief) {
            let wants_sync = barrier.wants_sync(unsynced_bytes, is_brief);
            return if wants_sync { Way::BesideOnceSynced } else { Way::Beside };
        }
        drop(state);
        let has_left = |slow_reader: SlowReader| {
            wal_index.snapshot_of(slow_reader.number) != slow_reader.snapshot || is_free(slow_reader.number)
        };
        if !barrier.close(now(), has_left) {
            return Way::Beside;
        }
        self.database.queue.shut();
        Way::Closed
    }

    /// The barrier is closed and the write lock held: lets those who wait for a flush go on.
    pub fn flush_shared(&self) {
        if let Ok(mut state) = self.state() {
            state.write_lock = WriteLock::Held;
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

    /// Whoever holds read lock `number` (1 to 4).
    pub fn slow_reader(&self, number: usize) -> Outcome {
        let wal_index = self.state().ok().and_then(|state| state.wal_index);
        wal_index.map_or(Outcome::InVain, |index| {
            Outcome::Stayed(SlowReader { number, snapshot: index.snapshot_of(number) })
        })
    }

    /// True where checkpoints have copied every frame: from here on new readers need no log, until somebody commits.
    pub fn is_all_copied(&self) -> bool {
        self.state().is_ok_and(|state| state.wal_index.is_some_and(WalIndex::is_all_copied))
    }

    /// False where the log has a frame that no checkpoint copied.
    pub fn may_be_all_copied(&self) -> bool {
        self.state().is_ok_and(|state| state.wal_index.is_none_or(WalIndex::is_all_copied))
    }

    /// The checkpoint that ran with the barrier closed is over, or could not have it.
    pub fn open_barrier(&self, outcome: Outcome) {
        if let Ok(mut state) = self.state() {
            state.write_lock = WriteLock::NotHeld;
        }
        let closed_for = self.database.barrier.open(now(), outcome);
        let stats = &self.database.stats;
        if outcome == Outcome::Succeeded {
            stats.barrier_times.record(closed_for);
        } else {
            Stats::add(&stats.barriers_failed, 1);
        }
        self.database.queue.reopen();
    }

    /// A read lock is wanted: waits while the barrier is closed. True if it opened: SQLite should look at the log again.
    pub fn pass_barrier(&self) -> bool {
        // A writer that starts the log anew reads it in the middle of its transaction: the barrier waits for it.
        let closed = self.database.barrier.is_closed();
        let holds_write =
            self.state().is_ok_and(|state| state.holds_write()) && !planted::is(Bug::WriterHeldAtBarrier);
        closed && !holds_write && !self.has_early_lock() && self.database.barrier.pass()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_as_much_again_as_the_working_size_is_too_long() {
        assert_eq!(too_long(4 << 20), 6 << 20);
    }
}
