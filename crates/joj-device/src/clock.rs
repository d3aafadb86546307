//! Time for the server: the machine's, or a test's.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

/// Tells the time, and waits for a socket no longer than until a time.
pub trait Clock {
    /// Nanoseconds since some moment; never less than before.
    fn now_ns(&mut self) -> u64;

    /// Waits until `socket` has bytes or its end, or until `until_ns`; true for the socket. Without `until_ns` only for the socket.
    ///
    /// # Errors
    /// The machine's; the socket was not read.
    fn wait(&mut self, socket: BorrowedFd<'_>, until_ns: Option<u64>) -> io::Result<bool>;

    /// Returns at `until_ns`, or earlier: who needs it later asks again.
    fn sleep_until(&mut self, until_ns: u64);
}

/// The machine's CLOCK_MONOTONIC, whose times other processes of the machine can be compared with.
#[derive(Debug)]
pub struct SystemClock(());

impl SystemClock {
    /// A clock for the thread that calls: its waits end when they are over, not up to 50 us later
    /// as the kernel's timer slack allows.
    pub fn new() -> Self {
        // Where it cannot be set, answers are that much later, which `Served` counts.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
        SystemClock(())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now_ns(&mut self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        // Neither part is negative on this clock, and 584 years of nanoseconds fit.
        u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
    }

    fn wait(&mut self, socket: BorrowedFd<'_>, until_ns: Option<u64>) -> io::Result<bool> {
        let now_ns = self.now_ns();
        readable_within(
            socket,
            until_ns.map(|until_ns| Duration::from_nanos(until_ns.saturating_sub(now_ns))),
        )
    }

    fn sleep_until(&mut self, until_ns: u64) {
        let now_ns = self.now_ns();
        std::thread::sleep(Duration::from_nanos(until_ns.saturating_sub(now_ns)));
    }
}

/// Whether `socket` has bytes or its end within `span`; without one, as soon as it has.
///
/// # Errors
/// poll(2)'s. A signal ends the waiting early, which reads as "not yet".
pub fn readable_within(socket: BorrowedFd<'_>, span: Option<Duration>) -> io::Result<bool> {
    let timeout = span.map(|span| Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(span.subsec_nanos()),
    });
    let mut sockets = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    match poll(&mut sockets, timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
