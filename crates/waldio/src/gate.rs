//! Keeps the log from growing without end: for the length of one short checkpoint nobody begins anything.
//!
//! SQLite starts the log anew when a checkpoint has copied all of it and no reader uses it. Where commits share
//! flushes there is always one that waits with a read lock, and a writer that adds frames while the checkpoint copies
//! (F3): the log grows for ever, and each commit tries a checkpoint in vain. So when a checkpoint has copied most of
//! a log of working size, the next one holds the write lock, and new read locks wait until it has copied the rest:
//! some tens of frames and one flush of the database. Then readers need no log, and the next writer starts it anew.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use crate::planted::{self, Bug};
use crate::primitives::{self, AtomicBool, Condvar, Mutex, MutexGuard};

/// How long the gate may stay closed for those outside: a checkpoint on a slow card, then they go on regardless.
pub const CLOSED_MAX: Duration = Duration::from_millis(100);
/// How long whoever closed it waits for the write lock, at least.
const WRITER_WAIT_MIN: Duration = Duration::from_millis(10);
/// How long for the readers, the first time and after each failure. On a busy machine a short reader may have lost its
/// processor for some ticks of the scheduler. One that stays longer is a long one, and the gate is of no use.
const READER_WAITS: [Duration; 3] =
    [Duration::from_millis(2), Duration::from_millis(8), Duration::from_millis(32)];
/// After a failure the gate stays open for this long, then four times as long, up to the second figure. Writers add
/// some 100 KB to the log in a millisecond, so the first three tries must fit in less than the log's working size.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(5));

/// See the file's head.
#[derive(Debug, Default)]
pub struct Gate {
    closed: AtomicBool,
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    closed_at: Option<Instant>,
    retry_at: Option<Instant>,
    back_off: Duration,
    /// Since the last success.
    failures: usize,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while it is closed, without the lock.
    pub fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Closes it; false where it is closed already, or failed a moment ago.
    pub fn close(&self, now: Instant) -> bool {
        let mut state = self.state();
        if state.closed_at.is_some() || state.retry_at.is_some_and(|retry_at| now < retry_at) {
            return false;
        }
        state.closed_at = Some(now);
        self.closed.store(true, SeqCst);
        true
    }

    /// How long whoever closed it waits for the write lock, and then for the readers.
    pub fn waits(&self) -> (Duration, Duration) {
        let readers = READER_WAITS.get(self.state().failures).copied().unwrap_or(READER_WAITS[0]);
        (readers.max(WRITER_WAIT_MIN), readers)
    }

    /// Opens it, and returns for how long it was closed. `succeeded`: everybody was out.
    pub fn open(&self, now: Instant, succeeded: bool) -> Duration {
        let mut state = self.state();
        let closed_for = state.closed_at.take().map_or(Duration::ZERO, |closed_at| now - closed_at);
        state.failures = if succeeded { 0 } else { state.failures + 1 };
        state.back_off =
            if succeeded { Duration::ZERO } else { (state.back_off * 4).clamp(BACK_OFF.0, BACK_OFF.1) };
        state.retry_at = (!succeeded).then(|| now + state.back_off);
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

    #[test]
    fn after_a_failure_it_stays_open_for_longer_each_time() {
        let (gate, now) = (Gate::default(), Instant::now());
        assert!(gate.close(now) && gate.is_closed());
        assert!(!gate.close(now), "closed once only");
        assert_eq!(gate.open(now + BACK_OFF.0, false), BACK_OFF.0);
        let opened = now + BACK_OFF.0;
        assert!(!gate.close(opened + BACK_OFF.0 / 2));
        assert!(gate.close(opened + BACK_OFF.0));
        gate.open(opened + BACK_OFF.0, false);
        assert!(!gate.close(opened + 4 * BACK_OFF.0), "four times as long the second time");
        assert!(gate.close(opened + 5 * BACK_OFF.0));
        gate.open(opened + 5 * BACK_OFF.0, true);
        assert!(gate.close(opened + 5 * BACK_OFF.0), "a success forgets the failures");
    }

    #[test]
    fn a_reader_that_stayed_is_given_more_time_until_it_is_known_for_a_long_one() {
        let (gate, mut now) = (Gate::default(), Instant::now());
        let mut readers = Vec::new();
        for _ in 0..5 {
            assert!(gate.close(now));
            let (writer, reader) = gate.waits();
            assert!(writer >= WRITER_WAIT_MIN && writer >= reader);
            readers.push(reader);
            gate.open(now, false);
            now += BACK_OFF.1;
        }
        assert_eq!(readers[..3], READER_WAITS);
        assert_eq!(readers[3..], [READER_WAITS[0]; 2]);
        gate.close(now);
        gate.open(now, true);
        assert_eq!(gate.waits().1, READER_WAITS[0]);
    }

    #[test]
    fn who_passes_waits_until_it_opens() {
        let gate = Gate::default();
        assert!(!gate.pass());
        assert!(gate.close(Instant::now()));
        std::thread::scope(|scope| {
            let passing = scope.spawn(|| gate.pass());
            gate.open(Instant::now(), true);
            // It may have come before or after the opening: it returns in both cases.
            let _ = passing.join().unwrap();
        });
        assert!(!gate.is_closed());
    }

    #[test]
    fn who_waited_for_long_enough_goes_on() {
        let (gate, began) = (Gate::default(), Instant::now());
        assert!(gate.close(began));
        assert!(!gate.pass(), "sent back to ask again");
        assert!(began.elapsed() >= CLOSED_MAX && gate.is_closed());
    }
}
