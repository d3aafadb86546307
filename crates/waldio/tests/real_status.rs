//! Goal: a program may read `waldio_status` as often as it likes. A read is a read transaction, and keeps the log from being
//! emptied for as long as it takes.
//! Method: a disk that counts the looks at it; what SQLite itself says of the log.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use real::child::in_own_process;
use real::counting_disk::{CountingDisk, Steps};
use real::place::Scratch;
use real::sqlite::system;
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
