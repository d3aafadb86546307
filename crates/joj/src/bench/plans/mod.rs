//! What is measured, from the options: rows, many writers, the study; and how long it will take.

pub mod forecast;
pub mod contended;
pub mod study;
pub mod rows;
