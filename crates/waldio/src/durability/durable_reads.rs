//! Which flush the snapshot of one connection needs under `waldio_durable_reads`.
//!
//! A shared commit is visible before its flush. A reader could wait in `xShmLock`, but SQLite looks at the wal-index
//! again after that lock, finds that others committed meanwhile, and starts over. So the lock is granted at once, and
//! the *first page* that the transaction reads waits: the snapshot is fixed by then, and whatever it contains was
//! published before the wait began. Only where SQLite may answer from its page cache, because nothing was committed
//! since its last transaction, no page might be read: there the lock waits, and there it need not be repeated.
//!
//! Who holds the write lock does not wait: what it builds on is in front of its own commit, and COMMIT returns when
//! both are durable. If it rolls back, the wait comes with the end of its transaction. Who comes back from a nap in the queue
//! for the write lock reads one page, the first, before it asks for that lock again: that page does not wait either.
//!
//! Invariant: a transaction that never had the write lock, and did not come from that line, gets no page before its
//! snapshot is durable. Source: wal.c (`walTryBeginRead`), btree.c (`lockBtree`), pager.c (`sqlite3PagerSharedLock`).

use crate::log::frame::Version;

/// The flush that one connection's snapshot waits for.
#[derive(Debug, Default)]
pub struct DurableReads {
    /// What SQLite's page cache may hold pages of.
    cached: Option<Version>,
    /// The snapshot of the transaction under way, until it is known to be durable.
    volatile: Option<Version>,
    /// The connection stood in the queue for the write lock, and has not begun a transaction since.
    behind_nap: bool,
    /// The transaction's first page need not wait.
    excused: bool,
    /// Pages were read under the write lock.
    wrote: bool,
}

impl DurableReads {
    /// A nap in the queue for the write lock is over.
    pub fn napped(&mut self) {
        self.behind_nap = true;
    }

    /// The write lock was refused, or granted: what follows comes from no nap.
    pub fn asked_to_write(&mut self) {
        self.behind_nap = false;
        self.excused = false;
    }

    /// True where a transaction on `newest` might read no page at all.
    pub fn may_answer_from_cache(&self, newest: Version) -> bool {
        !self.behind_nap && self.cached == Some(newest)
    }

    /// A read lock was granted while `newest` was the newest state.
    pub fn begin(&mut self, newest: Version, durable: bool) {
        self.cached = Some(newest);
        self.volatile = (!durable).then_some(newest);
        self.excused = std::mem::take(&mut self.behind_nap);
        self.wrote = false;
    }

    /// True from `begin` until the snapshot is known to be durable.
    pub fn is_volatile(&self) -> bool {
        self.volatile.is_some()
    }

    /// A page is about to be read: the state that has to be durable before.
    pub fn read(&mut self, holds_write: bool) -> Option<Version> {
        if holds_write {
            self.wrote = true;
            return None;
        }
        if std::mem::take(&mut self.excused) { None } else { self.volatile }
    }

    /// The snapshot is durable by now.
    pub fn made_durable(&mut self) {
        self.volatile = None;
    }

    /// The connection published a commit: `newest`.
    pub fn published(&mut self, newest: Version) {
        self.cached = Some(newest);
    }

    /// The read lock was given back: the state that has to be durable now.
    pub fn end(&mut self) -> Option<Version> {
        // SQLite may begin anew before it has read anything.
        self.behind_nap |= std::mem::take(&mut self.excused);
        self.volatile.take().filter(|_| std::mem::take(&mut self.wrote))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::Salts;

    const ONE: Version = Version { salts: Salts([1; 8]), frames: 7 };
    const TWO: Version = Version { salts: Salts([1; 8]), frames: 8 };

    #[test]
    fn first_page_waits_for_the_snapshot_and_the_next_ones_do_not() {
        let mut reads = DurableReads::default();
        reads.begin(ONE, false);
        assert_eq!(reads.read(false), Some(ONE));
        reads.made_durable();
        assert_eq!(reads.read(false), None);
        assert_eq!(reads.end(), None);
        reads.begin(TWO, true);
        assert_eq!(reads.read(false), None, "durable already");
    }

    #[test]
    fn writer_waits_at_its_end_unless_its_commit_did() {
        let mut reads = DurableReads::default();
        reads.begin(ONE, false);
        assert_eq!(reads.read(true), None);
        assert_eq!(reads.end(), Some(ONE), "rolled back");
        assert_eq!(reads.end(), None);
    }

    #[test]
    fn one_page_is_excused_behind_a_nap_in_line() {
        let mut reads = DurableReads::default();
        reads.napped();
        reads.begin(ONE, false);
        // SQLite saw a newer header and begins anew.
        assert_eq!(reads.end(), None);
        reads.begin(TWO, false);
        assert_eq!(reads.read(false), None);
        assert_eq!(reads.read(false), Some(TWO));
        reads.end();
        reads.begin(TWO, false);
        assert_eq!(reads.read(false), Some(TWO), "once for each nap");
        reads.napped();
        reads.asked_to_write();
        reads.begin(TWO, false);
        assert_eq!(reads.read(false), Some(TWO), "the nap led to the write lock, or to its refusal");
    }

    #[test]
    fn cache_of_the_last_state_may_answer() {
        let mut reads = DurableReads::default();
        assert!(!reads.may_answer_from_cache(ONE));
        reads.begin(ONE, false);
        reads.end();
        assert!(reads.may_answer_from_cache(ONE) && !reads.may_answer_from_cache(TWO));
        reads.published(TWO);
        assert!(reads.may_answer_from_cache(TWO), "its own commit leaves the cache valid");
    }
}
