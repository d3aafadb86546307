//! A disk in memory that keeps a log of everything, so that tests can cut its power. Top to bottom:
//!
//! ```text
//! disk, file      the traits, on what `state` holds
//! state           the disk at this moment: names, contents, faults that are planned, the log so far
//! crash_states    every state that a power cut may leave
//! replay          what is durable at a moment of the log, and what could go either way
//! fault           which operation fails, and how
//! log             what was done, in order
//! image           what the medium holds: file contents by name
//! known_answers   tests: crash states that were worked out by hand
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
