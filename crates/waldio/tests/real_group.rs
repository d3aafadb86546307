//! Goal: several connections write at once, share flushes, wait their turn, and SQLite's own rules hold: timeouts in
//! wall time, two connections of one thread, applications' busy handlers, a log that stays small.
//! Method: real files and threads, each test in a process of its own; `waldio_status` counts.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use real::child::in_own_process;
use real::place::Scratch;
use real::sqlite::{Connection, Library, bundled, system};
use real::writers::{all_there, number, open, prepare, write};

const BUSY: i32 = 5;

fn shares(library: fn() -> &'static Library) {
    let scratch = Scratch::new("group");
    let path = scratch.join("a.db");
    let db = prepare(library(), &path);
    write(library(), &path, 8, 500);
    all_there(&db, 8, 500);
    let (shared, flushes) = (number(&db, "shared_commits"), number(&db, "shared_flushes"));
    assert!(shared > 2000, "{shared} of 4000 commits shared a flush");
    assert!(flushes * 3 < shared * 2, "{flushes} flushes for {shared} commits");
    assert!(number(&db, "largest_group") > 1);
    assert!(number(&db, "hand_overs") > 0);
    let (checkpoints, barriers) = (number(&db, "checkpoints"), number(&db, "barriers"));
    assert!(checkpoints > 0 && barriers <= checkpoints, "{barriers} barriers for {checkpoints} checkpoints");
    let log_bytes = number(&db, "log_file_bytes");
    assert!(log_bytes <= 8 << 20, "the log grew to {log_bytes} bytes");
}

#[test]
fn eight_writers_share_flushes_in_the_system_library() {
    in_own_process("eight_writers_share_flushes_in_the_system_library", || shares(system));
}

#[test]
fn eight_writers_share_flushes_in_the_bundled_library() {
    in_own_process("eight_writers_share_flushes_in_the_bundled_library", || shares(bundled));
}

#[test]
fn checkpoints_that_want_the_write_lock_get_it_beside_many_writers() {
    in_own_process("checkpoints_that_want_the_write_lock_get_it_beside_many_writers", || {
        // PASSIVE copies the bulk; FULL, RESTART and TRUNCATE after it run behind the barrier.
        const MODES: [i32; 6] = [0, 1, 0, 2, 0, 3];
        const ROUNDS_MAX: usize = 10;
        let scratch = Scratch::new("modes");
        let path = scratch.join("a.db");
        system().load(None).unwrap();
        let db = open(system(), &path);
        // A small log closes the barrier often.
        db.rows("PRAGMA waldio_log_bytes=65536");
        db.rows("PRAGMA journal_mode=WAL");
        db.rows("CREATE TABLE t(writer, number, value)");
        let done = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut rounds = 0;
                while rounds < 1 || rounds < ROUNDS_MAX && db_status(&path) == "NULL" {
                    write(system(), &path, 6, 300);
                    rounds += 1;
                }
                done.store(true, std::sync::atomic::Ordering::SeqCst);
            });
            let checkpointer = open(system(), &path);
            checkpointer.rows("SELECT count(*) FROM t");
            let mut longest = Duration::ZERO;
            for mode in MODES.into_iter().cycle() {
                if done.load(std::sync::atomic::Ordering::SeqCst) {
                    break;
                }
                let began = Instant::now();
                checkpointer.checkpoint(mode);
                longest = longest.max(began.elapsed());
                thread::sleep(Duration::from_millis(2));
            }
            // Its busy timeout is a minute: a checkpoint that waits for itself shows.
            assert!(longest < Duration::from_secs(30), "a checkpoint took {longest:?}");
        });
        assert_ne!(db.status("barrier_p50"), "NULL", "no checkpoint closed the barrier");
        let rows = number_of_rows(&db);
        assert!(rows >= 1800 && rows.is_multiple_of(1800), "{rows} rows");
        assert_eq!(db.one("PRAGMA integrity_check"), "ok");
    });
}

fn db_status(path: &Path) -> String {
    open(system(), path).status("barrier_p50")
}

