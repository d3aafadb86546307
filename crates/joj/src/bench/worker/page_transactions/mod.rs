//! The half of `joj replay --as` that is measured: recorded commits, made again through a real SQLite.
//!
//! ```text
//! recorded_pass     a pass that is recorded, in three steps
//! run               from the task to its figures: databases made, threads, integrity_check
//! connection_test   one connection's commits, in a thread of its own
//! made_database     a database with a row for each leaf page
//! ```

pub mod recorded_pass;
pub mod run;
mod connection_test;
pub mod made_database;
