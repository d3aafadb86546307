//! Goal: with `waldio_group` commits do not wait, the flush comes within the window, by its bytes or by the clock, and
//! `PRAGMA waldio_flush` is a flush now.
//! Method: real files and threads, each test in a process of its own; `waldio_status` counts. What a power cut leaves is
//! the business of crash/delayed_flush.rs, what a kill leaves that of real_kill.rs.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use real::child::in_own_process;
use real::place::Scratch;
use real::sqlite::{Connection, Library, system};
use real::writers::number;

const NEVER: &str = "waldio_group=1073741824,60000";

/// A connection that has read nothing yet.
fn untouched(library: &'static Library, path: &Path, options: &str) -> Connection {
    library.open_with(&format!("file:{}?{options}", path.display()), None).unwrap()
}

fn open(library: &'static Library, path: &Path, options: &str) -> Connection {
    let db = untouched(library, path, options);
    db.busy_timeout(60_000);
    db.run("PRAGMA synchronous=FULL");
    db
}

/// A table, and so many commits behind the first two, which waldio makes durable for reasons of their own.
fn prepare(path: &Path, options: &str, commits: usize) -> Connection {
    system().load(None).unwrap();
    let db = open(system(), path, options);
    db.rows("PRAGMA journal_mode=WAL");
    db.rows("CREATE TABLE IF NOT EXISTS t(value)");
    for _ in 0..2 + commits {
        db.rows("INSERT INTO t VALUES(zeroblob(100))");
    }
    db
}

#[test]
fn commits_do_not_wait_and_the_pragma_flushes_them() {
    in_own_process("commits_do_not_wait_and_the_pragma_flushes_them", || {
        let scratch = Scratch::new("window-pragma");
        let db = prepare(&scratch.join("a.db"), NEVER, 0);
        let before = number(&db, "flushes");
        for _ in 0..100 {
            db.rows("INSERT INTO t VALUES(zeroblob(100))");
        }
        // Growing syncs what it adds, on a thread of its own, and counts no flush.
        assert_eq!(number(&db, "flushes"), before, "somebody flushed");
        assert!(number(&db, "delayed_commits") >= 100);
        assert_eq!(db.one("PRAGMA waldio_flush"), "durable");
        assert_eq!(number(&db, "flushes"), before + 1);
        assert_eq!(db.one("PRAGMA waldio_group"), "1073741824,60000");
    });
}

#[test]
fn the_pragma_flushes_what_others_left_before_its_connection_read_anything() {
    in_own_process("the_pragma_flushes_what_others_left_before_its_connection_read_anything", || {
        let scratch = Scratch::new("window-other");
        let path = scratch.join("a.db");
        let db = prepare(&path, NEVER, 3);
        let other = untouched(system(), &path, NEVER);
        let before = number(&db, "flushes");
        assert_eq!(other.one("PRAGMA waldio_flush"), "durable");
        assert_eq!(number(&db, "flushes"), before + 1);
        drop((db, other));
        assert_eq!(untouched(system(), &path, NEVER).one("PRAGMA waldio_flush"), "no log");
    });
}

/// A log that went through the base VFS is the same file.
#[test]
fn the_pragma_flushes_a_log_that_nobody_of_this_process_opened() {
    in_own_process("the_pragma_flushes_a_log_that_nobody_of_this_process_opened", || {
        let scratch = Scratch::new("window-nobody");
        let path = scratch.join("a.db");
        system().load(None).unwrap();
        let stock = system().open_stock(&path);
        stock.rows("PRAGMA journal_mode=WAL");
        stock.rows("CREATE TABLE t(value)");
        let db = untouched(system(), &path, NEVER);
        assert_eq!(db.one("PRAGMA waldio_flush"), "durable");
    });
}

