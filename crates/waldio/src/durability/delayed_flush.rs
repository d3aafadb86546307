//! The delayed flush of `waldio_group`: commits that do not wait for their flush, and who flushes for them.
//!
//! COMMIT returns when its frames are in the file, as with a shared flush, and keeps its number. A commit that would make more
//! than the option's bytes outstanding waits for a flush of all of them. Else a thread flushes when the option's time is over: one
//! thread for each database, because a slow device must not make another one wait. A process that dies leaves its frames in the
//! page cache, and the kernel writes them in its own time.
//!
//! What a power cut leaves is a prefix all the same: frames are in the log in the order of their commits, and recovery ends
//! at the first whose checksum is wrong.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use blockio::disk::DiskFile;

use crate::durability::log_session::LogSession;
use crate::stats::Stats;
use crate::threads::lazy_thread::LazyThread;

/// One order to flush.
#[derive(Debug)]
pub struct FlushOrder {
    /// The log, if it is still open by then.
    session: Weak<LogSession>,
    /// The time at which to flush.
    due: Instant,
    /// How long a commit may wait.
    time: Duration,
}

/// Who flushes when the time is over.
#[derive(Debug, Clone)]
pub enum Flusher {
    /// Nobody: for tests that must be repeatable.
    Never,
    /// This thread.
    Thread(LazyThread<FlushOrder>),
}

impl Flusher {
    /// A flusher whose thread does not run yet.
    pub fn thread() -> Flusher {
        Flusher::Thread(LazyThread::new("waldio-flush", serve))
    }

    /// Has everything outstanding in a log flushed after `time`; false where there is no thread for it.
    pub fn flush_within(&self, session: &Arc<LogSession>, file: &Arc<dyn DiskFile>, time: Duration) -> bool {
        let Flusher::Thread(thread) = self else { return true };
        if session.flush_ordered.swap(true, SeqCst) {
            return true;
        }
        *session.flush_with() = Some(Arc::clone(file));
        let due = Instant::now() + time;
        let order = FlushOrder { session: Arc::downgrade(session), due, time };
        let ordered = thread.send(order);
        if !ordered {
            session.flush_ordered.store(false, SeqCst);
        }
        ordered
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the thread owns its orders")]
fn serve(orders: Receiver<FlushOrder>) {
    let mut waiting: Vec<FlushOrder> = Vec::new();
    loop {
        let next = match waiting.iter().map(|order| order.due).min() {
            Some(due) => orders.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => orders.recv().map_err(RecvTimeoutError::from),
        };
        match next {
            Ok(order) => waiting.push(order),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        let due: Vec<FlushOrder> = waiting.extract_if(.., |order| order.due <= now).collect();
        for order in due {
            let run = || {
                let session = order.session.upgrade()?;
                let file = session.flush_with().clone()?;
                session.flush_ordered(&*file, order.time)
            };
            let later = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            waiting.extend(later.ok().flatten().map(|due| FlushOrder { due, ..order }));
        }
    }
}

impl LogSession {
    /// The file of whoever committed and ordered a flush: open until the last connection of this process has closed the log.
    fn flush_with(&self) -> MutexGuard<'_, Option<Arc<dyn DiskFile>>> {
        self.flush_with.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The delay is over for the commit that ordered a flush. Where others flushed it, and the oldest that waits now came later,
    /// the order stands: the result is when it is due. A failure poisons, and the next COMMIT says so.
    pub fn flush_ordered(&self, file: &dyn DiskFile, time: Duration) -> Option<Instant> {
        let due = self.durability.group_commit.oldest_since().map(|since| since + time);
        if let Some(due) = due.filter(|due| *due > Instant::now()) {
            return Some(due);
        }
        // First: a commit that comes from here on orders the next flush.
        self.flush_ordered.store(false, SeqCst);
        if self.durability.group_commit.is_outstanding()
            && self.durability.flush_unlocked(file, false).is_ok()
        {
            Stats::add(&self.stats.delayed_flushes, 1);
        }
        None
    }
}
