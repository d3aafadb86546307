//! Recordings that are kept in a directory, to be cut again: `joj crash` and `joj lab crash` have the same.
//!
//! ```text
//! recordings   who makes them, whether one is whole, and whether it is the one that a command would make
//! made_with    the options that one belongs to
//! ```

pub mod recordings;
pub mod made_with;
