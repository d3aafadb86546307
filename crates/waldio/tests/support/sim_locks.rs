//! Locks and shared memory of one simulated database, among the connections of one process.
//!
//! Rules as in SQLite's unix VFS (os_unix.c, unixLock and unixShmLock), without the system calls: none of this
//! survives a crash. Shared memory is made of atomics because SQLite writes to it through a pointer that it keeps.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::AtomicU64;

use libsqlite3_sys::{
    SQLITE_BUSY, SQLITE_LOCK_EXCLUSIVE, SQLITE_LOCK_NONE, SQLITE_LOCK_RESERVED, SQLITE_LOCK_SHARED,
    SQLITE_OK, SQLITE_SHM_EXCLUSIVE, SQLITE_SHM_SHARED, SQLITE_SHM_UNLOCK,
};

/// Size of one region of shared memory, in bytes (SQLite's WALINDEX_PGSZ).
pub const REGION_BYTES: usize = 32_768;
/// xShmLock's number of the checkpoint lock.
const LOCK_CHECKPOINT: u32 = 1;

/// Identity of an open database file.
pub type HandleId = u64;

/// Locks and shared memory of one database.
#[derive(Default)]
pub struct Share {
    levels: BTreeMap<HandleId, c_int>,
    pending: Option<HandleId>,
    shm: BTreeMap<HandleId, ShmLocks>,
    regions: Vec<Box<[AtomicU64]>>,
}

#[derive(Default, Clone, Copy)]
struct ShmLocks {
    shared: u32,
    exclusive: u32,
}

impl Share {
    fn others(&self, own: HandleId) -> impl Iterator<Item = c_int> {
        self.levels.iter().filter(move |(id, _)| **id != own).map(|(_, level)| *level)
    }

    /// xLock.
    pub fn lock(&mut self, own: HandleId, level: c_int) -> c_int {
        let held = self.levels.get(&own).copied().unwrap_or(SQLITE_LOCK_NONE);
        if held >= level {
            return SQLITE_OK;
        }
        let highest = self.others(own).max().unwrap_or(SQLITE_LOCK_NONE);
        let pending_elsewhere = self.pending.is_some_and(|id| id != own);
        let busy = match level {
            SQLITE_LOCK_SHARED => pending_elsewhere || highest == SQLITE_LOCK_EXCLUSIVE,
            SQLITE_LOCK_RESERVED => highest >= SQLITE_LOCK_RESERVED,
            _ if pending_elsewhere => true,
            _ => {
                self.pending = Some(own);
                highest > SQLITE_LOCK_NONE
            }
        };
        if busy {
            return SQLITE_BUSY;
        }
        self.levels.insert(own, level);
        SQLITE_OK
    }

    /// xUnlock.
    pub fn unlock(&mut self, own: HandleId, level: c_int) {
        if self.pending == Some(own) {
            self.pending = None;
        }
        let held = self.levels.get(&own).copied().unwrap_or(SQLITE_LOCK_NONE);
        self.levels.insert(own, held.min(level));
        if level == SQLITE_LOCK_NONE {
            self.levels.remove(&own);
        }
    }

    /// xCheckReservedLock.
    pub fn is_reserved(&self) -> bool {
        self.levels.values().any(|level| *level >= SQLITE_LOCK_RESERVED)
    }

    /// Whether one connection has the database for itself, as during the last close.
    pub fn is_exclusive(&self) -> bool {
        self.levels.values().any(|level| *level == SQLITE_LOCK_EXCLUSIVE)
    }

    /// Whether a checkpoint is under way in some connection.
    pub fn is_checkpointing(&self) -> bool {
        self.shm.values().any(|locks| locks.exclusive & 1 << LOCK_CHECKPOINT != 0)
    }

    /// xShmMap: the region, or none where it does not exist and shall not.
    pub fn map(&mut self, own: HandleId, index: usize, extend: bool) -> Option<&[AtomicU64]> {
        self.shm.entry(own).or_default();
        while extend && self.regions.len() <= index {
            self.regions.push((0..REGION_BYTES / 8).map(|_| AtomicU64::new(0)).collect());
        }
        self.regions.get(index).map(|region| &**region)
    }

    /// xShmLock.
    pub fn shm_lock(&mut self, own: HandleId, offset: c_int, count: c_int, flags: c_int) -> c_int {
        let mask = ((1_u32 << count) - 1) << offset;
        let mut others = self.shm.iter().filter(|(id, _)| **id != own);
        // The flags are bits, with one more for "lock".
        let busy = if flags & SQLITE_SHM_UNLOCK != 0 {
            false
        } else if flags & SQLITE_SHM_SHARED != 0 {
            others.any(|(_, locks)| locks.exclusive & mask != 0)
        } else {
            others.any(|(_, locks)| (locks.exclusive | locks.shared) & mask != 0)
        };
        if busy {
            return SQLITE_BUSY;
        }
        let locks = self.shm.entry(own).or_default();
        if flags & SQLITE_SHM_UNLOCK != 0 {
            locks.shared &= !mask;
            locks.exclusive &= !mask;
        } else if flags & SQLITE_SHM_EXCLUSIVE != 0 {
            locks.exclusive |= mask;
        } else {
            locks.shared |= mask;
        }
        SQLITE_OK
    }

    /// xShmUnmap: the memory goes with its last user.
    pub fn unmap(&mut self, own: HandleId) {
        self.shm.remove(&own);
        if self.shm.is_empty() {
            self.regions.clear();
        }
    }

    /// xClose of a database file.
    pub fn close(&mut self, own: HandleId) {
        self.unlock(own, SQLITE_LOCK_NONE);
        self.unmap(own);
    }

    /// Whether nobody uses this any more.
    pub fn is_unused(&self) -> bool {
        self.levels.is_empty() && self.shm.is_empty()
    }
}
