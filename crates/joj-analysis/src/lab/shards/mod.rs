//! A run that was shared out: what each joj leaves, a part, and how the parts become the result of the whole.
//!
//! ```text
//! cells, states -> Shard -> one joj each -> parts -> merge: of one run, each shard once -> the result
//!
//! merge          parts of either kind, as their files have them, become a result
//! plan           a part of `joj lab run --shard`
//! program_crash  a part of `joj crash --shard`
//! whole          parts of one run, each shard once
//! error          why parts are no whole
//! shard          which cells or states a shard has
//! ```
//!
//! Invariants: 1. the result has the bytes of a run that was not shared out, whatever order the parts have. 2. parts that are not
//! one of each shard of one run are an error, which names the file.

pub mod merge;
pub mod plan;
pub mod program_crash;
pub mod whole;
pub mod error;
pub mod shard;
