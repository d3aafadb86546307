//! The lab: what a plan measures, and what came of it. A file uses only files below it.

pub mod result;
pub mod plan;
pub mod cell;
