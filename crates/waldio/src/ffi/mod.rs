//! The border to C: SQLite's structures, our calls into it, its shared memory. Top to bottom:
//!
//! ```text
//! memory           a static reserve for when malloc has nothing left; SQLite is told `SQLITE_NOMEM`
//! sync_observer    tells SQLite's own test program of each sync of a log
//! guard            turns a panic into a result code before it reaches C
//! kernel           system calls that no safe library offers
//! wal_index        the few fields of SQLite's wal-index, in shared memory, that waldio reads
//! taken_lock       locks of the wal-index that waldio takes from the base VFS itself
//! base_vfs         calls to the VFS below ours, and its files
//! static_table     the table of SQLite's functions where SQLite is linked in
//! own_connection   a connection that waldio opens itself, to convert a database
//! mutexes          SQLite's mutexes: whether it has any, and the one for what two threads must not do at once
//! api              SQLite's functions, called through the table that it handed to us
//! types, codes     the shapes of SQLite's C structures; its numbers, by its own names
//! ```

#[cfg_attr(
    feature = "static-link",
    allow(dead_code, reason = "a program that links waldio has its own allocator")
)]
pub(crate) mod memory;
pub(crate) mod sync_observer;
pub(crate) mod guard;
pub mod kernel;
pub mod wal_index;
pub(crate) mod taken_lock;
pub(crate) mod base_vfs;
#[cfg(feature = "static-link")]
pub(crate) mod static_table;
pub(crate) mod own_connection;
mod mutexes;
pub mod api;
pub mod types;
pub mod codes;
