//! `joj lab run`, `report`, `crash`: what they ask of the lab, and what they print.

pub mod run;
pub mod report;
pub mod crash;
