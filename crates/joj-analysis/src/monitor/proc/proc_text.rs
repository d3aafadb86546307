//! A text of /proc, line by line, and what is wrong with a damaged one.

use std::fmt;

/// A line that is not what the kernel writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcError {
    /// Name of the text, for example `diskstats`.
    pub file: &'static str,
    /// Its line; the first is 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for ProcError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProcError { file, line, what } = self;
        write!(formatter, "{file}, line {line}: {what}")
    }
}

impl std::error::Error for ProcError {}

/// One text of /proc.
#[derive(Debug, Clone, Copy)]
pub struct ProcText<'a> {
    file: &'static str,
    text: &'a str,
}

impl<'a> ProcText<'a> {
    /// Checks that the text is whole.
    /// # Errors
    /// Where the last line has no end: the kernel ends every line, so the rest was cut off.
    pub fn new(file: &'static str, text: &'a str) -> Result<ProcText<'a>, ProcError> {
        let whole = ProcText { file, text };
        if !text.is_empty() && !text.ends_with('\n') {
            return Err(whole.error(text.lines().count(), "the text ends in the middle of the line"));
        }
        Ok(whole)
    }

    /// The lines with their numbers; the first is 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// What is wrong with a line.
    pub fn error(&self, line: usize, what: impl Into<String>) -> ProcError {
        ProcError { file: self.file, line, what: what.into() }
    }

    /// A word that must be a number.
    /// # Errors
    /// Where it is none.
    pub fn number(&self, line: usize, word: &str) -> Result<u64, ProcError> {
        word.parse().map_err(|_| {
            let shown: String = word.chars().take(40).collect();
            self.error(line, format!("`{shown}` is no whole number"))
        })
    }

    /// Words that must all be numbers.
    /// # Errors
    /// Where one is none.
    pub fn numbers(&self, line: usize, words: &str) -> Result<Vec<u64>, ProcError> {
        words.split_ascii_whitespace().map(|word| self.number(line, word)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_and_the_line() {
        let text = ProcText::new("meminfo", "a\nb 1 2\n").unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), [(1, "a"), (2, "b 1 2")]);
        assert_eq!(text.numbers(2, "1 2"), Ok(vec![1, 2]));
        let error = text.numbers(2, "1 x").unwrap_err();
        assert_eq!(error.to_string(), "meminfo, line 2: `x` is no whole number");
        assert!(text.number(1, "-1").is_err() && text.number(1, "18446744073709551616").is_err());
        let error = ProcText::new("stat", "cpu 1\ncpu0 1").unwrap_err();
        assert_eq!(error.to_string(), "stat, line 2: the text ends in the middle of the line");
        assert!(ProcText::new("diskstats", "").is_ok(), "a machine without disks");
    }
}
