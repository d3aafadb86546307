//! Who may write next: connections of this process that found SQLite's write lock taken, first come first served.
//!
//! SQLite never blocks in a lock: it is told BUSY, gives up its snapshot, and calls the busy handler, which sleeps
//! through our `xSleep` and tries again. So a waiter stands in line from its first BUSY; in `xSleep` it can be
//! reached. Whoever gives the lock back reserves it for the first who can be reached and wakes that one alone: a
//! wake-up without reservation would lose the race to a running thread and use up `busy_timeout` in milliseconds.
//! A reservation lapses, so that nothing waits for a connection that never comes back.
//!
//! Waking a thread takes longer than writing a row. So a running thread may pass a reservation whose thread is still
//! on its way, a few times.
//!
//! A waiter that cannot be reached (a busy handler of the application's own) keeps its place, and is passed over.
//! The line knows this process alone; where another process holds the lock, the first in line looks again and again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::planted::{self, Bug};
use crate::primitives::{Condvar, Mutex, MutexGuard};
use crate::stats::Stats;

/// How long a reservation holds: a woken thread needs some 50 us, and a busy machine's scheduler 4 ms and more.
pub const RESERVATION: Duration = Duration::from_millis(10);
/// How often the first in line looks whether another process still holds the lock.
/// After each refusal twice as rarely, up to the second figure.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(50));
/// A place in line of a connection that neither sleeps nor asks is kept this long.
const PLACE_KEPT: Duration = Duration::from_secs(1);
/// A reservation is passed at most so often while its thread wakes up.
const PASSES_MAX: u32 = 8;
/// The lock changed hands between connections this recently: it is contended.
const CONTENDED: Duration = Duration::from_millis(5);

/// One connection's place to be woken at.
#[derive(Debug, Default)]
pub struct Seat {
    woken: Condvar,
}

/// What `xShmLock` of the write lock should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Ask the base VFS for the lock.
    Try,
    /// Answer BUSY.
    Wait,
}

/// See the file's head.
#[derive(Debug)]
pub struct WriteQueue {
    state: Mutex<State>,
    /// How many stand in line, for a look without the lock.
    waiting: AtomicUsize,
    stats: Arc<Stats>,
}

#[derive(Debug, Default)]
struct State {
    holder: Option<usize>,
    line: VecDeque<Place>,
    reserved: Option<Reserved>,
    /// How often the present reservation was passed.
    passes: u32,
    /// A checkpoint has the lock, or will have it next.
    shut: bool,
    /// The base VFS refused the lock when no connection of this process held it.
    foreign: bool,
    /// When the first in line looks next whether it is free, and how long after a refusal.
    look_at: Option<Instant>,
    look_every: Duration,
    /// Who had the lock last, and since when the lock counts as contended.
    last: Option<usize>,
    contended_until: Option<Instant>,
}

#[derive(Debug)]
struct Place {
    connection: usize,
    seat: Arc<Seat>,
    asleep: bool,
    /// It was woken, and has not looked yet.
    woken: bool,
    came: Instant,
    seen: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Reserved {
    connection: usize,
    until: Instant,
    /// Its thread is awake: nobody passes it any more.
    awake: bool,
}

impl WriteQueue {
    /// An empty line.
    pub fn new(stats: Arc<Stats>) -> WriteQueue {
        WriteQueue { state: Mutex::default(), waiting: AtomicUsize::new(0), stats }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and what is seen of it without the lock.
    fn change<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let result = act(&mut state);
        self.note(&state);
        result
    }

    fn note(&self, state: &State) {
        self.waiting.store(state.line.len(), Relaxed);
    }

    /// A connection wants the write lock.
    pub fn ask(&self, connection: usize, seat: &Arc<Seat>, now: Instant) -> Turn {
        self.change(|state| {
            if state.holder == Some(connection) || state.may_take(connection, now) {
                // From here on, not from the grant on: a thread may lose the processor between the two.
                state.take(connection);
                return Turn::Try;
            }
            state.stand_in_line(connection, seat, now);
            Turn::Wait
        })
    }

