//! The queue for the write lock: writers that take turns, give up, close, or never come back for what was kept for them.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use waldio::testing::model::{self, now, thread};
use waldio::testing::planted::Bug;
use waldio::{LOOK_AGAIN, LockQueue, Nap, PASSES_MAX, RESERVATION, SLICE, Sleeper, Tried, Turn};

use crate::explore::Clock::{Fickle, Hasty, Patient};
use crate::explore::{assert_took_at_most, finds, holds, holds_under_all};

/// A busy handler's nap that somebody has to cut short.
const LONG: Duration = Duration::from_secs(60);
const MS: Duration = Duration::from_millis(1);

/// One connection.
#[derive(Debug)]
struct Client {
    id: usize,
    sleeper: Arc<Sleeper>,
}

/// What the base VFS knows, and what a judge saw. Nobody is interrupted while it is looked at.
#[derive(Debug, Default)]
struct Base {
    writer: Option<usize>,
    /// It got the lock in its sleep, and SQLite has not asked yet.
    early: bool,
    /// Another process writes, too.
    shared: bool,
    /// Who was told to wait and did not write since, in this order; and how often each was passed asleep.
    line: Vec<(usize, Arc<Sleeper>, u32)>,
    /// Who had the lock last, and since when nobody else.
    turn: Option<(usize, Duration)>,
    /// Clients wait for something else after each transaction.
    pauses: bool,
}

struct House {
    queue: LockQueue,
    base: Mutex<Base>,
}

impl House {
    fn new() -> House {
        House { queue: LockQueue::new(None, Arc::default()), base: Mutex::default() }
    }

    fn base(&self) -> MutexGuard<'_, Base> {
        self.base.try_lock().expect("nobody is interrupted here")
    }

    fn client(id: usize) -> Client {
        Client { id, sleeper: Arc::default() }
    }

    /// `xShmLock` of the write lock; false: BUSY.
    fn lock(&self, client: &Client) -> bool {
        if self.use_early(client) {
            self.queue.granted(client.id, now());
            return true;
        }
        let asks_at = model::elapsed();
        if self.queue.ask(client.id, &client.sleeper, now()) == Turn::Wait {
            self.base().stands(client);
            return false;
        }
        self.base().judge_passing(client.id, asks_at);
        step();
        let mut base = self.base();
        if let Some(writer) = base.writer {
            assert!(base.shared, "{} asks the base VFS while {writer} has the lock", client.id);
            base.stands(client);
            drop(base);
            self.queue.refused(client.id, &client.sleeper, now());
            return false;
        }
        base.writer = Some(client.id);
        base.line.retain(|(id, ..)| *id != client.id);
        drop(base);
        self.queue.granted(client.id, now());
        self.base().note_turn(client.id);
        true
    }

    fn unlock(&self, client: &Client) {
        step();
        let writer = self.base().writer.take();
        assert_eq!(writer, Some(client.id), "two have the lock");
        self.queue.released(client.id);
        if self.base().pauses {
            self.queue.note_pause(client.id);
        }
    }

    /// `xSleep`.
    fn nap(&self, client: &Client, nap: Duration) {
        self.queue.sleep(client.id, &client.sleeper, &Nap::until(now() + nap), || self.take(client));
    }

    /// Tries for the lock of a client that sleeps.
    fn take(&self, client: &Client) -> Tried {
        let mut base = self.base();
        match base.writer {
            Some(writer) => {
                assert!(base.shared, "{} tries while {writer} has the lock", client.id);
                Tried::Busy
            }
            None => {
                base.judge_passing(client.id, model::elapsed());
                base.note_turn(client.id);
                (base.writer, base.early) = (Some(client.id), true);
                Tried::Got
            }
        }
    }

    /// True where the client has what it got in its sleep.
    fn use_early(&self, client: &Client) -> bool {
        let mut base = self.base();
        let has_it = base.early && base.writer == Some(client.id);
        if has_it {
            base.early = false;
            base.line.retain(|(id, ..)| *id != client.id);
        }
        has_it
    }

    /// What the client got in its sleep is given back, if it still has it.
    fn give_back(&self, client: &Client) {
        self.queue.give_back(client.id, || {
            let mut base = self.base();
            let had_it = base.early && base.writer == Some(client.id);
            if had_it {
                (base.writer, base.early) = (None, false);
            }
            had_it
        });
    }

    /// The thread that looks after it finds it unused.
    fn lapse(&self, client: &Client) {
        thread::sleep(RESERVATION);
        self.give_back(client);
    }

    /// One transaction, that takes so long.
    fn write(&self, client: &Client, takes: Duration) {
        let mut naps = 0;
        while !self.lock(client) {
            // Without time nothing lapses: what a nap ended for is there.
            let lapses = !model::elapsed().is_zero() || self.base().shared;
            assert!(naps == 0 || lapses, "{} was woken for nothing", client.id);
            self.nap(client, LONG);
            naps += 1;
        }
        if !takes.is_zero() {
            thread::sleep(takes);
        }
        self.unlock(client);
    }

    /// The connection closes.
    fn close(&self, client: &Client) {
        self.give_back(client);
        self.base().line.retain(|(id, ..)| *id != client.id);
        self.queue.forget(client.id);
    }
}

