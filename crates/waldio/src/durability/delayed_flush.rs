//! The delayed flush of `waldio_group`: commits that do not wait for their flush, and who flushes for them.
//!
//! COMMIT returns when its frames are in the file, as with a shared flush, and keeps its number. A commit that would make more
//! than the option's bytes outstanding waits for a flush of all of them. Else a thread flushes when the option's time is over: one
//! thread for each database, because a slow device must not make another one wait. A process that dies leaves its frames in the
//! page cache, and the kernel writes them in its own time.
//!
//! What a power cut leaves is a prefix all the same: frames are in the log in the order of their commits, and recovery ends
//! at the first whose checksum is wrong.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blockio::disk::DiskFile;

use crate::durability::log_session::{FlushOrder, LogSession};
use crate::stats::Stats;
use crate::threads::timer::Timer;

/// Who flushes when the time is over.
#[derive(Debug, Clone)]
pub enum Flusher {
    /// Nobody: for tests that must be repeatable.
    Never,
    /// This thread.
    Thread(Timer),
}

impl Flusher {
    /// A flusher whose thread does not run yet.
    pub fn thread() -> Flusher {
        Flusher::Thread(Timer::new("waldio-flush"))
    }

    /// Has everything outstanding in a log flushed after `time`; false where there is no thread for it.
    pub fn flush_within(&self, session: &Arc<LogSession>, file: &Arc<dyn DiskFile>, time: Duration) -> bool {
        let Flusher::Thread(timer) = self else { return true };
        let mut due = Instant::now() + time;
        if !session.order_flush(due, time) {
            return true;
        }
        *session.flush_with() = Some(Arc::clone(file));
        // The log, if it is still open by then.
        let (flushed, ordered) = (Arc::downgrade(session), due);
        let has_thread = timer.order_instead(Arc::as_ptr(session) as usize, due, move || {
            let session = flushed.upgrade()?;
            let file = session.flush_with().clone()?;
            due = session.flush_ordered(&*file, due)?;
            Some(due)
        });
        if !has_thread {
            session.take_order(ordered);
        }
        has_thread
    }
}

impl LogSession {
    /// The file of whoever committed and ordered a flush: open until the last connection of this process has closed the log.
    fn flush_with(&self) -> MutexGuard<'_, Option<Arc<dyn DiskFile>>> {
        self.flush_with.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush_order(&self) -> MutexGuard<'_, Option<FlushOrder>> {
        self.flush_order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit wants to be flushed by then, `time` after it. False where an order stands that comes no later. Else this one takes its
    /// place: the other one may be for a connection whose delay is longer.
    pub fn order_flush(&self, due: Instant, time: Duration) -> bool {
        let mut standing = self.flush_order();
        let time = standing.map_or(time, |order| order.time.min(time));
        let is_new = standing.is_none_or(|order| order.due > due);
        let due = standing.filter(|_| !is_new).map_or(due, |order| order.due);
        *standing = Some(FlushOrder { due, time });
        is_new
    }

    /// Ends the order for that moment; `None` where another took its place.
    fn take_order(&self, due: Instant) -> Option<FlushOrder> {
        self.flush_order().take_if(|order| order.due == due)
    }

    /// The delay is over for the commit that ordered a flush for that moment. Where others flushed it, and the oldest that waits now
    /// came later, the order stands: the result is when it is due. A failure poisons, and the next COMMIT says so.
    pub fn flush_ordered(&self, file: &dyn DiskFile, due: Instant) -> Option<Instant> {
        // First: a commit that comes from here on orders the next flush.
        let FlushOrder { time, .. } = self.take_order(due)?;
        let later = self.durability.group_commit.not_durable().map(|waits| waits.since + time);
        if let Some(later) = later.filter(|later| *later > Instant::now()) {
            return self.order_flush(later, time).then_some(later);
        }
        if self.durability.group_commit.is_outstanding()
            && self.durability.flush_unlocked(file, false).is_ok()
        {
            Stats::add(&self.stats.delayed_flushes, 1);
        }
        None
    }
}
