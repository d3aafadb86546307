//! The lab: what a plan measures, what came of it, and how that stands beside the papers.
//! A file uses only files below it.
//!
//! ```text
//! report         the papers' numbers next to what the lab measured
//! crash          a verdict for each crash state, and the result of all
//! shards         a plan's cells, or a program's states, shared out: parts, and how they become a result
//! result         what came of a plan, as its JSON file has it;  exec_result: of a command
//! program_crash  what a power cut leaves of a program's files
//! plan           a title, and matrices
//! matrix         axes, which are multiplied into cells
//! loss_bound     what a power cut may take of commits that returned
//! cell           one cell: a filesystem on a device, and what is done there
//! crash_script   the transactions that `joj lab crash` commits, and the rows that each leaves
//! ```

pub mod report;
pub mod crash;
pub mod shards;
pub mod exec_result;
pub mod program_crash;
pub mod result;
pub mod plan;
pub mod matrix;
pub mod loss_bound;
pub mod cell;
pub mod crash_script;
