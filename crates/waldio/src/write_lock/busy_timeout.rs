//! The naps of SQLite's own busy handler: which ones they are, and how long they may last in wall time.
//!
//! The handler (`sqlite3_busy_timeout`; main.c, `sqliteDefaultBusyCallback`) counts the naps that it asked for and never
//! looks at a clock: it naps 1, 2, 5, 10 ... 100 ms and gives up when their sum reaches the timeout; the last one is what
//! is left of it. A nap that is cut short, for a lock that somebody else then gets, is lost. So the last one is never cut
//! short, and lasts until the sum of all that were asked for: the timeout is kept, neither earlier nor later. (A timeout that
//! is a sum of whole naps, 128 or 328 ms, has no last one that could be known.) Beside another process a nap ends early only
//! with the lock in hand (`connection/handle/early_lock`): else all naps would be used up in a moment beside one that takes
//! the lock again and again.
//!
//! A sleep of another length is not the handler's. It counts the naps of a statement over all attached databases.
//! So a transaction that got the first one's lock after two naps goes on with the third for the second database. It came back for the
//! first lock, so its naps for the second may end early from the beginning.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The handler's naps in milliseconds; all further ones are as the last.
const NAPS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

/// A wait that came to its lock: how many naps it had, and until when they would have lasted.
type Waited = (usize, Option<Instant>);

thread_local! {
    /// This thread's newest, for whichever database, until it gives a write lock back.
    static WAITED: Cell<Waited> = const { Cell::new((0, None)) };
}

/// How long one connection's busy handler has slept so far.
#[derive(Debug, Default)]
pub struct BusyTimeout {
    deadline: Option<Instant>,
    /// How many naps the present wait had.
    naps: usize,
    /// The last of them was what was left of the timeout.
    used_up: bool,
    /// No refusal came since the last nap.
    napped: bool,
    comes_back: bool,
    /// Who waits has a snapshot: it wants to write.
    writes: bool,
}

/// A nap of the busy handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nap {
    /// When it would have begun had none before it been cut short.
    pub from: Instant,
    /// The handler gives up after this one: it must not end before.
    pub is_last: bool,
    /// When it has to end.
    pub until: Instant,
    /// Its connection asked for the lock again after its last one.
    pub comes_back: bool,
}

#[cfg(any(test, feature = "model"))]
impl Nap {
    /// One that may end at any time, until then.
    pub fn until(until: Instant) -> Nap {
        Nap { from: crate::threads::primitives::now(), until, is_last: false, comes_back: true }
    }
}

/// The handler's nap that follows so many.
fn nap_after(naps: usize) -> Duration {
    Duration::from_millis(NAPS[naps.min(NAPS.len() - 1)])
}

/// A thread gives a write lock back: its next transaction waits anew.
pub fn transaction_ended() {
    let _ = WAITED.try_with(Cell::take);
}

impl BusyTimeout {
    /// The lock was refused. A refusal that no nap precedes begins a new wait.
    pub fn refused(&mut self, has_snapshot: bool) {
        if self.only_looks(has_snapshot) {
            return;
        }
        if !self.napped {
            self.begin();
        }
        (self.napped, self.writes) = (false, has_snapshot);
    }

    /// True where a writer that waits begins to read, finds the wal-index's header half written, and asks for the write lock only to
    /// look at it once more (wal.c, `walIndexReadHdr`): its wait goes on.
    fn only_looks(&self, has_snapshot: bool) -> bool {
        self.naps > 0 && self.writes && !has_snapshot
    }

    fn begin(&mut self) {
        *self = BusyTimeout { comes_back: self.comes_back, ..BusyTimeout::default() };
    }

    /// A sleep of `nominal` is asked for at `now`: `None` where it is not the handler's next nap.
    pub fn nap(&mut self, now: Instant, nominal: Duration) -> Option<Nap> {
        if self.naps == 0 && nominal != nap_after(0) {
            (self.naps, self.deadline) = WAITED.try_with(Cell::take).unwrap_or_default();
            self.comes_back |= self.naps > 0 && nominal == nap_after(self.naps);
        }
        let next = nap_after(self.naps);
        let is_rest =
            nominal < next && !nominal.is_zero() && nominal.subsec_nanos().is_multiple_of(1_000_000);
        if self.napped || self.used_up || nominal != next && !is_rest {
            self.begin();
            return None;
        }
        // Never shorter than asked for: it may be an application's own sleep.
        let from = self.deadline.map_or(now, |deadline| deadline.max(now));
        let until = from + nominal;
        self.deadline = Some(until);
        self.naps += 1;
        self.used_up = is_rest;
        self.napped = true;
        Some(Nap { from, until, is_last: is_rest, comes_back: self.comes_back })
    }

