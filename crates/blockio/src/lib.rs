//! Whole-block file access: one trait, the real disk and the simulated one.
//!
//! Top to bottom: the two implementors (`sim_disk`, `real_disk`), the trait that they share (`disk`), memory that
//! O_DIRECT accepts (`aligned`). A file uses only what stands below it here.

pub mod real_disk;
mod real_file;
mod device_facts;
pub mod disk;
pub mod aligned;
