//! What `joj lab` shows: tables of cells, of crash states, and a report beside the papers' numbers.

pub mod report;
pub mod table;
pub mod crash_table;
