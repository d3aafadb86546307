//! Keeps the log from growing without end: for the length of one short checkpoint nobody begins anything.
//!
//! SQLite starts the log anew when a checkpoint has copied all of it and no reader uses it. Where commits share
//! flushes there is always one that waits with a read lock, and a writer that adds frames while the checkpoint copies
//! (F3): the log grows for ever, and each commit tries a checkpoint in vain. So when a checkpoint has copied most of
//! a log of working size, the next one holds the write lock, and new read locks wait until it has copied the rest:
//! some tens of frames and one flush of the database. Then readers need no log, and the next writer starts it anew.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::primitives::{Condvar, Mutex, MutexGuard};

/// How long the gate may stay closed for those outside: a checkpoint on a slow card, then they go on regardless.
pub const CLOSED_MAX: Duration = Duration::from_millis(100);
/// How long whoever closed it waits for the write lock, and then for the readers.
pub const WRITER_WAIT_MAX: Duration = Duration::from_millis(10);
/// See above. A reader that stays longer is a long one, and the gate is of no use.
pub const READER_WAIT_MAX: Duration = Duration::from_millis(2);
/// After a failure the gate stays open for this long, then twice as long, up to the second figure.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

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

    /// Opens it, and returns for how long it was closed. `succeeded`: everybody was out.
    pub fn open(&self, now: Instant, succeeded: bool) -> Duration {
        let mut state = self.state();
        let closed_for = state.closed_at.take().map_or(Duration::ZERO, |closed_at| now - closed_at);
        state.back_off =
            if succeeded { Duration::ZERO } else { (state.back_off * 2).clamp(BACK_OFF.0, BACK_OFF.1) };
        state.retry_at = (!succeeded).then(|| now + state.back_off);
        self.closed.store(false, SeqCst);
        self.opened.notify_all();
        closed_for
    }

    /// Waits until it is open; true if it was closed.
    pub fn pass(&self) -> bool {
        if !self.is_closed() {
            return false;
        }
        let until = Instant::now() + CLOSED_MAX;
        let mut state = self.state();
        while state.closed_at.is_some() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
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
        assert!(!gate.close(opened + 2 * BACK_OFF.0), "twice as long the second time");
        assert!(gate.close(opened + 3 * BACK_OFF.0));
        gate.open(opened + 3 * BACK_OFF.0, true);
        assert!(gate.close(opened + 3 * BACK_OFF.0), "a success forgets the failures");
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
}
