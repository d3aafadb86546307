//! Locks: when they count, and what they say.
//!
//! A lock counts from when it was granted, which is the end of its call:
//!
//! ```text
//! A  lock ------------ write  write  unlock
//! B              lock ...........................| granted
//! ```
//!
//! Calls stand in the recording by when they began. B's lock there would stand in the midst of A's transaction.
//!
//! Source: os_unix.c and wal.c of SQLite 3.40 to 3.50 (unixUnlock, sqlite3WalCheckpoint, sqlite3WalClose).

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::UNLOCKED;
use crate::recording::page_transactions::database_files::PENDING_BYTE;

const LOCK_READ: u32 = 0;
const LOCK_WRITE: u32 = 1;
/// The byte of a database whose lock a writer holds, and the first of those that readers hold (os_unix.c).
const RESERVED_BYTE: u64 = PENDING_BYTE + 1;
const SHARED_FIRST: u64 = PENDING_BYTE + 2;
/// The byte of `-shm` whose lock a writer holds, and that of who checkpoints (wal.c).
const LOG_WRITE_LOCK: u64 = 120;
const CHECKPOINT_LOCK: u64 = 121;
/// That of who reads a log whose index is lost.
const RECOVERY_LOCK: u64 = 122;

/// What a lock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockSense {
    /// A transaction begins.
    Begins,
    /// The transaction is over: its connection goes back to a reader's lock. In exclusive locking mode none does.
    IsOver,
    /// The lock that bounds it is given back: at its end, or where a connection in exclusive locking mode closes.
    Ends,
    /// Who has it may checkpoint.
    Checkpoints,
    Nothing,
}

impl LockSense {
    /// Of a lock on a database.
    pub fn of_database(call: &RecordedCall) -> Self {
        match call.flags {
            LOCK_WRITE if call.offset == RESERVED_BYTE => Self::Begins,
            LOCK_WRITE if has(call, SHARED_FIRST) => Self::Checkpoints,
            LOCK_READ if has(call, SHARED_FIRST) => Self::IsOver,
            UNLOCKED if has(call, RESERVED_BYTE) => Self::Ends,
            _ => Self::Nothing,
        }
    }

    /// Of a lock on a wal-index.
    pub fn of_log(call: &RecordedCall) -> Self {
        match call.flags {
            LOCK_WRITE if call.offset == LOG_WRITE_LOCK => Self::Begins,
            LOCK_WRITE if has(call, CHECKPOINT_LOCK) => Self::Checkpoints,
            UNLOCKED if has(call, LOG_WRITE_LOCK) => Self::Ends,
            _ => Self::Nothing,
        }
    }
}

/// Whether a lock on a wal-index is that of a recovery: true where it is taken, false where it is given back.
pub fn recovers(call: &RecordedCall) -> Option<bool> {
    has(call, RECOVERY_LOCK).then_some(call.flags == LOCK_WRITE)
}

/// Whether a lock on a wal-index is that of a checkpoint: true where it is taken, false where it is given back.
pub fn checkpoints(call: &RecordedCall) -> Option<bool> {
    has(call, CHECKPOINT_LOCK).then_some(call.flags == LOCK_WRITE)
}

fn has(call: &RecordedCall, byte: u64) -> bool {
    call.locked_bytes().contains(&byte)
}

/// The places of calls in their recording, by effect.
pub fn by_effect(calls: &[RecordedCall]) -> Vec<usize> {
    let mut order = Vec::with_capacity(calls.len());
    // Locks that are asked for, the one that is granted first at the end.
    let mut waiting: Vec<usize> = Vec::new();
    for (place, call) in calls.iter().enumerate() {
        // A thread's next call comes behind its lock, however its times were rounded.
        let is_granted = |lock: &RecordedCall| lock.end_ns() <= call.begin_ns || lock.thread == call.thread;
        while let Some(first) = waiting.iter().rposition(|lock| is_granted(&calls[*lock])) {
            order.extend(waiting.drain(first..).rev());
        }
        if call.kind == CallKind::Lock && call.flags != UNLOCKED {
            let behind = waiting.partition_point(|lock| calls[*lock].end_ns() > call.end_ns());
            waiting.insert(behind, place);
        } else {
            order.push(place);
        }
    }
    order.extend(waiting.into_iter().rev());
    order
}
