//! Why a description is refused.

use std::fmt;

/// What is wrong, where, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptionError {
    origin: String,
    what: String,
}

impl DescriptionError {
    pub(crate) fn new(origin: &str, what: String) -> Self {
        DescriptionError { origin: origin.to_owned(), what }
    }
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "device description {}: {}", self.origin, self.what.trim_end())
    }
}

impl std::error::Error for DescriptionError {}
