//! Who reserves space: one thread for the whole process, started with the first growth and never at load, because
//! servers load extensions and then fork.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock, Weak};

use blockio::disk::Disk;

use crate::ffi::signals;
use crate::session::LogSession;

/// One order to reserve space.
#[derive(Debug)]
pub struct Growth {
    /// The log, if it is still open by then.
    pub session: Weak<LogSession>,
    /// Where it is.
    pub disk: Arc<dyn Disk>,
    /// How far its frames reach.
    pub used_bytes: u64,
}

impl Growth {
    fn run(self) {
        if let Some(session) = self.session.upgrade() {
            session.grow(&*self.disk, self.used_bytes);
        }
    }
}

/// A handle on the thread, or on none.
#[derive(Debug, Clone)]
pub enum Worker {
    /// At once, in the caller: for tests that must be repeatable.
    Inline,
    /// On this thread, started when the first order comes.
    Thread(Arc<OnceLock<Option<Sender<Growth>>>>),
}

impl Worker {
    /// A worker whose thread does not run yet.
    pub fn thread() -> Worker {
        Worker::Thread(Arc::default())
    }

    /// Has an order carried out. Where no thread can be had the log simply does not grow ahead.
    pub fn grow(&self, growth: Growth) {
        match self {
            Worker::Inline => growth.run(),
            Worker::Thread(orders) => {
                if let Some(orders) = orders.get_or_init(start) {
                    // The thread never ends before the process; after a fork there is none, and nothing grows.
                    let _ = orders.send(growth);
                }
            }
        }
    }
}

fn start() -> Option<Sender<Growth>> {
    let (sender, orders) = channel::<Growth>();
    let run = move || {
        for growth in orders {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| growth.run()));
        }
    };
    // The host's signal handlers are not for this thread.
    signals::with_all_blocked(|| {
        std::thread::Builder::new().name("waldio-grow".to_owned()).stack_size(256 << 10).spawn(run).ok()
    })?;
    Some(sender)
}
