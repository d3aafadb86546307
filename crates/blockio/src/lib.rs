//! Whole-block file access: one trait, the real disk and the simulated one.
//!
//! Files, lowest last: `sim_disk` and `real_disk` (the two implementors), `disk` (the trait they share),
//! `aligned` (memory that O_DIRECT accepts).

pub mod aligned;
pub mod disk;
