//! `joj bench`: SQLite's journal modes, waldio, and the disk's own limit, measured side by side.
//!
//! The upper half asks, the lower half, from `worker` on, answers in a process of its own. A file uses only files
//! below it.

pub mod study;
pub mod initialisation;
pub mod patterns;
pub mod table_two;
pub mod rounds;
pub mod contention;
pub mod session;
pub mod builds;
pub mod progress;
pub mod forecast;
pub mod contended_plan;
pub mod study_plan;
pub mod plan;
pub mod ask;
pub mod worker;
pub mod contended_run;
pub mod initialisation_run;
pub mod file_run;
pub mod pattern_run;
pub mod writers;
pub mod database_run;
pub mod crash_checker;
pub mod crash_writer;
pub mod stopwatch;
pub mod workload;
pub mod task;
