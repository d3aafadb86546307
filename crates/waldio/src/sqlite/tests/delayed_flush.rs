//! Goal: when the delay of `waldio_group` is over, one flush makes all durable; a failing one is told to the next COMMIT.
//! Method: a log on the simulated disk with one commit outstanding.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use blockio::disk::{Disk, DiskFile, OpenOptions};
use blockio::simulated::disk::SimDisk;
use blockio::simulated::fault::{Counted, Fault, FaultKind, Kept};

use crate::database::{Database, Helpers};
use crate::durability::delayed_flush::Flusher;
use crate::durability::log_session::LogSession;
use crate::log::layout::Layout;
use crate::options::{DurabilityChoice, FlushDelay, Options};
use crate::sqlite::process::{Opening, Process};
use hooked_disk::{Call, HookedDisk};

#[allow(dead_code, reason = "other tests use all of it")]
#[path = "../../../tests/support/hooked_disk.rs"]
pub(crate) mod hooked_disk;

/// A log with one commit outstanding, whose next sync fails where `fails`.
fn outstanding(fails: bool) -> (Arc<Database>, Arc<LogSession>, Arc<dyn DiskFile>) {
    let (path, disk) = (Path::new("/app.db"), SimDisk::new());
    drop(disk.open(path, OpenOptions { create: true, ..OpenOptions::EXISTING }).expect("an empty disk"));
    let disk = Arc::new(disk);
    let helpers = Helpers::inline();
    let delay = FlushDelay { bytes: 1 << 20, time: Duration::from_millis(2) };
    let options = Options { durability: DurabilityChoice::Bounded(delay), ..Options::default() };
    let database =
        Database::new(path.to_path_buf(), None, "base".to_owned(), Arc::clone(&disk) as _, helpers, options);
    let database = Arc::new(database);
    let (session, file) = database.open_log(true, Layout::Stock).expect("a sound disk");
    session.durability.group_commit.issue(4120);
    disk.set_fault(fails.then_some(Fault {
        counted: Counted::Flushes,
        number: 0,
        kind: FaultKind::Io,
        kept: Kept::All,
        lasting: false,
    }));
    (database, session, file)
}

/// What became of an order whose time is over.
fn ordered_and_due(session: &LogSession, file: &Arc<dyn DiskFile>, time: Duration) -> Option<Instant> {
    session.flush_with(Arc::clone(file));
    let now = Instant::now();
    assert!(session.order_flush(now, time), "nothing comes earlier");
    session.flush_ordered()
}

#[test]
fn a_flush_when_the_time_is_over_makes_all_durable_and_is_done_once() {
    let (database, session, file) = outstanding(false);
    for _ in 0..2 {
        assert_eq!(ordered_and_due(&session, &file, Duration::ZERO), None);
    }
    assert_eq!(session.durability.group_commit.outstanding_bytes(), 0);
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(SeqCst);
    assert_eq!((count(&database.stats.delayed_flushes), count(&database.stats.flushes)), (1, 1));
}

#[test]
fn commits_that_came_after_a_flush_have_a_time_of_their_own() {
    let (database, session, file) = outstanding(false);
    let flushes = || database.stats.flushes.load(SeqCst);
    let first = Instant::now();
    // By their bytes, before the time is over; then another commit.
    session.durability.flush_unlocked(&*file, false).expect("a sound disk");
    session.durability.group_commit.issue(4120);
    let due = ordered_and_due(&session, &file, Duration::from_secs(3600)).expect("it is young");
    assert!(due >= first + Duration::from_secs(3600));
    assert_eq!((flushes(), session.durability.group_commit.outstanding_bytes()), (1, 4120));
    assert_eq!(ordered_and_due(&session, &file, Duration::ZERO), None);
    assert_eq!((flushes(), session.durability.group_commit.outstanding_bytes()), (2, 0));
}

