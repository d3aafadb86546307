//! Recordings made of other programs' text. What a line says of contents is dropped where it is read.
//!
//! ```text
//! strace         `strace -f -tt -T -y`
//! mobigen        a script of MobiGen's
//! ```

pub mod strace;
pub mod mobigen;

pub use crate::trace::import::{ImportError, LineProblem};

use crate::trace::import::words;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// strace's.
    Strace,
    /// A script of MobiGen's.
    Mobigen,
}

impl TextFormat {
    /// The format, by the first line that is not empty.
    pub fn of(begin: &str) -> Self {
        let line = begin.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        if mobigen::is_line(line) { Self::Mobigen } else { Self::Strace }
    }
}

/// A problem of the part of a line that begins at byte `at`; columns count from 1.
fn in_column(at: usize, problem: LineProblem) -> LineProblem {
    LineProblem::Column { column: at + 1, problem: Box::new(problem) }
}

/// `part`, which is a part of `line`, is not what it should be.
fn is_no(line: &str, part: &str, wanted: &'static str) -> LineProblem {
    let at = part.as_ptr().addr().saturating_sub(line.as_ptr().addr());
    in_column(at.min(line.len()), words::is_no(part, wanted))
}
