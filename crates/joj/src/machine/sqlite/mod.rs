//! A SQLite library that is loaded at run time, and what it does to files. Top to bottom:
//!
//! ```text
//! connection     one connection of one SQLite build, with safe methods
//! sqlite_api     SQLite's C functions as pointers
//! sync_count     counts the flushes that this process asks for, and slows them down on demand
//! slow_device    when a flush on a slow device begins and ends: arithmetic on a shared word
//! log_size       how large the log of a database is, watched from beside it
//! prepared_log   a file like a log, made ready in each of the ways that there are
//! ```

pub mod connection;
pub mod sqlite_api;
pub mod sync_count;
pub mod slow_device;
pub mod log_size;
pub mod prepared_log;
