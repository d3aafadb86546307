//! The write lock that a connection got while its busy handler slept, before SQLite asks for it.
//!
//! SQLite gives up its snapshot before it calls the busy handler, and takes a new one before it asks again. A process that commits in a
//! loop leaves the lock free for microseconds, and has it again by then. So the connection takes it in its sleep. SQLite then reads the
//! newest snapshot under it, and asks for a lock that the connection has.
//!
//! ```text
//! unusable: no wal-index is mapped
//! free -> got in a nap -+-> SQLite asks: held
//!   |                   +-> SQLite does anything that leads nowhere near that: given back
//!   |                   +-> 10 ms: given back by a thread, whatever the connection does
//!   +-> held by SQLite, or by waldio itself: no nap takes it
//! ```
//!
//! The base VFS grants a lock twice to one file, and one release ends both. A nap may be an application's own sleep that looks like the
//! busy handler's, while another thread uses or closes the connection. So the state is one, behind one mutex, which is held
//! while a nap takes the lock.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::Connection;
use crate::ffi::taken_lock::TakenLock;
use crate::write_lock::queue_state::{RESERVATION, Tried};

/// Who has the write lock, as far as one connection's file goes.
#[derive(Debug, Default)]
enum Holder {
    /// Nobody, and there is no wal-index.
    #[default]
    Unusable,
    /// Nobody.
    Free,
    /// The connection, and SQLite does not know. It may keep it until then.
    Early(TakenLock, Instant),
    /// SQLite, or waldio itself; or they are asking for it.
    Held,
}

/// The write lock of one connection's file.
#[derive(Debug, Default)]
pub(super) struct EarlyLock {
    holder: Mutex<Holder>,
    /// `Holder::Early`, for a look without the mutex.
    is_early: AtomicBool,
    /// The thread looks after it.
    is_watched: AtomicBool,
}

impl EarlyLock {
    fn holder(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries for it where it is free.
    fn take(&self, take: impl FnOnce() -> Option<TakenLock>) -> Tried {
        let mut holder = self.holder();
        if !matches!(*holder, Holder::Free) {
            return Tried::Not;
        }
        let Some(lock) = take() else { return Tried::Busy };
        *holder = Holder::Early(lock, Instant::now() + RESERVATION);
        self.is_early.store(true, SeqCst);
        Tried::Got
    }

    /// SQLite, or waldio, asks the base VFS for it: true where it came early and is theirs.
    fn hold(&self) -> bool {
        let held = std::mem::replace(&mut *self.holder(), Holder::Held);
        self.is_early.store(false, SeqCst);
        let Holder::Early(lock, _) = held else { return false };
        lock.keep();
        true
    }

    /// True where the connection has it, or asks for it.
    fn is_had(&self) -> bool {
        !matches!(*self.holder(), Holder::Free | Holder::Unusable)
    }

    /// It was given back, or refused.
    fn release(&self) {
        let mut holder = self.holder();
        if matches!(*holder, Holder::Held) {
            *holder = Holder::Free;
        }
    }

    /// What came early is given back, where `may`, before anybody else looks; false where there was nothing.
    fn give_back(&self, may: impl FnOnce(Instant) -> bool) -> bool {
        let mut holder = self.holder();
        if !matches!(*holder, Holder::Early(_, until) if may(until)) {
            return false;
        }
        if let Holder::Early(lock, _) = std::mem::replace(&mut *holder, Holder::Free) {
            lock.give_back();
        }
        self.is_early.store(false, SeqCst);
        true
    }
}

impl Connection {
    /// True where this connection has the write lock, or asks for it; perhaps, in a child of fork.
    pub fn may_have_write_lock(&self) -> bool {
        self.database.origin.is_parent() || self.early_lock.is_had()
    }

    /// A wal-index is mapped, or will not be any more.
    pub fn note_mapped(&self, is_mapped: bool) {
        if self.database.origin.is_parent() {
            return;
        }
        if is_mapped {
            let mut holder = self.early_lock.holder();
            if matches!(*holder, Holder::Unusable) {
                *holder = Holder::Free;
            }
            return;
        }
        self.database.queue.give_back(self.id, || {
            let gave_back = self.early_lock.give_back(|_| true);
            *self.early_lock.holder() = Holder::Unusable;
            gave_back
        });
    }

