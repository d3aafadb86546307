//! Goal: no commit counts as durable before a flush that covers it, and nobody who waits is forgotten.
//! Method: threads on one set of numbers, with flushes that succeed, fail and panic.

use super::*;
use std::sync::atomic::AtomicUsize;

const BYTES: u64 = 4120;

fn waker() -> Arc<Waker> {
    Arc::default()
}

fn unneeded() -> Result<(), Failed> {
    panic!("nobody should flush")
}

#[test]
fn one_flush_covers_every_ticket_given_out_before_it() {
    let group_commit = GroupCommit::default();
    let (one, two) = (group_commit.issue(BYTES), group_commit.issue(BYTES));
    assert!(group_commit.is_outstanding());
    assert_eq!(group_commit.wait(one, &waker(), || Ok(())), Ok(Covered::Led(2)));
    assert_eq!(group_commit.wait(two, &waker(), unneeded), Ok(Covered::Joined));
    assert!(!group_commit.is_outstanding());
}

#[test]
fn a_ticket_given_out_while_a_flush_runs_needs_the_next() {
    let group_commit = GroupCommit::default();
    let one = group_commit.issue(BYTES);
    let mut two = 0;
    assert_eq!(
        group_commit.wait(one, &waker(), || {
            two = group_commit.issue(BYTES);
            Ok(())
        }),
        Ok(Covered::Led(1))
    );
    let flushed = AtomicUsize::new(0);
    let flush = || {
        flushed.fetch_add(1, SeqCst);
        Ok(())
    };
    assert_eq!(group_commit.wait(two, &waker(), flush), Ok(Covered::Led(1)));
    assert_eq!(flushed.load(SeqCst), 1);
}

#[test]
fn half_of_a_bound_waits_for_a_flush_that_is_not_under_way() {
    let group_commit = GroupCommit::default();
    let half_full = || [4, 6, 8].map(|commits| group_commit.is_half_full(commits * BYTES));
    assert_eq!(half_full(), [false; 3]);
    let one = (0..3).map(|_| group_commit.issue(BYTES)).last().unwrap();
    assert_eq!(half_full(), [true, true, false]);
    let waited = group_commit.wait(one, &waker(), || {
        assert_eq!(half_full(), [false; 3], "this flush covers them");
        group_commit.issue(BYTES);
        group_commit.issue(BYTES);
        Ok(())
    });
    assert_eq!(waited, Ok(Covered::Led(3)));
    group_commit.pretend_slow_flushes(Duration::ZERO);
    assert_eq!(half_full(), [true, false, false]);
    group_commit.pretend_slow_flushes(Duration::from_secs(3600));
    assert_eq!(half_full(), [false; 3], "they came quicker than a flush");
    group_commit.pretend_slow_flushes(Duration::ZERO);
    group_commit.covered(group_commit.issued());
    assert_eq!(half_full(), [false; 3]);
}

#[test]
fn the_oldest_commit_waits_until_a_flush_covers_all() {
    let group_commit = GroupCommit::default();
    group_commit.issue(BYTES);
    let first = group_commit.issued();
    group_commit.issue(BYTES);
    let waits = |group_commit: &GroupCommit| group_commit.not_durable().map(|waits| waits.bytes);
    assert_eq!(waits(&group_commit), Some(2 * BYTES));
    group_commit.covered(first);
    assert_eq!(waits(&group_commit), Some(BYTES), "the second waits");
    group_commit.covered(group_commit.issued());
    assert_eq!((group_commit.not_durable(), group_commit.outstanding_bytes()), (None, 0));
    // The thread of the delayed flush waits, or a reader: no commit does.
    group_commit.issue(BYTES);
    let covers = group_commit.issued();
    group_commit.join();
    group_commit.covered(covers);
    assert_eq!((group_commit.not_durable(), group_commit.outstanding_bytes()), (None, 0));
}

