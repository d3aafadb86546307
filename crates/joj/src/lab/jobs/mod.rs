//! What the host tells a guest that it shall do; [`job`](crate::lab::job) has what all jobs share, and the one for a plan's cells.
//!
//! ```text
//! program_crash   crash states of a program's files;  crash: of SQLite's commits
//! replay          replays of a recording;  exec: a command of the host's
//! ```

pub mod program_crash;
pub mod crash;
pub mod replay;
pub mod exec;
