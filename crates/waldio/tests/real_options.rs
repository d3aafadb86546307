//! Goal: what a connection's COMMIT promises is its own choice: no other connection's option weakens or strengthens it, and
//! what cannot be had is told.
//! Method: connections of one process with different options on one database; the flushes that `waldio_status` counts.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;

use real::child::{Running, again, in_own_process, role};
use real::place::Scratch;
use real::space::fill_until_there_is_space;
use real::sqlite::{Connection, extension_path, system};
use real::writers::number;

/// No flush comes by itself.
const NEVER: &str = "waldio_group=1073741824,60000";

fn open(path: &Path, options: &str) -> Connection {
    let db = system().open_with(&format!("file:{}?{options}", path.display()), None).unwrap();
    db.busy_timeout(60_000);
    db.rows("PRAGMA synchronous=FULL");
    db
}

/// A connection with a window on a log that needs no more preparation: the sync of more space would cover a commit that waits.
fn with_window(path: &Path) -> Connection {
    system().load(None).unwrap();
    let db = open(path, NEVER);
    db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(value)");
    fill_until_there_is_space(&db, &path.with_extension("db-wal"));
    db
}

/// How many flushes, those of reserved space aside, `act` makes.
fn flushes(db: &Connection, act: impl FnOnce()) -> u64 {
    let before = number(db, "flushes");
    act();
    number(db, "flushes") - before
}

#[test]
fn a_connection_without_a_window_waits_for_its_flush_beside_one_with() {
    in_own_process("a_connection_without_a_window_waits_for_its_flush_beside_one_with", || {
        let scratch = Scratch::new("options-window");
        let path = scratch.join("a.db");
        let (window, full) = (with_window(&path), open(&path, ""));
        // Its first commit learns that a sync follows.
        full.rows("INSERT INTO t VALUES(1)");
        let commits = |db: &Connection| {
            for _ in 0..5 {
                db.rows("INSERT INTO t VALUES(1)");
            }
        };
        assert_eq!(flushes(&window, || commits(&full)), 5);
        assert_eq!(flushes(&window, || commits(&window)), 0);
        assert_eq!(
            (full.one("PRAGMA waldio_group"), window.one("PRAGMA waldio_group")),
            ("off".into(), NEVER[13..].into())
        );
        // It covers what the other left, too.
        assert_eq!(flushes(&window, || commits(&full)), 5);
        let row = full.status_row("group");
        assert!(row[0].contains("off") && row[0].contains("1073741824"), "{row:?}");
    });
}

#[test]
fn a_second_connection_reads_durably_where_it_asks_for_that() {
    in_own_process("a_second_connection_reads_durably_where_it_asks_for_that", || {
        let scratch = Scratch::new("options-reads");
        let path = scratch.join("a.db");
        let window = with_window(&path);
        let (plain, durable) = (open(&path, ""), open(&path, "waldio_durable_reads=on"));
        let read = |db: &Connection| assert_eq!(db.one("SELECT count(*) > 3 FROM t"), "1");
        let write = || window.rows("INSERT INTO t VALUES(1)");
        write();
        assert_eq!(flushes(&window, || read(&plain)), 0);
        assert_eq!(flushes(&window, || read(&durable)), 1, "what it reads is on the medium");
        assert_eq!(durable.one("PRAGMA waldio_durable_reads"), "1");
        assert_eq!(plain.one("PRAGMA waldio_durable_reads"), "0");
        plain.rows("PRAGMA waldio_durable_reads=on");
        write();
        assert_eq!(flushes(&window, || read(&plain)), 1, "asked for while the log is open");
    });
}

#[test]
fn what_a_connection_asks_for_in_vain_is_told() {
    in_own_process("what_a_connection_asks_for_in_vain_is_told", || {
        let scratch = Scratch::new("options-vain");
        let path = scratch.join("a.db");
        let first = with_window(&path);
        assert_eq!(first.status_row("options_not_had")[0], "NULL");
        let second = open(&path, "waldio_persist=fua&waldio_log_bytes=65536");
        second.rows("SELECT count(*) FROM t");
        let row = first.status_row("options_not_had");
        assert!(row[0].contains("waldio_persist=auto, not fua"), "{row:?}");
        assert!(row[0].contains("waldio_log_bytes=4194304, not 65536"), "{row:?}");
        let told = first.status("advice");
        assert!(
            told.ends_with("URI of the first connection") && told.contains(": it was open before"),
            "{told}"
        );
        drop(second);
        assert_eq!(first.status_row("options_not_had")[0], "NULL", "nobody asks any more");
    });
}

