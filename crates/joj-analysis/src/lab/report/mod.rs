//! What the papers printed beside what the lab measured. A file uses only files below it.
//!
//!   result (JSON) -> accepted
//!   paper (TOML, which joj parses), results -> compare: selector, metric, order, reason -> outcome

pub mod accepted;
pub mod compare;
mod order;
mod reason;
pub mod outcome;
pub mod paper;
pub mod metric;
pub(in crate::lab) mod facts;
pub mod selector;
