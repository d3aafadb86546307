//! Commits that share flushes: who waits for which, and who does the flush.
//!
//! A deferred commit takes a ticket while it holds SQLite's write lock, after its frames are in the file. So tickets
//! count in the order of the log, and one flush covers every ticket given out before it began. Whoever waits and
//! finds no flush under way leads one for all; the others sleep. Those that the flush under way covers and those
//! that need the next sleep apart, so that each wake-up is one that counts.
//!
//! Invariants: 1. the durable mark is a contiguous prefix: it only moves to a number that was given out before a flush
//! of the whole file began, when that flush has succeeded. 2. after one failure no mark moves again. 3. while anybody
//! waits, a flush is under way or somebody was woken to lead one.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::frame::Salts;
use crate::planted::{self, Bug};
use crate::primitives::{Condvar, Mutex, MutexGuard, thread};

/// A flush that others will join is put off for at most this share of what flushes took lately.
const LINGER_DIVISOR: u32 = 4;
/// A shorter wait is spent yielding the processor instead of asleep.
const SLEEP_MIN: Duration = Duration::from_micros(200);

/// Where a commit ends in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Its generation.
    pub salts: Salts,
    /// Offset behind its last frame.
    pub end: u64,
}

/// The number of a deferred commit, from 1.
pub type Ticket = u64;

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

/// See the file's head.
#[derive(Debug, Default)]
pub struct Tickets {
    state: Mutex<State>,
    /// Sleepers, by the flush that they need: even and odd ones.
    sleepers: [Condvar; 2],
    /// The leader that lingers.
    arrivals: Condvar,
    /// Copies of the state's, for a look without the lock.
    issued: AtomicU64,
    durable: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    issued: Ticket,
    durable: Ticket,
    newest: Option<Mark>,
    /// Highest ticket that the flush under way covers.
    flushing: Option<Ticket>,
    /// A leader puts off its flush until this ticket is given out.
    awaited: Option<Ticket>,
    /// How many flushes began.
    flushes: u64,
    /// Commits under way when the last flush ended: those that it covered and those that came meanwhile.
    population: u64,
    /// How long flushes took lately.
    flush_time: Duration,
    /// Sleepers on each of `sleepers`.
    asleep: [u32; 2],
    failed: bool,
}

impl Tickets {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a ticket to a commit whose frames are in the file up to `mark`; its caller holds the write lock.
    pub fn issue(&self, mark: Mark) -> Ticket {
        let mut state = self.state();
        state.issued += 1;
        state.newest = Some(mark);
        self.issued.store(state.issued, SeqCst);
        if state.awaited.is_some_and(|enough| state.issued >= enough) {
            state.awaited = None;
            self.arrivals.notify_one();
        }
        state.issued
    }

    /// True while a commit with a ticket waits for its flush.
    pub fn is_outstanding(&self) -> bool {
        self.issued.load(SeqCst) > self.durable.load(SeqCst)
    }

    /// The last ticket given out: what a flush that begins now covers.
    pub fn issued(&self) -> Ticket {
        self.issued.load(SeqCst)
    }

    /// A flush that began when `ticket` was the last one succeeded, outside of `wait`: a checkpoint's, say.
    pub fn covered(&self, ticket: Ticket) {
        let mut state = self.state();
        if !state.failed && state.durable < ticket {
            state.durable = ticket;
            self.durable.store(ticket, SeqCst);
            self.wake_all(&state);
        }
    }

    /// A write or flush failed, and the log is poisoned.
    pub fn fail(&self) {
        let mut state = self.state();
        state.failed = true;
        self.wake_all(&state);
    }

    fn wake_all(&self, state: &State) {
        for (sleepers, asleep) in self.sleepers.iter().zip(state.asleep) {
            if asleep > 0 {
                sleepers.notify_all();
            }
        }
    }

