//! How a connection waits for the write lock: in the queue, while SQLite's busy handler believes that it sleeps.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use super::Connection;
use crate::ffi::taken_lock::TakenLock;
use crate::threads::primitives::{now, thread};
use crate::write_lock::busy_timeout::{self, BusyTimeout, Nap};
use crate::write_lock::lock_queue::LockQueue;
use crate::write_lock::queue_state::{Tried, Turn};

impl Connection {
    /// How its busy handler waits.
    pub fn busy_timeout(&self) -> MutexGuard<'_, BusyTimeout> {
        self.busy_timeout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The write lock is wanted: whether to ask the base VFS for it.
    pub fn ask_to_write(&self) -> Turn {
        if !self.queues() {
            return Turn::Try;
        }
        let in_vain = self.state().is_ok_and(|state| state.is_stale());
        let ask = if in_vain { LockQueue::ask_in_vain } else { LockQueue::ask };
        let turn = ask(&self.database.queue, self.id, &self.sleeper, now());
        if turn != Turn::Try {
            self.refused();
        }
        turn
    }

    /// The base VFS refused the write lock. True where the connection stands in the queue now.
    pub fn write_refused(&self) -> bool {
        let queues = self.queues();
        if queues {
            self.database.queue.refused(self.id, &self.sleeper, now());
            self.refused();
        }
        queues
    }

    fn refused(&self) {
        let Ok(mut state) = self.state() else { return };
        self.busy_timeout().refused(state.snapshot.is_some());
        state.reads.asked_to_write();
    }

    pub(super) fn queues(&self) -> bool {
        self.shares_commits() && !self.blocks_in_base.load(Relaxed)
    }

    /// SQLite gave the write lock back: its transaction is over.
    pub fn transaction_ended(&self) {
        busy_timeout::transaction_ended();
        self.write_lock_is_free();
        self.write_released();
    }

    /// The write lock was given back to the base VFS.
    pub fn write_released(&self) {
        self.database.queue.released(self.id);
    }

    /// A connection that was just refused the write lock sleeps for `nominal`: its busy handler's nap, if it is that.
    pub fn busy_nap(&self, nominal: Duration) -> Option<Nap> {
        self.busy_timeout().nap(now(), nominal)
    }

    /// The busy handler naps in the queue: until the connection may write, or until the nap is over. `take` tries for the write
    /// lock; `None`: SQLite has to ask for it.
    pub fn nap(self: &Arc<Self>, nap: &Nap, take: Option<impl Fn() -> Option<TakenLock>>) {
        if nap.is_last {
            thread::sleep(nap.until.saturating_duration_since(now()));
        } else {
            let take = || take.as_ref().map_or(Tried::Not, |take| self.take_early(take));
            self.database.queue.sleep(self.id, &self.sleeper, nap, take);
        }
        if let Ok(mut state) = self.state() {
            state.reads.napped();
        }
    }

    /// `SQLITE_FCNTL_LOCK_TIMEOUT`: SQLite waits inside the base VFS, where our queue would only be in the way.
    pub fn set_lock_timeout(&self, milliseconds: i32) {
        if milliseconds != 0 {
            self.blocks_in_base.store(true, Relaxed);
        }
    }

    /// The connection is about to close. In a child of fork it stands in no queue, and threads that are gone may hold its lock.
    pub fn leave(&self) {
        if self.database.origin.is_parent() {
            return;
        }
        self.note_mapped(false);
        self.database.queue.forget(self.id);
    }
}
