//! Calls of programs on files, as they happen, for a recording.
//!
//! ```text
//! a command | a process that runs -> bpf | ptrace -> events -> joj-analysis: recording/system_calls/captured
//!
//! bpf         eBPF programs, which hand up each of these calls
//! ptrace      a tracer: without root, stops the program at each of these calls
//! held        what was open before: threads, directories and descriptors of a process, by /proc
//! numbers     the calls that are looked at, by their numbers
//! error       why nothing can be recorded, or nothing more
//! ```

pub mod bpf;
pub mod ptrace;
pub mod held;
mod numbers;
pub mod error;

/// How writes to a log are counted whose heads of frames are not in the recording.
const FRAMES_UNSEEN: &str =
    "heads of frames in writes to a SQLite log: they are in other places, or were not seen";