    /// What followed a nap: whether that was the next ask for the lock.
    pub fn came_back(&mut self, came: bool) {
        self.comes_back = came;
    }

    /// The lock was granted: the wait is over.
    pub fn granted(&mut self, has_snapshot: bool) {
        if self.only_looks(has_snapshot) {
            return;
        }
        // One that was refused after its last nap gave up: these naps are none of this statement's.
        if self.napped {
            // A thread that is ending naps no more.
            let _ = WAITED.try_with(|waited| waited.set((self.naps, self.deadline)));
        }
        self.begin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn until(busy_timeout: &mut BusyTimeout, now: Instant, nominal: Duration) -> Option<Instant> {
        busy_timeout.nap(now, nominal).map(|nap| nap.until)
    }

    #[test]
    fn naps_cut_short_do_not_shorten_the_wait() {
        let (mut busy_timeout, start) = (BusyTimeout::default(), Instant::now());
        busy_timeout.refused(true);
        assert_eq!(until(&mut busy_timeout, start, MS), Some(start + MS));
        busy_timeout.refused(true);
        // Woken at once and refused again: the second nap ends where two whole naps would.
        assert_eq!(until(&mut busy_timeout, start, 2 * MS), Some(start + 3 * MS));
        busy_timeout.refused(true);
        assert_eq!(until(&mut busy_timeout, start + 3 * MS, 5 * MS), Some(start + 8 * MS));
        busy_timeout.refused(true);
        // Late, for want of a processor, or because somebody else sleeps here.
        assert_eq!(until(&mut busy_timeout, start + 20 * MS, 3 * MS), Some(start + 23 * MS));
    }

    #[test]
    fn naps_cut_short_hold_up_the_looks_of_the_next_ones_and_the_last_one_is_whole() {
        let (mut busy_timeout, start) = (BusyTimeout::default(), Instant::now());
        // A timeout of 10 ms; each refusal comes at once.
        let naps = [1, 2, 5, 2].map(|milliseconds| {
            busy_timeout.refused(true);
            let nap = busy_timeout.nap(start, milliseconds * MS).expect("the handler's");
            (nap.from - start, nap.until - start, nap.is_last)
        });
        let expected = [(0, 1, false), (1, 3, false), (3, 8, false), (8, 10, true)];
        assert_eq!(naps, expected.map(|(from, until, is_last)| (from * MS, until * MS, is_last)));
    }

    #[test]
    fn a_new_wait_starts_from_its_own_beginning() {
        let (mut busy_timeout, start) = (BusyTimeout::default(), Instant::now());
        busy_timeout.refused(true);
        busy_timeout.nap(start, MS);
        busy_timeout.refused(true);
        // The handler gave up: no nap follows. Later, another statement:
        busy_timeout.refused(true);
        let later = start + 100 * MS;
        assert_eq!(until(&mut busy_timeout, later, MS), Some(later + MS));
        busy_timeout.granted(true);
        busy_timeout.refused(true);
        let later = start + 200 * MS;
        assert_eq!(until(&mut busy_timeout, later, MS), Some(later + MS));
    }

    /// Which of these sleeps, each behind a refusal of its own, count as the handler's.
    fn are_naps<const COUNT: usize>(sleeps_ms: [u32; COUNT]) -> [bool; COUNT] {
        let (mut busy_timeout, now) = (BusyTimeout::default(), Instant::now());
        sleeps_ms.map(|milliseconds| {
            busy_timeout.refused(true);
            busy_timeout.nap(now, milliseconds * MS).is_some()
        })
    }

    #[test]
    fn only_the_handlers_own_naps_count() {
        assert_eq!(are_naps([1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100, 100, 100]), [true; 14]);
        assert_eq!(are_naps([1000]), [false]);
        assert_eq!(are_naps([2, 1, 5]), [false, true, false], "the first is 1 ms, the third no second");
        assert_eq!(are_naps([1, 2, 3, 5]), [true, true, true, false], "nothing follows what was left");
        let mut busy_timeout = BusyTimeout::default();
        busy_timeout.refused(true);
        assert_eq!(busy_timeout.nap(Instant::now(), MS / 2), None, "the handler counts in milliseconds");
        assert!(busy_timeout.nap(Instant::now(), MS).is_some());
        assert_eq!(busy_timeout.nap(Instant::now(), MS), None, "two naps for one refusal");
    }

    #[test]
    fn a_statement_that_waited_for_one_database_goes_on_counting_for_the_next() {
        let (mut first, mut second, mut third) =
            (BusyTimeout::default(), BusyTimeout::default(), BusyTimeout::default());
        let start = Instant::now();
        for milliseconds in [1, 2, 5] {
            first.refused(true);
            assert!(first.nap(start, milliseconds * MS).is_some());
        }
        first.granted(true);
        // Granted without a nap.
        third.granted(true);
        second.refused(true);
        // The naps before were cut short, and the timeout counts all of them.
        let nap = second.nap(start, 10 * MS).expect("the handler's");
        assert_eq!((nap.until, nap.comes_back), (start + 18 * MS, true));
        second.refused(true);
        assert_eq!(until(&mut second, start, 15 * MS), Some(start + 33 * MS));
        third.refused(true);
        assert_eq!(until(&mut third, start, 10 * MS), None, "that wait was gone on with");
    }

    #[test]
    fn a_wait_that_was_given_up_is_no_part_of_the_next_statement() {
        let (mut first, mut second, mut third) =
            (BusyTimeout::default(), BusyTimeout::default(), BusyTimeout::default());
        let start = Instant::now();
        let wait = |waiter: &mut BusyTimeout, naps: &[u32]| {
            for milliseconds in naps {
                waiter.refused(true);
                assert!(waiter.nap(start, *milliseconds * MS).is_some());
            }
        };
        wait(&mut second, &[1, 2, 5, 2]);
        // The timeout of 10 ms is over: SQLite tells BUSY.
        second.refused(true);
        wait(&mut first, &[1, 2]);
        first.granted(true);
        second.granted(true);
        third.refused(true);
        assert_eq!(until(&mut third, start, 5 * MS), Some(start + 8 * MS));
    }

    #[test]
    fn what_was_waited_for_ends_with_its_transaction() {
        let (mut first, mut second, start) = (BusyTimeout::default(), BusyTimeout::default(), Instant::now());
        first.refused(true);
        assert!(first.nap(start, MS).is_some());
        first.granted(true);
        transaction_ended();
        second.refused(true);
        assert_eq!(until(&mut second, start, 2 * MS), None, "an application's own sleep");
    }

    #[test]
    fn another_statement_counts_from_the_beginning() {
        let (mut first, mut second, start) = (BusyTimeout::default(), BusyTimeout::default(), Instant::now());
        first.refused(true);
        assert!(first.nap(start, MS).is_some());
        first.granted(true);
        second.refused(true);
        assert_eq!(until(&mut second, start, MS), Some(start + MS));
        second.refused(true);
        assert_eq!(until(&mut second, start, 2 * MS), Some(start + 3 * MS));
    }

    #[test]
    fn whoever_came_back_is_trusted_until_it_stays_away() {
        let (mut busy_timeout, now) = (BusyTimeout::default(), Instant::now());
        let mut comes_back = |came: Option<bool>| {
            came.into_iter().for_each(|came| busy_timeout.came_back(came));
            busy_timeout.granted(true);
            busy_timeout.refused(true);
            busy_timeout.nap(now, MS).is_some_and(|nap| nap.comes_back)
        };
        assert_eq!(
            [None, Some(true), None, Some(false), None].map(&mut comes_back),
            [false, true, true, false, false]
        );
    }

    #[test]
    fn a_writer_that_looks_at_a_half_written_header_goes_on_waiting() {
        for granted in [false, true] {
            let (mut busy_timeout, start) = (BusyTimeout::default(), Instant::now());
            busy_timeout.refused(true);
            assert_eq!(until(&mut busy_timeout, start, MS), Some(start + MS));
            // It begins to read.
            if granted {
                busy_timeout.granted(false)
            } else {
                busy_timeout.refused(false)
            }
            busy_timeout.refused(true);
            assert_eq!(until(&mut busy_timeout, start, 2 * MS), Some(start + 3 * MS));
        }
        // A checkpoint waits without a snapshot.
        let (mut busy_timeout, start) = (BusyTimeout::default(), Instant::now());
        for milliseconds in [1, 2, 5] {
            busy_timeout.refused(false);
            assert!(busy_timeout.nap(start, milliseconds * MS).is_some());
        }
    }
}
