//! Traces of other programs: their bytes in, our events out, and a sentence for everything that had to be guessed.
//! Inputs are streams: memory grows with threads, processors and names, not with their length.

pub mod blktrace;
pub mod blkparse;
pub mod ftrace;
mod ftrace_line;
mod lines;
mod words;
mod output;
mod error;

pub use error::{ImportError, LineProblem, RecordProblem};
pub use output::ImportSink;
