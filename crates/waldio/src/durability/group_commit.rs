//! Commits that share flushes: who waits for which, and who does the flush.
//!
//! A deferred commit takes a number while it holds SQLite's write lock, after its frames are in the file. So numbers
//! count in the order of the log, and one flush covers every number given out before it began. Whoever waits and
//! finds no flush under way leads one for all; the others sleep, each at a waker of its own, so that each wake-up is
//! one that counts.
//!
//! Invariants: 1. the durable mark is a contiguous prefix: it only moves to a number that was given out before a flush
//! of the whole file began, when that flush has succeeded. 2. after one failure no mark moves again. 3. while anybody
//! waits, a flush is under way or somebody was woken to lead one. 4. while somebody waits who is in a hurry, no leader puts
//! its flush off.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::durability::oldest_commit::OldestCommit;
use crate::testing::planted::{self, Bug};
use crate::threads::origin::Origin;
use crate::threads::primitives::{AtomicU64, Condvar, Mutex, MutexGuard, Waker, now, thread};

/// A flush that others will join is put off for at most this share of what flushes took lately.
const LINGER_DIVISOR: u32 = 4;
/// A shorter wait is spent yielding the processor instead of asleep.
const SLEEP_MIN: Duration = Duration::from_micros(200);

/// The number of a deferred commit, from 1.
pub type CommitNumber = u64;

/// What a flush that begins now covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covers {
    /// The last deferred commit in it.
    pub number: CommitNumber,
    bytes: u64,
    /// Whatever it does not cover came later.
    at: Instant,
}

/// Commits that no flush covers yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotDurable {
    /// How many bytes of the log they take.
    pub bytes: u64,
    /// Since when the oldest of them is there.
    pub since: Instant,
}

/// What a wait came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covered {
    /// By a flush that this caller led, for so many commits.
    Led(u64),
    /// By another's.
    Joined,
}

/// A flush failed: nothing above the durable mark will be acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed;

/// The flushes of one log that several commits share.
#[derive(Debug, Default)]
pub struct GroupCommit {
    state: Mutex<GroupState>,
    /// The leader that lingers.
    arrivals: Condvar,
    /// Copies of the state's, for a look without the lock.
    issued: AtomicU64,
    durable: AtomicU64,
    hurried: AtomicU64,
    origin: Origin,
}

#[derive(Debug, Default)]
struct GroupState {
    issued: CommitNumber,
    durable: CommitNumber,
    /// How many bytes of the log the deferred commits wrote in all, and how many of them a flush covered.
    issued_bytes: u64,
    durable_bytes: u64,
    /// How many of them the newest shared flush covers, or will when it ends.
    led_bytes: u64,
    /// Somebody leads a flush.
    flushing: bool,
    /// A leader puts off its flush until this number is given out.
    awaited: Option<CommitNumber>,
    /// Until this number is durable no leader puts its flush off.
    hurried: CommitNumber,
    /// Commits under way when the last flush ended: those that it covered and those that came meanwhile.
    population: u64,
    /// How long flushes took lately.
    flush_time: Duration,
    /// Who sleeps, in the order of coming.
    asleep: VecDeque<(CommitNumber, Arc<Waker>)>,
    /// Whom a flush covered, and who is still to be woken.
    covered: VecDeque<Arc<Waker>>,
    oldest: OldestCommit,
    failed: bool,
}

