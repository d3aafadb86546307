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
use crate::write_lock::queue_state::{LOOK_AGAIN, Look, QueueState, RESERVATION, Reserved, Sleeper, Turn};
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
            if state.holder == Some(connection) || state.may_take(connection, now) {
                state.take(connection);
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
                state.holder = None;
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

    /// A connection closes: it holds nothing and waits for nothing.
    pub fn forget(&self, connection: usize) {
        self.change(|state| {
            state.leave(connection);
            state.drop_kept_for(connection);
            if state.holder == Some(connection) {
                state.holder = None;
            }
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

    /// The busy handler sleeps: returns when the lock is reserved for this connection, or free, or the nap is over.
    /// `is_free` tells whether no other process holds the lock; `None`: nobody knows.
    pub fn sleep(
        &self,
        connection: usize,
        sleeper: &Arc<Sleeper>,
        nap: &Nap,
        is_free: impl Fn() -> Option<bool>,
    ) {
        let (began, deadline) = (primitives::now(), nap.until);
        let mut state = self.state();
        state.wait_in_queue(connection, sleeper, began);
        state.set_asleep(connection, true);
        self.note(&state);
        let (mut standing, mut slept) = (None, Slept::Here);
        loop {
            if standing.is_none() && state.waits_for_other_process(connection) {
                standing = self.shared.as_ref().and_then(SharedLockQueue::stand);
            }
            let now = primitives::now();
            let rings = standing.is_some() && self.rings_come();
            // Whoever is rung for, or has the lock kept for it, nearly always gets it.
            let from = if slept == Slept::Rung { began } else { nap.from };
            let look = state.next_look(connection, now, from, rings, &is_free);
            if look == Look::Mine {
                state.claim(connection, now);
                self.note_rings(slept);
                break;
            }
            if now >= deadline {
                break;
            }
            let until = deadline.min(match look {
                Look::At(look_at) | Look::OtherProcess(look_at) => look_at,
                Look::Woken | Look::Mine => now + LOOK_AGAIN,
            });
            let left = until.saturating_duration_since(now);
            let place = standing.take().filter(|_| matches!(look, Look::OtherProcess(_)));
            state = match place {
                Some(place) => {
                    state.set_shared_place(connection, place.number);
                    drop(state);
                    (standing, slept) = self.wait_shared(place, left);
                    self.state()
                }
                None => {
                    slept = Slept::Here;
                    sleeper.woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.set_asleep(connection, true);
        }
        state.set_asleep(connection, false);
        let claimed = state.reserved.is_some_and(|reserved| reserved.connection == connection);
        if !claimed {
            // Whoever is next in the queue sleeps until it is woken, and that was this one's task.
            self.hand_over(&mut state);
            self.ring_on(slept);
        }
        self.note(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    const SECOND: Duration = Duration::from_secs(1);

    fn queue() -> LockQueue {
        LockQueue::new(None, Arc::default())
    }

    /// A nap of a minute at most.
    fn minute() -> Nap {
        Nap::until(Instant::now() + 60 * SECOND)
    }

    fn unknown() -> Option<bool> {
        None
    }

    /// A queue whose lock connection 0 has.
    fn held() -> LockQueue {
        let (queue, now) = (queue(), Instant::now());
        assert_eq!(queue.ask(0, &Arc::default(), now), Turn::Try);
        queue.granted(0, now);
        queue
    }

    /// Lets a connection sleep for a minute at most, does `act` when it does, and returns when it is awake.
    fn sleeps_until(queue: &LockQueue, connection: usize, sleeper: &Arc<Sleeper>, act: impl FnOnce()) {
        thread::scope(|scope| {
            scope.spawn(|| queue.sleep(connection, sleeper, &minute(), unknown));
            until_asleep(queue, 1);
            act();
        });
    }

    /// Waits until `count` connections can be reached.
    fn until_asleep(queue: &LockQueue, count: usize) {
        while queue.state().places.iter().filter(|place| place.asleep).count() < count {
            thread::yield_now();
        }
    }

    #[test]
    fn the_lock_is_handed_over_first_come_first_served() {
        let queue = held();
        let sleepers: Vec<Arc<Sleeper>> = (0..4).map(|_| Arc::default()).collect();
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for (waiter, sleeper) in sleepers.iter().enumerate().skip(1) {
                assert_eq!(queue.ask(waiter, sleeper, Instant::now()), Turn::Wait);
                let (queue, order) = (&queue, &order);
                scope.spawn(move || {
                    queue.sleep(waiter, sleeper, &minute(), unknown);
                    assert_eq!(queue.ask(waiter, sleeper, Instant::now()), Turn::Try);
                    queue.granted(waiter, Instant::now());
                    order.lock().unwrap().push(waiter);
                    queue.released(waiter);
                });
                until_asleep(queue, waiter);
            }
            queue.released(0);
        });
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
        assert!(!queue.is_awaited());
    }

    /// What a third connection is told when a woken one never comes: at once, and when the reservation is over.
    fn beside_a_reservation() -> (Turn, Turn) {
        let (queue, waiter, other) = (held(), Arc::default(), Arc::default());
        queue.ask(1, &waiter, Instant::now());
        sleeps_until(&queue, 1, &waiter, || queue.released(0));
        // Connection 1 was woken with a reservation, and never comes. The others pass it while it wakes up only.
        let now = Instant::now();
        (queue.ask(2, &other, now), queue.ask(2, &other, now + RESERVATION))
    }

    #[test]
    fn a_reservation_keeps_others_out_until_it_lapses() {
        assert_eq!(beside_a_reservation(), (Turn::Wait, Turn::Try));
    }

    #[cfg(feature = "planted-bugs")]
    #[test]
    fn a_reservation_that_never_lapses_is_seen() {
        planted::set_here(Some(Bug::ReservationNeverLapses));
        let turns = beside_a_reservation();
        planted::set_here(None);
        assert_eq!(turns, (Turn::Wait, Turn::Wait));
    }

    #[test]
    fn a_reservation_lapses_for_those_who_went_to_sleep_before_it_was_made() {
        let (queue, first, second) = (held(), Arc::default(), Arc::default());
        queue.ask(1, &first, Instant::now());
        queue.ask(2, &second, Instant::now());
        let began = Instant::now();
        thread::scope(|scope| {
            for (connection, sleeper) in [(1, &first), (2, &second)] {
                let queue = &queue;
                scope.spawn(move || {
                    queue.sleep(connection, sleeper, &Nap::until(began + 60 * SECOND), unknown)
                });
            }
            until_asleep(&queue, 2);
            // Connection 1 takes what is kept for it, and never asks.
            queue.released(0);
        });
        assert!(began.elapsed() < 30 * SECOND);
    }

    /// Whether a sleeper is woken by the connection that gives the lock back, long before its nap is over.
    fn is_woken() -> bool {
        // Shorter than `LOOK_AGAIN`.
        const NAP: Duration = Duration::from_millis(40);
        let (queue, waiter) = (held(), Arc::default());
        queue.ask(1, &waiter, Instant::now());
        let deadline = Instant::now() + NAP;
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                queue.sleep(1, &waiter, &Nap::until(deadline), unknown);
                Instant::now()
            });
            until_asleep(&queue, 1);
            queue.released(0);
            sleeper.join().unwrap() < deadline
        })
    }

    #[test]
    fn whoever_gives_the_lock_back_wakes_the_first_in_line() {
        // A machine that stands still for a whole nap proves nothing: once in three is enough.
        assert!((0..3).any(|_| is_woken()));
    }

    #[cfg(feature = "planted-bugs")]
    #[test]
    fn a_lost_wake_up_is_seen() {
        planted::set_here(Some(Bug::LostWakeUp));
        let woken = is_woken();
        planted::set_here(None);
        assert!(!woken);
    }

    #[test]
    fn whoever_cannot_be_reached_is_passed_over() {
        let (queue, now) = (held(), Instant::now());
        let (handler, waiter) = (Arc::default(), Arc::default());
        queue.ask(1, &handler, now); // its application polls by itself
        queue.ask(2, &waiter, now);
        sleeps_until(&queue, 2, &waiter, || queue.released(0));
        assert_eq!(queue.ask(2, &waiter, Instant::now()), Turn::Try);
    }

    #[cfg(feature = "planted-bugs")]
    #[test]
    fn a_nap_that_ends_takes_nothing_from_whom_the_lock_is_kept_for() {
        let (queue, waiter, napper, last) = (held(), Arc::default(), Arc::default(), Arc::default());
        // On a busy machine the reservation would lapse before connection 3 sleeps, which then would not.
        planted::set_here(Some(Bug::ReservationNeverLapses));
        queue.ask(1, &waiter, Instant::now());
        sleeps_until(&queue, 1, &waiter, || queue.released(0));
        // Connection 1 is awake and about to ask; 2 gives up while 3 sleeps on.
        sleeps_until(&queue, 3, &last, || {
            queue.sleep(2, &napper, &Nap::until(Instant::now()), unknown);
            assert_eq!(queue.state().reserved.map(|reserved| reserved.connection), Some(1));
            assert_eq!(queue.ask(1, &waiter, Instant::now()), Turn::Try);
            queue.granted(1, Instant::now());
            queue.released(1);
        });
        planted::set_here(None);
        assert_eq!(queue.ask(3, &last, Instant::now()), Turn::Try);
    }

    #[test]
    fn a_nap_ends_at_its_deadline() {
        let (queue, waiter) = (held(), Arc::default());
        queue.ask(1, &waiter, Instant::now());
        let deadline = Instant::now() + Duration::from_millis(5);
        queue.sleep(1, &waiter, &Nap::until(deadline), unknown);
        assert!(Instant::now() >= deadline);
        assert_eq!(queue.ask(1, &waiter, Instant::now()), Turn::Wait, "still taken");
    }

    #[test]
    fn the_first_in_line_looks_whether_another_process_is_done() {
        let (queue, now) = (queue(), Instant::now());
        let waiter = Arc::default();
        assert_eq!(queue.ask(1, &waiter, now), Turn::Try);
        queue.refused(1, &waiter, now);
        let free = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| queue.sleep(1, &waiter, &minute(), || Some(free.load(SeqCst))));
            until_asleep(&queue, 1);
            free.store(true, SeqCst);
        });
        assert_eq!(queue.ask(1, &waiter, Instant::now()), Turn::Try);
        queue.granted(1, Instant::now());
    }

    #[test]
    fn who_waits_for_another_process_naps_as_long_as_it_asked_for() {
        let (queue, now) = (queue(), Instant::now());
        let (one, two) = (Arc::default(), Arc::default());
        for (connection, sleeper) in [(1, &one), (2, &two)] {
            assert_eq!(queue.ask(connection, sleeper, now), Turn::Try);
            queue.refused(connection, sleeper, now);
        }
        let deadline = now + Duration::from_millis(50);
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                queue.sleep(2, &two, &Nap::until(deadline), || Some(false));
                Instant::now()
            });
            until_asleep(&queue, 1);
            // The first in the queue gives up: the second looks from here on, and sees that the lock is not free.
            queue.sleep(1, &one, &Nap::until(now), || Some(false));
            assert!(second.join().unwrap() >= deadline, "woken for a lock that another process has");
        });
    }

    #[test]
    fn a_connection_that_closes_passes_the_lock_on() {
        let (queue, waiter) = (held(), Arc::default());
        queue.ask(1, &waiter, Instant::now());
        sleeps_until(&queue, 1, &waiter, || queue.forget(0));
        assert_eq!(queue.ask(1, &waiter, Instant::now()), Turn::Try);
    }

    #[test]
    fn nobody_begins_while_a_checkpoint_has_it_shut() {
        let (queue, now) = (queue(), Instant::now());
        let waiter = Arc::default();
        queue.shut();
        assert_eq!(queue.ask(1, &waiter, now), Turn::Wait);
        sleeps_until(&queue, 1, &waiter, || queue.reopen());
        assert_eq!(queue.ask(1, &waiter, Instant::now()), Turn::Try);
    }
}
