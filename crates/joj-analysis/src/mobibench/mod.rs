//! `joj mobibench`: what is asked for, and what came of it.
//!
//! ```text
//! document   the figures, as the JSON file has them
//! setup      the options that name what runs: files and their records, or databases and their transactions
//! ```

pub mod document;
pub mod setup;
