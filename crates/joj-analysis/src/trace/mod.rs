//! Block traces. What is here works on events alone, saved or live:
//!
//! ```text
//! ftrace | import -> order -> events -> attribution -> outcomes -> summary, steps, points, export
//!
//! points        the time x LBA picture, in memory that does not grow with the trace
//! export        traces for other programs, a file for each format
//! steps         one transaction at a time: which call made which requests
//! summary       a trace in numbers: everything the papers ask of one
//! fleet         a fleet that nobody captured, and what a report of it must say
//! attribution   which file, commit and cause each request has
//! histogram     percentiles in constant memory;  file_type: what a file is for, by its name
//! import        traces of other programs, a file for each
//! generate      a trace of any length that nobody captured, for tests and benchmarks
//! ftrace        the kernel's own trace buffers
//! order         events of several processors in the order of their times
//! wanted        whose sync calls and commits are counted
//! header        what a trace says of itself and of the machine;  event: one thing that a kernel was seen to do
//! texts         names, each kept once
//! ```

pub mod points;
pub mod export;
pub mod steps;
pub mod summary;
pub mod fleet;
pub mod attribution;
pub mod histogram;
pub mod file_type;
pub mod import;
pub mod generate;
pub mod ftrace;
pub mod order;
pub mod wanted;
pub mod header;
pub mod event;
pub mod texts;
