//! Keeps the log from growing without end: for the length of one short checkpoint nobody begins anything.
//!
//! SQLite starts the log anew when a checkpoint has copied all of it and no reader uses it. Where commits share
//! flushes there is always one that waits with a read lock, and a writer that adds frames while the checkpoint copies
//! (docs/sqlite_internals.md): the log grows for ever, and each commit tries a checkpoint in vain. So when a checkpoint has copied most of
//! a log of working size, the next one holds the write lock, and new read locks wait until it has copied the rest:
//! some tens of frames and one flush of the database. Then readers need no log, and the next writer starts it anew.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use crate::log::frame::Version;
use crate::testing::planted::{self, Bug};
use crate::threads::origin::Origin;
use crate::threads::primitives::{self, AtomicBool, Condvar, Mutex, MutexGuard};

/// How long the barrier may stay closed for those outside: a checkpoint on a slow card, then they go on regardless.
pub const CLOSED_MAX: Duration = Duration::from_millis(100);
/// How long whoever closed it waits for the write lock, at least.
const WRITER_WAIT_MIN: Duration = Duration::from_millis(10);
/// How long for the readers, the first time, the second, and from the third on. On a busy machine a short reader may
/// have lost its processor for some ticks of the scheduler. One that stayed so often is a long one: waiting is of no use.
const READER_WAITS: [Duration; 3] =
    [Duration::from_millis(2), Duration::from_millis(8), Duration::from_millis(32)];
/// After a failure the barrier stays open for this long, or until the reader that stayed has left; where the same reader
/// stays again four times as long, up to the second figure. Writers add some 100 KB to the log in a millisecond, so the
/// first three tries must fit in less than the log's working size.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(5));

/// And for so many times as long as it was closed in vain, whoever has left: nobody writes meanwhile.
const PAUSE_FACTOR: u32 = 4;

/// So much may be left to copy and to flush when the barrier closes: all writers wait for that, so it is little where the wait is to be
/// brief. Half of it may wait for a flush of the database. If there is more, a checkpoint that runs with the writers flushes it first.
const fn left_bytes_max(is_brief: bool) -> u64 {
    if is_brief { 1 << 20 } else { 8 << 20 }
}
/// After so many passes beside the writers, each of which copied all that there was and found no less afterwards, writers
/// are faster than the copy: they wait for all of it, or the log grows without end.
const FUTILE_PASSES_MAX: u32 = 4;

/// How much of the log a checkpoint has to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Frames that the log has.
    pub frames: u32,
    /// Those of them that are in the database already.
    pub copied: u32,
    /// Bytes of the rest, and of the database that nobody has flushed.
    pub left_bytes: u64,
}

/// A reader in the way of a checkpoint: the number of its read lock, and its snapshot. A read lock that was given to
/// another snapshot was free in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowReader {
    /// 1 to 4.
    pub number: usize,
    /// What that read lock stands for.
    pub snapshot: Version,
}

/// How it went behind the closed barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is copied, and everybody was out.
    Succeeded,
    /// Somebody else kept the write lock, or the checkpoint ended early.
    InVain,
    /// This reader did not leave.
    Stayed(SlowReader),
}

/// The barrier of one database: closed while a short checkpoint empties the log.
#[derive(Debug, Default)]
pub struct Barrier {
    closed: AtomicBool,
    state: Mutex<BarrierState>,
    opened: Condvar,
    /// Some connection has its commits or checkpoints flushed: not `synchronous=OFF`.
    syncs: AtomicBool,
    origin: Origin,
}

#[derive(Debug, Default)]
struct BarrierState {
    closed_at: Option<Instant>,
    retry_at: Option<Instant>,
    /// Not even for a reader that has left.
    not_before: Option<Instant>,
    back_off: Duration,
    /// How often a reader stayed since the last success.
    failures: usize,
    /// The last of them, and how often that one did.
    slow_reader: Option<SlowReader>,
    stays: usize,
    /// What was too much to copy behind it, and how often the next checkpoint left as much.
    beside: Option<Extent>,
    futile_passes: u32,
}

