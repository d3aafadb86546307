//! A SQLite library that is loaded at run time, and what it does to files.

pub mod connection;
pub mod sqlite_api;
pub mod sync_count;
pub mod slow_device;
pub mod log_size;
pub mod prepared_log;
