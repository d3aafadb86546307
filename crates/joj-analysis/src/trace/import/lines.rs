//! The lines of a text of any length, one at a time, each with its number and its byte.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use crate::trace::import::error::{ImportError, LineProblem};
use crate::trace::import::words;

/// No line of a trace comes near it. What has none shorter is no text, and shall not fill the memory.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// A text, and the line that was read last.
pub struct Lines<R> {
    text: R,
    line: Vec<u8>,
    number: u64,
    /// Where the line begins, and where it ends.
    at: u64,
    next: u64,
}

impl<R: BufRead> Lines<R> {
    /// Of the whole text.
    pub fn new(text: R) -> Self {
        Self { text, line: Vec::new(), number: 0, at: 0, next: 0 }
    }

    /// Reads the next line; false behind the last one.
    /// # Errors
    /// The text cannot be read, ends in the middle of a line, or has one that is too long to be a trace's.
    pub fn advance(&mut self) -> Result<bool, ImportError> {
        (self.at, self.number) = (self.next, self.number + 1);
        self.line.clear();
        let read = self.text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line);
        let bytes = read.map_err(|error| self.error(LineProblem::Unreadable(error)))? as u64;
        if bytes == 0 {
            return Ok(false);
        }
        self.next += bytes;
        if self.line.last() == Some(&b'\n') {
            return Ok(true);
        }
        if bytes == LINE_BYTES_MAX {
            return Err(self.error(LineProblem::TooLong));
        }
        Err(self.error(LineProblem::CutOff))
    }

    /// The line without its end.
    pub fn line(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.line.trim_ascii_end())
    }

    /// What is wrong with the line, and where it is.
    pub fn error(&self, problem: LineProblem) -> ImportError {
        if let LineProblem::Stopped = problem {
            return ImportError::Stopped;
        }
        let excerpt = words::excerpt(self.line().trim());
        ImportError::Line { number: self.number, at: self.at, problem, excerpt }
    }

    /// The text, behind the line.
    pub fn into_text(self) -> R {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_their_place_and_a_text_without_lines_fills_no_memory() {
        let mut lines = Lines::new(&b"a \n\nbc\nrest"[..]);
        let mut seen = Vec::new();
        while lines.advance().unwrap_or(false) {
            seen.push(lines.error(LineProblem::CutOff).to_string());
        }
        assert_eq!(
            seen,
            ["line 1 at byte 0: told: `a`", "line 2 at byte 3: told: ``", "line 3 at byte 4: told: `bc`"]
                .map(|line| line.replace("told", &LineProblem::CutOff.to_string()))
        );
        let error = Lines::new(&b"rest"[..]).advance().unwrap_err().to_string();
        assert!(error.starts_with("line 1 at byte 0: the text was cut off"), "{error}");
        let endless = std::io::BufReader::new(std::io::repeat(b'x'));
        let error = Lines::new(endless).advance().unwrap_err().to_string();
        assert!(error.contains("longer than 64 KiB"), "{error}");
    }
}
