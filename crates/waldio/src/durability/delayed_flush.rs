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
        let due = Instant::now() + time;
        if !session.order_flush(due, time) {
            return true;
        }
        session.flush_with(Arc::clone(file));
        // The log, if it is still open by then.
        let flushed = Arc::downgrade(session);
        let has_thread = timer
            .order_instead(Arc::as_ptr(session) as usize, due, move || flushed.upgrade()?.flush_ordered());
        if !has_thread {
            session.flush_order().take_if(|order| order.due == due);
        }
        has_thread
    }
}

impl LogSession {
    fn flush_file(&self) -> MutexGuard<'_, Option<Arc<dyn DiskFile>>> {
        self.flush_with.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ordered flushes are done with this file, of whoever committed: open until the last connection of this process has closed the log.
    pub fn flush_with(&self, file: Arc<dyn DiskFile>) {
        *self.flush_file() = Some(file);
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

    /// Does what is due of what was ordered. The result is when to come back: while an order stands, whoever gave it, somebody comes no
    /// later than it is due. Where others flushed the commit that gave it, and the oldest that waits now came later, it stands for
    /// that one. A failure poisons, and the next COMMIT says so.
    pub fn flush_ordered(&self) -> Option<Instant> {
        let is_due = |order: &mut FlushOrder| order.due <= Instant::now();
        // First: a commit that comes from here on orders the next flush.
        let taken = self.flush_order().take_if(is_due);
        if let Some(FlushOrder { time, .. }) = taken {
            let later = self.durability.group_commit.not_durable().map(|waits| waits.since + time);
            match later.filter(|later| *later > Instant::now()) {
                Some(later) => {
                    self.order_flush(later, time);
                }
                None => self.flush_outstanding(),
            }
        }
        self.flush_order().map(|order| order.due)
    }

    fn flush_outstanding(&self) {
        let Some(file) = self.flush_file().clone() else { return };
        if self.durability.group_commit.is_outstanding()
            && self.durability.flush_unlocked(&*file, false).is_ok()
        {
            Stats::add(&self.stats.delayed_flushes, 1);
        }
    }
}