impl Barrier {
    fn state(&self) -> MutexGuard<'_, BarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while it is closed, without the lock. In a child of fork it is open: whoever closed it is a thread of the parent's.
    pub fn is_closed(&self) -> bool {
        self.closed.load(SeqCst) && !self.origin.is_parent()
    }

    /// SQLite has the log flushed.
    pub fn synced_log(&self) {
        if !self.syncs.load(Relaxed) {
            self.syncs.store(true, Relaxed);
        }
    }

    /// Whether a checkpoint beside the writers should flush the database first: else the one behind the barrier would. SQLite flushes
    /// it only behind a checkpoint that nobody added to, which here is one behind the closed barrier.
    pub fn wants_sync(&self, unsynced_bytes: u64, is_brief: bool) -> bool {
        self.syncs.load(Relaxed) && unsynced_bytes > left_bytes_max(is_brief) / 2
    }

    /// Whether a checkpoint that has so much to copy may close it; else it copies beside the writers.
    pub fn may_close_on(&self, extent: Extent, is_brief: bool) -> bool {
        let mut state = self.state();
        if extent.left_bytes <= left_bytes_max(is_brief) {
            (state.beside, state.futile_passes) = (None, 0);
            return true;
        }
        match state.beside {
            // A reader is in the way: that is no race.
            Some(last) if extent.copied < last.frames => {}
            Some(last) if extent.left_bytes > last.left_bytes / 4 * 3 => state.futile_passes += 1,
            _ => state.futile_passes = 0,
        }
        state.beside = Some(extent);
        state.futile_passes >= FUTILE_PASSES_MAX
    }

    /// Closes it; false where it is closed already, or failed a moment ago. `has_left` tells of the reader in whose way
    /// that was.
    pub fn close(&self, now: Instant, has_left: impl FnOnce(SlowReader) -> bool) -> bool {
        let mut state = self.state();
        if state.closed_at.is_some() || state.not_before.is_some_and(|not_before| now < not_before) {
            return false;
        }
        if state.retry_at.is_some_and(|retry_at| now < retry_at) {
            if !state.slow_reader.is_some_and(has_left) {
                return false;
            }
            (state.slow_reader, state.stays) = (None, 0);
        }
        state.closed_at = Some(now);
        self.closed.store(true, SeqCst);
        true
    }

    /// The log was begun anew: no reader has a snapshot of what was in it.
    pub fn note_new_log(&self) {
        if self.origin.is_parent() {
            return;
        }
        let mut state = self.state();
        (state.slow_reader, state.stays) = (None, 0);
    }

    /// How long whoever closed it waits for the write lock, and then for the readers.
    pub fn waits(&self) -> (Duration, Duration) {
        let state = self.state();
        let known = state.stays >= READER_WAITS.len();
        let readers = READER_WAITS[if known { 0 } else { state.failures.min(READER_WAITS.len() - 1) }];
        (readers.max(WRITER_WAIT_MIN), readers)
    }

    /// Opens it, and returns for how long it was closed.
    pub fn open(&self, now: Instant, outcome: Outcome) -> Duration {
        let mut state = self.state();
        let closed_for = state.closed_at.take().map_or(Duration::ZERO, |closed_at| now - closed_at);
        state.not_before = Some(now + closed_for * PAUSE_FACTOR);
        match outcome {
            Outcome::Succeeded => *state = BarrierState::default(),
            Outcome::InVain => state.retry_at = Some(now + BACK_OFF.0),
            Outcome::Stayed(slow_reader) => {
                let again = state.slow_reader == Some(slow_reader);
                state.failures += 1;
                state.stays = if again { state.stays + 1 } else { 1 };
                state.back_off = if again { (state.back_off * 4).min(BACK_OFF.1) } else { BACK_OFF.0 };
                state.slow_reader = Some(slow_reader);
                state.retry_at = Some(now + state.back_off);
            }
        }
        self.closed.store(false, SeqCst);
        if !planted::is(Bug::LostWakeUp) {
            self.opened.notify_all();
        }
        closed_for
    }

