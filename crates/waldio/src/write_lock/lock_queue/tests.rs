//! Who is told what, and who is woken, with threads of this process.

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

fn not_tried() -> Tried {
    Tried::Not
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
        scope.spawn(|| queue.sleep(connection, sleeper, &minute(), not_tried));
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
                queue.sleep(waiter, sleeper, &minute(), not_tried);
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
            scope
                .spawn(move || queue.sleep(connection, sleeper, &Nap::until(began + 60 * SECOND), not_tried));
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
            queue.sleep(1, &waiter, &Nap::until(deadline), not_tried);
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
        queue.sleep(2, &napper, &Nap::until(Instant::now()), not_tried);
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
    queue.sleep(1, &waiter, &Nap::until(deadline), not_tried);
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
        let (queue, waiter, free) = (&queue, &waiter, &free);
        let take = || if free.load(SeqCst) { Tried::Got } else { Tried::Busy };
        scope.spawn(move || queue.sleep(1, waiter, &minute(), take));
        until_asleep(queue, 1);
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
            queue.sleep(2, &two, &Nap::until(deadline), || Tried::Busy);
            Instant::now()
        });
        until_asleep(&queue, 1);
        // The first in the queue gives up: the second looks from here on, and sees that the lock is not free.
        queue.sleep(1, &one, &Nap::until(now), || Tried::Busy);
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
