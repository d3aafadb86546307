//! Goal: a program may read `waldio_status` as often as it likes. A read is a read transaction, and keeps the log from being
//! emptied for as long as it takes.
//! Method: a disk that counts the looks at it; what SQLite itself says of the log.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use real::child::{in_own_process, must, no_python};
use real::counting_disk::{CountingDisk, Steps};
use real::place::{Scratch, skipped};
use real::sqlite::{extension_path, system};
use real::writers::{number, prepare};

#[test]
fn a_second_read_of_the_status_looks_neither_at_the_log_nor_at_its_device() {
    in_own_process("a_second_read_of_the_status_looks_neither_at_the_log_nor_at_its_device", || {
        let scratch = Scratch::new("status-reads");
        system().load_linked();
        let steps = Arc::<Steps>::default();
        system().register_on(c"waldio-counted", c"unix", Arc::new(CountingDisk(Arc::clone(&steps))));
        let uri = format!("file:{}?vfs=waldio-counted", scratch.join("a.db").display());
        let db = system().open_with(&uri, None).unwrap();
        db.rows("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(value)");
        for _ in 0..100 {
            db.rows("INSERT INTO t VALUES(1)");
        }
        assert!(number(&db, "log_frames") > 100);
        let before = steps.looks.load(SeqCst);
        db.rows("SELECT * FROM waldio_status");
        assert_eq!(steps.looks.load(SeqCst) - before, 0, "looks at the log and its device");
    });
}

#[test]
fn the_status_tells_the_frames_that_sqlite_counts() {
    in_own_process("the_status_tells_the_frames_that_sqlite_counts", || {
        let scratch = Scratch::new("status-frames");
        let path = scratch.join("a.db");
        let db = prepare(system(), &path);
        let frames = |mode| {
            let (code, frames, _) = db.checkpoint(mode);
            assert_eq!(code, 0);
            frames.to_string()
        };
        for _ in 0..5 {
            db.rows("INSERT INTO t VALUES(1, 2, 3)");
            assert_eq!(db.status("log_frames"), frames(0));
            // SQLite tells other connections, too.
            db.rows("INSERT INTO t VALUES(1, 2, 3); INSERT INTO t VALUES(1, 2, 3)");
            assert_eq!(system().open(&path).status("log_frames"), frames(0));
        }
        assert_eq!(db.status("page_bytes"), db.one("PRAGMA page_size"));
        assert_eq!(frames(3), "0");
        assert_eq!(db.status("log_frames"), "0");
    });
}

/// Of each commit that a power cut may take, whoever chose that: SQLite's pragma or waldio's.
#[test]
fn what_is_not_durable_is_told_under_any_setting() {
    in_own_process("what_is_not_durable_is_told_under_any_setting", || {
        let scratch = Scratch::new("status-durable");
        for (name, setting) in [
            ("a.db", "synchronous=NORMAL"),
            ("b.db", "synchronous=OFF"),
            ("c.db", "waldio_durability=normal"),
            ("d.db", "waldio_group='1073741824,60000'"),
        ] {
            let db = prepare(system(), &scratch.join(name));
            db.rows("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; INSERT INTO t VALUES(1, 2, 3)");
            let told = || (number(&db, "not_durable_bytes"), db.status("not_durable_age") == "NULL");
            for settle in
                ["PRAGMA waldio_flush", "PRAGMA wal_checkpoint(RESTART)", "PRAGMA wal_checkpoint(TRUNCATE)"]
            {
                db.rows(settle);
                assert_eq!(told(), (0, true), "{setting}, {settle}");
                db.rows(&format!("PRAGMA {setting}"));
                // The sync of a growth, on a thread of its own, makes commits durable, too: now and then one comes between.
                let is_told = || {
                    (0..3).for_each(|_| drop(db.rows("INSERT INTO t VALUES(1, 2, 3)")));
                    let (before, frames) = (told().0, number(&db, "log_frames"));
                    (0..3).for_each(|_| drop(db.rows("INSERT INTO t VALUES(1, 2, 3)")));
                    let ((bytes, is_unknown), written) = (told(), number(&db, "log_frames") - frames);
                    written > 0 && bytes == before + written * 4120 && !is_unknown
                };
                assert!((0..100).any(|_| is_told()), "{setting}, {settle}");
            }
        }
    });
}

#[test]
fn a_frame_takes_one_block_of_an_embedded_log() {
    in_own_process("a_frame_takes_one_block_of_an_embedded_log", || {
        let scratch = Scratch::new("status-embedded");
        system().load(None).unwrap();
        let options = "waldio_layout=embedded&waldio_group=1073741824,60000";
        let uri = format!("file:{}?{options}", scratch.join("a.db").display());
        let db = system().open_with(&uri, None).unwrap();
        db.rows("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(value)");
        (0..3).for_each(|_| drop(db.rows("INSERT INTO t VALUES(1)")));
        assert_eq!(db.status("layout"), "embedded");
        // As above.
        let is_told = || {
            db.rows("PRAGMA waldio_flush");
            let frames = number(&db, "log_frames");
            (0..10).for_each(|_| drop(db.rows("INSERT INTO t VALUES(1)")));
            number(&db, "not_durable_bytes") == (number(&db, "log_frames") - frames) * 4096
        };
        assert!((0..100).any(|_| is_told()));
    });
}

