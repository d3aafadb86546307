//! Counts of one database in this process, for `waldio_status`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::histogram::Histogram;

/// All start at zero when a process first opens the database, and are gone with its last connection.
#[derive(Debug, Default)]
pub struct Stats {
    /// Transactions that ended with a commit frame.
    pub commits: AtomicU64,
    /// Durable writes and fdatasyncs of the log.
    pub flushes: AtomicU64,
    /// Of those, single durable writes.
    pub durable_writes: AtomicU64,
    /// How long each flush took, its write included where it is one call.
    pub flush_times: Histogram,
    /// Bytes that SQLite wrote to the log.
    pub bytes_from_sqlite: AtomicU64,
    /// Commits that no delay makes durable and no sync: `synchronous=NORMAL` or OFF, or `waldio_durability=normal`.
    pub unsynced_commits: AtomicU64,
    /// SQLite asked for no sync of the newest commit, and it is one of them.
    pub is_newest_unsynced: AtomicBool,
    /// Bytes that waldio wrote to the log, whole blocks and reserved space included.
    pub bytes_written: AtomicU64,
    /// Writes to the log: system calls.
    pub writes: AtomicU64,
    /// How often space was reserved ahead.
    pub growths: AtomicU64,
    /// The flushes for that, beside the commits.
    pub growth_flushes: AtomicU64,
    /// Commits that were published before their flush, to share it with others.
    pub shared_commits: AtomicU64,
    /// Flushes for those.
    pub shared_flushes: AtomicU64,
    /// Commits that left their flush to the delayed flush of `waldio_group`.
    pub delayed_commits: AtomicU64,
    /// Flushes when its time was over.
    pub delayed_flushes: AtomicU64,
    /// Of all flushes those of the whole file system: another process began the log anew, and may not have synced the database.
    pub filesystem_flushes: AtomicU64,
    /// The most commits that one flush made durable.
    pub largest_group: AtomicU64,
    /// How long connections stood in the queue for the write lock, from the first BUSY to the lock.
    pub queue_waits: Histogram,
    /// How often the write lock was kept for the first in the queue.
    pub hand_overs: AtomicU64,
    /// How often another process was woken because the write lock was given back.
    pub process_hand_overs: AtomicU64,
    /// Checkpoints that had frames to copy.
    pub checkpoints: AtomicU64,
    /// How long new transactions were held back for one of those.
    pub barrier_times: Histogram,
    /// How often that was in vain: a reader stayed.
    pub barriers_failed: AtomicU64,
    /// How long readers waited until what they see was durable.
    pub read_waits: Histogram,
    /// How often a checkpoint was stopped because the log had been reset under it.
    pub resets_caught: AtomicU64,
    /// Errors of the log's writes and syncs.
    pub errors: AtomicU64,
    /// The latest of them.
    pub last_error: Mutex<Option<String>>,
}

impl Stats {
    /// Adds to a count.
    pub fn add(count: &AtomicU64, amount: u64) {
        count.fetch_add(amount, Relaxed);
    }

    /// Counts an error and keeps its text.
    pub fn error(&self, text: &str) {
        Self::add(&self.errors, 1);
        if let Ok(mut last) = self.last_error.lock() {
            *last = Some(text.to_owned());
        }
    }
}
