//! What was done to a simulated disk, in order: the input of every crash state.
//!
//! A record names files by inode, because a name may point to another file later. `begin` and `end` are moments of one
//! clock: a sync covers a write only when the write's `end` is before the sync's `begin`.

use std::path::PathBuf;
use std::sync::Arc;

/// A moment on the clock of a simulated disk; 0 is before its first operation.
pub type Tick = u64;
/// Identity of a file, whatever its name is.
pub type Inode = u64;

/// How a write goes to the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFlags {
    /// Through the page cache.
    Cached,
    /// Past the page cache, undecided until a sync.
    Direct,
    /// Past the page cache, on the medium when it returns.
    Durable,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A new file and its name.
    Create {
        /// Its name.
        path: PathBuf,
        /// Its identity.
        inode: Inode,
    },
    /// `to` names what `from` named.
    Rename {
        /// The old name, gone afterwards.
        from: PathBuf,
        /// The new name.
        to: PathBuf,
        /// The file.
        inode: Inode,
    },
    /// A name is gone.
    Remove {
        /// The name.
        path: PathBuf,
        /// The file it named.
        inode: Inode,
    },
    /// The names in a directory were synced.
    SyncDir {
        /// The directory.
        dir: PathBuf,
    },
    /// Bytes were written; of a failed write, those that reached the page cache.
    Write {
        /// The file.
        inode: Inode,
        /// Of the first byte.
        offset: u64,
        /// The bytes.
        data: Arc<[u8]>,
        /// The way they went.
        flags: WriteFlags,
    },
    /// The size was set.
    Truncate {
        /// The file.
        inode: Inode,
        /// The new size.
        size_bytes: u64,
    },
    /// The file was made longer with zeros.
    Extend {
        /// The file.
        inode: Inode,
        /// The new size.
        size_bytes: u64,
        /// Range that was zeroed although another writer had bytes in it: only an unsafe fill does that.
        overwritten: Option<(u64, u64)>,
    },
    /// fdatasync.
    SyncData {
        /// The file.
        inode: Inode,
    },
    /// A note of the test, for its messages.
    Mark(String),
    /// The test was told that everything up to this number is durable.
    Ack(u64),
}

/// One operation with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When it was asked for.
    pub begin: Tick,
    /// When it returned.
    pub end: Tick,
    /// What it was.
    pub op: Op,
    /// Whether it returned an error.
    pub failed: bool,
}

impl Record {
    /// True where a crash just before the end of this operation is worth enumerating: everything that a crash at an
    /// earlier moment since the last such record could leave is among the states here.
    pub fn is_flush(&self) -> bool {
        match &self.op {
            Op::SyncDir { .. } | Op::SyncData { .. } => true,
            Op::Write { flags, .. } => *flags == WriteFlags::Durable,
            _ => false,
        }
    }
}