    /// The base VFS refused the lock.
    pub fn refused(&self, connection: usize, seat: &Arc<Seat>, now: Instant) {
        self.change(|state| {
            if state.holder == Some(connection) {
                state.holder = None;
            }
            if state.holder.is_none() && !state.shut {
                // Another process has it, or somebody of this one whom the line does not know.
                state.foreign = true;
                state.look_every = (state.look_every * 2).clamp(LOOK_EVERY.0, LOOK_EVERY.1);
                state.look_at = Some(now + state.look_every);
            }
            state.stand_in_line(connection, seat, now);
        });
    }

    /// The base VFS granted the lock. True where others want it too, or had it a moment ago.
    pub fn granted(&self, connection: usize, now: Instant) -> bool {
        self.change(|state| {
            state.foreign = false;
            state.look_every = Duration::ZERO;
            state.holder = Some(connection);
            if let Some(place) = state.leave(connection) {
                self.stats.queue_waits.record(now.saturating_duration_since(place.came));
            }
            if !state.line.is_empty() || state.last.is_some_and(|last| last != connection) {
                state.contended_until = Some(now + CONTENDED);
            }
            state.last = Some(connection);
            state.contended_until.is_some_and(|until| now < until)
        })
    }

    /// True while a connection stands in line.
    pub fn is_awaited(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// The lock was given back to the base VFS: it is kept for the first in line who sleeps.
    pub fn released(&self, connection: usize) {
        self.change(|state| {
            if state.holder == Some(connection) {
                state.holder = None;
                self.hand_over(state);
            }
        });
    }

    /// Nobody begins to write until `reopen`.
    pub fn shut(&self) {
        self.change(|state| {
            state.shut = true;
            state.reserved = None;
        });
    }

    /// Ends `shut`: the first in line is next.
    pub fn reopen(&self) {
        self.change(|state| {
            state.shut = false;
            self.hand_over(state);
        });
    }

    /// A connection closes: it holds nothing and waits for nothing.
    pub fn forget(&self, connection: usize) {
        self.change(|state| {
            state.leave(connection);
            if state.reserved.is_some_and(|reserved| reserved.connection == connection) {
                state.reserved = None;
            }
            if state.holder == Some(connection) {
                state.holder = None;
            }
            self.hand_over(state);
        });
    }

    /// Where the lock is free: reserves it for the first who sleeps, and wakes that one.
    fn hand_over(&self, state: &mut State) {
        if state.line.is_empty() || state.shut || state.holder.is_some() {
            return;
        }
        let now = Instant::now();
        state.line.retain(|place| place.asleep || now.saturating_duration_since(place.seen) < PLACE_KEPT);
        let Some(next) = state.line.iter_mut().find(|place| place.asleep) else { return };
        let lasts =
            if planted::is(Bug::ReservationNeverLapses) { Duration::from_secs(3600) } else { RESERVATION };
        state.reserved = Some(Reserved { connection: next.connection, until: now + lasts, awake: false });
        if !next.woken && !planted::is(Bug::LostWakeUp) {
            next.woken = true;
            next.seat.woken.notify_one();
        }
        Stats::add(&self.stats.hand_overs, 1);
    }

    /// The busy handler sleeps: returns when the lock is reserved for this connection, or free, or at `deadline`.
    /// `is_free` tells whether no other process holds the lock; `None`: nobody knows.
    pub fn sleep(
        &self,
        connection: usize,
        seat: &Arc<Seat>,
        deadline: Instant,
        is_free: impl Fn() -> Option<bool>,
    ) {
        let mut state = self.state();
        state.stand_in_line(connection, seat, Instant::now());
        state.set_asleep(connection, true);
        self.note(&state);
        loop {
            let now = Instant::now();
            let until = match state.next_look(connection, now, &is_free) {
                Look::Mine => {
                    state.claim(connection, now);
                    break;
                }
                Look::At(_) if now >= deadline => break,
                Look::At(look_at) => deadline.min(look_at),
                Look::Woken if now >= deadline => break,
                Look::Woken => deadline,
            };
            let left = until.saturating_duration_since(now);
            state = seat.woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.set_asleep(connection, true);
        }
        state.set_asleep(connection, false);
        let claimed = state.reserved.is_some_and(|reserved| reserved.connection == connection);
        if !claimed {
            // Whoever is next in line sleeps until it is woken, and that was this one's task.
            self.hand_over(&mut state);
        }
        self.note(&state);
    }
}

/// What a thread in line does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// It takes the lock.
    Mine,
    /// It looks again at this time, if nobody wakes it before.
    At(Instant),
    /// It sleeps until it is woken.
    Woken,
}

impl State {
    /// Whether the lock is free for this connection, a reservation that it may pass included.
    fn may_take(&self, connection: usize, now: Instant) -> bool {
        if self.shut || self.holder.is_some() {
            return false;
        }
        let others_sleep = self.line.iter().any(|place| place.asleep && place.connection != connection);
        let may_pass = !others_sleep || self.passes < PASSES_MAX;
        match self.reserved {
            Some(reserved) if now >= reserved.until => may_pass,
            Some(reserved) if reserved.connection == connection => true,
            Some(reserved) => !reserved.awake && self.passes < PASSES_MAX,
            None => may_pass,
        }
    }