impl GroupCommit {
    fn state(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a number to a commit whose frames, `bytes` of them, are in the file; its caller holds the write lock.
    pub fn issue(&self, bytes: u64) -> CommitNumber {
        let mut state = self.state();
        state.issued += 1;
        state.issued_bytes += bytes;
        state.oldest.waits();
        self.issued.store(state.issued, SeqCst);
        if state.awaited.is_some_and(|enough| state.issued >= enough) {
            state.awaited = None;
            self.arrivals.notify_one();
        }
        state.issued
    }

    /// A number for somebody who wrote nothing, and waits until what is in the file now is durable.
    pub fn join(&self) -> CommitNumber {
        let mut state = self.state();
        state.issued += 1;
        self.issued.store(state.issued, SeqCst);
        state.issued
    }

    /// As `join`, for somebody who is late: neither the flush that covers this number is put off, nor one in front of it.
    pub fn hurry(&self) -> CommitNumber {
        let mut state = self.state();
        state.issued += 1;
        self.issued.store(state.issued, SeqCst);
        if planted::is(Bug::DueFlushLingers) {
            return state.issued;
        }
        state.hurried = state.issued;
        self.hurried.store(state.hurried, SeqCst);
        if state.awaited.take().is_some() {
            self.arrivals.notify_one();
        }
        state.issued
    }

    /// True while a commit with a number waits for its flush.
    pub fn is_outstanding(&self) -> bool {
        self.issued.load(SeqCst) > self.durable.load(SeqCst)
    }

    /// As after flushes that took so long, for many commits each.
    #[cfg(test)]
    pub fn pretend_slow_flushes(&self, flush_time: Duration) {
        let mut state = self.state();
        (state.flush_time, state.population) = (flush_time, 100);
    }

    /// The deferred commits that no flush covered yet; `None` where there are none.
    pub fn not_durable(&self) -> Option<NotDurable> {
        let state = self.state();
        let since = state.oldest.since()?;
        Some(NotDurable { bytes: state.outstanding_bytes(), since })
    }

    /// How many bytes of deferred commits no flush covered yet.
    pub fn outstanding_bytes(&self) -> u64 {
        self.state().outstanding_bytes()
    }

    /// True where a flush should begin now. Half of `bytes` wait for one that is not under way yet: when that ends, less than
    /// `bytes` wait, and no commit has to. Not where they came quicker than half of a flush: two would be slower than one.
    pub fn is_half_full(&self, bytes: u64) -> bool {
        let state = self.state();
        let uncovered = state.issued_bytes - state.durable_bytes.max(state.led_bytes);
        let waits = state
            .oldest
            .uncovered_since()
            .map_or(Duration::ZERO, |since| now().saturating_duration_since(since));
        uncovered >= bytes / 2 && waits >= state.flush_time / 2
    }

    /// What a flush that begins now covers.
    pub fn issued(&self) -> Covers {
        self.state().issued()
    }

    /// A flush that began at `issued` succeeded, outside of `wait`: a checkpoint's, say.
    pub fn covered(&self, covers: Covers) {
        let mut state = self.state();
        if (!state.failed || planted::is(Bug::AckAfterFailure)) && state.durable < covers.number {
            self.move_mark(&mut state, covers);
            // Of numbers without bytes, that others wait with, none is a commit.
            if state.outstanding_bytes() == 0 {
                state.oldest.all_covered();
            } else {
                state.oldest.covered_until(covers.at);
            }
        }
    }

    /// A write or flush failed, and the log is poisoned.
    pub fn fail(&self) {
        let mut state = self.state();
        state.failed = true;
        state.wake_all();
    }

    /// Returns when `number` is durable. `flush` makes the whole file durable; it is called, without any lock held,
    /// where this caller has to lead. `waker` is the caller's own.
    /// # Errors
    /// This commit, and every later one, may not be on the medium.
    pub fn wait(
        &self,
        number: CommitNumber,
        waker: &Arc<Waker>,
        flush: impl FnOnce() -> Result<(), Failed>,
    ) -> Result<Covered, Failed> {
        // Whoever leads may be a thread that a child of fork has not.
        if self.origin.is_parent() {
            return flush().map(|()| Covered::Led(1));
        }
        loop {
            let mut state = self.state();
            if state.durable >= number || planted::is(Bug::AckBeforePrefix) && state.flushing {
                let next = state.covered.pop_front();
                drop(state);
                // Each wakes the next: all at once they would only queue for SQLite's write lock, asleep again.
                if let Some(next) = next {
                    next.ring();
                }
                return Ok(Covered::Joined);
            }
            if state.failed {
                return Err(Failed);
            }
            if !state.flushing {
                return self.lead(state, number, flush);
            }
            waker.mute();
            state.asleep.push_back((number, Arc::clone(waker)));
            drop(state);
            waker.wait();
        }
    }

    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, GroupState>,
        number: CommitNumber,
        flush: impl FnOnce() -> Result<(), Failed>,
    ) -> Result<Covered, Failed> {
        // Nobody else leads from here on. Whoever comes while this one lingers is covered.
        state.flushing = true;
        state = self.linger(state);
        let (target, before) = (state.issued(), state.durable);
        state.led_bytes = target.bytes;
        state.oldest.flush_begins();
        drop(state);
        let began = target.at;
        // A panic goes on when those who wait for this flush know that there was none.
        let result = catch_unwind(AssertUnwindSafe(flush));
        let took = now().saturating_duration_since(began);
        state = self.state();
        state.flushing = false;
        state.flush_time = if state.flush_time.is_zero() { took } else { (state.flush_time * 7 + took) / 8 };
        let group = target.number.saturating_sub(before);
        state.population = group + (state.issued - target.number);
        let succeeded = matches!(result, Ok(Ok(()))) && !state.failed;
        state.oldest.flush_ends(succeeded);
        if succeeded {
            self.move_mark(&mut state, target);
        } else {
            state.failed = true;
            state.wake_all();
        }
        let durable = state.durable >= number;
        drop(state);
        if let Err(panic) = result {
            resume_unwind(panic);
        }
        if durable { Ok(Covered::Led(group)) } else { Err(Failed) }
    }

