//! Goal: a lock that cannot be given back at once, or that goes in two steps, keeps other processes out of a database no longer than that.
//! Method: the unix VFS calls an fcntl of ours, which fails or stands still where a test says so. Locks are asked for as other processes
//! see them, by a child.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use real::child::{Running, again, in_own_process, role, say_ready_and_wait};
use real::lock_calls::{FAILING_DOWNGRADES, SLOW_UNLOCKS_MS, hook};
use real::place::Scratch;
use real::sqlite::{Connection, ffi, system};

fn embedded(path: &Path) -> Connection {
    let name = format!("file:{}?waldio_layout=embedded", path.display());
    let db = system().open_with(&name, Some("waldio")).unwrap();
    db.busy_timeout(2_000);
    db
}

fn ordinary(path: &Path, rows: &str) {
    assert!(!PathBuf::from(format!("{}-waldio", path.display())).exists());
    let stock = system().open_stock(path);
    let found = [stock.one("SELECT count(*) FROM t"), stock.one("PRAGMA integrity_check")];
    assert_eq!(found, [rows, "ok"]);
}

/// The lock that a log's layout begins under.
#[test]
fn a_lock_that_is_not_given_back_at_once_keeps_nobody_out() {
    const NAME: &str = "a_lock_that_is_not_given_back_at_once_keeps_nobody_out";
    if let Some(arguments) = role(NAME) {
        system().load_linked();
        embedded(Path::new(&arguments[0])).rows("INSERT INTO t VALUES(1)");
        return println!("\nwritten");
    }
    in_own_process(NAME, || {
        hook();
        let scratch = Scratch::new("lock-calls");
        // One failure, as many as anybody may have, and more than anybody will try.
        for (number, failures) in [1, 5, 100_000].into_iter().enumerate() {
            let path = scratch.join(&format!("{number}.db"));
            // In WAL mode already: SQLite takes no such lock itself.
            embedded(&path).rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
            let db = embedded(&path);
            FAILING_DOWNGRADES.store(failures, SeqCst);
            let began = db.run("SELECT * FROM t").1;
            let left = FAILING_DOWNGRADES.swap(0, SeqCst);
            assert!(left < failures, "no such call");
            if left > 0 {
                assert_eq!(began.expect("the lock stays").primary(), ffi::SQLITE_IOERR);
                // As without waldio: the next statement works.
                db.rows("SELECT * FROM t");
            } else {
                assert!(began.is_none(), "{began:?}");
            }
            assert_eq!(db.status("layout"), "embedded");
            let (lines, well) = Running::start(&mut again(NAME, &[path.to_str().unwrap()])).finish();
            assert!(well && lines.iter().any(|line| line == "written"), "{failures} failures: {lines:?}");
            db.rows("INSERT INTO t VALUES(2)");
            drop(db);
            ordinary(&path, "2");
        }
    });
}

/// SQLite gives a file's locks back in two steps, and a process that closes may lose its processor in between. Another that closes then
/// sees that the first has the log open still, and not that it is closing.
#[test]
fn who_closes_while_another_gives_its_locks_back_is_the_last() {
    const NAME: &str = "who_closes_while_another_gives_its_locks_back_is_the_last";
    if let Some(arguments) = role(NAME) {
        hook();
        let db = embedded(Path::new(&arguments[0]));
        db.rows("INSERT INTO t VALUES(1)");
        SLOW_UNLOCKS_MS.store(arguments[1].parse().unwrap(), SeqCst);
        say_ready_and_wait();
        return drop(db);
    }
    in_own_process(NAME, || {
        system().load_linked();
        let scratch = Scratch::new("lock-steps");
        for (number, between_ms) in [0, 20, 50, 150].into_iter().enumerate() {
            let path = scratch.join(&format!("{number}.db"));
            let db = embedded(&path);
            db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
            let mut other = Running::start_with_input(&mut again(NAME, &[path.to_str().unwrap(), "200"]));
            other.wait_until_ready();
            other.tell("go\n");
            std::thread::sleep(Duration::from_millis(between_ms));
            drop(db);
            assert!(other.finish().1);
            ordinary(&path, "1");
        }
    });
}

/// Where another stays, the wait would be in vain.
#[test]
fn who_closes_beside_one_that_stays_does_not_wait() {
    const NAME: &str = "who_closes_beside_one_that_stays_does_not_wait";
    if let Some(arguments) = role(NAME) {
        system().load_linked();
        let db = embedded(Path::new(&arguments[0]));
        db.rows("INSERT INTO t VALUES(1)");
        say_ready_and_wait();
        return drop(db);
    }
    in_own_process(NAME, || {
        system().load_linked();
        let scratch = Scratch::new("lock-stays");
        let path = scratch.join("a.db");
        let db = embedded(&path);
        db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
        let began = Instant::now();
        for _ in 0..20 {
            embedded(&path).rows("SELECT * FROM t");
        }
        assert!(began.elapsed() < Duration::from_secs(5), "another connection of the process stays");
        let mut other = Running::start_with_input(&mut again(NAME, &[path.to_str().unwrap()]));
        other.wait_until_ready();
        drop(db);
        let began = Instant::now();
        for _ in 0..20 {
            embedded(&path).rows("SELECT * FROM t");
        }
        assert!(began.elapsed() < Duration::from_secs(5), "another process stays");
        other.tell("go\n");
        assert!(other.finish().1);
        ordinary(&path, "1");
    });
}