    /// Keeps the lock for a thread that is awake and asks for it next.
    fn claim(&mut self, connection: usize, now: Instant) {
        self.count_pass(connection);
        self.reserved = Some(Reserved { connection, until: now + RESERVATION, awake: true });
    }

    fn take(&mut self, connection: usize) {
        let claimed = self.reserved.is_some_and(|reserved| reserved.connection == connection);
        if !claimed {
            self.count_pass(connection);
        }
        self.reserved = None;
        self.holder = Some(connection);
    }

    /// The lock goes to `connection`: past those who sleep in line before it, or it was their turn.
    fn count_pass(&mut self, connection: usize) {
        let first = self.line.iter().find(|place| place.asleep || place.connection == connection);
        match first {
            Some(place) if place.connection != connection => self.passes += 1,
            _ => self.passes = 0,
        }
    }

    /// A thread in line looks: whether the lock is free for it.
    fn next_look(&self, connection: usize, now: Instant, is_free: impl Fn() -> Option<bool>) -> Look {
        if self.shut || self.holder.is_some() {
            return Look::Woken;
        }
        match self.reserved {
            // Whoever asked before the reservation was made may still have got the lock first; then it waits on.
            Some(reserved) if reserved.connection == connection && now < reserved.until => return Look::Mine,
            Some(reserved) if now < reserved.until => return Look::At(reserved.until),
            _ => {}
        }
        let first = self.line.iter().find(|place| place.asleep);
        if first.is_none_or(|place| place.connection != connection) {
            return Look::Woken;
        }
        // Nobody of this process has it. Unless another process does, it is this one's turn.
        if !self.foreign {
            return Look::Mine;
        }
        if let Some(look_at) = self.look_at.filter(|look_at| now < *look_at) {
            return Look::At(look_at);
        }
        match is_free() {
            Some(true) => Look::Mine,
            Some(false) => Look::At(now + LOOK_EVERY.0),
            None => Look::Woken,
        }
    }

    fn stand_in_line(&mut self, connection: usize, seat: &Arc<Seat>, now: Instant) {
        match self.line.iter_mut().find(|place| place.connection == connection) {
            Some(place) => place.seen = now,
            None => {
                let seat = Arc::clone(seat);
                let place = Place { connection, seat, asleep: false, woken: false, came: now, seen: now };
                self.line.push_back(place);
            }
        }
        self.contended_until = Some(now + CONTENDED);
    }

    fn leave(&mut self, connection: usize) -> Option<Place> {
        let at = self.line.iter().position(|place| place.connection == connection)?;
        self.line.remove(at)
    }

