//! How far a test is, on standard error: a line that changes, from the second second on, where that is a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::bench::worker::task::Refusal;
use crate::machine::proc::clock::now_ns;

/// What takes no longer needs no line.
const SILENT_NS: u64 = 1_000_000_000;

/// Steps of all threads.
#[derive(Debug)]
pub struct TestProgress {
    is_shown: bool,
    began_ns: u64,
    done: AtomicU64,
    all: AtomicU64,
    is_stopped: AtomicBool,
    failure: Mutex<Option<Refusal>>,
}

impl TestProgress {
    pub fn new(is_quiet: bool) -> TestProgress {
        TestProgress {
            is_shown: !is_quiet && stderr().is_terminal(),
            began_ns: now_ns(),
            done: AtomicU64::new(0),
            all: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// There is so much more to do.
    pub fn expect(&self, steps: u64) {
        self.all.fetch_add(steps, Relaxed);
    }

    /// So much of it is done.
    pub fn count(&self, steps: u64) {
        self.done.fetch_add(steps, Relaxed);
    }

    /// As [`TestProgress::count`].
    /// # Errors
    /// Once another thread failed: this one need not go on.
    pub fn advance(&self, steps: u64) -> Result<(), Refusal> {
        self.count(steps);
        match self.is_stopped.load(Relaxed) {
            true => Err(Refusal::new("another thread of the test failed".to_owned())),
            false => Ok(()),
        }
    }

    /// A thread failed. Where several do, the first counts: the others may have stopped because of it.
    pub fn fail(&self, failure: Refusal) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.is_stopped.store(true, Relaxed);
    }

    /// Why the first thread failed that did.
    pub fn failure(&self) -> Option<Refusal> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets the steps: another part begins.
    pub fn begin_anew(&self) {
        self.done.store(0, Relaxed);
        self.all.store(0, Relaxed);
    }

    /// Shows the line.
    pub fn show(&self, what: &str) {
        if self.is_shown && now_ns() - self.began_ns > SILENT_NS {
            let percent = self.done.load(Relaxed) * 100 / self.all.load(Relaxed).max(1);
            eprint!("\r\x1b[K{:3} %  {what}", percent.min(100));
            let _ = stderr().flush();
        }
    }

    /// Takes the line away, before anything else is printed.
    pub fn clear(&self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}
