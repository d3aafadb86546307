//! What SQLite calls and sees. Top to bottom:
//!
//! ```text
//! extension             loaded: registers the VFS, finds what memory and library it has
//! vfs                   SQLite opens, reads, writes, locks, syncs: each call goes to a connection, or to the base VFS
//! status                one row of `waldio_status` for each thing a database counts
//! advice                what waldio does not do for a database, and what would change that
//! pinned_log            whether a reader keeps the log from being emptied
//! advice_tests          tests of advice for what no test machine has
//! delayed_flush_tests   tests of `waldio_group` that open their log as `process` does
//! process               databases that this process has open, by device and inode
//! ```

pub(crate) mod extension;
pub(crate) mod vfs;
pub(crate) mod status;
mod advice;
mod pinned_log;
#[cfg(test)]
#[path = "tests/advice.rs"]
mod advice_tests;
#[cfg(test)]
#[path = "tests/delayed_flush.rs"]
mod delayed_flush_tests;
pub(crate) mod process;