fn number_of_rows(db: &Connection) -> u64 {
    db.one("SELECT count(*) FROM t").parse().unwrap()
}

#[test]
fn a_lone_writer_shares_nothing() {
    in_own_process("a_lone_writer_shares_nothing", || {
        let scratch = Scratch::new("lone");
        let path = scratch.join("a.db");
        let db = prepare(system(), &path);
        for _ in 0..50 {
            db.rows("INSERT INTO t VALUES (1, 1, 1)");
        }
        assert_eq!(number(&db, "shared_commits"), 0);
        assert_eq!(number(&db, "hand_overs"), 0);
    });
}

#[test]
fn switched_off_nothing_is_shared_and_nobody_queues() {
    in_own_process("switched_off_nothing_is_shared_and_nobody_queues", || {
        let scratch = Scratch::new("off");
        let path = scratch.join("a.db");
        let db = prepare(system(), &path);
        drop(db);
        let uri = format!("file:{}?waldio_group_commit=off", path.display());
        let db = system().open_with(&uri, None).unwrap();
        db.rows("PRAGMA synchronous=FULL");
        write(system(), Path::new(&uri), 2, 100);
        assert_eq!(db.one("SELECT count(*) FROM t"), "200");
        assert_eq!(number(&db, "shared_commits"), 0);
        assert_eq!(number(&db, "hand_overs"), 0);
    });
}

#[test]
fn a_busy_timeout_lasts_as_long_as_it_says() {
    in_own_process("a_busy_timeout_lasts_as_long_as_it_says", || {
        let scratch = Scratch::new("timeout");
        let path = scratch.join("a.db");
        let holder = prepare(system(), &path);
        holder.rows("BEGIN IMMEDIATE");
        for milliseconds in [0, 1, 40, 300] {
            let waiter = open(system(), &path);
            waiter.busy_timeout(milliseconds);
            let began = Instant::now();
            let error = waiter.run("BEGIN IMMEDIATE").1.expect("the lock is held");
            let waited = began.elapsed();
            assert_eq!(error.primary(), BUSY);
            let asked = Duration::from_millis(u64::try_from(milliseconds).unwrap());
            assert!(waited >= asked, "gave up after {waited:?} instead of {asked:?}");
            // A loaded machine may be late; a wait of the wrong kind (a whole nap more, or for ever) is far longer.
            assert!(waited < asked + Duration::from_secs(5), "waited {waited:?} instead of {asked:?}");
        }
        holder.rows("COMMIT");
    });
}

#[test]
fn two_connections_of_one_thread_do_not_wait_for_each_other() {
    in_own_process("two_connections_of_one_thread_do_not_wait_for_each_other", || {
        let scratch = Scratch::new("one-thread");
        let path = scratch.join("a.db");
        let one = prepare(system(), &path);
        let two = open(system(), &path);
        two.busy_timeout(100);
        for round in 0..20 {
            one.rows("BEGIN IMMEDIATE");
            one.rows(&format!("INSERT INTO t VALUES (1, {round}, 1)"));
            assert_eq!(two.run("INSERT INTO t VALUES (2, 0, 0)").1.map(|error| error.primary()), Some(BUSY));
            one.rows("COMMIT");
            two.rows(&format!("INSERT INTO t VALUES (2, {round}, 1)"));
        }
        assert_eq!(one.one("SELECT count(*) FROM t"), "40");
    });
}

#[test]
fn writers_that_poll_by_themselves_get_their_turn() {
    in_own_process("writers_that_poll_by_themselves_get_their_turn", || {
        let scratch = Scratch::new("pollers");
        let path = scratch.join("a.db");
        let db = prepare(system(), &path);
        thread::scope(|scope| {
            scope.spawn(|| write(system(), &path, 3, 200));
            scope.spawn(|| {
                // No busy handler: BUSY comes back at once, and the application tries again.
                let poller = open(system(), &path);
                poller.busy_timeout(0);
                let until = Instant::now() + Duration::from_secs(60);
                let mut done = 0;
                while done < 50 {
                    assert!(Instant::now() < until, "starved: {done} commits in a minute");
                    match poller.run(&format!("INSERT INTO t VALUES (9, {done}, 1)")).1 {
                        None => done += 1,
                        Some(error) => {
                            assert_eq!(error.primary(), BUSY);
                            thread::sleep(Duration::from_micros(200));
                        }
                    }
                }
            });
        });
        assert_eq!(db.one("SELECT count(*) FROM t"), "650");
        assert_eq!(db.one("PRAGMA integrity_check"), "ok");
    });
}

