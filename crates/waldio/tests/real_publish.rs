//! Goal: frames are in the file before they are published, though waldio expected a sync that did not come.
//! Method: waldio learns from a connection's commits that a sync follows, and forgets it at `PRAGMA synchronous`. A VFS
//! above that keeps pragmas to itself leaves it in its belief. At SQLite's barrier the file is read as another process
//! would.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use real::place::Scratch;
use real::sqlite::{Connection, system};
use real::sqlite_shim::{self, Event};
use waldio::log::recovery;

/// Transactions that a reader of the file finds in the log.
fn commits_in_file(database: &Path) -> u64 {
    let log = std::fs::read(database.with_extension("db-wal")).unwrap_or_default();
    recovery::scan_bytes(&log).commits
}

/// A connection that learned that a sync follows its commits, and then has `synchronous=NORMAL` unknown to waldio.
fn misled(database: &Path, vfs: &str, first: &str) -> Connection {
    let connection = system().open_with(&format!("file:{}?vfs={vfs}", database.display()), None).unwrap();
    connection.rows(first);
    connection.rows("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
    connection.rows("CREATE TABLE t(a); INSERT INTO t VALUES (1)");
    connection.rows("PRAGMA synchronous = NORMAL");
    connection
}

#[test]
fn frames_are_in_the_file_at_the_barrier_before_they_are_published() {
    let scratch = Scratch::new("publish");
    let path = scratch.join("app.db");
    system().load(None).unwrap();
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let (found, database) = (Arc::clone(&seen), path.clone());
    sqlite_shim::register_keeping_pragmas(system(), c"keeper", c"waldio", move |event| {
        if event == Event::Barrier {
            let count = commits_in_file(&database);
            found.lock().unwrap_or_else(PoisonError::into_inner).push(count);
        }
    });
    let connection = misled(&path, "keeper", "");
    let reader = system().open_stock(&path);
    for rows in 2..5 {
        let before = commits_in_file(&path);
        connection.rows("INSERT INTO t VALUES (2)");
        // The last barrier of a commit is the one in the middle of the publication: SQLite writes the second copy of
        // the wal-index header in front of it, and the first one, which readers read first, behind it.
        let last = seen.lock().unwrap().last().copied();
        assert_eq!(last, Some(before + 1), "at the barrier");
        assert_eq!(reader.one("SELECT count(*) FROM t"), rows.to_string());
    }
    let flushes = connection.status("flushes");
    connection.rows("INSERT INTO t VALUES (3)");
    assert_eq!(connection.status("flushes"), flushes, "the commits were synced: nothing was shown");
}

#[test]
fn frames_are_in_the_file_when_commit_returns_where_there_is_no_barrier() {
    let scratch = Scratch::new("no-barrier");
    let path = scratch.join("app.db");
    system().load(None).unwrap();
    sqlite_shim::register_keeping_pragmas(system(), c"lone-keeper", c"waldio", |_| {});
    // Exclusive from the start: no wal-index, no barrier, no lock that is given back.
    let connection = misled(&path, "lone-keeper", "PRAGMA locking_mode = EXCLUSIVE");
    for _ in 0..3 {
        let before = commits_in_file(&path);
        connection.rows("INSERT INTO t VALUES (2)");
        assert_eq!(commits_in_file(&path), before + 1);
    }
}
