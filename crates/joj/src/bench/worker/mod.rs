//! The half of `joj bench` that is measured, in a process of its own: serve -> a run of one kind -> workload, stopwatch.

pub mod serve;
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
