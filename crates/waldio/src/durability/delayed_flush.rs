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
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blockio::disk::DiskFile;

use crate::durability::log_session::LogSession;
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
        if session.flush_ordered.swap(true, SeqCst) {
            return true;
        }
        *session.flush_with() = Some(Arc::clone(file));
        // The log, if it is still open by then.
        let flushed = Arc::downgrade(session);
        let ordered = timer.order(Instant::now() + time, move || {
            let session = flushed.upgrade()?;
            let file = session.flush_with().clone()?;
            session.flush_ordered(&*file, time)
        });
        if !ordered {
            session.flush_ordered.store(false, SeqCst);
        }
        ordered
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