    fn set_asleep(&mut self, connection: usize, asleep: bool) {
        if let Some(place) = self.line.iter_mut().find(|place| place.connection == connection) {
            place.asleep = asleep;
            place.woken = false;
            place.seen = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    const SECOND: Duration = Duration::from_secs(1);

    fn queue() -> WriteQueue {
        WriteQueue::new(Arc::default())
    }

    fn unknown() -> Option<bool> {
        None
    }

    /// Waits until `count` connections can be reached.
    fn until_asleep(queue: &WriteQueue, count: usize) {
        while queue.state().line.iter().filter(|place| place.asleep).count() < count {
            thread::yield_now();
        }
    }

    #[test]
    fn the_lock_is_handed_over_first_come_first_served() {
        let (queue, now) = (queue(), Instant::now());
        let seats: Vec<Arc<Seat>> = (0..4).map(|_| Arc::default()).collect();
        assert_eq!(queue.ask(0, &seats[0], now), Turn::Try);
        queue.granted(0, now);
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for (waiter, seat) in seats.iter().enumerate().skip(1) {
                assert_eq!(queue.ask(waiter, seat, Instant::now()), Turn::Wait);
                let (queue, order) = (&queue, &order);
                scope.spawn(move || {
                    queue.sleep(waiter, seat, Instant::now() + 60 * SECOND, unknown);
                    assert_eq!(queue.ask(waiter, seat, Instant::now()), Turn::Try);
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

    #[test]
    fn a_reservation_keeps_others_out_until_it_lapses() {
        let (queue, now) = (queue(), Instant::now());
        let (holder, waiter, other) = (Arc::default(), Arc::default(), Arc::default());
        queue.ask(0, &holder, now);
        queue.granted(0, now);
        queue.ask(1, &waiter, now);
        thread::scope(|scope| {
            scope.spawn(|| queue.sleep(1, &waiter, Instant::now() + 60 * SECOND, unknown));
            until_asleep(&queue, 1);
            queue.released(0);
        });
        // Connection 1 was woken with a reservation, and never comes.
        let now = Instant::now();
        assert_eq!(queue.ask(2, &other, now), Turn::Wait);
        assert_eq!(queue.ask(2, &other, now + RESERVATION), Turn::Try);
    }

    #[test]
    fn whoever_cannot_be_reached_is_passed_over() {
        let (queue, now) = (queue(), Instant::now());
        let (holder, handler, waiter) = (Arc::default(), Arc::default(), Arc::default());
        queue.ask(0, &holder, now);
        queue.granted(0, now);
        queue.ask(1, &handler, now); // its application polls by itself
        queue.ask(2, &waiter, now);
        thread::scope(|scope| {
            scope.spawn(|| queue.sleep(2, &waiter, Instant::now() + 60 * SECOND, unknown));
            until_asleep(&queue, 1);
            queue.released(0);
        });
        assert_eq!(queue.ask(2, &waiter, Instant::now()), Turn::Try);
    }

    #[test]
    fn a_nap_ends_at_its_deadline() {
        let (queue, now) = (queue(), Instant::now());
        let (holder, waiter) = (Arc::default(), Arc::default());
        queue.ask(0, &holder, now);
        queue.granted(0, now);
        queue.ask(1, &waiter, now);
        let deadline = Instant::now() + Duration::from_millis(5);
        queue.sleep(1, &waiter, deadline, unknown);
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
            scope.spawn(|| queue.sleep(1, &waiter, Instant::now() + 60 * SECOND, || Some(free.load(SeqCst))));
            until_asleep(&queue, 1);
            free.store(true, SeqCst);
        });
        assert_eq!(queue.ask(1, &waiter, Instant::now()), Turn::Try);
        queue.granted(1, Instant::now());
    }

    #[test]
    fn a_connection_that_closes_passes_the_lock_on() {
        let (queue, now) = (queue(), Instant::now());
        let (holder, waiter) = (Arc::default(), Arc::default());
        queue.ask(0, &holder, now);
        queue.granted(0, now);
        queue.ask(1, &waiter, now);
        thread::scope(|scope| {
            scope.spawn(|| queue.sleep(1, &waiter, Instant::now() + 60 * SECOND, unknown));
            until_asleep(&queue, 1);
            queue.forget(0);
        });
        assert_eq!(queue.ask(1, &waiter, Instant::now()), Turn::Try);
    }

    #[test]
    fn nobody_begins_while_a_checkpoint_has_it_shut() {
        let (queue, now) = (queue(), Instant::now());
        let waiter = Arc::default();
        queue.shut();
        assert_eq!(queue.ask(1, &waiter, now), Turn::Wait);
        thread::scope(|scope| {
            scope.spawn(|| queue.sleep(1, &waiter, Instant::now() + 60 * SECOND, unknown));
            until_asleep(&queue, 1);
            queue.reopen();
        });
        assert_eq!(queue.ask(1, &waiter, Instant::now()), Turn::Try);
    }
}