#[test]
fn a_checkpoint_without_syncs_still_makes_the_log_durable_first() {
    in_own_process("a_checkpoint_without_syncs_still_makes_the_log_durable_first", || {
        let scratch = Scratch::new("off-checkpoint");
        let path = scratch.join("a.db");
        let db = prepare(system(), &path);
        db.rows("PRAGMA synchronous=OFF");
        db.rows("INSERT INTO t VALUES (1, 1, 1)");
        // SQLite syncs nothing here; the frames may be others', whose COMMIT waits for a flush.
        let before = number(&db, "flushes");
        db.checkpoint(0);
        assert_eq!(number(&db, "flushes"), before + 1);
    });
}

#[test]
fn a_transaction_with_a_super_journal_waits_for_its_own_flush() {
    in_own_process("a_transaction_with_a_super_journal_waits_for_its_own_flush", || {
        let scratch = Scratch::new("super");
        let path = scratch.join("a.db");
        let db = prepare(system(), &path);
        for name in ["b", "c"] {
            db.rows(&format!("ATTACH '{}' AS {name}", scratch.join(&format!("{name}.db")).display()));
            db.rows(&format!("PRAGMA {name}.journal_mode=DELETE"));
            db.rows(&format!("CREATE TABLE {name}.t(a)"));
        }
        let other = open(system(), &path);
        other.busy_timeout(0);
        for round in 0..5 {
            let before = number(&db, "shared_commits");
            db.rows("BEGIN IMMEDIATE");
            db.rows(&format!("INSERT INTO main.t VALUES (1, {round}, 1)"));
            db.rows("INSERT INTO b.t VALUES (1)");
            db.rows("INSERT INTO c.t VALUES (1)");
            // Somebody waits, so that the commit would be shared but for the super-journal.
            assert!(other.run("BEGIN IMMEDIATE").1.is_some());
            db.rows("COMMIT");
            assert_eq!(number(&db, "shared_commits"), before);
        }
        // Without one, the same situation shares.
        let before = number(&db, "shared_commits");
        db.rows("BEGIN");
        db.rows("INSERT INTO main.t VALUES (1, 9, 1)");
        assert!(other.run("BEGIN IMMEDIATE").1.is_some());
        db.rows("COMMIT");
        assert_eq!(number(&db, "shared_commits"), before + 1);
    });
}

#[test]
fn a_long_log_is_copied_beside_the_writers_and_not_behind_the_barrier() {
    in_own_process("a_long_log_is_copied_beside_the_writers_and_not_behind_the_barrier", || {
        let scratch = Scratch::new("long-log");
        let path = scratch.join("a.db");
        let db = prepare(system(), &path);
        let reader = open(system(), &path);
        db.rows("PRAGMA wal_autocheckpoint=0");
        reader.rows("BEGIN; SELECT count(*) FROM t");
        db.checkpoint(0);
        // Six times the working size, and more than the barrier may have left to do.
        for number in 0..250 {
            db.rows(&format!("INSERT INTO t VALUES (1, {number}, zeroblob(100000))"));
        }
        assert!(number(&db, "log_file_bytes") > 24 << 20);
        reader.rows("COMMIT");
        db.checkpoint(0);
        assert_eq!(number(&db, "barriers"), 0, "nobody could write meanwhile");
        // All is copied: the next who writes begins the log anew.
        db.rows("INSERT INTO t VALUES (1, 250, 1)");
        assert!(number(&db, "log_frames") < 10, "{} frames", number(&db, "log_frames"));
    });
}
