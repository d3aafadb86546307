//! Methods of a database file. Top to bottom:
//!
//! ```text
//! methods    reads, writes, locks of the file: each asks the connection first, then the base VFS
//! wal_index_locks  the locks of the wal-index: the same
//! controls   file controls: pragmas, the two phases of a commit, whether the file was moved
//! wal_index_file  the file of the wal-index, on Btrfs
//! chunks     how a large file grows, and what it is cut to
//! ```

pub(super) mod methods;
mod wal_index_locks;
mod controls;
mod chunks;
mod wal_index_file;
