//! The write lock that a connection got while its busy handler slept, before SQLite asks for it.
//!
//! SQLite gives up its snapshot before it calls the busy handler, and takes a new one before it asks again. Beside a process that
//! commits in a loop the lock is free for microseconds, and taken again by then. So whoever sleeps takes it at once; SQLite reads
//! the newest snapshot under it, asks, and is told that it has it.
//!
//! ```text
//! none -> got in a nap -+-> SQLite asks: SQLite's
//!                       +-> SQLite does anything that leads nowhere near that: given back
//!                       +-> 10 ms: given back by a thread, whatever the connection does
//! ```

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::Connection;
use crate::ffi::taken_lock::TakenLock;
use crate::write_lock::queue_state::{RESERVATION, Tried};

/// What a connection got, and until when it may keep it.
#[derive(Debug, Default)]
pub(super) struct EarlyLock {
    got: Mutex<Option<(TakenLock, Instant)>>,
    /// For a look without the mutex.
    is_got: AtomicBool,
    /// The thread looks after it.
    is_watched: AtomicBool,
}

impl EarlyLock {
    fn got(&self) -> MutexGuard<'_, Option<(TakenLock, Instant)>> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, lock: TakenLock, until: Instant) {
        *self.got() = Some((lock, until));
        self.is_got.store(true, SeqCst);
    }

    /// Takes it out where `may`, and has `end` end it before anybody else looks.
    fn end(&self, may: impl FnOnce(Instant) -> bool, end: impl FnOnce(TakenLock)) -> bool {
        let mut got = self.got();
        let Some((lock, _)) = got.take_if(|(_, until)| may(*until)) else { return false };
        self.is_got.store(false, SeqCst);
        end(lock);
        true
    }
}

impl Connection {
    /// Tries for the write lock while the busy handler sleeps.
    pub(super) fn take_early(self: &Arc<Self>, take: impl FnOnce() -> Option<TakenLock>) -> Tried {
        let Some(lock) = take() else { return Tried::Busy };
        self.early_lock.put(lock, Instant::now() + RESERVATION);
        if self.early_lock.is_watched.swap(true, SeqCst) {
            return Tried::Got;
        }
        let connection = Arc::downgrade(self);
        let watch = move || connection.upgrade()?.watch_early_lock();
        if self.database.helpers.lock_watch.order(Instant::now() + RESERVATION, watch) {
            return Tried::Got;
        }
        self.early_lock.is_watched.store(false, SeqCst);
        self.early_lock.end(|_| true, drop);
        Tried::Not
    }

    /// SQLite asks for the write lock: true where the connection has it already.
    pub fn use_early_lock(&self) -> bool {
        self.early_lock.is_got.load(SeqCst) && self.early_lock.end(|_| true, TakenLock::keep)
    }

    /// SQLite does not ask for the write lock next: what the connection got is given back.
    pub fn drop_early_lock(&self) {
        self.drop_early_lock_if(|_| true);
    }

    fn drop_early_lock_if(&self, may: impl FnOnce(Instant) -> bool) {
        if self.early_lock.is_got.load(SeqCst) && !self.database.origin.is_parent() {
            self.database.queue.give_back(self.id, || self.early_lock.end(may, drop));
        }
    }

    /// Gives back what lapsed; returns when to look again, `None` where nothing is left to look after.
    fn watch_early_lock(&self) -> Option<Instant> {
        let now = Instant::now();
        self.drop_early_lock_if(|until| until <= now);
        let watches = self.early_lock.is_got.load(SeqCst) || {
            self.early_lock.is_watched.store(false, SeqCst);
            // What came in between ordered no watch.
            self.early_lock.is_got.load(SeqCst) && !self.early_lock.is_watched.swap(true, SeqCst)
        };
        watches.then(|| now + RESERVATION)
    }
}
