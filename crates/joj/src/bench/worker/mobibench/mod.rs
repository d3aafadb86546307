//! The measured half of `joj mobibench`.
//!
//! ```text
//! run -> threads: each makes its test ready, waits for the others, is timed -> file_test
//!
//! run         one test, from its task to its figures
//! file_test   a thread's file and its records
//! order       which record comes when: random, and the same in each run
//! threads     threads that begin together, and what each took
//! progress    how far they are, on standard error
//! ```

pub mod run;
pub mod file_test;
pub mod order;
pub mod threads;
pub mod progress;
