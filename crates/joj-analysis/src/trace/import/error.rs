//! Why another program's trace cannot be imported: where the import ended, and what is wrong there.

use std::io;

use thiserror::Error;

/// Why an import gave no header. What the sink got before is part of a trace, not a trace.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The sink wanted no more events.
    #[error("the import was stopped")]
    Stopped,
    /// The input cannot be read a second time.
    #[error("cannot read it from its begin: {0}")]
    Rewind(#[source] io::Error),
    /// A line of a text.
    #[error("line {number} at byte {at}: {problem}: `{excerpt}`")]
    Line {
        /// Its number; the first is 1.
        number: u64,
        /// The byte of the text at which it begins.
        at: u64,
        /// What is wrong with it.
        #[source]
        problem: LineProblem,
        /// How it begins.
        excerpt: String,
    },
    /// A record of a binary file.
    #[error("{file}: record {number} at byte {at}: {problem}")]
    Record {
        /// The file's name.
        file: String,
        /// Its number; the first is 1.
        number: u64,
        /// The byte of the file at which it begins.
        at: u64,
        /// What is wrong with it.
        #[source]
        problem: RecordProblem,
    },
}

/// What the sink said: no more events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl From<Stopped> for ImportError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// What is wrong with a line of a text.
#[derive(Debug, Error)]
pub enum LineProblem {
    /// The sink wanted no more events: nothing is wrong with the line.
    #[error("the import was stopped")]
    Stopped,
    /// The text cannot be read.
    #[error("cannot read on: {0}")]
    Unreadable(#[source] io::Error),
    /// No trace has such a line.
    #[error("it is longer than 64 KiB: this is no text of a trace, or a damaged one")]
    TooLong,
    /// The text ends within the line.
    #[error("the text was cut off in the middle of it; copy it again")]
    CutOff,
    /// The line ends before one of its parts.
    #[error("it ends before the {0}")]
    EndsBefore(&'static str),
    /// A part is missing though the line goes on.
    #[error("it has no {0}")]
    HasNo(&'static str),
    /// What the event is about is missing.
    #[error("it names no {0}")]
    NamesNo(&'static str),
    /// A part cannot be read as what it should be.
    #[error("`{found}` is no {wanted}")]
    IsNo {
        /// The part, shortened.
        found: String,
        /// What stands there in a sound line.
        wanted: &'static str,
    },
    /// It is called a remap and does not look like one.
    #[error("it is no remap like `{0}`")]
    IsNoRemap(&'static str),
    /// Its length in bytes has more than 64 bits.
    #[error("its sectors are too many")]
    TooManySectors,
    /// A bracket was opened and not closed.
    #[error("its last bracket is missing")]
    OpenBracket,
    /// Neither a length nor the thread's name follows the sector.
    #[error("`{0}` stands where + or a bracket should")]
    Misplaced(String),
    /// A part of the line; the first column is 1, and counts bytes.
    #[error("column {column}: {problem}")]
    Column {
        /// Where the part begins.
        column: usize,
        /// What is wrong with it.
        #[source]
        problem: Box<LineProblem>,
    },
    /// Two lines belong together, and one is missing.
    #[error("its call was not begun in an earlier line")]
    NotBegun,
    /// The kernel has no such error.
    #[error("{0} is no errno")]
    Errno(i64),
}

impl From<Stopped> for LineProblem {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// What is wrong with a record of blktrace's.
#[derive(Debug, Error)]
pub enum RecordProblem {
    /// The file cannot be read.
    #[error("cannot read on: {0}")]
    Unreadable(#[source] io::Error),
    /// The file ends within the record.
    #[error("the file was cut off in the middle of it; copy it again")]
    CutOff,
    /// It does not begin with blktrace's number.
    #[error(
        "it begins with {found:08x}, not with blktrace's {wanted:08x}: this is no binary file of blktrace, or a damaged one. \
         blkparse's text is another format"
    )]
    Magic {
        /// Its first four bytes.
        found: u32,
        /// blktrace's.
        wanted: u32,
    },
    /// It has a layout that joj does not know.
    #[error(
        "it has blktrace's format {found}, and we read {known} only; import what `blkparse` prints of it"
    )]
    Version {
        /// Its format.
        found: u32,
        /// The one that joj knows.
        known: u32,
    },
    /// Records of one file have one byte order.
    #[error("its byte order is not that of the records before it: the file is damaged")]
    ByteOrder,
    /// It is too short for the control group that it announces.
    #[error("its control group is cut off")]
    GroupCutOff,
    /// It is too short for a remap.
    #[error("a remap without the place it came from")]
    RemapCutOff,
}
