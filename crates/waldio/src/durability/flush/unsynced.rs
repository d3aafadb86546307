//! Commits that wait for no flush of their own: those under `synchronous=NORMAL` and OFF, and with `waldio_durability=normal`. How much
//! of the log they take that no flush of this process covers, and since when.
//!
//! A commit adds to a count, without a lock. The time is read for the first one behind a flush alone.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::durability::group_commit::NotDurable;

/// What such commits wrote, and what of it is on the medium.
#[derive(Debug)]
pub struct Unsynced {
    written_bytes: AtomicU64,
    durable_bytes: AtomicU64,
    /// Nanoseconds from `zero` on: no commit that is not durable is older.
    since: AtomicU64,
    zero: Instant,
}

/// What a flush that begins now covers.
#[derive(Debug, Clone, Copy)]
pub struct WrittenMark {
    bytes: u64,
    at: u64,
}

impl Default for Unsynced {
    fn default() -> Unsynced {
        let (written_bytes, durable_bytes, since) = Default::default();
        Unsynced { written_bytes, durable_bytes, since, zero: Instant::now() }
    }
}

impl Unsynced {
    fn nanoseconds(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.zero).as_nanos()).unwrap_or(u64::MAX)
    }

    /// A commit wrote so many bytes, which are in the file; its caller has the write lock.
    pub fn committed(&self, bytes: u64) {
        if self.written_bytes.load(SeqCst) == self.durable_bytes.load(SeqCst) {
            self.since.fetch_max(self.nanoseconds(Instant::now()), SeqCst);
        }
        self.written_bytes.fetch_add(bytes, SeqCst);
    }

    /// A flush begins, and began no earlier than at that time.
    pub fn flush_begins(&self, at: Instant) -> WrittenMark {
        WrittenMark { bytes: self.written_bytes.load(SeqCst), at: self.nanoseconds(at) }
    }

    /// It succeeded. What it does not cover came later than it began.
    pub fn covered(&self, mark: WrittenMark) {
        self.since.fetch_max(mark.at, SeqCst);
        self.durable_bytes.fetch_max(mark.bytes, SeqCst);
    }

    /// Those that are not durable; `None` where there are none.
    pub fn not_durable(&self) -> Option<NotDurable> {
        let durable_bytes = self.durable_bytes.load(SeqCst);
        let bytes = self.written_bytes.load(SeqCst) - durable_bytes;
        let since = self.zero + Duration::from_nanos(self.since.load(SeqCst));
        (bytes > 0).then_some(NotDurable { bytes, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_not_durable_until_a_flush_that_began_behind_them_succeeded() {
        let unsynced = Unsynced::default();
        assert_eq!(unsynced.not_durable(), None);
        let before = Instant::now();
        unsynced.committed(10);
        let first = unsynced.not_durable().unwrap();
        assert!(first.bytes == 10 && first.since >= before && first.since <= Instant::now(), "{first:?}");
        unsynced.committed(1);
        assert_eq!(unsynced.not_durable(), Some(NotDurable { bytes: 11, ..first }), "the second is younger");
        let began = Instant::now();
        let mark = unsynced.flush_begins(began);
        unsynced.committed(5);
        assert_eq!(unsynced.not_durable(), Some(NotDurable { bytes: 16, ..first }), "it is under way");
        unsynced.covered(mark);
        assert_eq!(unsynced.not_durable(), Some(NotDurable { bytes: 5, since: began }));
        let mark = unsynced.flush_begins(Instant::now());
        unsynced.covered(mark);
        unsynced.covered(mark);
        assert_eq!(unsynced.not_durable(), None);
        unsynced.committed(3);
        assert!(unsynced.not_durable().is_some_and(|now| now.bytes == 3 && now.since > began));
    }
}
