//! What threads wait on, in one place, so that a model checker can put its own there.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use rustix::thread::futex;

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread;

/// Wakes one thread, which need not queue for a lock then, as behind a condition variable. Source: futex(2).
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: AtomicU32,
}

impl Bell {
    /// From here on it has not rung.
    pub(crate) fn mute(&self) {
        self.rung.store(0, SeqCst);
    }

    /// Sleeps until it has rung.
    pub(crate) fn wait(&self) {
        while self.rung.load(SeqCst) == 0 {
            // An error is an interruption, or a ring meanwhile: looked at again.
            let _ = futex::wait(&self.rung, futex::Flags::PRIVATE, 0, None);
        }
    }

    /// Rings.
    pub(crate) fn ring(&self) {
        self.rung.store(1, SeqCst);
        let _ = futex::wake(&self.rung, futex::Flags::PRIVATE, 1);
    }
}
