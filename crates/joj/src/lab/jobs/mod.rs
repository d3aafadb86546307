//! What the host tells a guest that it shall do; [`job`](crate::lab::job) has what all jobs share, and the one for a plan's cells.
//!
//! ```text
//! crash    crash states;  replay: replays of a recording;  exec: a command of the host's
//! ```

pub mod crash;
pub mod replay;
pub mod exec;
