//! How far something is that takes more than a second, and whether it shall go on.

use std::io::{IsTerminal, Write, stderr};

use crate::machine::proc::clock::shared_ns;
use crate::machine::proc::signal::is_stopped;
use crate::trace::error::Stopped;

/// The time between two lines of progress.
const LINE_NS: u64 = 1_000_000_000;

/// A line on a terminal that is written anew once a second, and erased when this is dropped.
pub struct ProgressLine {
    began_ns: u64,
    told_ns: u64,
}

impl ProgressLine {
    /// Begins to show progress: the first line comes a second from now.
    pub fn begin() -> Self {
        let now_ns = shared_ns();
        Self { began_ns: now_ns, told_ns: now_ns }
    }

    /// Shows `line`, where it is time for that.
    pub fn tell(&mut self, line: impl FnOnce() -> String) {
        let now_ns = shared_ns();
        if now_ns - self.told_ns > LINE_NS && stderr().is_terminal() {
            self.told_ns = now_ns;
            eprint!("\r\x1b[K{}", line());
            let _ = stderr().flush();
        }
    }

    /// Whole seconds since it began.
    pub fn seconds(&self) -> u64 {
        (shared_ns() - self.began_ns) / 1_000_000_000
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.told_ns > self.began_ns {
            eprint!("\r\x1b[K");
        }
    }
}

/// To be asked now and then.
/// # Errors
/// A signal asked this process to end.
pub fn go_on() -> Result<(), Stopped> {
    if is_stopped() { Err(Stopped) } else { Ok(()) }
}