    /// A flush covered so much: wakes the first whom that lets go, and one who leads the next flush.
    fn move_mark(&self, state: &mut GroupState, covers: Covers) {
        state.durable = state.durable.max(covers.number);
        state.durable_bytes = state.durable_bytes.max(covers.bytes);
        self.durable.store(state.durable, SeqCst);
        let durable = state.durable;
        let (covered, others) =
            std::mem::take(&mut state.asleep).into_iter().partition(|(number, _)| *number <= durable);
        state.asleep = others;
        let covered: VecDeque<(CommitNumber, Arc<Waker>)> = covered;
        state.covered.extend(covered.into_iter().map(|(_, waker)| waker));
        if planted::is(Bug::LostWakeUp) {
            return;
        }
        if let Some(first) = state.covered.pop_front() {
            first.ring();
        }
        if !state.flushing
            && let Some((_, next)) = state.asleep.pop_front()
        {
            next.ring();
        }
    }

    /// Waits for commits that are about to join: those whom the last flush let go are back within a fraction of a
    /// flush's time where they commit one after the other, and would just miss this one.
    fn linger<'a>(&'a self, mut state: MutexGuard<'a, GroupState>) -> MutexGuard<'a, GroupState> {
        let (enough, durable) = (state.durable + state.population, state.durable);
        if state.issued >= enough || state.hurried > durable {
            return state;
        }
        let budget = state.flush_time / LINGER_DIVISOR;
        let until = now() + budget;
        if budget < SLEEP_MIN {
            // Too short to sleep: the kernel wakes a sleeper 50 us late. Those who are awaited get the processor.
            drop(state);
            let is_hurried = || self.hurried.load(SeqCst) > durable;
            while self.issued.load(SeqCst) < enough && !is_hurried() && now() < until {
                thread::yield_now();
            }
            return self.state();
        }
        state.awaited = Some(enough);
        while state.awaited.is_some() && !state.failed {
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                break;
            }
            state = self.arrivals.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.awaited = None;
        state
    }
}

impl GroupState {
    fn issued(&self) -> Covers {
        Covers { number: self.issued, bytes: self.issued_bytes, at: now() }
    }

    fn outstanding_bytes(&self) -> u64 {
        self.issued_bytes - self.durable_bytes
    }

    fn wake_all(&mut self) {
        if planted::is(Bug::FailureNotTold) {
            return;
        }
        let asleep = self.asleep.drain(..).map(|(_, waker)| waker);
        for waker in self.covered.drain(..).chain(asleep) {
            waker.ring();
        }
    }
}

#[cfg(test)]
#[path = "tests/group_commit.rs"]
mod tests;