#[test]
fn a_flush_that_was_put_off_comes_with_no_other_commit_to_order_it() {
    let (database, session, file) = outstanding(false);
    let (flusher, time) = (Flusher::thread(), Duration::from_millis(40));
    assert!(flusher.flush_within(&session, &file, time));
    session.durability.flush_unlocked(&*file, false).expect("a sound disk");
    std::thread::sleep(time / 2);
    session.durability.group_commit.issue(4120);
    let issued = Instant::now();
    assert!(flusher.flush_within(&session, &file, time), "ordered already");
    while session.durability.group_commit.is_outstanding() {
        assert!(issued.elapsed() < Duration::from_secs(60), "nobody flushes");
        std::thread::yield_now();
    }
    assert!(issued.elapsed() >= time, "{:?}", issued.elapsed());
    assert_eq!(database.stats.flushes.load(SeqCst), 2);
}

/// What leaders wait for, who flush for others, is a quarter of a flush: on a slow disk that alone may be more than the delay.
#[test]
fn a_flush_that_is_due_is_put_off_for_nobody() {
    let (_database, session, file) = outstanding(false);
    session.durability.group_commit.pretend_slow_flushes(Duration::from_secs(4 * 3600));
    let (flushed, ends) = std::sync::mpsc::channel();
    let of_thread = Arc::clone(&session);
    std::thread::spawn(move || {
        let _ = flushed.send(ordered_and_due(&of_thread, &file, Duration::ZERO));
    });
    assert_eq!(ends.recv_timeout(Duration::from_secs(20)), Ok(None), "it waits for others to join");
    assert_eq!(session.durability.group_commit.not_durable(), None);
}

/// Two connections: the first one's delay is long, the second one's short.
#[test]
fn a_commit_with_a_shorter_delay_is_flushed_in_its_own_time() {
    let (_database, session, file) = outstanding(false);
    let flusher = Flusher::thread();
    assert!(flusher.flush_within(&session, &file, Duration::from_secs(3600)));
    assert!(flusher.flush_within(&session, &file, Duration::from_millis(5)));
    let began = Instant::now();
    while session.durability.group_commit.is_outstanding() {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody flushes");
        std::thread::yield_now();
    }
    // An order is due, and the commit that gave it was flushed by others. One with a short delay came just before.
    let (now, hour) = (Instant::now(), Duration::from_secs(3600));
    assert!(session.order_flush(now, hour));
    session.durability.group_commit.issue(4120);
    assert!(!session.order_flush(now + Duration::from_millis(5), Duration::from_millis(5)));
    let due = session.flush_ordered().unwrap_or(now);
    assert!(due < now + Duration::from_secs(60), "{:?}", due - now);
}

#[test]
fn a_flush_that_fails_then_poisons_and_leaves_the_rewriting_to_the_next_with_a_lock() {
    let (database, session, file) = outstanding(true);
    assert_eq!(ordered_and_due(&session, &file, Duration::ZERO), None);
    assert!(database.check_poison().is_err(), "the next COMMIT says so");
    assert!(session.durability.flush_unlocked(&*file, false).is_err(), "never retry and trust");
    assert_eq!(session.durability.group_commit.outstanding_bytes(), 4120);
    assert!(session.durability.take_owed_rewrite() && !session.durability.take_owed_rewrite(), "once");
}

#[test]
fn one_thread_flushes_when_the_time_is_over_however_often_it_is_asked() {
    let (database, session, file) = outstanding(false);
    let flusher = Flusher::thread();
    let due = Instant::now() + Duration::from_millis(5);
    for _ in 0..100 {
        assert!(flusher.flush_within(&session, &file, Duration::from_millis(5)));
    }
    while session.durability.group_commit.is_outstanding() {
        std::thread::yield_now();
    }
    assert!(Instant::now() >= due);
    assert_eq!(database.stats.flushes.load(SeqCst), 1);
}

