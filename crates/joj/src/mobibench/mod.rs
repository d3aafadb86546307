//! `joj mobibench`: Mobibench's tests, with its options and its output.
//!
//! ```text
//! command -> place: the directory, and which files are new -> a worker (bench/worker/mobibench) -> figures -> lines, files, JSON
//!
//! command   from the options to the exit code
//! setup     the options as what is to be run, or what is wrong with them
//! place     the directory of the test, and what of it joj made
//! error     why there is no result, or no test
//! ```

pub mod command;
pub mod setup;
pub mod place;
pub mod error;
