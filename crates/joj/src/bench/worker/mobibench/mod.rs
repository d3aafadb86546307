//! The measured half of `joj mobibench`.
//!
//! ```text
//! run -> threads: each makes its test ready, waits for the others, is timed -> file_test or database_test
//!
//! run             one test, from its task to its figures; calls for durability, counted in a run without a clock
//! file_test       a thread's file and its records
//! database_test   a thread's databases and its transactions
//! statements      the SQL of the transactions
//! threads         threads that begin together, and what each took
//! progress        how far they are, on standard error
//! ```

pub mod run;
pub mod file_test;
pub mod database_test;
pub mod statements;
pub mod threads;
pub mod progress;
