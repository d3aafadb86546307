//! `joj bench`: SQLite's journal modes, waldio, and the disk's own limit, measured side by side.
//!
//! The upper half asks, the lower half, from `worker` on, answers in a process of its own. A file uses only files
//! below it.

pub mod command;
pub mod study;
pub mod initialisation;
pub mod patterns;
pub mod table_two;
pub mod rounds;
pub mod contention;
pub mod session;
pub mod builds;
pub mod progress;
pub mod plans;
pub mod ask;
pub mod worker;
