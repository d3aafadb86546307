//! Recorded calls, made again in a directory. Top to bottom:
//!
//! ```text
//! calls           makes a call, with the descriptors and paths of the replay
//! trees           makes the files that are there before the first call, and lists those after the last
//! turns           how many calls each thread has made, and waiting for that
//! written_bytes   what writes write: bytes that are never zero
//! ```

pub mod calls;
pub mod trees;
pub mod turns;
mod written_bytes;
