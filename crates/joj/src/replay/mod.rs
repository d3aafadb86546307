//! `joj replay`: the calls of a recording, made again on another disk. A file uses only files below it.
//!
//! ```text
//! command -> plan (what is to be made, and in which order) -> run (a thread for each recorded one) -> outcome -> text, JSON
//!
//! command             from the options to the exit code
//! page_transactions   with --as: the commits on SQLite databases alone, through SQLite
//! recorded_pass       with --record: one more pass of them, recorded
//! room                whether the files have room
//! files               what is there before the first call
//! check               the files at the end beside those that the recording implies
//! run                 the threads, from their start to their end
//! worker              one thread's calls
//! plan                a recording with its order and its files
//! apart               filesystems that the program only read, whose files are not on the disk that is measured
//! error               why there is no result
//! ```

pub mod command;
pub mod page_transactions;
mod recorded_pass;
pub mod room;
pub mod files;
mod check;
pub mod run;
mod worker;
pub mod plan;
mod apart;
pub mod error;
