//! Many writers: a run prepares the database and starts processes, and each of these is one or more writers.

pub mod run;
pub mod writers;