/// On a disk there is no such row; on a tmpfs each COMMIT is lost at a power cut, whatever it says.
#[test]
fn advice_tells_of_a_database_in_memory() {
    const NAME: &str = "advice_tells_of_a_database_in_memory";
    in_own_process(NAME, || {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        if !mounts.lines().any(|line| line.split(' ').skip(1).take(2).eq(["/dev/shm", "tmpfs"])) {
            return eprintln!("skipped: /dev/shm is no tmpfs here");
        }
        system().load(None).unwrap();
        let scratch = Scratch::new("options-disk");
        let in_memory = Path::new("/dev/shm").join(format!("waldio-advice-{}", std::process::id()));
        std::fs::create_dir(&in_memory).unwrap();
        for (path, is_told) in [(in_memory.join("a.db"), true), (scratch.join("a.db"), false)] {
            let db = open(&path, "");
            db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(value); INSERT INTO t VALUES(1)");
            let told =
                db.one("SELECT ifnull(group_concat(value), 'none') FROM waldio_status WHERE name = 'advice'");
            assert_eq!(
                told.contains("nothing there survives a power cut"),
                is_told,
                "{}: {told}",
                path.display()
            );
        }
        std::fs::remove_dir_all(in_memory).unwrap();
    });
}

/// The row `advice` of a log that a reader keeps from being emptied: it is there while the reader is, whoever that is, and whatever
/// COMMIT waits for.
#[test]
fn advice_tells_of_a_reader_that_pins_the_log() {
    const NAME: &str = "advice_tells_of_a_reader_that_pins_the_log";
    if let Some(arguments) = role(NAME) {
        let db = system().open_stock(Path::new(&arguments[0]));
        db.rows("BEGIN; SELECT count(*) FROM t");
        println!("\nready");
        return std::thread::sleep(std::time::Duration::from_secs(60));
    }
    in_own_process(NAME, || {
        system().load(None).unwrap();
        let scratch = Scratch::new("options-pinned");
        for (name, setting) in [
            ("a.db", "synchronous=FULL"),
            ("b.db", "waldio_durability=bounded"),
            ("c.db", "waldio_durability=normal"),
        ] {
            let path = scratch.join(name);
            let (db, reader) = (open(&path, ""), open(&path, ""));
            db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(value)");
            db.rows(&format!("PRAGMA {setting}"));
            let file = path.display();
            let advice = || {
                db.one(&format!(
                    "SELECT ifnull(group_concat(value), 'none') FROM waldio_status
                     WHERE name = 'advice' AND database = '{file}'"
                ))
            };
            let write =
                |count| (0..count).for_each(|_| drop(db.rows("INSERT INTO t VALUES(zeroblob(3000))")));
            write(1000);
            assert_eq!(advice(), "none", "{setting}: nobody reads");
            reader.rows("BEGIN; SELECT count(*) FROM t");
            assert_eq!(advice(), "none", "{setting}: it began now");
            write(1200);
            assert!(advice().contains("a reader keeps the snapshot"), "{setting}: {}", advice());
            reader.rows("COMMIT");
            assert_eq!(advice(), "none", "{setting}: it has left");
            // Of the database alone: the log is all copied.
            assert_eq!(db.checkpoint(1).0, 0);
            reader.rows("BEGIN; SELECT count(*) FROM t");
            write(1200);
            assert!(advice().contains("a reader keeps the snapshot"), "{setting}: {}", advice());
            reader.rows("COMMIT");
            assert_eq!((advice(), db.checkpoint(1).0), ("none".to_owned(), 0));
            let mut other = Running::start(&mut again(NAME, &[path.to_str().unwrap()]));
            other.wait_until_ready();
            write(1200);
            assert!(advice().contains("a reader keeps the snapshot"), "{setting}: {}", advice());
            other.kill();
            drop(other);
            assert_eq!(advice(), "none", "{setting}: its process has ended");
        }
    });
}

