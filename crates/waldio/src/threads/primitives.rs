//! What threads wait on and read the time from, in one place, so that a model checker can put its own there.

use std::sync::atomic::Ordering::SeqCst;

#[cfg(feature = "model")]
use crate::testing::model as system;

pub(crate) use system::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, now, thread};

#[cfg(not(feature = "model"))]
mod system {
    use std::time::Instant;

    use rustix::thread::futex;

    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread;

    pub(crate) fn now() -> Instant {
        Instant::now()
    }

    /// Sleeps while `word` is zero; may return earlier.
    pub(super) fn wait_while_zero(word: &AtomicU32) {
        // An error is an interruption, or a change meanwhile.
        let _ = futex::wait(word, futex::Flags::PRIVATE, 0, None);
    }

    /// Wakes one thread that sleeps at `word`.
    pub(super) fn wake_one(word: &AtomicU32) {
        let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
    }
}

/// Wakes one thread, which need not queue for a lock then, as behind a condition variable. Source: futex(2).
#[derive(Debug, Default)]
pub struct Waker {
    rung: system::AtomicU32,
}

impl Waker {
    /// From here on it has not rung.
    pub fn mute(&self) {
        self.rung.store(0, SeqCst);
    }

    /// Sleeps until it has rung.
    pub fn wait(&self) {
        while self.rung.load(SeqCst) == 0 {
            system::wait_while_zero(&self.rung);
        }
    }

    /// Rings.
    pub fn ring(&self) {
        self.rung.store(1, SeqCst);
        system::wake_one(&self.rung);
    }
}
