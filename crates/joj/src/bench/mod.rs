//! `joj bench`: SQLite's journal modes, waldio, and the disk's own limit, measured side by side.
//!
//!   command -> experiments, one file each -> experiment: rounds of runs -> session -> ask -> worker
//!
//! The upper half asks, the lower half, from `worker` on, answers in a process of its own. A file uses only files
//! below it.

pub mod command;
pub mod error;
pub mod experiments;
pub mod experiment;
pub mod disk_limits;
pub mod session;
pub mod builds;
pub mod progress;
pub mod forecast;
pub mod ask;
pub mod worker;
