//! One connection's database file and its log. Top to bottom:
//!
//! ```text
//! handle                  SQLite's locks and barriers: who may write, when the log is written, when it is flushed
//! handle/copying          its checkpoint copies frames: what is durable before that, and behind it
//! handle/checkpoints      the barrier: closed for its checkpoint, or waited at
//! handle/early_lock       the write lock, got while the busy handler slept
//! handle/failed_commits   a COMMIT that failed, and is published all the same, is taken back
//! handle/reading          the snapshot of a read transaction, and the flush that this needs
//! handle/settings         options that it asked for, and its pragmas
//! log_file                SQLite's reads, writes and syncs of the log: what is in memory, what in the file
//! log_file/writing_out    writes the frames: as one direct durable write, or through the page cache
//! log_file/sharing        leaves a commit's flush to others, and waits for it
//! log_file/taking_back    makes a commit none that failed
//! transaction             where the transaction under way began, how far its frames go
//! ```

mod handle;
pub(crate) mod log_file;
mod transaction;

#[cfg(test)]
pub(crate) use handle::tests_connection;
pub use handle::{Connection, Granted, Way};