#[test]
fn a_failed_flush_fails_what_it_covered_and_all_that_follows_and_nothing_before() {
    let group_commit = GroupCommit::default();
    let one = group_commit.issue(BYTES);
    assert_eq!(group_commit.wait(one, &waker(), || Ok(())), Ok(Covered::Led(1)));
    let (two, three) = (group_commit.issue(BYTES), group_commit.issue(BYTES));
    assert_eq!(group_commit.wait(two, &waker(), || Err(Failed)), Err(Failed));
    assert_eq!(group_commit.wait(three, &waker(), unneeded), Err(Failed));
    assert_eq!(group_commit.wait(one, &waker(), unneeded), Ok(Covered::Joined));
    let four = group_commit.issue(BYTES);
    group_commit.covered(group_commit.issued());
    assert_eq!(group_commit.wait(four, &waker(), unneeded), Err(Failed), "never retry and trust");
}

#[test]
fn a_flush_that_panics_leaves_nobody_waiting() {
    let group_commit = GroupCommit::default();
    let (one, two) = (group_commit.issue(BYTES), group_commit.issue(BYTES));
    thread::scope(|scope| {
        let mut joined = None;
        let led = catch_unwind(AssertUnwindSafe(|| {
            group_commit.wait(one, &waker(), || {
                joined = Some(scope.spawn(|| group_commit.wait(two, &waker(), unneeded)));
                while group_commit.state().asleep.is_empty() {
                    thread::yield_now();
                }
                panic!("planted");
            })
        }));
        assert!(led.is_err(), "the panic goes on");
        assert_eq!(joined.unwrap().join().unwrap(), Err(Failed));
    });
    assert_eq!(group_commit.wait(two, &waker(), unneeded), Err(Failed));
}

#[test]
fn who_wrote_nothing_joins_the_flush_of_those_who_did() {
    let group_commit = GroupCommit::default();
    let reader = group_commit.join();
    assert_eq!(group_commit.wait(reader, &waker(), || Ok(())), Ok(Covered::Led(1)));
    let (one, reader) = (group_commit.issue(BYTES), group_commit.join());
    assert_eq!(group_commit.wait(one, &waker(), || Ok(())), Ok(Covered::Led(2)));
    assert_eq!(group_commit.wait(reader, &waker(), unneeded), Ok(Covered::Joined));
}

#[test]
fn bytes_are_outstanding_until_a_flush_that_began_after_them() {
    let group_commit = GroupCommit::default();
    let one = group_commit.issue(BYTES);
    let covers = group_commit.issued();
    group_commit.issue(2 * BYTES);
    assert_eq!(group_commit.outstanding_bytes(), 3 * BYTES);
    group_commit.covered(covers);
    assert_eq!(group_commit.outstanding_bytes(), 2 * BYTES);
    let led = group_commit.wait(group_commit.join(), &waker(), || {
        group_commit.issue(4 * BYTES);
        Ok(())
    });
    assert_eq!((led, group_commit.outstanding_bytes()), (Ok(Covered::Led(2)), 4 * BYTES));
    assert_eq!(group_commit.wait(one, &waker(), unneeded), Ok(Covered::Joined));
}

#[test]
fn another_flush_of_the_whole_file_counts() {
    let group_commit = GroupCommit::default();
    let one = group_commit.issue(BYTES);
    group_commit.covered(group_commit.issued());
    assert_eq!(group_commit.wait(one, &waker(), unneeded), Ok(Covered::Joined));
}

/// Whether a leader whose flush covered another commit wakes it.
fn leader_wakes_the_covered() -> bool {
    let group_commit = GroupCommit::default();
    let (one, two) = (group_commit.issue(BYTES), group_commit.issue(BYTES));
    thread::scope(|scope| {
        let led = group_commit.wait(one, &waker(), || {
            scope.spawn(|| group_commit.wait(two, &waker(), unneeded));
            while group_commit.state().asleep.is_empty() {
                thread::yield_now();
            }
            Ok(())
        });
        assert_eq!(led, Ok(Covered::Led(2)));
        let forgotten = !group_commit.state().covered.is_empty();
        // Ends the test, whoever was forgotten.
        group_commit.fail();
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
    let group_commit = GroupCommit::default();
    let (one, two) = (group_commit.issue(BYTES), AtomicU64::new(0));
    thread::scope(|scope| {
        let led = group_commit.wait(one, &waker(), || {
            // A commit comes while the flush runs, and sleeps; then a checkpoint makes the first one durable.
            let first = group_commit.issued();
            two.store(group_commit.issue(BYTES), SeqCst);
            scope.spawn(|| assert!(group_commit.wait(two.load(SeqCst), &waker(), || Ok(())).is_ok()));
            while group_commit.state().asleep.is_empty() {
                thread::yield_now();
            }
            group_commit.covered(first);
            Ok(())
        });
        assert!(led.is_ok());
    });
    assert!(!group_commit.is_outstanding());
}

#[test]
fn many_threads_share_few_flushes_and_none_is_forgotten() {
    let (group_commit, flushed) = (GroupCommit::default(), AtomicUsize::new(0));
    let running = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let number = group_commit.issue(BYTES);
                    let flush = || {
                        assert_eq!(running.fetch_add(1, SeqCst), 0, "one flush at a time");
                        let covers = group_commit.issued();
                        thread::yield_now();
                        assert!(covers.number >= number);
                        flushed.fetch_add(1, SeqCst);
                        running.fetch_sub(1, SeqCst);
                        Ok(())
                    };
                    assert!(group_commit.wait(number, &waker(), flush).is_ok());
                }
            });
        }
    });
    assert!(!group_commit.is_outstanding());
    assert!(flushed.load(SeqCst) <= 1600);
}

