//! Goal: no commit counts as durable before a flush that covers it, and nobody who waits is forgotten.
//! Method: threads on one set of tickets, with flushes that succeed, fail and panic.

use super::*;
use std::sync::atomic::AtomicUsize;

const BYTES: u64 = 4120;

fn bell() -> Arc<Bell> {
    Arc::default()
}

fn unneeded() -> Result<(), Failed> {
    panic!("nobody should flush")
}

#[test]
fn one_flush_covers_every_ticket_given_out_before_it() {
    let tickets = Tickets::default();
    let (one, two) = (tickets.issue(BYTES), tickets.issue(BYTES));
    assert!(tickets.is_outstanding());
    assert_eq!(tickets.wait(one, &bell(), || Ok(())), Ok(Covered::Led(2)));
    assert_eq!(tickets.wait(two, &bell(), unneeded), Ok(Covered::Joined));
    assert!(!tickets.is_outstanding());
}

#[test]
fn a_ticket_given_out_while_a_flush_runs_needs_the_next() {
    let tickets = Tickets::default();
    let one = tickets.issue(BYTES);
    let mut two = 0;
    assert_eq!(
        tickets.wait(one, &bell(), || {
            two = tickets.issue(BYTES);
            Ok(())
        }),
        Ok(Covered::Led(1))
    );
    let flushed = AtomicUsize::new(0);
    let flush = || {
        flushed.fetch_add(1, SeqCst);
        Ok(())
    };
    assert_eq!(tickets.wait(two, &bell(), flush), Ok(Covered::Led(1)));
    assert_eq!(flushed.load(SeqCst), 1);
}

#[test]
fn a_failed_flush_fails_what_it_covered_and_all_that_follows_and_nothing_before() {
    let tickets = Tickets::default();
    let one = tickets.issue(BYTES);
    assert_eq!(tickets.wait(one, &bell(), || Ok(())), Ok(Covered::Led(1)));
    let (two, three) = (tickets.issue(BYTES), tickets.issue(BYTES));
    assert_eq!(tickets.wait(two, &bell(), || Err(Failed)), Err(Failed));
    assert_eq!(tickets.wait(three, &bell(), unneeded), Err(Failed));
    assert_eq!(tickets.wait(one, &bell(), unneeded), Ok(Covered::Joined));
    let four = tickets.issue(BYTES);
    tickets.covered(tickets.issued());
    assert_eq!(tickets.wait(four, &bell(), unneeded), Err(Failed), "never retry and trust");
}

#[test]
fn a_flush_that_panics_leaves_nobody_waiting() {
    let tickets = Tickets::default();
    let (one, two) = (tickets.issue(BYTES), tickets.issue(BYTES));
    thread::scope(|scope| {
        let mut joined = None;
        let led = catch_unwind(AssertUnwindSafe(|| {
            tickets.wait(one, &bell(), || {
                joined = Some(scope.spawn(|| tickets.wait(two, &bell(), unneeded)));
                while tickets.state().asleep.is_empty() {
                    thread::yield_now();
                }
                panic!("planted");
            })
        }));
        assert!(led.is_err(), "the panic goes on");
        assert_eq!(joined.unwrap().join().unwrap(), Err(Failed));
    });
    assert_eq!(tickets.wait(two, &bell(), unneeded), Err(Failed));
}

#[test]
fn who_wrote_nothing_joins_the_flush_of_those_who_did() {
    let tickets = Tickets::default();
    let reader = tickets.join();
    assert_eq!(tickets.wait(reader, &bell(), || Ok(())), Ok(Covered::Led(1)));
    let (one, reader) = (tickets.issue(BYTES), tickets.join());
    assert_eq!(tickets.wait(one, &bell(), || Ok(())), Ok(Covered::Led(2)));
    assert_eq!(tickets.wait(reader, &bell(), unneeded), Ok(Covered::Joined));
}

#[test]
fn bytes_are_outstanding_until_a_flush_that_began_after_them() {
    let tickets = Tickets::default();
    let one = tickets.issue(BYTES);
    let covers = tickets.issued();
    tickets.issue(2 * BYTES);
    assert_eq!(tickets.outstanding_bytes(), 3 * BYTES);
    tickets.covered(covers);
    assert_eq!(tickets.outstanding_bytes(), 2 * BYTES);
    let led = tickets.wait(tickets.join(), &bell(), || {
        tickets.issue(4 * BYTES);
        Ok(())
    });
    assert_eq!((led, tickets.outstanding_bytes()), (Ok(Covered::Led(2)), 4 * BYTES));
    assert_eq!(tickets.wait(one, &bell(), unneeded), Ok(Covered::Joined));
}