    /// Returns when `ticket` is durable. `flush` makes the whole file durable; it is called, without any lock held,
    /// where this caller has to lead, with the mark of the newest commit that it covers.
    /// # Errors
    /// This commit, and every later one, may not be on the medium.
    pub fn wait(
        &self,
        ticket: Ticket,
        flush: impl FnOnce(Mark) -> Result<(), Failed>,
    ) -> Result<Covered, Failed> {
        let mut state = self.state();
        loop {
            if state.durable >= ticket || planted::is(Bug::AckBeforePrefix) && state.flushing.is_some() {
                return Ok(Covered::Joined);
            }
            if state.failed {
                return Err(Failed);
            }
            let Some(target) = state.flushing else { return self.lead(state, ticket, flush) };
            let slot = slot_of(state.flushes + u64::from(ticket > target));
            state.asleep[slot] += 1;
            state = self.sleepers[slot].wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep[slot] -= 1;
        }
    }

    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        ticket: Ticket,
        flush: impl FnOnce(Mark) -> Result<(), Failed>,
    ) -> Result<Covered, Failed> {
        state.flushes += 1;
        // Nobody else leads from here on. Whoever comes while this one lingers is covered.
        state.flushing = Some(Ticket::MAX);
        state = self.linger(state);
        let (target, before) = (state.issued, state.durable);
        state.flushing = Some(target);
        let Some(mark) = state.newest else { unreachable!("a ticket was given out without a mark") };
        drop(state);
        let began = Instant::now();
        let result = flush(mark);
        let took = began.elapsed();
        state = self.state();
        state.flushing = None;
        state.flush_time = if state.flushes == 1 { took } else { (state.flush_time * 7 + took) / 8 };
        match result {
            Ok(()) if !state.failed => {
                state.durable = state.durable.max(target);
                self.durable.store(state.durable, SeqCst);
            }
            _ => state.failed = true,
        }
        let group = target.saturating_sub(before);
        state.population = group + (state.issued - target);
        let (now, next) = (slot_of(state.flushes), slot_of(state.flushes + 1));
        if state.asleep[now] > 0 {
            self.sleepers[now].notify_all();
        }
        if state.asleep[next] > 0 && !planted::is(Bug::LostWakeUp) {
            if state.failed { self.sleepers[next].notify_all() } else { self.sleepers[next].notify_one() }
        }
        if state.durable >= ticket { Ok(Covered::Led(group)) } else { Err(Failed) }
    }

    /// Waits for commits that are about to join: those whom the last flush let go are back within a fraction of a
    /// flush's time where they commit one after the other, and would just miss this one.
    fn linger<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let enough = state.durable + state.population;
        if state.issued >= enough {
            return state;
        }
        let budget = state.flush_time / LINGER_DIVISOR;
        let until = Instant::now() + budget;
        if budget < SLEEP_MIN {
            // Too short to sleep: the kernel wakes a sleeper 50 us late. Those who are awaited get the processor.
            drop(state);
            while self.issued.load(SeqCst) < enough && Instant::now() < until {
                thread::yield_now();
            }
            return self.state();
        }
        state.awaited = Some(enough);
        while state.awaited.is_some() && !state.failed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.arrivals.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.awaited = None;
        state
    }
}

fn slot_of(flush: u64) -> usize {
    usize::from(!flush.is_multiple_of(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    const MARK: Mark = Mark { salts: Salts([1; 8]), end: 4152 };

    fn unneeded(_: Mark) -> Result<(), Failed> {
        panic!("nobody should flush")
    }

    #[test]
    fn one_flush_covers_every_ticket_given_out_before_it() {
        let tickets = Tickets::default();
        let (one, two) = (tickets.issue(MARK), tickets.issue(MARK));
        assert!(tickets.is_outstanding());
        assert_eq!(tickets.wait(one, |_| Ok(())), Ok(Covered::Led(2)));
        assert_eq!(tickets.wait(two, unneeded), Ok(Covered::Joined));
        assert!(!tickets.is_outstanding());
    }

    #[test]
    fn a_ticket_given_out_while_a_flush_runs_needs_the_next() {
        let tickets = Tickets::default();
        let one = tickets.issue(MARK);
        let mut two = 0;
        assert_eq!(
            tickets.wait(one, |_| {
                two = tickets.issue(MARK);
                Ok(())
            }),
            Ok(Covered::Led(1))
        );
        let flushed = AtomicUsize::new(0);
        let flush = |_| {
            flushed.fetch_add(1, SeqCst);
            Ok(())
        };
        assert_eq!(tickets.wait(two, flush), Ok(Covered::Led(1)));
        assert_eq!(flushed.load(SeqCst), 1);
    }

    #[test]
    fn a_failed_flush_fails_what_it_covered_and_all_that_follows_and_nothing_before() {
        let tickets = Tickets::default();
        let one = tickets.issue(MARK);
        assert_eq!(tickets.wait(one, |_| Ok(())), Ok(Covered::Led(1)));
        let (two, three) = (tickets.issue(MARK), tickets.issue(MARK));
        assert_eq!(tickets.wait(two, |_| Err(Failed)), Err(Failed));
        assert_eq!(tickets.wait(three, unneeded), Err(Failed));
        assert_eq!(tickets.wait(one, unneeded), Ok(Covered::Joined));
        let four = tickets.issue(MARK);
        tickets.covered(four);
        assert_eq!(tickets.wait(four, unneeded), Err(Failed), "never retry and trust");
    }

    #[test]
    fn another_flush_of_the_whole_file_counts() {
        let tickets = Tickets::default();
        let one = tickets.issue(MARK);
        tickets.covered(tickets.issued());
        assert_eq!(tickets.wait(one, unneeded), Ok(Covered::Joined));
    }

    #[test]
    fn many_threads_share_few_flushes_and_none_is_forgotten() {
        let (tickets, flushed) = (Tickets::default(), AtomicUsize::new(0));
        let running = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let ticket = tickets.issue(MARK);
                        let flush = |_| {
                            assert_eq!(running.fetch_add(1, SeqCst), 0, "one flush at a time");
                            let covers = tickets.issued();
                            thread::yield_now();
                            assert!(covers >= ticket);
                            flushed.fetch_add(1, SeqCst);
                            running.fetch_sub(1, SeqCst);
                            Ok(())
                        };
                        assert!(tickets.wait(ticket, flush).is_ok());
                    }
                });
            }
        });
        assert!(!tickets.is_outstanding());
        assert!(flushed.load(SeqCst) <= 1600);
    }
}
