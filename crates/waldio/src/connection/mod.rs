//! One connection's database file and its log. Top to bottom:
//!
//! ```text
//! handle        SQLite's locks and barriers: who may write, when the log is written, when it is flushed
//! log_file      SQLite's reads and writes of the log: what is in memory, what in the file
//! transaction   where the transaction under way began, how far its frames go
//! ```

mod handle;
pub(crate) mod log_file;
mod transaction;

#[cfg(test)]
pub(crate) use handle::tests_connection;
pub use handle::{Connection, Granted, Way};