/// A database of this process on a disk, with one commit outstanding whose flush is ordered.
fn ordered(path: &str, disk: Arc<dyn Disk>) -> (Arc<Database>, Arc<LogSession>, Arc<dyn DiskFile>) {
    let path = Path::new(path).to_path_buf();
    drop(disk.open(&path, OpenOptions { create: true, ..OpenOptions::EXISTING }).expect("an empty disk"));
    let options = Options::default();
    let base_name = "base".to_owned();
    let opening = Opening { path, file_id: None, base_name, disk, inline_worker: false, options };
    let name = opening.path.as_os_str().as_bytes().as_ptr().addr();
    let database = Arc::clone(&Process::current().connect(opening, name).database);
    let (session, file) = database.open_log(true, Layout::Stock).expect("a sound disk");
    session.durability.group_commit.issue(4120);
    assert!(database.flush_within(&session, &file, Duration::from_millis(1)));
    (database, session, file)
}

/// The thread put its flush off, to a moment before that of an order which came just then: whose act comes finds the other order.
#[test]
fn who_comes_for_an_order_of_its_own_and_finds_another_comes_back_for_that() {
    let (_database, session, file) = outstanding(false);
    session.flush_with(file);
    let (now, hour) = (Instant::now(), Duration::from_secs(3600));
    let [sooner, later] = [hour, 2 * hour].map(|time| now + time);
    assert!(session.order_flush(later, hour) && session.order_flush(sooner, hour));
    assert_eq!(session.flush_ordered(), Some(sooner), "and then somebody flushes");
    assert!(!session.order_flush(later, hour), "it stands");
    assert!(session.order_flush(now, Duration::ZERO) && session.flush_ordered().is_none());
    assert_eq!(session.durability.group_commit.outstanding_bytes(), 0);
}

/// Commits that order flushes while others flush for them, so that the thread puts its flush off at the moment at which another order
/// comes: the one or the other flushes, never nobody.
#[test]
fn however_orders_and_flushes_meet_all_is_flushed_in_the_end() {
    let (_database, session, file) = outstanding(false);
    let (flusher, time) = (Flusher::thread(), Duration::from_micros(300));
    let began = Instant::now();
    for round in 0_u64.. {
        if began.elapsed() > Duration::from_secs(2) {
            break;
        }
        // The writers of a log take turns.
        for commit in 0..40_u64 {
            session.durability.group_commit.issue(4120);
            let time = if commit % 7 == 0 { Duration::ZERO } else { time };
            assert!(flusher.flush_within(&session, &file, time));
            if (commit + round) % 5 == 0 {
                session.durability.flush_unlocked(&*file, false).expect("a sound disk");
            }
            let pause = Duration::from_micros((commit * 37 + round * 11) % 90);
            let now = Instant::now();
            while now.elapsed() < pause {
                std::hint::spin_loop();
            }
        }
        let last = Instant::now();
        while session.durability.group_commit.is_outstanding() {
            assert!(last.elapsed() < Duration::from_secs(20), "nobody flushes, in round {round}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_slow_device_makes_the_window_of_no_other_database_wait() {
    let (begun, ended) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let barriers = [Arc::clone(&begun), Arc::clone(&ended)];
    let hook = move |call: Call<'_>| {
        if matches!(call, Call::Synced) {
            for barrier in &barriers {
                barrier.wait();
            }
        }
    };
    let slow =
        ordered("/slow.db", Arc::new(HookedDisk { disk: Arc::new(SimDisk::new()), hook: Arc::new(hook) }));
    begun.wait();
    let (_database, session, _file) = ordered("/quick.db", Arc::new(SimDisk::new()));
    let began = Instant::now();
    while session.durability.group_commit.is_outstanding() && began.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    assert!(!session.durability.group_commit.is_outstanding(), "its flush waits for the slow device's");
    assert!(slow.1.durability.group_commit.is_outstanding(), "the slow one was not slow");
    ended.wait();
}