impl Base {
    fn stands(&mut self, client: &Client) {
        if self.line.iter().all(|(id, ..)| *id != client.id) {
            self.line.push((client.id, Arc::clone(&client.sleeper), 0));
        }
    }

    fn note_turn(&mut self, winner: usize) {
        if self.turn.is_none_or(|(last, _)| last != winner) {
            self.turn = Some((winner, model::elapsed()));
        }
    }

    /// `winner` may have the lock: past the first who sleeps in the queue? In its slice it does.
    fn judge_passing(&mut self, winner: usize, at: Duration) {
        let began = self.turn.filter(|(last, _)| *last == winner && !self.pauses).map(|(_, began)| began);
        if began.is_some_and(|began| at < began + SLICE) {
            return;
        }
        let passed = self.line.iter_mut().take_while(|(id, ..)| *id != winner);
        if let Some((id, _, passes)) = passed.into_iter().find(|(_, sleeper, _)| sleeper.woken.is_waited_on())
        {
            *passes += 1;
            assert!(*passes <= PASSES_MAX, "{id} was passed {passes} times");
        }
    }
}

/// Where others run.
fn step() {
    shuttle::thread::sleep(Duration::ZERO);
}

/// So many threads, each with a connection that writes so often, and each transaction takes so long.
fn take_turns_of(threads: usize, transactions: usize, takes: Duration, pauses: bool) {
    let house = House::new();
    house.base().pauses = pauses;
    thread::scope(|scope| {
        for id in 0..threads {
            let house = &house;
            scope.spawn(move || {
                let client = House::client(id);
                for _ in 0..transactions {
                    house.write(&client, takes);
                }
            });
        }
    });
    assert!(!house.queue.is_awaited(), "somebody stands in line who left");
}

fn take_turns(threads: usize, transactions: usize) {
    take_turns_of(threads, transactions, Duration::ZERO, true);
}

fn one_transaction_each() {
    take_turns(2, 1);
    assert_took_at_most(Duration::ZERO);
}

fn two_take_turns() {
    take_turns(2, 3);
    assert_took_at_most(Duration::ZERO);
}

fn four_take_turns() {
    take_turns(4, 2);
    assert_took_at_most(Duration::ZERO);
}

fn three_take_turns_on_a_slow_machine() {
    take_turns(3, 3);
}

fn one_sleeps_while_another_writes_on_and_on() {
    take_turns(2, 20);
    assert_took_at_most(Duration::ZERO);
}

/// What the first in the queue does instead of writing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Closes,
    ClosesAfterAWhile,
    NeverComesBack,
    ComesTooLate,
}

