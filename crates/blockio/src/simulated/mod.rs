//! A disk in memory that keeps a log of everything, so that tests can cut its power. Top to bottom:
//!
//! ```text
//! disk, file     the traits, on what `state` holds, with `fault`s where a test asks for them
//! crash_states   what a power cut may leave;  replay: the log up to there
//! log, image     what happened, and the files that it makes
//! ```

pub mod disk;
pub mod file;
pub mod state;
pub mod crash_states;
pub mod replay;
pub mod fault;
pub mod log;
pub mod image;
#[cfg(test)]
#[path = "tests/known_answers.rs"]
mod known_answers;
