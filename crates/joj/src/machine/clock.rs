//! The two clocks: one that never jumps, for durations, and the calendar's.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static START: OnceLock<Instant> = OnceLock::new();

/// Nanoseconds of the monotonic clock since this process first asked.
pub fn now_ns() -> u64 {
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Seconds since 1970.
pub fn calendar_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Waits.
pub fn pause(duration: Duration) {
    thread::sleep(duration);
}