/// One holds the lock for 2 ms; the next naps for so long, and then leaves; two more wait until they are woken.
fn the_first_in_line_leaves(naps: Duration, how: Leaves) {
    let house = House::new();
    thread::scope(|scope| {
        let holder = House::client(0);
        assert!(house.lock(&holder));
        let first = House::client(1);
        assert!(!house.lock(&first));
        let house = &house;
        scope.spawn(move || {
            house.nap(&first, naps);
            match how {
                Leaves::Closes => house.close(&first),
                Leaves::ClosesAfterAWhile => {
                    thread::sleep(MS);
                    house.close(&first);
                }
                Leaves::NeverComesBack => house.base().line.retain(|(id, ..)| *id != first.id),
                Leaves::ComesTooLate => {
                    thread::sleep(2 * RESERVATION);
                    house.write(&first, Duration::ZERO);
                }
            }
        });
        for id in 2..4 {
            scope.spawn(move || house.write(&House::client(id), Duration::ZERO));
        }
        thread::sleep(2 * MS);
        house.unlock(&holder);
    });
    let stays = how == Leaves::NeverComesBack;
    assert!(stays || !house.queue.is_awaited(), "somebody stands in line who left");
}

fn the_first_in_line_closes() {
    the_first_in_line_leaves(LONG, Leaves::Closes);
    assert_took_at_most(2 * MS);
}

fn the_first_in_line_gives_up_and_closes() {
    the_first_in_line_leaves(MS, Leaves::Closes);
    assert_took_at_most(2 * MS);
}

fn the_first_in_line_closes_later() {
    the_first_in_line_leaves(LONG, Leaves::ClosesAfterAWhile);
    assert_took_at_most(3 * MS);
}

fn the_first_in_line_never_comes_back() {
    the_first_in_line_leaves(LONG, Leaves::NeverComesBack);
    assert_took_at_most(2 * MS + RESERVATION + LOOK_AGAIN);
}

fn the_first_in_line_comes_too_late() {
    the_first_in_line_leaves(LONG, Leaves::ComesTooLate);
    assert_took_at_most(2 * MS + 2 * RESERVATION);
}

/// A thread that waits with one connection and then writes with another; beside it, writers with one each.
fn two_connections_of_one_thread() {
    let house = House::new();
    thread::scope(|scope| {
        for id in 2..4 {
            let house = &house;
            scope.spawn(move || {
                let client = House::client(id);
                for _ in 0..2 {
                    house.write(&client, Duration::ZERO);
                }
            });
        }
        let (one, two) = (House::client(0), House::client(1));
        if house.lock(&one) {
            // BUSY for its own thread, until its busy timeout ends.
            assert!(!house.lock(&two));
            house.nap(&two, MS);
            house.unlock(&one);
        } else {
            house.nap(&one, LONG);
        }
        house.write(&two, Duration::ZERO);
        house.write(&one, Duration::ZERO);
    });
    // Its own reservation keeps it out until that lapses, once for each of its connections.
    assert_took_at_most(MS + 2 * (RESERVATION + LOOK_AGAIN));
}

/// Another process takes the lock now and then, and no member of the line hears of it.
fn another_process_writes() {
    let house = House::new();
    house.base().shared = true;
    thread::scope(|scope| {
        for id in 1..3 {
            let house = &house;
            scope.spawn(move || {
                let client = House::client(id);
                for _ in 0..2 {
                    house.write(&client, Duration::ZERO);
                }
            });
        }
        for _ in 0..2 {
            while house.base().writer.is_some() {
                thread::sleep(MS);
            }
            house.base().writer = Some(0);
            thread::sleep(MS);
            house.base().writer = None;
        }
    });
    assert_took_at_most(20 * MS);
}

/// Another process has the lock; the first in the queue looks whether it is free, and leaves; the second has to go on.
fn the_first_in_line_leaves_beside_another_process() {
    let house = House::new();
    *house.base() = Base { writer: Some(0), shared: true, ..Base::default() };
    thread::scope(|scope| {
        for (id, nap) in [(1, MS), (2, LONG)] {
            let house = &house;
            scope.spawn(move || {
                let client = House::client(id);
                while !house.lock(&client) {
                    house.nap(&client, nap);
                    if nap < LONG {
                        return;
                    }
                }
                house.unlock(&client);
            });
        }
        thread::sleep(3 * MS);
        house.base().writer = None;
    });
    assert_took_at_most(10 * MS);
}

