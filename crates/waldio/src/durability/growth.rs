//! Who reserves space: one thread for the whole process.
//!
//! It opens no file. A program may have closed a standard stream at that very moment: the log would take its descriptor until it
//! is moved, and what the program prints meanwhile would go to the log.

use std::sync::Weak;

use blockio::disk::DiskFile;

use crate::durability::log_session::LogSession;
use crate::threads::lazy_thread::{LazyThread, Orders};

/// One order to reserve space.
#[derive(Debug)]
pub struct Growth {
    /// The log, if it is still open by then.
    pub session: Weak<LogSession>,
    /// The file of whoever committed, if it is still open by then.
    pub file: Weak<dyn DiskFile>,
    /// How far its frames reach.
    pub used_bytes: u64,
}

impl Growth {
    fn run(self) {
        let Some(session) = self.session.upgrade() else { return };
        match self.file.upgrade() {
            Some(file) => session.grow(&*file, self.used_bytes),
            None => session.space.decline(),
        }
    }
}

/// Who carries orders out.
#[derive(Debug, Clone)]
pub enum Worker {
    /// The caller, at once: for tests that must be repeatable.
    Inline,
    /// This thread.
    Thread(LazyThread<Growth>),
}

impl Worker {
    /// A worker whose thread does not run yet.
    pub fn thread() -> Worker {
        Worker::Thread(LazyThread::new("waldio-grow", serve))
    }

    /// Has an order carried out. Where no thread can be had the log does not grow ahead until one can.
    pub fn grow(&self, growth: Growth) {
        match self {
            Worker::Inline => growth.run(),
            Worker::Thread(thread) => {
                let session = Weak::clone(&growth.session);
                if !thread.send(growth)
                    && let Some(session) = session.upgrade()
                {
                    session.space.decline();
                }
            }
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the thread owns its orders")]
fn serve(orders: Orders<Growth>) {
    while let Some(growth) = orders.next() {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| growth.run()));
    }
}