    /// Waits until it is open; true if it was closed. False, too, where it stays closed for too long: whoever asks
    /// again then would wait again.
    pub fn pass(&self) -> bool {
        if !self.is_closed() {
            return false;
        }
        let lasts =
            if planted::is(Bug::ReservationNeverLapses) { Duration::from_secs(3600) } else { CLOSED_MAX };
        let until = primitives::now() + lasts;
        let mut state = self.state();
        while state.closed_at.is_some() {
            let left = until.saturating_duration_since(primitives::now());
            if left.is_zero() {
                return false;
            }
            state = self.opened.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::Salts;

    const SLOW: SlowReader = SlowReader { number: 2, snapshot: Version { salts: Salts([7; 8]), frames: 40 } };

    fn stays(_: SlowReader) -> bool {
        false
    }

    #[test]
    fn after_a_failure_it_stays_open_for_longer_each_time() {
        let (barrier, now, failure) = (Barrier::default(), Instant::now(), Outcome::Stayed(SLOW));
        assert!(barrier.close(now, stays) && barrier.is_closed());
        assert!(!barrier.close(now, stays), "closed once only");
        let opened = now + Duration::from_micros(10);
        assert_eq!(barrier.open(opened, failure), opened - now);
        assert!(!barrier.close(opened + BACK_OFF.0 / 2, stays));
        assert!(barrier.close(opened + BACK_OFF.0, stays));
        barrier.open(opened + BACK_OFF.0, failure);
        assert!(!barrier.close(opened + 4 * BACK_OFF.0, stays), "four times as long the second time");
        assert!(barrier.close(opened + 5 * BACK_OFF.0, stays));
        barrier.open(opened + 5 * BACK_OFF.0, Outcome::Succeeded);
        assert!(barrier.close(opened + 5 * BACK_OFF.0, stays), "a success forgets the failures");
    }

    #[test]
    fn whoever_stayed_is_not_waited_for_once_it_has_left() {
        let (barrier, now) = (Barrier::default(), Instant::now());
        for _ in 0..5 {
            assert!(barrier.close(now, |slow_reader| slow_reader == SLOW));
            barrier.open(now, Outcome::Stayed(SLOW));
            assert_eq!(barrier.state().back_off, BACK_OFF.0, "another reader, which got the same read lock");
        }
        // A write lock that was not to be had tells of no reader.
        assert!(barrier.close(now + BACK_OFF.0, stays));
        barrier.open(now, Outcome::InVain);
        assert!(barrier.close(now + BACK_OFF.0, stays));
    }

    #[test]
    fn a_barrier_that_was_closed_in_vain_stays_open_for_longer_whoever_has_left() {
        let (barrier, now) = (Barrier::default(), Instant::now());
        for outcome in [Outcome::Stayed(SLOW), Outcome::InVain] {
            let (closed, closed_for) = (now + BACK_OFF.1, Duration::from_millis(32));
            assert!(barrier.close(closed, |_| true));
            let opened = closed + closed_for;
            barrier.open(opened, outcome);
            assert!(
                !barrier.close(opened + closed_for * (PAUSE_FACTOR - 1), |_| true),
                "writers get most of the time"
            );
            assert!(barrier.close(opened + closed_for * PAUSE_FACTOR, |_| true));
            barrier.open(opened + closed_for * PAUSE_FACTOR, Outcome::Succeeded);
        }
    }

    #[test]
    fn a_reader_that_stayed_is_given_more_time_until_it_is_known_for_a_long_one() {
        let (barrier, mut now) = (Barrier::default(), Instant::now());
        let mut stay = |slow_reader| {
            assert!(barrier.close(now, stays));
            let (writer, reader) = barrier.waits();
            assert!(writer >= WRITER_WAIT_MIN && writer >= reader);
            barrier.open(now, Outcome::Stayed(slow_reader));
            now += BACK_OFF.1;
            reader
        };
        let [first, second, third] = READER_WAITS;
        assert_eq!([(); 5].map(|()| stay(SLOW)), [first, second, third, first, first]);
        // Others that come and go are given time: the machine is busy.
        let others = [1, 3, 4].map(|number| stay(SlowReader { number, ..SLOW }));
        assert_eq!(others, [first, third, third]);
        assert!(barrier.close(now, stays));
        barrier.open(now, Outcome::Succeeded);
        assert_eq!(barrier.waits().1, first);
    }

    fn extent(frames: u32, copied: u32) -> Extent {
        Extent { frames, copied, left_bytes: u64::from(frames - copied) * 4120 }
    }

    #[test]
    fn a_long_log_is_copied_beside_the_writers_until_little_is_left() {
        let barrier = Barrier::default();
        let closes = |frames, copied| barrier.may_close_on(extent(frames, copied), false);
        assert!(closes(1500, 100), "a log of working size");
        assert!(!closes(48_000, 40));
        // A reader left it to the next checkpoint, again and again.
        assert!((0..20).all(|more| !closes(48_000 + more, 40 + more)));
        // One pass beside the writers, which went on.
        assert!(!closes(53_000, 48_019));
        assert!(closes(53_500, 53_000));
    }

    #[test]
    fn the_database_is_flushed_first_where_much_of_it_waits_and_sqlite_flushes_at_all() {
        let barrier = Barrier::default();
        assert!(!barrier.wants_sync(u64::MAX, true), "synchronous=OFF, as far as was seen");
        barrier.synced_log();
        for (is_brief, left) in [(false, 8 << 20), (true, 1 << 20)] {
            assert!(barrier.wants_sync(left / 2 + 1, is_brief));
            assert!(!barrier.wants_sync(left / 2, is_brief));
            let left_bytes = |left_bytes| Extent { left_bytes, ..extent(3000, 2999) };
            assert!(barrier.may_close_on(left_bytes(left), is_brief));
            assert!(!barrier.may_close_on(left_bytes(left + 1), is_brief));
        }
    }

    #[test]
    fn writers_that_are_faster_than_the_copy_wait_in_the_end() {
        let barrier = Barrier::default();
        let passes =
            (1..20).take_while(|pass| !barrier.may_close_on(extent(3000 * (pass + 1), 3000 * pass), false));
        assert_eq!(passes.count(), 4);
        barrier.close(Instant::now(), stays);
        barrier.open(Instant::now(), Outcome::Succeeded);
        assert!(!barrier.may_close_on(extent(6000, 3000), false), "it begins anew");
    }

    #[test]
    fn who_passes_waits_until_it_opens() {
        let barrier = Barrier::default();
        assert!(!barrier.pass());
        assert!(barrier.close(Instant::now(), stays));
        std::thread::scope(|scope| {
            let passing = scope.spawn(|| barrier.pass());
            barrier.open(Instant::now(), Outcome::Succeeded);
            // It may have come before or after the opening: it returns in both cases.
            let _ = passing.join().unwrap();
        });
        assert!(!barrier.is_closed());
    }

    #[test]
    fn who_waited_for_long_enough_goes_on() {
        let (barrier, began) = (Barrier::default(), Instant::now());
        assert!(barrier.close(began, stays));
        assert!(!barrier.pass(), "sent back to ask again");
        assert!(began.elapsed() >= CLOSED_MAX && barrier.is_closed());
    }

    #[test]
    fn a_child_of_fork_waits_at_no_barrier_of_its_parents() {
        let (mut barrier, began) = (Barrier::default(), Instant::now());
        assert!(barrier.close(began, stays));
        barrier.origin = Origin::elsewhere();
        assert!(!barrier.is_closed() && !barrier.pass() && began.elapsed() < CLOSED_MAX);
    }
}