/// The row `advice` of a connection that waldio came too late for, in files that it opens and attaches, but not in one opened since.
#[test]
fn advice_tells_of_connections_that_pass_waldio_by() {
    in_own_process("advice_tells_of_connections_that_pass_waldio_by", || {
        let scratch = Scratch::new("options-passed-by");
        let early = system().open_with(scratch.join("early.db").to_str().unwrap(), None).unwrap();
        early.load_extension(&extension_path(), None).unwrap_err();
        early.rows(&format!("ATTACH '{}' AS more", scratch.join("more.db").display()));
        early.rows("ATTACH ':memory:' AS memory");
        let told = "SELECT group_concat(replace(database, rtrim(database, replace(database, '/', '')), '')) \
                    FROM waldio_status WHERE name = 'advice' AND value LIKE '%before waldio was loaded%'";
        assert_eq!(early.one(told), "early.db,more.db");
        let late = open(&scratch.join("late.db"), "");
        assert_eq!(late.one(told), "NULL");
        assert_eq!(open(&scratch.join("off.db"), "waldio=off").one(told), "NULL", "it was asked for");
        assert_eq!(early.one("SELECT count(*) FROM waldio_status WHERE database LIKE '%early.db'"), "4");
    });
}

/// The row `advice` of connections that share a cache.
#[test]
fn advice_tells_of_a_shared_cache() {
    in_own_process("advice_tells_of_a_shared_cache", || {
        system().load(None).unwrap();
        let scratch = Scratch::new("options-shared");
        let told = "SELECT count(*) FROM waldio_status WHERE name = 'advice' AND value LIKE '%cache=shared%'";
        for (cache, rows) in [("private", "0"), ("shared", "1")] {
            let db = open(&scratch.join("a.db"), &format!("cache={cache}"));
            db.rows("PRAGMA journal_mode=WAL; CREATE TABLE IF NOT EXISTS t(value)");
            assert_eq!(db.one(told), rows, "{cache}");
        }
    });
}

/// The rows `advice`: what each says that it would take, done, takes it away.
#[test]
fn advice_goes_when_it_is_followed() {
    in_own_process("advice_goes_when_it_is_followed", || {
        system().load(None).unwrap();
        let scratch = Scratch::new("options-advice");
        let path = scratch.join("a.db");
        let db = open(&path, "");
        let other = open(&scratch.join("other.db"), "");
        let advice = || {
            let file = path.display();
            db.one(&format!(
                "SELECT ifnull(group_concat(value), 'none') FROM waldio_status
                 WHERE name = 'advice' AND database = '{file}'"
            ))
        };
        assert!(advice().contains("PRAGMA journal_mode=WAL"), "nothing happened: {}", advice());
        db.rows("CREATE TABLE t(value)");
        assert!(advice().contains("PRAGMA journal_mode=WAL"), "{}", advice());
        db.rows("PRAGMA journal_mode=WAL");
        db.rows("INSERT INTO t VALUES(1)");
        assert_eq!(advice(), "none", "WAL and FULL");
        // Another database's journal is none of this one's.
        other.rows("CREATE TABLE t(value)");
        assert_eq!(advice(), "none");
        for (durability, unsynced) in [("normal", false), ("full", true), ("bounded", false)] {
            db.rows(&format!("PRAGMA waldio_durability={durability}; PRAGMA synchronous=NORMAL"));
            assert_eq!(
                advice().contains("synchronous=FULL keeps all"),
                unsynced,
                "no commit yet: {}",
                advice()
            );
            for _ in 0..2 {
                db.rows("INSERT INTO t VALUES(1)");
            }
            let told = advice();
            assert_eq!(told.contains("PRAGMA waldio_durability=bounded"), unsynced, "{durability}: {told}");
            assert!(unsynced || told == "none", "{told}");
            db.rows("PRAGMA synchronous");
            assert_eq!(advice(), told, "that asks, and changes nothing");
            db.rows("PRAGMA synchronous=FULL");
            assert_eq!(advice(), "none", "it is FULL now");
        }
        assert_eq!(number(&db, "unsynced_commits"), 4, "those of normal and full");
    });
}
