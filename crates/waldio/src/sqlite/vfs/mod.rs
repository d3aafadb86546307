//! SQLite's calls into us. Top to bottom:
//!
//! ```text
//! sql           tables and functions: waldio_status, waldio_register, waldio_convert
//! vfs_methods   opens, deletes, sleeps: what is about no open file
//! main_file     methods of a database file: its locks, its wal-index, its file controls
//! log_methods   methods of a log file
//! embedding     which layout a log has, and how it is changed; private_shm: the wal-index of the embedded one
//! ```

pub(crate) mod sql;
pub(crate) mod vfs_methods;
mod main_file;
mod log_methods;
mod last_close;
mod taking_back;
mod handle;
mod embedding;
mod private_shm;
mod checkpoint_locks;
mod database_sync;
mod answers;
mod waiter;
pub(crate) mod registered;
