//! Threads of this process that write one database, each through a connection of its own.

use std::path::Path;
use std::thread;

use super::sqlite::{Connection, Library};

/// A connection with `synchronous=FULL` that waits a minute for locks.
pub fn open(library: &'static Library, path: &Path) -> Connection {
    let db = library.open(path);
    db.busy_timeout(60_000);
    db.run("PRAGMA synchronous=FULL");
    db
}

/// Loads waldio, and makes the table that `write` fills.
pub fn prepare(library: &'static Library, path: &Path) -> Connection {
    library.load(None).unwrap();
    let db = open(library, path);
    db.rows("PRAGMA journal_mode=WAL");
    db.rows("CREATE TABLE t(writer, number, value)");
    db
}

/// A number in `waldio_status`.
#[track_caller]
pub fn number(db: &Connection, name: &str) -> u64 {
    db.status(name).parse().unwrap_or_else(|_| panic!("{name} is {:?}", db.status(name)))
}

/// Each of `writers` threads commits `commits` rows; every COMMIT must succeed.
pub fn write(library: &'static Library, path: &Path, writers: usize, commits: usize) {
    thread::scope(|scope| {
        for writer in 0..writers {
            scope.spawn(move || {
                let db = open(library, path);
                for number in 0..commits {
                    db.rows(&format!("INSERT INTO t VALUES ({writer}, {number}, zeroblob(100))"));
                }
            });
        }
    });
}

/// Every row of one `write` is there, once.
#[track_caller]
pub fn all_there(db: &Connection, writers: usize, commits: usize) {
    let rows = (writers * commits).to_string();
    assert_eq!(db.one("SELECT count(*) FROM t"), rows);
    assert_eq!(db.one("SELECT count(*) FROM (SELECT DISTINCT writer, number FROM t)"), rows);
    assert_eq!(db.one("PRAGMA integrity_check"), "ok");
}
