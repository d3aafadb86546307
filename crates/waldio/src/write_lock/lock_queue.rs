//! Who may write next: connections of this process that found SQLite's write lock taken, first come first served.
//!
//! SQLite never blocks in a lock: it is told BUSY, gives up its snapshot, and calls the busy handler, which sleeps
//! through our `xSleep` and tries again. So a waiter stands in the queue from its first BUSY; in `xSleep` it can be
//! reached. Whoever gives the lock back reserves it for the first who can be reached and wakes that one alone: a
//! wake-up without reservation would lose the race to a running thread and use up `busy_timeout` in milliseconds.
//! A reservation lapses, so that nothing waits for a connection that never comes back.
//!
//! Waking a thread takes longer than writing a row. So a running thread may pass a reservation whose thread is still
//! on its way, a few times.
//!
//! A waiter that cannot be reached (a busy handler of the application's own) keeps its place, and is passed over.
//! The queue knows this process alone; where another process holds the lock, the first in the queue waits among those of other
//! processes (`shared_lock_queue`), and looks again and again all the same.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::stats::Stats;
use crate::testing::planted::{self, Bug};
use crate::threads::primitives::{self, Mutex, MutexGuard};
use crate::write_lock::busy_timeout::Nap;
use crate::write_lock::queue_state::{
    LOOK_AGAIN, Look, QueueState, RESERVATION, Reserved, Sleeper, TRY_UNRUNG, Tried, Turn,
};
use crate::write_lock::shared_lock_queue::SharedLockQueue;

use other_processes::Slept;

mod other_processes;

/// The queue of one database for SQLite's write lock, in this process.
#[derive(Debug)]
pub struct LockQueue {
    state: Mutex<QueueState>,
    /// How many stand in the queue, for a look without the lock.
    waiting: AtomicUsize,
    /// Not in a model, and not where other processes' locks cannot be seen.
    shared: Option<SharedLockQueue>,
    /// How often the lock stayed in this process while others waited for it.
    stays: AtomicU32,
    stats: Arc<Stats>,
}

