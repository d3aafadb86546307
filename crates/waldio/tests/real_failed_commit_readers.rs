//! Goal: a COMMIT that failed stays while a connection reads in a transaction from before it, and is none once that has ended.
//! Method: the sync of a commit fails once while stock SQLite reads. Then the reader ends its transaction, and each connection looks.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use real::child::in_own_process;
use real::place::{Scratch, skipped};
use real::refusal::{is_possible, refuse};
use real::space::await_space;
use real::sqlite::{Connection, system};

/// Two connections, of which the first one's COMMIT failed, and one of stock that reads in a transaction from before that.
fn fail_beside_a_reader(path: &Path) -> [Connection; 3] {
    let (db, other, reader) = (system().open(path), system().open(path), system().open_stock(path));
    db.rows("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a)");
    for db in [&db, &other] {
        db.rows("PRAGMA synchronous=FULL; INSERT INTO t VALUES('before')");
    }
    reader.rows("BEGIN; SELECT * FROM t");
    await_space(&db);
    refuse("fdatasync", "EIO", 1);
    assert!(db.run("INSERT INTO t VALUES('failed')").1.is_some());
    refuse("fdatasync", "EIO", 0);
    [db, other, reader]
}

#[test]
fn a_commit_that_failed_stays_while_somebody_reads_and_goes_when_he_has_left() {
    in_own_process("a_commit_that_failed_stays_while_somebody_reads_and_goes_when_he_has_left", || {
        if !is_possible() {
            return skipped("system calls are refused on x86_64 and aarch64 alone");
        }
        system().load(None).unwrap();
        let scratch = Scratch::new("failed-long-reader");
        let path = scratch.join("a.db");
        let [db, other, reader] = fail_beside_a_reader(&path);
        let rows = |db: &Connection| db.one("SELECT group_concat(a) FROM t");
        assert_eq!(rows(&reader), "before,before", "its snapshot");
        assert_eq!(rows(&other), "before,before,failed", "nothing that is read may be written over");
        reader.rows("COMMIT");
        // After an attempt in vain readers are left in peace for a while.
        let until = Instant::now() + Duration::from_secs(30);
        while rows(&other) != "before,before" && Instant::now() < until {
            thread::sleep(Duration::from_millis(50));
        }
        for db in [&db, &other, &reader] {
            assert_eq!(rows(db), "before,before");
        }
        reader.rows("INSERT INTO t VALUES('after')");
        for db in [&db, &other, &reader] {
            assert_eq!(rows(db), "before,before,after");
        }
    });
}

#[test]
fn others_read_while_an_old_transaction_keeps_a_failed_commit_in_place() {
    in_own_process("others_read_while_an_old_transaction_keeps_a_failed_commit_in_place", || {
        if !is_possible() {
            return skipped("system calls are refused on x86_64 and aarch64 alone");
        }
        system().load(None).unwrap();
        let scratch = Scratch::new("failed-pool");
        let path = scratch.join("a.db");
        // They stay open.
        let _connections = fail_beside_a_reader(&path);
        let (is_over, path) = (AtomicBool::new(false), &path);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let (reader, mut answers) = (system().open_stock(path), [0_u32; 2]);
                reader.busy_timeout(0);
                while !is_over.load(Relaxed) {
                    answers[usize::from(reader.run("SELECT count(*) FROM t").1.is_some())] += 1;
                    thread::sleep(Duration::from_millis(1));
                }
                answers
            });
            // As a pool does: each close would try again.
            for _ in 0..40 {
                drop(system().open(path).run("SELECT count(*) FROM t"));
                thread::sleep(Duration::from_millis(10));
            }
            is_over.store(true, Relaxed);
            let [read, busy] = reader.join().unwrap();
            assert!(read > busy, "{read} read, {busy} were refused");
        });
    });
}

#[test]
fn the_last_close_takes_a_failed_commit_back_that_a_reader_had_kept_in_place() {
    in_own_process("the_last_close_takes_a_failed_commit_back_that_a_reader_had_kept_in_place", || {
        if !is_possible() {
            return skipped("system calls are refused on x86_64 and aarch64 alone");
        }
        system().load(None).unwrap();
        let scratch = Scratch::new("failed-last-close");
        let [db, other, reader] = fail_beside_a_reader(&scratch.join("a.db"));
        reader.rows("COMMIT");
        // At once: the attempt in vain is still followed by its rest.
        drop((db, other));
        assert_eq!(reader.one("SELECT group_concat(a) FROM t"), "before,before");
    });
}
