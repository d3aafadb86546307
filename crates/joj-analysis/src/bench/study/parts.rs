//! What the WALDIO paper (USENIX ATC 2015) measured, or left out, measured today.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::key::words;
use crate::bench::measurement::Measurement;
use crate::bench::study::initialisation::InitialisationRow;
use crate::bench::study::pattern::PatternRow;
use crate::bench::study::table_two::TableTwoRow;

words! {
    /// A part of the study.
    pub enum StudyPart: "part of the study" {
        /// The ways to initialise a log ahead of its commits.
        Init = "init",
        /// How frames may lie on the disk.
        Alignment = "alignment",
        /// The paper's Table 2 through SQLite.
        Table2 = "table2",
    }
}

impl StudyPart {
    /// The words of all parts.
    pub const DEFAULT: &'static str = "init,alignment,table2";
}

/// The rows of every part that was measured.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
pub struct Study {
    /// Ways to initialise a log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initialisation: Vec<InitialisationRow>,
    /// Log patterns: log writes without SQLite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<PatternRow>,
    /// The paper's Table 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table_two: Vec<TableTwoRow>,
}

impl Study {
    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        self.initialisation.len() + self.patterns.len() + self.table_two.len()
    }

    /// Each step of each row: what was measured, and its runs.
    pub fn measurements(&self) -> Vec<(String, &Measurement)> {
        let mut all = Vec::new();
        for row in &self.initialisation {
            for (step, measurement) in row.steps() {
                all.push((format!("{}, {step}", row.key), measurement));
            }
        }
        for row in &self.patterns {
            // One flush behind everything says nothing by its time.
            all.push((row.key.to_string(), &row.commits));
        }
        all.extend(self.table_two.iter().map(|row| (row.key.to_string(), &row.transactions)));
        all
    }

    /// Rows that are not to be used: (what was measured, what was wrong).
    pub fn failures(&self) -> Vec<(String, Option<&str>)> {
        let initialisation = self.initialisation.iter().map(|row| (row.key.to_string(), &row.failure));
        let patterns = self.patterns.iter().map(|row| (row.key.to_string(), &row.failure));
        let table_two = self.table_two.iter().map(|row| (row.key.to_string(), &row.failure));
        initialisation
            .chain(patterns)
            .chain(table_two)
            .map(|(key, failure)| (key, failure.as_deref()))
            .collect()
    }
}
