//! What the guest says to the one who waits, on its console.

use std::io;
use std::sync::{Arc, Mutex};

use joj_device::request_log::{LoggedRequest, RequestSink};

use crate::lab::job::{Allowed, GuestLine, LINE_MARK};

/// Says a line to joj outside.
pub fn say(line: &GuestLine) {
    match serde_json::to_string(line) {
        Ok(text) => println!("{LINE_MARK}{text}"),
        Err(error) => println!("a line of the guest's cannot be written: {error}"),
    }
}

/// Says what is done next with the unit at hand: a step, for which there is as much time as for a unit.
pub fn say_step(what: &str) {
    say(&GuestLine::Doing(what.to_owned(), Allowed::Step));
}

/// Says what is done next that is joj's own work, which the time for a step is not meant for.
pub fn say_preparing(what: &str) {
    say(&GuestLine::Doing(what.to_owned(), Allowed::OwnWork));
}

/// What is done before a run that counts.
pub const FIRST_RUN: &str = "running for the first time";
/// What is done with what was used of the host's files.
pub const KEEPING: &str = "keeping this machine's files in memory";

/// Says how far the step at hand is.
pub fn say_doing(what: &str) {
    say(&GuestLine::Doing(what.to_owned(), Allowed::WhatIsLeft));
}

/// Says how much was written to a device from a moment on, after each [`STEP_BYTES`]. So a program that writes less is not slowed down, and one
/// that writes more is so at the same places each time.
#[derive(Debug, Clone)]
pub struct WrittenTeller {
    what: &'static str,
    /// None before that moment.
    bytes: Arc<Mutex<Option<u64>>>,
}

/// Between two lines, in bytes.
const STEP_BYTES: u64 = 16 << 20;

impl WrittenTeller {
    /// It says nothing yet; lines will begin with `what`.
    pub fn new(what: &'static str) -> WrittenTeller {
        WrittenTeller { what, bytes: Arc::default() }
    }

    /// What is written from now on counts: what makes the filesystem is nothing of the program's.
    pub fn begin(&self) {
        if let Ok(mut bytes) = self.bytes.lock() {
            *bytes = Some(0);
        }
    }

    /// What is to be said when so much more is written, if something is.
    fn after(&self, more: usize) -> Option<String> {
        let mut bytes = self.bytes.lock().ok()?;
        let before = (*bytes)?;
        let now = before + more as u64;
        *bytes = Some(now);
        let is_step = now / STEP_BYTES > before / STEP_BYTES;
        is_step.then(|| format!("{}, {} MiB written to the device", self.what, now >> 20))
    }
}

impl RequestSink for WrittenTeller {
    fn record(&mut self, _: &LoggedRequest, data: &[u8]) -> io::Result<()> {
        if let Some(what) = self.after(data.len()) {
            say_doing(&what);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_said_for_each_step_that_was_written() {
        let teller = WrittenTeller::new("runs");
        assert_eq!(teller.after(20 << 20), None);
        teller.begin();
        assert_eq!(teller.after((16 << 20) - 1), None);
        assert_eq!(teller.after(1).as_deref(), Some("runs, 16 MiB written to the device"));
        assert_eq!(teller.after(1), None);
        assert_eq!(teller.after(40 << 20).as_deref(), Some("runs, 56 MiB written to the device"));
    }
}