/// Another process gives the lock back; one gets it in its sleep and asks after so long, if at all. The thread that looks after such
/// locks is at work meanwhile.
fn one_has_the_lock_early(asks_after: Option<Duration>) {
    let house = House::new();
    *house.base() = Base { writer: Some(0), shared: true, ..Base::default() };
    let first = House::client(1);
    thread::scope(|scope| {
        assert!(!house.lock(&first));
        house.base().writer = None;
        house.nap(&first, LONG);
        let house = &house;
        scope.spawn(|| house.lapse(&first));
        scope.spawn(|| house.write(&House::client(2), Duration::ZERO));
        match asks_after {
            Some(time) => {
                thread::sleep(time);
                house.write(&first, MS);
            }
            None => house.base().line.retain(|(id, ..)| *id != first.id),
        }
    });
    assert!(asks_after.is_none() || !house.queue.is_awaited(), "somebody stands in line who left");
}

fn one_has_the_lock_early_and_asks() {
    one_has_the_lock_early(Some(Duration::ZERO));
    assert_took_at_most(RESERVATION);
}

fn one_has_the_lock_early_and_asks_when_it_lapses() {
    one_has_the_lock_early(Some(RESERVATION));
    assert_took_at_most(RESERVATION + 2 * MS);
}

fn one_has_the_lock_early_and_never_asks() {
    one_has_the_lock_early(None);
    assert_took_at_most(RESERVATION + LOOK_AGAIN);
}

#[test]
fn two_writers_take_turns_under_every_schedule() {
    holds_under_all(one_transaction_each);
}

#[test]
fn writers_take_turns_and_nobody_waits_for_time() {
    holds(&[Patient], two_take_turns);
    holds(&[Patient], four_take_turns);
    holds(&[Hasty, Fickle], three_take_turns_on_a_slow_machine);
}

#[test]
fn whoever_sleeps_in_line_is_passed_eight_times_at_most() {
    holds(&[Patient], one_sleeps_while_another_writes_on_and_on);
}

#[test]
fn whoever_writes_on_and_on_does_so_for_a_slice() {
    holds(&[Patient], || {
        take_turns_of(3, 12, SLICE / 8, false);
        // Half of it. Who waits does not hear of it that another one is done.
        assert_took_at_most(9 * SLICE);
    });
    holds(&[Hasty, Fickle], || take_turns_of(2, 8, SLICE / 8, false));
}

#[test]
fn whoever_leaves_the_line_passes_on_what_was_handed_over() {
    holds(&[Patient], the_first_in_line_closes);
    holds(&[Patient], the_first_in_line_gives_up_and_closes);
    holds(&[Patient], the_first_in_line_closes_later);
}

#[test]
fn a_reservation_lapses_for_those_who_sleep() {
    holds(&[Patient], the_first_in_line_never_comes_back);
    holds(&[Patient], the_first_in_line_comes_too_late);
}

#[test]
fn two_connections_of_one_thread_do_not_wait_for_each_other() {
    holds(&[Patient], two_connections_of_one_thread);
}

#[test]
fn another_process_delays_the_line_for_a_moment_only() {
    holds(&[Patient], another_process_writes);
    holds(&[Patient], the_first_in_line_leaves_beside_another_process);
    holds(&[Patient], one_has_the_lock_early_and_asks);
    holds(&[Patient, Hasty, Fickle], || one_has_the_lock_early(Some(RESERVATION)));
    holds(&[Patient], one_has_the_lock_early_and_asks_when_it_lapses);
    holds(&[Patient], one_has_the_lock_early_and_never_asks);
}

#[test]
fn planted_bugs_are_found() {
    finds(Bug::LostWakeUp, "somebody waited", &[Patient], two_take_turns);
    finds(Bug::HolderIgnored, "asks the base VFS while", &[Patient], two_take_turns);
    finds(Bug::PassesUnlimited, "was passed", &[Patient], one_sleeps_while_another_writes_on_and_on);
    finds(Bug::HandOverSwallowed, "somebody waited", &[Patient], the_first_in_line_closes);
    finds(Bug::ReservationNeverLapses, "somebody waited", &[Patient], the_first_in_line_never_comes_back);
    finds(Bug::ReservationNeverLapses, "somebody waited", &[Patient], two_connections_of_one_thread);
}