#[test]
fn those_a_flush_let_go_and_those_who_came_meanwhile_are_awaited_by_the_next() {
    let group_commit = GroupCommit::default();
    let last = (0..4).map(|_| group_commit.issue(BYTES)).last().unwrap();
    let led = group_commit.wait(last, &waker(), || {
        (0..2).for_each(|_| {
            group_commit.issue(BYTES);
        });
        Ok(())
    });
    assert_eq!((led, group_commit.state().population), (Ok(Covered::Led(4)), 4 + 2));
}

#[test]
fn whoever_came_during_a_flush_is_woken_to_lead_the_next() {
    let group_commit = GroupCommit::default();
    let one = group_commit.issue(BYTES);
    thread::scope(|scope| {
        let mut next = None;
        let led = group_commit.wait(one, &waker(), || {
            let two = group_commit.issue(BYTES);
            next = Some(scope.spawn({
                let group_commit = &group_commit;
                move || group_commit.wait(two, &waker(), || Ok(()))
            }));
            while group_commit.state().asleep.is_empty() {
                thread::yield_now();
            }
            Ok(())
        });
        assert_eq!(led, Ok(Covered::Led(1)));
        let forgotten = !group_commit.state().asleep.is_empty();
        if forgotten {
            // Ends the test.
            group_commit.fail();
        }
        let next = next.unwrap().join().unwrap();
        assert_eq!((forgotten, next), (false, Ok(Covered::Led(1))));
    });
}

/// Leads a flush that covers a commit, where a leader puts its flush off for a quarter of that time; true where it did not.
fn leads_at_once(flush_time: Duration, begins: impl FnOnce(&GroupCommit) -> CommitNumber) -> bool {
    let group_commit = Arc::new(GroupCommit::default());
    let number = begins(&group_commit);
    group_commit.pretend_slow_flushes(flush_time);
    let (led, ends) = std::sync::mpsc::channel();
    let leader = Arc::clone(&group_commit);
    std::thread::spawn(move || {
        let _ = led.send(leader.wait(number, &waker(), || Ok(())).is_ok());
    });
    ends.recv_timeout(Duration::from_secs(20)) == Ok(true)
}

#[test]
fn who_is_in_a_hurry_puts_no_flush_off_and_neither_does_who_leads_for_that_one() {
    let hours = Duration::from_secs(4 * 3600);
    assert!(leads_at_once(hours, GroupCommit::hurry));
    assert!(leads_at_once(hours, |group_commit| {
        let number = group_commit.issue(BYTES);
        group_commit.hurry();
        number
    }));
}

#[test]
fn who_comes_in_a_hurry_ends_the_wait_of_who_leads() {
    let group_commit = GroupCommit::default();
    let number = group_commit.issue(BYTES);
    group_commit.pretend_slow_flushes(Duration::from_secs(4 * 3600));
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| group_commit.wait(number, &waker(), || Ok(())));
        while group_commit.state().awaited.is_none() {
            std::thread::yield_now();
        }
        let number = group_commit.hurry();
        assert_eq!(group_commit.wait(number, &waker(), unneeded), Ok(Covered::Joined));
        assert_eq!(leader.join().unwrap(), Ok(Covered::Led(2)));
    });
}
