//! Goal: over each of SQLite's own unix VFSes a database does what it does there without waldio: journal modes, locking
//! modes, errors, rows, and what is left beside it.
//! Method: the same statements on a pair of databases, one of them through waldio; answers and error codes compared.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::ffi::CStr;

use real::child::in_own_process;
use real::place::Scratch;
use real::sqlite::{Connection, system};

/// One of SQLite's, and waldio's over it.
const VARIANTS: [(&CStr, &CStr); 4] = [
    (c"unix", c"waldio-over"),
    (c"unix-dotfile", c"waldio-over-dotfile"),
    (c"unix-excl", c"waldio-over-excl"),
    (c"unix-none", c"waldio-over-none"),
];

const STATEMENTS: [&str; 16] = [
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
    "PRAGMA journal_mode=WAL",
    "INSERT INTO t(b) VALUES(hex(zeroblob(3000)))",
    "PRAGMA mmap_size=1000000",
    "SELECT count(*), sum(length(b)) FROM t",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "BEGIN IMMEDIATE",
    "INSERT INTO t(b) VALUES(1), (2)",
    "COMMIT",
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA journal_mode=WAL",
    "INSERT INTO t(b) VALUES(3)",
    "PRAGMA locking_mode=NORMAL",
    "PRAGMA journal_mode",
    "SELECT count(*) FROM t",
    "PRAGMA integrity_check",
];

/// What both connections of a database say to each statement in turn; the second only reads.
fn said(first: &Connection, second: &Connection) -> Vec<String> {
    let mut answers = Vec::new();
    for sql in STATEMENTS {
        for (who, db, sql) in [("first", first, sql), ("second", second, "SELECT count(*) FROM t")] {
            let (rows, error) = db.run(sql);
            answers.push(format!("{who} {sql}: {rows:?} {:?}", error.map(|error| error.code)));
        }
    }
    answers
}

fn name(vfs: &CStr) -> &str {
    vfs.to_str().unwrap()
}

fn over_each(test: &str, parameters: &str, check: impl Fn(&str, &Connection)) {
    in_own_process(test, || {
        let scratch = Scratch::new("variants");
        // For waldio_status.
        system().load_linked();
        for (stock, ours) in VARIANTS {
            system().register_over(ours, stock);
            let sides = [(stock, ""), (ours, parameters)].map(|(vfs, parameters)| {
                let path = scratch.join(&format!("{}.db", name(vfs)));
                let open = || {
                    let uri = format!("file:{}?{parameters}", path.display());
                    let db = system().open_with(&uri, Some(name(vfs))).unwrap();
                    db.busy_timeout(0);
                    db
                };
                let (first, second) = (open(), open());
                let answers = said(&first, &second);
                if vfs == ours {
                    check(name(vfs), &first);
                }
                drop((first, second));
                let left = ["-wal", "-shm", "-journal", "-waldio"]
                    .map(|suffix| scratch.join(&format!("{}.db{suffix}", name(vfs))).exists());
                let (rows, error) = open().run("SELECT count(*) FROM t");
                (answers, left, rows, error.map(|error| error.code))
            });
            let [stock_side, our_side] = sides;
            assert_eq!(our_side, stock_side, "over {}", name(stock));
        }
    });
}

#[test]
fn every_variant_does_what_it_does_without_us() {
    over_each("every_variant_does_what_it_does_without_us", "", |_, _| {});
}

/// A VFS without shared memory or without locks cannot keep SQLite out: the log has SQLite's own layout there.
#[test]
fn the_embedded_layout_is_for_those_with_locks_and_shared_memory() {
    let test = "the_embedded_layout_is_for_those_with_locks_and_shared_memory";
    over_each(test, "waldio_layout=embedded", |vfs, db| {
        if vfs.ends_with("dotfile") || vfs.ends_with("none") {
            assert_eq!(db.status("layout"), "stock", "{vfs}");
        }
    });
}
