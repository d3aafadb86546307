//! What joj computes: bytes and texts in, numbers and the forms of its results out.
//!
//! ```text
//! recording      what programs asked of their files: imported, ordered, the tree that it implies
//! trace          block traces: read, imported, each request attributed to its file and cause, summarised, exported
//! lab            plans of the lab, what came of them, and the report beside the papers' numbers
//! monitor        what the machine did meanwhile: texts of /proc in, rates per interval out
//! filesystem     what joj knows of ext4, XFS, Btrfs, NILFS2 and F2FS: where each keeps what is not data
//! mobibench      what `joj mobibench` was asked for, and what it measured
//! bench          what `joj bench` measured: its rows, their sums, two results compared
//! statistics     medians, their intervals, percentiles
//! block_device   a block device's number, and the sectors in which the kernel counts
//! words          choices that a saved trace has as numbers, and texts as words
//! ```
//!
//! A file uses only files below it. No clock, no file, no process, no thread, no `unsafe`.

#![forbid(unsafe_code)]

pub mod recording;
pub mod trace;
pub mod lab;
pub mod monitor;
pub mod filesystem;
pub mod mobibench;
pub mod bench;
pub mod statistics;
pub mod block_device;
mod words;
