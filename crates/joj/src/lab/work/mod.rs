//! What guests are given to do, seen from the host: each kind is a `Work` of the pool.
//!
//! ```text
//! replay   a recording's replays: a guest for each;  exec: a command's runs
//! program_crash   a program's crash states: guests for its recordings, and for their states
//! crash    crash states: a guest for the recording of a cell and for all of its states
//! plan     a plan's cells: a guest for each
//! ```

pub mod replay;
pub mod exec;
pub mod program_crash;
pub mod crash;
pub mod plan;