#[test]
fn the_flush_comes_by_the_clock() {
    in_own_process("the_flush_comes_by_the_clock", || {
        let scratch = Scratch::new("window-time");
        let db = prepare(&scratch.join("a.db"), "waldio_group=1073741824,20", 1);
        let until = Instant::now() + Duration::from_secs(20);
        while number(&db, "delayed_flushes") == 0 {
            assert!(Instant::now() < until, "nobody flushed");
            thread::sleep(Duration::from_millis(5));
            // The flush of reserved space may have covered the last one.
            db.rows("INSERT INTO t VALUES(0)");
        }
        thread::sleep(Duration::from_millis(100));
        // Nothing is outstanding now: no timer flushes again.
        let (flushes, counted) = (number(&db, "flushes"), number(&db, "delayed_flushes"));
        thread::sleep(Duration::from_millis(100));
        assert_eq!(number(&db, "flushes"), flushes);
        db.rows("INSERT INTO t VALUES(1)");
        while number(&db, "delayed_flushes") == counted {
            assert!(Instant::now() < until, "nobody flushed again");
            thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn a_bound_holds_under_normal_too_and_status_shows_it() {
    in_own_process("a_bound_holds_under_normal_too_and_status_shows_it", || {
        let scratch = Scratch::new("window-normal");
        let db = prepare(&scratch.join("a.db"), "waldio_durability=bounded", 1);
        assert_eq!(db.one("PRAGMA waldio_durability"), "bounded");
        assert_eq!(db.status("group"), "4194304,10");
        // No flush of another bound is on its way here.
        let db = prepare(&scratch.join("b.db"), NEVER, 1);
        db.rows("PRAGMA synchronous=NORMAL; INSERT INTO t VALUES(1)");
        let before = number(&db, "flushes");
        loop {
            let growths = number(&db, "growth_flushes");
            (0..100).for_each(|_| drop(db.rows("INSERT INTO t VALUES(zeroblob(100))")));
            let bytes = number(&db, "not_durable_bytes");
            assert_eq!(number(&db, "flushes"), before, "somebody flushed");
            // The sync of a growth makes commits durable, too, and counts no flush.
            if number(&db, "growth_flushes") == growths {
                assert!(bytes >= 100 * 4096, "{bytes}");
                break;
            }
        }
        assert!(db.status("not_durable_age").parse::<f64>().unwrap() > 0.0);
        db.rows("PRAGMA waldio_flush; PRAGMA waldio_group='1073741824,20'");
        assert_eq!((number(&db, "not_durable_bytes"), db.status("not_durable_age").as_str()), (0, "NULL"));
        let (until, counted) = (Instant::now() + Duration::from_secs(20), number(&db, "delayed_flushes"));
        db.rows("INSERT INTO t VALUES(2)");
        while number(&db, "delayed_flushes") == counted {
            assert!(Instant::now() < until, "nobody flushed");
            thread::sleep(Duration::from_millis(5));
        }
        // One commit is more than this.
        db.rows("PRAGMA waldio_group='4096,60000'");
        let before = number(&db, "flushes");
        (0..10).for_each(|_| drop(db.rows("INSERT INTO t VALUES(zeroblob(100))")));
        assert!(number(&db, "flushes") >= before + 10, "commits beyond the bound do not wait");
    });
}

/// A bound is worth nothing in a log whose name is not on the medium. SQLite makes it so under FULL alone.
#[test]
fn under_normal_the_first_bounded_commit_makes_the_logs_name_durable() {
    in_own_process("under_normal_the_first_bounded_commit_makes_the_logs_name_durable", || {
        let scratch = Scratch::new("window-name");
        let path = scratch.join("a.db");
        system().load(None).unwrap();
        let stock = system().open_stock(&path);
        stock.rows("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE t(value)");
        let db = untouched(system(), &path, "waldio_durability=bounded");
        db.rows("PRAGMA synchronous=NORMAL; SELECT count(*) FROM t");
        assert_eq!(db.status("log_name"), "not synced yet");
        db.rows("INSERT INTO t VALUES(1)");
        assert_eq!(db.status("log_name"), "durable");
    });
}

#[test]
fn with_normal_no_commit_is_flushed_under_full() {
    in_own_process("with_normal_no_commit_is_flushed_under_full", || {
        let scratch = Scratch::new("window-none");
        let db = prepare(&scratch.join("a.db"), "waldio_durability=normal", 1);
        let (before, unsynced) = (number(&db, "flushes"), number(&db, "unsynced_commits"));
        (0..100).for_each(|_| drop(db.rows("INSERT INTO t VALUES(zeroblob(100))")));
        assert_eq!(number(&db, "flushes"), before, "somebody flushed");
        assert_eq!(number(&db, "unsynced_commits"), unsynced + 100);
        // The sync of a growth, on a thread of its own, makes commits durable, too.
        let is_told = || {
            db.rows("INSERT INTO t VALUES(2)");
            number(&db, "not_durable_bytes") >= 4120 && db.status("not_durable_age") != "NULL"
        };
        assert!((0..1000).any(|_| is_told()));
        db.rows("PRAGMA waldio_durability=full; INSERT INTO t VALUES(3)");
        assert!(number(&db, "flushes") > before);
        assert_eq!((number(&db, "not_durable_bytes"), db.status("not_durable_age").as_str()), (0, "NULL"));
        assert_eq!(db.run("PRAGMA waldio_durability=maybe").1.map(|error| error.code), Some(1));
    });
}

#[test]
fn the_flush_comes_by_the_bytes() {
    in_own_process("the_flush_comes_by_the_bytes", || {
        let scratch = Scratch::new("window-bytes");
        // Four commits of one page each. A flush begins with two of them where they take as long as one.
        let db = prepare(&scratch.join("a.db"), "waldio_group=16384,60000", 0);
        let before = number(&db, "flushes");
        for value in 0..400 {
            db.rows(&format!("UPDATE t SET value={value} WHERE rowid=1"));
        }
        let flushes = number(&db, "flushes") - before;
        // A flush of reserved space covers what is outstanding, and the next one comes later.
        assert!((80..=201).contains(&flushes), "{flushes} flushes for 400 commits");
    });
}

#[test]
fn the_flush_begins_with_half_of_the_bytes_and_no_commit_waits() {
    in_own_process("the_flush_begins_with_half_of_the_bytes_and_no_commit_waits", || {
        let scratch = Scratch::new("window-half");
        let db = prepare(&scratch.join("a.db"), "waldio_group=2097152,60000", 1);
        let shared = number(&db, "shared_commits");
        // A growth's sync covers commits, too: then it takes as many again.
        let is_flushed = || {
            db.rows("INSERT INTO t VALUES(zeroblob(100))");
            thread::sleep(Duration::from_millis(2));
            number(&db, "delayed_flushes") > 0
        };
        assert!((0..4000).any(|_| is_flushed()), "nobody flushed");
        assert_eq!(number(&db, "shared_commits"), shared, "a commit waited");
    });
}

/// Nobody knows whether it synced the database behind its checkpoint.
#[test]
fn a_log_that_others_began_anew_is_flushed_with_the_whole_file_system() {
    in_own_process("a_log_that_others_began_anew_is_flushed_with_the_whole_file_system", || {
        let scratch = Scratch::new("window-others");
        let path = scratch.join("a.db");
        let db = prepare(&path, "waldio_group=4194304,100", 1);
        let other = system().open_stock(&path);
        other.busy_timeout(60_000);
        other.rows("PRAGMA synchronous=OFF");
        let until = Instant::now() + Duration::from_secs(60);
        while number(&db, "filesystem_flushes") == 0 {
            assert!(Instant::now() < until, "a flush of the log alone was enough");
            db.rows("INSERT INTO t VALUES(zeroblob(100))");
            other.rows("PRAGMA wal_checkpoint(RESTART)");
            other.rows("INSERT INTO t VALUES(zeroblob(100))");
            thread::sleep(Duration::from_millis(150));
        }
    });
}

#[test]
fn it_ends_with_the_connection_and_needs_no_thread_then() {
    in_own_process("it_ends_with_the_connection_and_needs_no_thread_then", || {
        let scratch = Scratch::new("window-close");
        let path = scratch.join("a.db");
        for _ in 0..20 {
            // The order to flush outlives the connection, and its file.
            drop(prepare(&path, "waldio_group=1073741824,3", 1));
        }
        let rows = system().open_stock(&path).one("SELECT count(*) FROM t");
        assert_eq!(rows, "60");
    });
}

/// Waits until so many threads of this process flush.
#[track_caller]
fn until_flushing_threads_are(count: usize) {
    let began = Instant::now();
    while flushing_threads() != count {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{} threads instead of {count}",
            flushing_threads()
        );
        thread::sleep(Duration::from_millis(1));
    }
}

fn flushing_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.trim() == "waldio-flush").count()
}

#[test]
fn each_database_has_a_thread_that_ends_with_it() {
    in_own_process("each_database_has_a_thread_that_ends_with_it", || {
        let scratch = Scratch::new("window-thread");
        // A flush is due in a minute: until then they have something to do, and end with their databases alone.
        let options = "waldio_group=1073741824,60000";
        let open = ["a.db", "b.db"].map(|name| prepare(&scratch.join(name), options, 1));
        until_flushing_threads_are(2);
        let [one, other] = open;
        drop(one);
        until_flushing_threads_are(1);
        drop(other);
        until_flushing_threads_are(0);
    });
}
