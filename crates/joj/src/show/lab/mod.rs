//! What `joj lab` shows. Top to bottom:
//!
//! ```text
//! report        results beside the papers' numbers: page and text
//! table         the result of a plan as text
//! crash_table   the result of `joj lab crash` as text
//! program_crash the result of `joj crash` as text
//! replay_table  that of `joj replay --lab`;  exec_table: of `joj lab exec`
//! ```

pub mod report;
pub mod table;
pub mod crash_table;
pub mod program_crash;
pub mod replay_table;
pub mod exec_table;
