//! What it costs to make a log ready ahead of its commits, and what they cost afterwards.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::key::words;
use crate::bench::measurement::Measurement;
use crate::bench::study::durability::Durability;

words! {
    /// A way to make the blocks of a log ready.
    pub enum Approach: "way to initialise" {
        /// Not at all: the first pass appends block by block, as stock SQLite's log grows.
        Appended = "appended",
        /// Zeros are appended: what waldio does where the device does not zero by itself.
        Zeroes = "zeroes",
        /// fallocate, then zeros over it: the paper's first approach.
        FallocateZeroes = "fallocate_zeroes",
        /// fallocate alone: unwritten extents, which the first write to each block converts.
        Unwritten = "unwritten",
        /// FALLOC_FL_WRITE_ZEROES (Linux 6.17): the device zeroes; what the paper's NO_HIDE_STALE_DISCARD became.
        WriteZeroes = "write_zeroes",
    }
}

impl Approach {
    /// As tables name it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Appended => "not prepared, appended",
            Self::Zeroes => "zeroes written",
            Self::FallocateZeroes => "fallocate, zeroes written",
            Self::Unwritten => "fallocate alone (unwritten)",
            Self::WriteZeroes => "FALLOC_FL_WRITE_ZEROES",
        }
    }
}

/// What one row measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct InitialisationKey {
    /// How the file was made ready.
    pub approach: Approach,
    /// How the overwrites are made durable.
    pub durability: Durability,
}

impl fmt::Display for InitialisationKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "log of {}, {}", self.approach.title(), self.durability.title())
    }
}

/// Everything measured under one key.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct InitialisationRow {
    /// What was measured.
    pub key: InitialisationKey,
    /// Making the file with its first size, and making that durable: one operation. No runs where nothing is prepared.
    pub create: Measurement,
    /// Making it longer, and making that durable: one operation. No runs where nothing is prepared.
    pub extend: Measurement,
    /// The first overwrite of each block, made durable.
    pub first_pass: Measurement,
    /// The second overwrite of each.
    pub second_pass: Measurement,
    /// What refused the row, and its errno: kernel, file system or device. `null` where it was measured.
    pub refused: Option<String>,
    /// Why the row is not to be used; `null` where every run was sound.
    pub failure: Option<String>,
}

impl InitialisationRow {
    /// A row without runs.
    pub fn new(key: InitialisationKey) -> InitialisationRow {
        InitialisationRow {
            key,
            create: Measurement::default(),
            extend: Measurement::default(),
            first_pass: Measurement::default(),
            second_pass: Measurement::default(),
            refused: None,
            failure: None,
        }
    }

    /// Its four steps, each with its name, in the order they are made.
    pub fn steps(&self) -> [(&'static str, &Measurement); 4] {
        [
            ("create", &self.create),
            ("extend", &self.extend),
            ("first pass", &self.first_pass),
            ("second pass", &self.second_pass),
        ]
    }

    /// Sums up each step.
    pub fn summarise(&mut self) {
        for step in [&mut self.create, &mut self.extend, &mut self.first_pass, &mut self.second_pass] {
            step.summarise();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::key::Word;
    use crate::bench::measurement::tests::measurement;

    pub(crate) fn row(approach: Approach, speeds: &[u64]) -> InitialisationRow {
        let key = InitialisationKey { approach, durability: Durability::Fs };
        InitialisationRow {
            create: measurement(speeds),
            extend: measurement(speeds),
            first_pass: measurement(speeds),
            second_pass: measurement(speeds),
            ..InitialisationRow::new(key)
        }
    }

    #[test]
    fn approaches_are_written_as_their_words() {
        for approach in Approach::ALL {
            assert_eq!(serde_json::to_string(approach).unwrap(), format!("\"{}\"", approach.word()));
        }
        for durability in Durability::ALL {
            assert_eq!(serde_json::to_string(durability).unwrap(), format!("\"{}\"", durability.word()));
        }
    }
}
