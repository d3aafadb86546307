//! Whole-block file access: one trait, the real disk and the simulated one.
//!
//! Top to bottom: the two implementors (`simulated`, `real`), the trait that they share (`disk`), memory that
//! O_DIRECT accepts (`aligned`). A file uses only what stands below it here.

#![deny(missing_docs)]

pub mod simulated;
pub mod real;
pub mod disk;
pub mod aligned;
