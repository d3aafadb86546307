//! Whole-block file access: one trait, the real disk and the simulated one.
//!
//! ```text
//! simulated   a disk in memory, whose power tests cut
//! real        the disk of this machine: system calls
//! disk        the trait that both implement: what waldio asks of a disk, and what a disk promises
//! aligned     memory that O_DIRECT accepts
//! ```
//!
//! Top to bottom; a file uses only what stands below it here.

#![deny(missing_docs)]

pub mod simulated;
pub mod real;
pub mod disk;
pub mod aligned;
