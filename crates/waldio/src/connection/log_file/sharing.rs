//! The part of an open log that shares flushes with others: commits that leave theirs for later, readers that wait.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::{LogFile, Share, SharedCommit};
use crate::durability::group_commit::{CommitNumber, Covered, Failed};
use crate::failure::Failure;
use crate::ffi::wal_index::WalIndex;
use crate::log::rewrite::Writers;
use crate::options::FlushDelay;
use crate::stats::Stats;
use crate::testing::planted::{self, Bug};

impl LogFile {
    /// True while a commit of this process waits for a shared flush.
    pub fn is_flush_awaited(&self) -> bool {
        self.session.durability.group_commit.is_outstanding()
    }

    /// Puts a commit's frames into the file and leaves the flush to `await_flush`, or to whoever flushes when the delay
    /// is over.
    pub(super) fn share(&mut self, share: Share) -> Result<(), Failure> {
        self.write_out()?;
        self.number(share);
        self.end_transaction();
        Ok(())
    }

    /// Numbers a commit whose frames are in the file, and orders its flush, or leaves that to `await_flush`. The caller has the write lock.
    pub(super) fn number(&mut self, share: Share) {
        let name = self.transaction.commit_name();
        self.session.durability.note_generation(name.map(|name| name.salts));
        let group_commit = &self.session.durability.group_commit;
        let number = group_commit.issue(self.log_bytes());
        let stats = &self.database.stats;
        let is_certain = self.session.is_name_settled() && !self.session.durability.is_uncertain();
        let may_leave = |delay: FlushDelay| {
            let time = if group_commit.is_half_full(delay.bytes) { Duration::ZERO } else { delay.time };
            is_certain
                && group_commit.outstanding_bytes() < delay.bytes
                && self.database.flush_within(&self.session, &self.file, time)
        };
        if let Share::FlushDelay(delay) = share
            && (may_leave(delay) || planted::is(Bug::DelayUnbounded))
        {
            Stats::add(&stats.delayed_commits, 1);
        } else {
            Stats::add(&stats.shared_commits, 1);
            let untold = self.session.durability.untold();
            self.shared = Some(SharedCommit { number, name, untold, is_certain });
        }
    }

    /// The commit's frames are in the file, and nobody waits for a flush of them.
    pub(super) fn count_unsynced(&self) {
        Stats::add(&self.database.stats.unsynced_commits, 1);
        if !self.transaction.is_durable {
            self.session.durability.unsynced.committed(self.log_bytes());
        }
    }

    /// How much of the log the transaction takes.
    fn log_bytes(&self) -> u64 {
        self.session.layout.log_bytes(self.transaction.bytes)
    }

    /// True where there is a commit that `sync` let share: `await_flush` waits.
    pub fn awaits_flush(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns when the commit that `sync` let share is durable; at once where there is none.
    /// # Errors
    /// It is published and may not be on the medium; the log is poisoned.
    pub fn await_flush(&mut self, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        let Some(SharedCommit { number, name, untold, is_certain }) = self.shared.take() else {
            return Ok(());
        };
        let waited = if is_certain { self.wait_for(number, wal_index) } else { self.flush_all(wal_index) };
        if waited.is_err() {
            name.into_iter().for_each(|name| self.session.durability.note_failed(name));
        }
        drop(untold);
        waited
    }

    /// Returns when the flush came of everything that had this number, or a lower one.
    fn wait_for(&mut self, number: CommitNumber, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        let durability = &self.session.durability;
        let flush = || {
            durability.sync(&*self.file, wal_index).map_err(|_| {
                // The read lock that the transaction still has, or the barrier's write lock, keeps the log from a reset.
                self.write_again(wal_index.and_then(WalIndex::published_end), Writers::Others);
                Failed
            })
        };
        match durability.group_commit.wait(number, &self.waker, flush) {
            Ok(covered) => {
                if let Covered::Led(group) = covered {
                    let stats = &self.database.stats;
                    Stats::add(&stats.shared_flushes, 1);
                    stats.largest_group.fetch_max(group, Relaxed);
                }
                Ok(())
            }
            Err(Failed) => {
                durability.check()?;
                Err(Failure::Poisoned("a shared flush failed".to_owned()))
            }
        }
    }

    /// The same without a lock: `PRAGMA waldio_flush`.
    /// # Errors
    /// The log is poisoned, or its recovered frames are not certain to be on the medium.
    pub fn flush_now(&mut self) -> Result<(), Failure> {
        self.database.flush_session(&self.session, &*self.file)?;
        self.sync_name()
    }

    /// Makes all that is in the file durable, together with whoever waits for that. The caller has a lock that keeps
    /// the log from a reset.
    /// # Errors
    /// As `await_flush`.
    pub fn flush_all(&mut self, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        if self.session.durability.is_uncertain() {
            // What fails here is no failure of a flush that others wait for.
            return self.session.durability.flush(&*self.file, wal_index);
        }
        self.wait_for(self.session.durability.group_commit.join(), wal_index)?;
        // Others may have made the log without a sync.
        if self.session.is_name_settled() { Ok(()) } else { self.sync_name() }
    }
}
