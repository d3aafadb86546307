//! Goal: with `waldio_durable_reads` readers beside writers that share flushes wait for what they see, and get it:
//! no error, no starving, no growing log; and where the promise cannot be kept, the database does not open.
//! Method: real files and threads, each test in a process of its own; `waldio_status` counts. What a power cut leaves is
//! the business of crash/group.rs.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use real::child::in_own_process;
use real::place::Scratch;
use real::sqlite::{Connection, Library, system};
use real::sqlite_shim;

const CANTOPEN: i32 = 14;

fn open(library: &'static Library, path: &Path, options: &str) -> Connection {
    let db = library.open_with(&format!("file:{}?{options}", path.display()), None).unwrap();
    db.busy_timeout(60_000);
    db.run("PRAGMA synchronous=FULL");
    db
}

fn prepare(library: &'static Library, path: &Path) -> Connection {
    library.load(None).unwrap();
    let db = open(library, path, "waldio_durable_reads=on");
    db.rows("PRAGMA journal_mode=WAL");
    db.rows("CREATE TABLE t(writer, number, value)");
    db
}

/// Commits of 4 writers, while 4 readers count their rows; returns how many counts there were.
fn read_beside_writers(library: &'static Library, path: &Path, commits: usize) -> usize {
    let (writing, counts) = (AtomicUsize::new(4), AtomicUsize::new(0));
    thread::scope(|scope| {
        for writer in 0..4 {
            let writing = &writing;
            scope.spawn(move || {
                let db = open(library, path, "waldio_durable_reads=on");
                for number in 0..commits {
                    db.rows(&format!("INSERT INTO t VALUES ({writer}, {number}, zeroblob(100))"));
                }
                writing.fetch_sub(1, SeqCst);
            });
        }
        for _ in 0..4 {
            let (writing, counts) = (&writing, &counts);
            scope.spawn(move || {
                let db = open(library, path, "waldio_durable_reads=on");
                let mut last = 0;
                while writing.load(SeqCst) > 0 {
                    let rows: usize = db.one("SELECT count(*) FROM t").parse().unwrap();
                    assert!(rows >= last, "{rows} rows after {last}");
                    last = rows;
                    counts.fetch_add(1, SeqCst);
                }
            });
        }
    });
    counts.load(SeqCst)
}

#[test]
fn readers_and_writers_go_on_beside_each_other() {
    in_own_process("readers_and_writers_go_on_beside_each_other", || {
        let scratch = Scratch::new("reads");
        let path = scratch.join("a.db");
        let db = prepare(system(), &path);
        let counts = read_beside_writers(system(), &path, 400);
        assert_eq!(db.one("SELECT count(*) FROM t"), "1600");
        assert_eq!(db.one("PRAGMA integrity_check"), "ok");
        assert!(counts > 40, "{counts} counts of the rows while 1600 were written");
        assert_eq!(db.status("durable_reads"), "on");
        assert_ne!(db.status("read_wait_p50"), "NULL", "no reader waited");
    });
}

#[test]
fn a_reader_makes_what_it_sees_of_another_process_durable_once() {
    in_own_process("a_reader_makes_what_it_sees_of_another_process_durable_once", || {
        let scratch = Scratch::new("foreign");
        let path = scratch.join("a.db");
        let db = prepare(system(), &path);
        // Past waldio, and without a sync: as a process that has not loaded it.
        let foreign = open(system(), &path, "waldio=off");
        foreign.run("PRAGMA synchronous=NORMAL");
        db.one("SELECT count(*) FROM t");
        let flushes = || -> u64 { db.status("flushes").parse().unwrap() };
        let before = flushes();
        for row in 0..3 {
            foreign.rows(&format!("INSERT INTO t VALUES (0, {row}, 'x')"));
            for _ in 0..5 {
                assert_eq!(db.one("SELECT count(*) FROM t"), (row + 1).to_string());
            }
        }
        assert_eq!(flushes() - before, 3, "one flush for each commit that nobody had flushed");
    });
}

#[test]
fn nothing_waits_where_each_commit_is_flushed_alone() {
    in_own_process("nothing_waits_where_each_commit_is_flushed_alone", || {
        let scratch = Scratch::new("alone");
        let path = scratch.join("a.db");
        let writer = prepare(system(), &path);
        let reader = open(system(), &path, "waldio_durable_reads=on");
        for row in 0..50 {
            writer.rows(&format!("INSERT INTO t VALUES (0, {row}, 'x')"));
            assert_eq!(reader.one("SELECT count(*) FROM t"), (row + 1).to_string());
        }
        assert_eq!(reader.status("read_wait_p50"), "NULL", "the writer's flush was enough");
    });
}

#[test]
fn a_database_whose_log_is_not_ours_is_refused() {
    in_own_process("a_database_whose_log_is_not_ours_is_refused", || {
        let (library, scratch) = (system(), Scratch::new("refused"));
        let path = scratch.join("a.db");
        library.open_stock(&path).rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
        sqlite_shim::register(library, c"below", Some(c"unix"), true, |_| {});
        library.load(None).unwrap();
        let error = open(library, &path, "waldio_durable_reads=on").run("SELECT * FROM t").1;
        assert_eq!(error.expect("the log goes to another VFS").primary(), CANTOPEN);
        assert_eq!(open(library, &path, "waldio_durable_reads=off").one("SELECT count(*) FROM t"), "0");
    });
}
