//! What the papers printed beside what the lab measured. A file uses only files below it.
//!
//! ```text
//! result (JSON) -> accepted
//! paper (TOML, which joj parses), results -> compare -> outcome
//!
//! accepted   results that a report can use: format and version are looked at first
//! compare    each value of the papers beside the lab's
//! order      whether rows stand in the paper's order;  reason: what figures say of a value that is not the paper's
//! outcome    the report;  paper: a table or figure of a paper, and which cells answer to it
//! metric     which figure of a cell it is;  facts: what a transaction of a cell cost;  selector: which cell it is
//! ```

pub mod accepted;
pub mod compare;
mod order;
mod reason;
pub mod outcome;
pub mod paper;
pub mod metric;
pub(in crate::lab) mod facts;
pub mod selector;
