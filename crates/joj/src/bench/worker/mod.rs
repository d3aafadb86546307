//! The half of `joj bench` that is measured, in a process of its own: serve -> a run of one kind -> workload, stopwatch.

pub mod serve;
pub mod many_writers;
pub mod initialisation_run;
pub mod file_run;
pub mod pattern_run;
pub mod limit_run;
pub mod database_run;
pub mod crash;
pub mod libraries;
pub mod stopwatch;
pub mod workload;
pub mod task;