#[test]
fn two_files_of_one_name_are_told_apart() {
    in_own_process("two_files_of_one_name_are_told_apart", || {
        let scratch = Scratch::new("status-replaced");
        let path = scratch.join("a.db");
        let old = prepare(system(), &path);
        let count =
            |what: &str| old.one(&format!("SELECT count(DISTINCT value) FROM waldio_status WHERE {what}"));
        assert_eq!(count("name = 'file'"), "0");
        for suffix in ["", "-wal", "-shm"] {
            std::fs::remove_file(scratch.join(&format!("a.db{suffix}"))).unwrap();
        }
        let new = system().open(&path);
        new.rows("CREATE TABLE t(value)");
        assert_eq!(count("name = 'file' AND value LIKE 'device %, inode %'"), "2");
        let told =
            "SELECT count(*) FROM waldio_status WHERE name = 'advice' AND value LIKE '%rollback journal%'";
        assert_eq!(old.one(told), "1", "the log of the old one is in use");
    });
}

#[test]
fn without_a_wal_index_the_frames_are_not_known() {
    in_own_process("without_a_wal_index_the_frames_are_not_known", || {
        let scratch = Scratch::new("status-exclusive");
        system().load(None).unwrap();
        let db = system().open(&scratch.join("a.db"));
        db.rows("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; CREATE TABLE t(value)");
        assert_eq!((db.status("log"), db.status("log_frames")), ("open".to_owned(), "NULL".to_owned()));
    });
}

/// The counts are those of the process. A connection that has none of waldio must not take them for its own.
#[test]
fn the_first_rows_are_of_the_connection_that_asks() {
    in_own_process("the_first_rows_are_of_the_connection_that_asks", || {
        let scratch = Scratch::new("status-own");
        let path = scratch.join("a.db");
        let early = system().open(&scratch.join("early.db"));
        early.load_extension(&extension_path(), None).unwrap_err();
        let db = system().open(&path);
        let own = |db: &real::sqlite::Connection| {
            db.one(
                "SELECT group_concat(name || '=' || ifnull(value, 'NULL'), '; ') FROM (SELECT * FROM waldio_status LIMIT 3)",
            )
        };
        let is = |db, word: &str, rest: &str| {
            let told = own(db);
            assert!(told.starts_with(&format!("this_connection={word}: ")) && told.ends_with(rest), "{told}");
        };
        is(&db, "waiting", "; journal_mode=delete; synchronous=FULL");
        db.rows("CREATE TABLE t(value)");
        is(&db, "inactive", "; journal_mode=delete; synchronous=FULL");
        db.rows("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; INSERT INTO t VALUES(1)");
        is(&db, "active", "; journal_mode=wal; synchronous=NORMAL");
        let word = |db: &real::sqlite::Connection| db.one("PRAGMA waldio");
        assert_eq!(db.status("this_connection"), word(&db));
        assert!(word(&db).contains("synchronous=FULL"), "{}", word(&db));
        db.rows("PRAGMA waldio_group='16KiB,2ms'");
        assert!(word(&db).contains("the last 2 ms"), "{}", word(&db));
        // Its own state, not that of another connection to the file.
        let second = system().open(&path);
        assert!(word(&second).starts_with("waiting: "), "{}", word(&second));
        second.rows("SELECT * FROM t");
        assert!(word(&second).starts_with("active: "), "{}", word(&second));
        is(&early, "inactive", "; journal_mode=delete; synchronous=FULL");
        let told = own(&early);
        assert!(told.contains("before waldio was loaded") && told.contains("goes through unix"), "{told}");
        let off = system().open_with(&format!("file:{}?waldio=off", path.display()), None).unwrap();
        is(&off, "inactive", "its URI says waldio=off; journal_mode=wal; synchronous=FULL");
        let memory = system().open(std::path::Path::new(":memory:"));
        let first = memory.one("SELECT name || '=' || value FROM waldio_status LIMIT 1");
        assert_eq!(first, "this_connection=inactive: no database of this connection is in a file");
        let refused = db.run("PRAGMA waldio=off").1.unwrap();
        assert!(refused.message.contains("database's URI"), "{refused}");
        // A name that SQL would take for more than one.
        db.rows(&format!("ATTACH '{}' AS \"a\"\"; b\"", scratch.join("b.db").display()));
        let attached =
            "SELECT value FROM waldio_status WHERE name = 'journal_mode' AND database LIKE '%/b.db'";
        assert_eq!(db.one(attached), "delete");
    });
}

/// An authorizer that denies what waldio has to ask.
const DENYING: &str = "
import sqlite3, sys
connection = sqlite3.connect(':memory:')
connection.enable_load_extension(True)
connection.load_extension(sys.argv[1])
connection = sqlite3.connect(sys.argv[2])
connection.execute('PRAGMA journal_mode=WAL')
connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_PRAGMA else sqlite3.SQLITE_OK)
print(connection.execute('SELECT value FROM waldio_status LIMIT 1').fetchone()[0])
";

#[test]
fn what_sqlite_does_not_answer_is_unknown() {
    if let Some(reason) = no_python() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("status-denied");
    let mut command = Command::new("/usr/bin/python3");
    let told = must(command.args(["-c", DENYING]).arg(extension_path()).arg(scratch.join("a.db")));
    assert_eq!(told, "unknown: SQLite did not answer PRAGMA database_list");
}
