//! The lab: what a plan measures, what came of it, and how that stands beside the papers. A file uses only files below it.

pub mod report;
pub mod crash;
pub mod result;
pub mod plan;
pub mod cell;
pub mod crash_script;
