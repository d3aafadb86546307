//! Space that waldio makes ahead of a log, in a thread of its own.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::sqlite::Connection;

/// Waits until space that the commits before asked for is made. The sync of the thread that does so may cover a commit whose own one fails.
/// Then it is durable, and its COMMIT says so.
pub fn await_space(db: &Connection) {
    let until = Instant::now() + Duration::from_secs(30);
    let is_made = || db.one("SELECT value FROM waldio_status WHERE name = 'growth_flushes'") != "0";
    while !is_made() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Commits to a table `t` until its log has space for dozens of frames more, and waldio's thread makes none.
pub fn fill_until_there_is_space(db: &Connection, log: &Path) {
    const ENOUGH_BYTES: u64 = 192 << 10;
    let until = Instant::now() + Duration::from_secs(30);
    let mut last = None;
    while Instant::now() < until {
        for _ in 0..if last.is_none() { 20 } else { 1 } {
            db.rows("INSERT INTO t VALUES(0)");
        }
        thread::sleep(Duration::from_millis(50));
        let made = db.one("SELECT value FROM waldio_status WHERE name = 'growth_flushes'");
        let now = Some((made, fs::metadata(log).unwrap().len()));
        if now == last && now.as_ref().is_some_and(|(_, bytes)| *bytes >= ENOUGH_BYTES) {
            return;
        }
        last = now;
    }
}
