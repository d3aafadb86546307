//! `joj lab run`, `report`, `crash`: what they ask of the lab, and what they print.

pub mod run;
pub mod crash;
pub mod error;
pub mod report;
