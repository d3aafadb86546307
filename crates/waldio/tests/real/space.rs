//! Space that waldio makes ahead of a log, in a thread of its own.

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
