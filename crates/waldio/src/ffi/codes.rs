//! SQLite's numbers that waldio uses, by SQLite's own names. Source: sqlite3.h of 3.40.1.
#![allow(missing_docs, reason = "each constant is documented in sqlite3.h under the same name")]

use std::ffi::c_int;

pub const SQLITE_OK: c_int = 0;
pub const SQLITE_ERROR: c_int = 1;
pub const SQLITE_BUSY: c_int = 5;
pub const SQLITE_BUSY_SNAPSHOT: c_int = SQLITE_BUSY | 2 << 8;
pub const SQLITE_NOMEM: c_int = 7;
pub const SQLITE_IOERR: c_int = 10;
pub const SQLITE_NOTFOUND: c_int = 12;
pub const SQLITE_FULL: c_int = 13;
pub const SQLITE_CANTOPEN: c_int = 14;
pub const SQLITE_OK_LOAD_PERMANENTLY: c_int = 1 << 8;
pub const SQLITE_IOERR_READ: c_int = SQLITE_IOERR | 1 << 8;
pub const SQLITE_IOERR_SHORT_READ: c_int = SQLITE_IOERR | 2 << 8;
pub const SQLITE_IOERR_WRITE: c_int = SQLITE_IOERR | 3 << 8;
pub const SQLITE_IOERR_FSYNC: c_int = SQLITE_IOERR | 4 << 8;
pub const SQLITE_IOERR_TRUNCATE: c_int = SQLITE_IOERR | 6 << 8;
pub const SQLITE_IOERR_FSTAT: c_int = SQLITE_IOERR | 7 << 8;
pub const SQLITE_IOERR_NOMEM: c_int = SQLITE_IOERR | 12 << 8;

pub const SQLITE_LOCK_NONE: c_int = 0;
pub const SQLITE_LOCK_SHARED: c_int = 1;
pub const SQLITE_LOCK_RESERVED: c_int = 2;
pub const SQLITE_LOCK_EXCLUSIVE: c_int = 4;

pub const SQLITE_OPEN_READONLY: c_int = 0x1;
pub const SQLITE_OPEN_READWRITE: c_int = 0x2;
pub const SQLITE_OPEN_CREATE: c_int = 0x4;
pub const SQLITE_OPEN_MAIN_DB: c_int = 0x100;
pub const SQLITE_OPEN_MAIN_JOURNAL: c_int = 0x800;
pub const SQLITE_OPEN_SUPER_JOURNAL: c_int = 0x4000;
pub const SQLITE_OPEN_WAL: c_int = 0x8_0000;

pub const SQLITE_FCNTL_LOCKSTATE: c_int = 1;
pub const SQLITE_FCNTL_LAST_ERRNO: c_int = 4;
pub const SQLITE_FCNTL_CHUNK_SIZE: c_int = 6;
pub const SQLITE_FCNTL_PERSIST_WAL: c_int = 10;
pub const SQLITE_FCNTL_VFSNAME: c_int = 12;
pub const SQLITE_FCNTL_PRAGMA: c_int = 14;
pub const SQLITE_FCNTL_HAS_MOVED: c_int = 20;
pub const SQLITE_FCNTL_COMMIT_PHASETWO: c_int = 22;
pub const SQLITE_FCNTL_LOCK_TIMEOUT: c_int = 34;
pub const SQLITE_FCNTL_RESERVE_BYTES: c_int = 38;
pub const SQLITE_FCNTL_CKPT_START: c_int = 39;
pub const SQLITE_FCNTL_EXTERNAL_READER: c_int = 40;
/// Ours (SQLite leaves numbers above 100 to us): how many bytes a new database shall reserve at the end of each page.
pub const FCNTL_RESERVED_WANTED: c_int = 0x7761_6c01;

pub const SQLITE_SYNC_NORMAL: c_int = 2;

pub const SQLITE_SHM_UNLOCK: c_int = 1;
pub const SQLITE_SHM_LOCK: c_int = 2;
pub const SQLITE_SHM_SHARED: c_int = 4;
pub const SQLITE_SHM_EXCLUSIVE: c_int = 8;

/// Lock slots of the wal-index. Source: wal.c, `WAL_WRITE_LOCK` and its neighbours.
pub const WAL_WRITE_LOCK: c_int = 0;
pub const WAL_CKPT_LOCK: c_int = 1;
pub const WAL_RECOVER_LOCK: c_int = 2;
pub const WAL_READ_LOCK_0: c_int = 3;
/// Read locks 1 to 4, those of readers that use the log: who has them all begins the log anew.
pub const WAL_LOG_READ_LOCKS: LockRange = LockRange { slot: WAL_READ_LOCK_0 + 1, count: 4 };

/// Neighbouring lock slots of the wal-index, as `xShmLock` takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockRange {
    /// The first.
    pub slot: c_int,
    /// How many.
    pub count: c_int,
}

impl LockRange {
    /// One slot alone.
    pub const fn one(slot: c_int) -> LockRange {
        LockRange { slot, count: 1 }
    }
}