#[test]
fn another_flush_of_the_whole_file_counts() {
    let tickets = Tickets::default();
    let one = tickets.issue(BYTES);
    tickets.covered(tickets.issued());
    assert_eq!(tickets.wait(one, &bell(), unneeded), Ok(Covered::Joined));
}

/// Whether a leader whose flush covered another commit wakes it.
fn leader_wakes_the_covered() -> bool {
    let tickets = Tickets::default();
    let (one, two) = (tickets.issue(BYTES), tickets.issue(BYTES));
    thread::scope(|scope| {
        let led = tickets.wait(one, &bell(), || {
            scope.spawn(|| tickets.wait(two, &bell(), unneeded));
            while tickets.state().asleep.is_empty() {
                thread::yield_now();
            }
            Ok(())
        });
        assert_eq!(led, Ok(Covered::Led(2)));
        let forgotten = !tickets.state().covered.is_empty();
        // Ends the test, whoever was forgotten.
        tickets.fail();
        !forgotten
    })
}

#[test]
fn a_leader_wakes_whom_its_flush_covered() {
    assert!(leader_wakes_the_covered());
}

#[cfg(feature = "planted-bugs")]
#[test]
fn a_lost_wake_up_is_seen() {
    planted::set_here(Some(Bug::LostWakeUp));
    let woken = leader_wakes_the_covered();
    planted::set_here(None);
    assert!(!woken);
}

#[test]
fn a_checkpoint_beside_a_flush_forgets_nobody() {
    let tickets = Tickets::default();
    let (one, two) = (tickets.issue(BYTES), AtomicU64::new(0));
    thread::scope(|scope| {
        let led = tickets.wait(one, &bell(), || {
            // A commit comes while the flush runs, and sleeps; then a checkpoint makes the first one durable.
            let first = tickets.issued();
            two.store(tickets.issue(BYTES), SeqCst);
            scope.spawn(|| assert!(tickets.wait(two.load(SeqCst), &bell(), || Ok(())).is_ok()));
            while tickets.state().asleep.is_empty() {
                thread::yield_now();
            }
            tickets.covered(first);
            Ok(())
        });
        assert!(led.is_ok());
    });
    assert!(!tickets.is_outstanding());
}

#[test]
fn many_threads_share_few_flushes_and_none_is_forgotten() {
    let (tickets, flushed) = (Tickets::default(), AtomicUsize::new(0));
    let running = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let ticket = tickets.issue(BYTES);
                    let flush = || {
                        assert_eq!(running.fetch_add(1, SeqCst), 0, "one flush at a time");
                        let covers = tickets.issued();
                        thread::yield_now();
                        assert!(covers.ticket >= ticket);
                        flushed.fetch_add(1, SeqCst);
                        running.fetch_sub(1, SeqCst);
                        Ok(())
                    };
                    assert!(tickets.wait(ticket, &bell(), flush).is_ok());
                }
            });
        }
    });
    assert!(!tickets.is_outstanding());
    assert!(flushed.load(SeqCst) <= 1600);
}

#[test]
fn those_a_flush_let_go_and_those_who_came_meanwhile_are_awaited_by_the_next() {
    let tickets = Tickets::default();
    let last = (0..4).map(|_| tickets.issue(BYTES)).last().unwrap();
    let led = tickets.wait(last, &bell(), || {
        (0..2).for_each(|_| {
            tickets.issue(BYTES);
        });
        Ok(())
    });
    assert_eq!((led, tickets.state().population), (Ok(Covered::Led(4)), 4 + 2));
}

#[test]
fn whoever_came_during_a_flush_is_woken_to_lead_the_next() {
    let tickets = Tickets::default();
    let one = tickets.issue(BYTES);
    thread::scope(|scope| {
        let mut next = None;
        let led = tickets.wait(one, &bell(), || {
            let two = tickets.issue(BYTES);
            next = Some(scope.spawn({
                let tickets = &tickets;
                move || tickets.wait(two, &bell(), || Ok(()))
            }));
            while tickets.state().asleep.is_empty() {
                thread::yield_now();
            }
            Ok(())
        });
        assert_eq!(led, Ok(Covered::Led(1)));
        let forgotten = !tickets.state().asleep.is_empty();
        if forgotten {
            // Ends the test.
            tickets.fail();
        }
        let next = next.unwrap().join().unwrap();
        assert_eq!((forgotten, next), (false, Ok(Covered::Led(1))));
    });
}