    /// Tries for the write lock while the busy handler sleeps.
    pub(super) fn take_early(self: &Arc<Self>, take: impl FnOnce() -> Option<TakenLock>) -> Tried {
        let tried = self.early_lock.take(take);
        if tried != Tried::Got || self.early_lock.is_watched.swap(true, SeqCst) {
            return tried;
        }
        let connection = Arc::downgrade(self);
        let watch = move || connection.upgrade()?.watch_early_lock();
        if self.database.helpers.lock_watch.order(Instant::now() + RESERVATION, watch) {
            return Tried::Got;
        }
        self.early_lock.is_watched.store(false, SeqCst);
        self.early_lock.give_back(|_| true);
        Tried::Not
    }

    /// The base VFS is about to be asked for the write lock: true where it is granted already. In a child of fork its parent's is not.
    pub fn hold_write_lock(&self) -> bool {
        !self.database.origin.is_parent() && self.early_lock.hold()
    }

    /// The base VFS refused it, or has it back.
    pub fn write_lock_is_free(&self) {
        if !self.database.origin.is_parent() {
            self.early_lock.release();
        }
    }

    /// True where the connection has it, and SQLite does not know.
    pub(super) fn has_early_lock(&self) -> bool {
        self.early_lock.is_early.load(SeqCst)
    }

    /// SQLite does not ask for the write lock next: what came early is given back.
    pub fn drop_early_lock(&self) {
        self.drop_early_lock_if(|_| true);
    }

    fn drop_early_lock_if(&self, may: impl FnOnce(Instant) -> bool) {
        if self.has_early_lock() && !self.database.origin.is_parent() {
            self.database.queue.give_back(self.id, || self.early_lock.give_back(may));
        }
    }

    /// Gives back what lapsed; returns when to look again, `None` where nothing is left to look after.
    fn watch_early_lock(&self) -> Option<Instant> {
        let now = Instant::now();
        self.drop_early_lock_if(|until| until <= now);
        let watches = self.has_early_lock() || {
            self.early_lock.is_watched.store(false, SeqCst);
            // What came in between ordered no watch.
            self.has_early_lock() && !self.early_lock.is_watched.swap(true, SeqCst)
        };
        watches.then(|| now + RESERVATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::barrier::CLOSED_MAX;

    #[test]
    fn nobody_takes_what_is_held_and_what_came_early_goes_to_whoever_asks() {
        let early = EarlyLock::default();
        let free = || Some(TakenLock::without_file());
        assert_eq!(early.take(free), Tried::Not, "there is no wal-index");
        *early.holder() = Holder::Free;
        assert_eq!((early.take(|| None), early.take(free)), (Tried::Busy, Tried::Got));
        assert_eq!(early.take(free), Tried::Not, "it has it");
        assert_eq!((early.hold(), early.hold()), (true, false));
        assert_eq!(early.take(free), Tried::Not, "SQLite has it");
        assert!(!early.give_back(|_| true), "SQLite has it");
        early.release();
        assert_eq!(early.take(free), Tried::Got);
        assert!(!early.give_back(|until| until < Instant::now()), "it did not lapse yet");
        early.release();
        assert!(early.is_early.load(SeqCst), "it is nobody's to release but its own");
        assert!(early.give_back(|_| true) && !early.is_early.load(SeqCst));
        assert_eq!(early.take(|| None), Tried::Busy, "it is free again");
    }

    #[test]
    fn who_writes_next_is_not_held_at_the_barrier() {
        let connection = crate::connection::tests_connection();
        connection.note_mapped(true);
        assert_eq!(connection.early_lock.take(|| Some(TakenLock::without_file())), Tried::Got);
        assert!(connection.database.barrier.close(crate::threads::primitives::now(), |_| true));
        let waits = || {
            let began = Instant::now();
            connection.pass_barrier();
            began.elapsed() >= CLOSED_MAX
        };
        // A machine that stands still for so long proves nothing: once in three is enough.
        assert!((0..3).any(|_| !waits()), "the checkpoint would wait for it, and it for the checkpoint");
        connection.drop_early_lock();
        assert!(waits());
        connection.note_mapped(false);
        assert_eq!(connection.early_lock.take(|| None), Tried::Not, "there is no wal-index any more");
    }
}
