//! Traces of other programs: their bytes in, our events out, and a sentence for everything that had to be guessed.
//! Inputs are streams: memory grows with threads, processors and names, not with their length.
//!
//! ```text
//! blktrace      blktrace's binary files, one for each processor
//! blkparse      what blkparse prints
//! ftrace        the text of ftrace's trace and trace_pipe, and of `trace-cmd report`
//! ftrace_line   one line of that text
//! lines         the lines of a text of any length, one at a time
//! words         what the text formats share: operations, device numbers, times
//! output        puts every importer's events in order, counts them, notices their devices
//! error         why a trace cannot be imported, and where
//! ```

pub mod blktrace;
pub mod blkparse;
pub mod ftrace;
mod ftrace_line;
pub(crate) mod lines;
pub(crate) mod words;
mod output;
mod error;

pub use error::{ImportError, LineProblem, RecordProblem};
pub use output::ImportSink;