impl LockQueue {
    /// An empty queue; among other processes where the locks of this database are POSIX locks.
    pub fn new(database: Option<&Path>, stats: Arc<Stats>) -> LockQueue {
        let database = database.filter(|_| cfg!(not(feature = "model")));
        let shared = database.map(|path| SharedLockQueue::new(path, Arc::clone(&stats)));
        let (waiting, stays) = (AtomicUsize::new(0), AtomicU32::new(0));
        LockQueue { state: Mutex::default(), waiting, shared, stays, stats }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and what is seen of it without the lock.
    fn change<T>(&self, act: impl FnOnce(&mut QueueState) -> T) -> T {
        let mut state = self.state();
        let result = act(&mut state);
        self.note(&state);
        result
    }

    fn note(&self, state: &QueueState) {
        self.waiting.store(state.places.len(), Relaxed);
    }

    /// A connection wants the write lock.
    pub fn ask(&self, connection: usize, sleeper: &Arc<Sleeper>, now: Instant) -> Turn {
        self.change(|state| {
            state.note_ask(connection, now);
            if state.holder == Some(connection) || state.may_take(connection, now) {
                state.take(connection, now);
                return Turn::Try;
            }
            state.wait_in_queue(connection, sleeper, now);
            Turn::Wait
        })
    }

    /// A connection wants the write lock whose snapshot is old.
    pub fn ask_in_vain(&self, connection: usize, sleeper: &Arc<Sleeper>, now: Instant) -> Turn {
        self.change(|state| state.ask_in_vain(connection, sleeper, now))
    }

    /// The base VFS refused the lock.
    pub fn refused(&self, connection: usize, sleeper: &Arc<Sleeper>, now: Instant) {
        self.change(|state| {
            state.refuse(connection, sleeper, now);
            // Whoever went to sleep meanwhile relies on a hand-over. There is none: it has to look by itself.
            if let Some(first) = state.first_asleep(now).filter(|first| first.shared_place.is_none()) {
                first.wake();
            }
        });
        if let Some(shared) = &self.shared {
            shared.open();
        }
    }

    /// The base VFS granted the lock. True where others want it too, or had it a moment ago.
    pub fn granted(&self, connection: usize, now: Instant) -> bool {
        self.change(|state| {
            let (place, contended) = state.grant(connection, now);
            if let Some(place) = place {
                self.stats.queue_waits.record(now.saturating_duration_since(place.came));
            }
            if let Some(shared) = &self.shared {
                shared.settle();
            }
            contended
        })
    }

    /// A connection waits for a flush between its transactions: it does not come back at once.
    pub fn note_pause(&self, connection: usize) {
        self.change(|state| state.note_pause(connection));
    }

    /// The base VFS granted the lock to one that gives it back at once, and keeps its place.
    pub fn granted_in_vain(&self, connection: usize) {
        self.change(|state| state.grant_in_vain(connection));
    }

    /// True while a connection stands in the queue, of this process or another.
    pub fn is_awaited(&self) -> bool {
        self.waiting.load(Relaxed) > 0 || self.shared.as_ref().is_some_and(SharedLockQueue::is_awaited)
    }

    /// The lock was given back to the base VFS: it is kept for the first in the queue who sleeps.
    pub fn released(&self, connection: usize) {
        self.change(|state| {
            if state.holder == Some(connection) {
                state.release(primitives::now());
                self.hand_over(state);
            }
        });
        self.ring_others();
    }

    /// Nobody begins to write until `reopen`.
    pub fn shut(&self) {
        self.change(|state| {
            state.shut = true;
            state.reserved = None;
        });
    }

    /// Ends `shut`: the first in the queue is next.
    pub fn reopen(&self) {
        self.change(|state| {
            state.shut = false;
            self.hand_over(state);
        });
        self.ring_others();
    }

    /// The lock that a connection got in its sleep is given back, for want of use; `give` tells whether it still had it so.
    pub fn give_back(&self, connection: usize, give: impl FnOnce() -> bool) {
        let gave_back = self.change(|state| {
            let gave_back = give();
            if gave_back && state.holder == Some(connection) {
                state.release(primitives::now());
                self.hand_over(state);
            }
            gave_back
        });
        if gave_back {
            self.ring_others();
        }
    }

    /// A connection closes: it holds nothing and waits for nothing.
    pub fn forget(&self, connection: usize) {
        self.change(|state| {
            state.forget(connection, primitives::now());
            if !planted::is(Bug::HandOverSwallowed) {
                self.hand_over(state);
            }
        });
    }

    /// Where the lock is free: reserves it for the first who sleeps, and wakes that one. Where another process has it:
    /// wakes the first, who looks from here on whether it still does.
    fn hand_over(&self, state: &mut QueueState) {
        if state.places.is_empty() || state.shut || state.holder.is_some() {
            return;
        }
        let now = primitives::now();
        if state.is_kept(now) {
            // For one who was woken and comes, or came.
            return;
        }
        if state.slice_end(now).is_some() {
            // Whoever had it comes back: the first looks by itself when that is over.
            if let Some(first) = state.first_asleep(now).filter(|first| !first.timed) {
                self.wake(first);
            }
            return;
        }
        // Nothing of ours can keep it: whoever is first looks, and naps on for as long as it asked for.
        let foreign = state.is_foreign();
        let lasts =
            if planted::is(Bug::ReservationNeverLapses) { Duration::from_secs(3600) } else { RESERVATION };
        let Some(next) = state.first_asleep(now) else { return };
        if foreign && next.shared_place.is_some() {
            return;
        }
        let reserved = Reserved { connection: next.connection, until: now + lasts, awake: false };
        self.wake(next);
        if foreign {
            return;
        }
        state.reserved = Some(reserved);
        Stats::add(&self.stats.hand_overs, 1);
    }

    /// The busy handler sleeps: returns when the lock is this connection's, or kept for it where it could not be tried for, or
    /// when the nap is over. `take` tries for the lock in this connection's name.
    pub fn sleep(&self, connection: usize, sleeper: &Arc<Sleeper>, nap: &Nap, take: impl Fn() -> Tried) {
        let (began, deadline) = (primitives::now(), nap.until);
        let mut state = self.state();
        state.wait_in_queue(connection, sleeper, began);
        state.set_asleep(connection, true);
        self.note(&state);
        let (mut standing, mut slept) = (None, Slept::Here);
        let mut is_next;
        loop {
            if standing.is_none() && state.waits_for_other_process(connection) {
                standing = self.shared.as_ref().and_then(SharedLockQueue::stand);
            }
            let now = primitives::now();
            let look = state.next_look(connection, now);
            let tried = if look == Look::OtherProcess { take() } else { Tried::Not };
            // Whoever is rung for nearly always gets it.
            let is_rung = look == Look::OtherProcess && slept == Slept::Rung;
            is_next = match tried {
                Tried::Got => {
                    state.take_asleep(connection, now);
                    true
                }
                Tried::Not if look == Look::Mine || is_rung => {
                    state.claim(connection, now);
                    true
                }
                Tried::Not | Tried::Busy => false,
            };
            if is_next {
                self.note_rings(slept);
            }
            if is_next || now >= deadline {
                break;
            }
            if let Look::Slice(_) = look {
                state.set_timed(connection);
            }
            let until = deadline.min(match look {
                Look::At(look_at) | Look::Slice(look_at) => look_at,
                _ if tried == Tried::Not => now + LOOK_AGAIN,
                _ if standing.is_some() && self.rings_come() => now + TRY_UNRUNG,
                _ => state.try_again(connection, self.waiting_processes(), now),
            });
            let left = until.saturating_duration_since(now);
            let place = standing.take().filter(|_| tried == Tried::Busy);
            state = match place {
                Some(place) => {
                    state.set_shared_place(connection, place.number);
                    drop(state);
                    (standing, slept) = LockQueue::wait_shared(place, left);
                    let state = self.state();
                    match slept {
                        // A thread of this process has it look: that tells nothing of the others.
                        Slept::Rung if state.was_woken(connection) => slept = Slept::Here,
                        Slept::Rung => self.note_rings(slept),
                        _ => {}
                    }
                    state
                }
                None => {
                    slept = Slept::Here;
                    sleeper.woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.set_asleep(connection, true);
        }
        state.set_asleep(connection, false);
        if !is_next {
            // Whoever is next in the queue sleeps until it is woken, and that was this one's task.
            self.hand_over(&mut state);
            self.ring_on(slept);
        }
        self.note(&state);
    }
}

#[cfg(test)]
mod tests;
