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

/// Nanoseconds of the monotonic clock, the same in all processes of the machine.
pub fn shared_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Waits until [`shared_ns`] says `at_ns`; not at all if that is past.
pub fn pause_until(at_ns: u64) {
    loop {
        let now_ns = shared_ns();
        if now_ns >= at_ns {
            return;
        }
        thread::sleep(Duration::from_nanos(at_ns - now_ns));
    }
}

/// Waits for the next full second.
pub fn pause_until_second() {
    const SECOND_NS: u64 = 1_000_000_000;
    pause_until((shared_ns() / SECOND_NS + 1) * SECOND_NS);
}

/// Seconds since 1970.
pub fn calendar_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Nanoseconds since 1970.
pub fn calendar_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits.
pub fn pause(duration: Duration) {
    thread::sleep(duration);
}
