//! Goal: a process that has waldio loaded and writes with several threads forks, without exec, and both go on: the child
//! uses none of what its parent had open, and waits for none of its threads.
//! Method: writers go through doors that the one who forks can close. At that moment each of them is outside of SQLite or in
//! the second phase of its COMMIT, where it leads or awaits a flush inside of waldio: SQLite's own mutexes, which a child
//! would wait for in vain, are free, and those of waldio are as it happens.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

use real::child::in_own_process;
use real::fork::{children_begin_with_pid_1, forked, sleeper};
use real::place::{Scratch, needs_root, skipped};
use real::refusal::{is_possible, refuse};
use real::sqlite::{ffi, system};
use real::sqlite_shim::{self, Event};
use real::writers::{all_there, number, open, prepare, write};

static DOORS: RwLock<()> = RwLock::new(());
/// Who is in the second phase of a COMMIT.
static AWAITING: AtomicU8 = AtomicU8::new(0);

thread_local! {
    static INSIDE: RefCell<Option<RwLockReadGuard<'static, ()>>> = const { RefCell::new(None) };
    /// This thread will be inside again.
    static LET_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Does something in SQLite that a fork waits for.
fn inside<T>(act: impl FnOnce() -> T) -> T {
    INSIDE.set(Some(DOORS.read().unwrap()));
    let result = act();
    INSIDE.set(None);
    result
}

/// Threads that are `inside` are outside again for the second phase of a COMMIT.
fn let_out_in_phase_two(event: Event) {
    match event {
        Event::Control(ffi::SQLITE_FCNTL_COMMIT_PHASETWO) if INSIDE.with_borrow(Option::is_some) => {
            AWAITING.fetch_add(1, SeqCst);
            INSIDE.set(None);
            LET_OUT.set(true);
        }
        Event::Controlled(ffi::SQLITE_FCNTL_COMMIT_PHASETWO) if LET_OUT.replace(false) => {
            AWAITING.fetch_sub(1, SeqCst);
            INSIDE.set(Some(DOORS.read().unwrap()));
        }
        _ => {}
    }
}

/// Waits until a child's own thread has made the log grow past its first reservation.
fn until_grown(db: &real::sqlite::Connection) {
    let began = Instant::now();
    while number(db, "growths") < 2 {
        assert!(began.elapsed() < Duration::from_secs(20), "the log of a child never grew");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What a child does with a database of its own.
fn child(path: &Path) {
    const COMMITS: usize = 150;
    let db = prepare(system(), path);
    write(system(), path, 4, COMMITS);
    all_there(&db, 4, COMMITS);
    assert!(number(&db, "shared_commits") > 0, "the child's connections share no flush");
    until_grown(&db);
}

#[test]
fn forks_beside_writers_and_flushes_go_on_by_themselves() {
    in_own_process("forks_beside_writers_and_flushes_go_on_by_themselves", || {
        const WRITERS: usize = 4;
        let scratch = Scratch::new("fork-writers");
        let path = scratch.join("app.db");
        let db = prepare(system(), &path);
        sqlite_shim::register(system(), c"doors", None, true, let_out_in_phase_two);
        let (done, commits) = (AtomicBool::new(false), [(); WRITERS].map(|()| AtomicUsize::new(0)));
        let mut beside_flushes = 0;
        thread::scope(|scope| {
            for (writer, count) in commits.iter().enumerate() {
                let (done, path) = (&done, &path);
                scope.spawn(move || {
                    let db = inside(|| open(system(), path));
                    while !done.load(SeqCst) {
                        let number = count.load(SeqCst);
                        inside(|| {
                            db.rows(&format!("INSERT INTO t VALUES ({writer}, {number}, zeroblob(100))"))
                        });
                        count.fetch_add(1, SeqCst);
                    }
                    inside(|| drop(db));
                });
            }
            for number in 0..12 {
                thread::sleep(Duration::from_millis(20));
                let closed = DOORS.write().unwrap();
                let own = scratch.join(&format!("child{number}.db"));
                let running = forked(|| {
                    let awaiting = AWAITING.load(SeqCst);
                    child(&own);
                    awaiting
                });
                drop(closed);
                let before = commits.each_ref().map(|count| count.load(SeqCst));
                beside_flushes += u32::from(running.finish() > 0);
                let after = commits.each_ref().map(|count| count.load(SeqCst));
                assert!(
                    before.iter().zip(after).all(|(before, after)| *before < after),
                    "the parent stood still"
                );
            }
            done.store(true, SeqCst);
        });
        assert!(beside_flushes > 3, "{beside_flushes} of 12 forks happened beside a flush");
        let total: usize = commits.iter().map(|count| count.load(SeqCst)).sum();
        assert_eq!(db.one("SELECT count(*) FROM t"), total.to_string());
        assert_eq!(db.one("PRAGMA integrity_check"), "ok");
    });
}

#[test]
fn parent_and_child_write_one_database_that_was_closed_at_the_fork() {
    in_own_process("parent_and_child_write_one_database_that_was_closed_at_the_fork", || {
        const COMMITS: usize = 150;
        let scratch = Scratch::new("fork-closed");
        let path = scratch.join("app.db");
        drop(prepare(system(), &path));
        write(system(), &path, 4, COMMITS);
        // No other thread runs: nothing is held.
        let running = forked(|| {
            write(system(), &path, 4, COMMITS);
            0
        });
        write(system(), &path, 4, COMMITS);
        assert_eq!(running.finish(), 0);
        let db = open(system(), &path);
        assert_eq!(db.one("SELECT count(*) FROM t"), (3 * 4 * COMMITS).to_string());
        assert_eq!(db.one("PRAGMA integrity_check"), "ok");
    });
}

/// Connection with two databases in rollback mode attached, whose transactions have a super-journal.
fn with_super_journal(scratch: &Scratch) -> real::sqlite::Connection {
    let db = open(system(), &scratch.join("app.db"));
    for name in ["b", "c"] {
        db.rows(&format!("ATTACH '{}' AS {name}", scratch.join(&format!("{name}.db")).display()));
        db.rows(&format!("PRAGMA {name}.journal_mode=DELETE; CREATE TABLE {name}.u(a)"));
    }
    db
}

#[test]
fn the_super_journal_of_a_parent_is_none_of_its_childs() {
    in_own_process("the_super_journal_of_a_parent_is_none_of_its_childs", || {
        let scratch = Scratch::new("fork-super");
        drop(prepare(system(), &scratch.join("app.db")));
        // Stops inside of a COMMIT that has a super-journal: the log was synced, the journal is still there.
        static STOPS: AtomicBool = AtomicBool::new(false);
        static STOPPED: Barrier = Barrier::new(2);
        sqlite_shim::register(system(), c"stops", None, true, |event| {
            if event == Event::LogSynced && STOPS.swap(false, SeqCst) {
                STOPPED.wait();
                STOPPED.wait();
            }
        });
        let db = with_super_journal(&scratch);
        thread::scope(|scope| {
            let committing = scope.spawn(move || {
                db.rows("BEGIN; INSERT INTO main.t VALUES (1, 1, 1); INSERT INTO b.u VALUES (1); INSERT INTO c.u VALUES (1)");
                STOPS.store(true, SeqCst);
                db.rows("COMMIT");
                assert_eq!(db.one("SELECT count(*) FROM t"), "1");
            });
            STOPPED.wait();
            let own = scratch.join("child.db");
            let running = forked(|| {
                child(&own);
                0
            });
            STOPPED.wait();
            committing.join().unwrap();
            assert_eq!(running.finish(), 0);
        });
    });
}

/// Commits one row behind a window, on a database of its own, and waits for the flush.
fn until_flushed_by_the_clock(path: &Path) {
    let db =
        system().open_with(&format!("file:{}?waldio_group=1073741824,20", path.display()), None).unwrap();
    db.rows("PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
    let began = Instant::now();
    while number(&db, "delayed_flushes") == 0 {
        db.rows("INSERT INTO t VALUES (1)");
        assert!(began.elapsed() < Duration::from_secs(20), "nobody flushes");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_child_with_its_parents_process_id_has_a_thread_of_its_own() {
    in_own_process("a_child_with_its_parents_process_id_has_a_thread_of_its_own", || {
        if let Err(why) = needs_root() {
            return skipped(&why);
        }
        let scratch = Scratch::new("fork-pid");
        system().load(None).unwrap();
        children_begin_with_pid_1();
        let parent = forked(|| {
            assert_eq!(std::process::id(), 1);
            until_flushed_by_the_clock(&scratch.join("parent.db"));
            children_begin_with_pid_1();
            // The parent's thread waits for orders.
            forked(|| {
                assert_eq!(std::process::id(), 1);
                until_flushed_by_the_clock(&scratch.join("child.db"));
                7
            })
            .finish()
        });
        assert_eq!(parent.finish(), 7);
    });
}

#[test]
fn a_child_sleeps_whatever_its_parents_threads_hold() {
    in_own_process("a_child_sleeps_whatever_its_parents_threads_hold", || {
        const WAITERS: usize = 2;
        let scratch = Scratch::new("fork-sleep");
        let path = scratch.join("app.db");
        let holder = prepare(system(), &path);
        let refused = open(system(), &path);
        refused.busy_timeout(3);
        refused.rows("SELECT count(*) FROM t");
        let done = AtomicBool::new(false);
        // Who opens a database or ends a statement holds a lock of SQLite's own, and a child would inherit it with stock as well.
        let sleep = sleeper(system());
        let opened = Barrier::new(WAITERS + 1);
        thread::scope(|scope| {
            for _ in 0..WAITERS {
                let (done, path, opened) = (&done, &path, &opened);
                scope.spawn(move || {
                    let db = open(system(), path);
                    db.rows("SELECT count(*) FROM t");
                    opened.wait();
                    // It asks again and again, and holds what guards the line as often as it can.
                    db.busy_timeout(0);
                    while !done.load(SeqCst) {
                        db.run("BEGIN IMMEDIATE; ROLLBACK");
                    }
                });
            }
            opened.wait();
            for _ in 0..400 {
                holder.rows("BEGIN IMMEDIATE");
                // It comes back from its naps, and then its application sleeps.
                assert!(refused.run("BEGIN IMMEDIATE").1.is_some());
                let running = forked(|| {
                    sleep(1);
                    sleep(2);
                    0
                });
                holder.rows("COMMIT");
                assert_eq!(running.finish(), 0);
            }
            done.store(true, SeqCst);
        });
    });
}

/// A pool closes in each worker what it inherited, or a garbage collector does. The log grows beside the parent's first commits.
#[test]
fn a_child_closes_what_its_parent_had_open() {
    in_own_process("a_child_closes_what_its_parent_had_open", || {
        let scratch = Scratch::new("fork-close");
        system().load(None).unwrap();
        for round in 0..20 {
            let path = scratch.join(&format!("{round}.db"));
            let name = format!("file:{}?waldio_fill=zeroes&waldio_log_bytes=67108864", path.display());
            let mut db = system().open_with(&name, None).ok();
            let first = ["PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a)"];
            for sql in first.into_iter().chain(["INSERT INTO t VALUES (0)"; 4]) {
                db.iter().for_each(|db| drop(db.rows(sql)));
            }
            let closed = forked(|| {
                drop(db.take());
                0
            });
            assert_eq!(closed.finish(), 0);
            db.iter().for_each(|db| drop(db.rows("INSERT INTO t VALUES (1)")));
            assert_eq!(db.map(|db| db.one("SELECT count(*) FROM t")), Some("5".to_owned()));
        }
    });
}

/// A daemon opens its database, forks, and goes on in the child. At the fork a thread of the parent's flushes, more often than not.
#[test]
fn a_child_commits_through_what_its_parent_had_open() {
    in_own_process("a_child_commits_through_what_its_parent_had_open", || {
        const ROWS: u32 = 20;
        let scratch = Scratch::new("fork-daemon");
        system().load(None).unwrap();
        for round in 0..20 {
            let path = scratch.join(&format!("{round}.db"));
            let name = format!("file:{}?waldio_group=1MiB,1ms", path.display());
            let open = || system().open_with(&name, None).unwrap();
            let (mut db, other) = (Some(open()), open());
            let begin = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a, b, c)";
            db.iter().for_each(|db| drop(db.rows(begin)));
            for db in [&other, db.as_ref().unwrap()].repeat(3) {
                db.rows("INSERT INTO t VALUES (0, 0, 'x')");
            }
            thread::sleep(Duration::from_millis(1));
            let daemon = forked(|| {
                let db = db.take().unwrap();
                (0..ROWS).for_each(|row| drop(db.rows(&format!("INSERT INTO t VALUES (1, {row}, 'x')"))));
                assert_eq!(db.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0], "0");
                0
            });
            assert_eq!(daemon.finish(), 0);
            assert_eq!(system().open(&path).one("SELECT count(*) FROM t"), (6 + ROWS).to_string());
        }
    });
}

/// The window's thread is the parent's: a child's COMMIT makes its own flush, and fails where that does.
#[test]
fn a_child_leaves_no_commit_to_its_parents_window() {
    in_own_process("a_child_leaves_no_commit_to_its_parents_window", || {
        if !is_possible() {
            return skipped("system calls are refused on x86_64 and aarch64 alone");
        }
        let scratch = Scratch::new("fork-window");
        system().load(None).unwrap();
        let name = format!("file:{}?waldio_group=1MiB,60000ms", scratch.join("app.db").display());
        let open = || system().open_with(&name, None).unwrap();
        let (mut db, other) = (Some(open()), open());
        let begin = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a)";
        db.iter().for_each(|db| drop(db.rows(begin)));
        other.rows("PRAGMA synchronous=FULL");
        for db in db.iter().chain([&other]).cycle().take(6) {
            db.rows("INSERT INTO t VALUES (0)");
        }
        // A commit of the parent's waits: its flush is ordered.
        assert!(number(&other, "delayed_commits") > 0);
        refuse("fdatasync", "EIO", i64::MAX);
        let child = forked(|| u8::from(db.take().unwrap().run("INSERT INTO t VALUES (2)").1.is_some()));
        let failed = child.finish();
        refuse("fdatasync", "EIO", 0);
        assert_eq!(failed, 1, "a COMMIT that was not flushed says OK");
    });
}
