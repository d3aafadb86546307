//! Traces of other programs: their bytes in, our events out, and a sentence for everything that had to be guessed.

pub mod blktrace;
pub mod blkparse;
pub mod ftrace;
mod ftrace_line;
mod words;
mod output;

pub use output::Sink;
