//! A table or figure of a paper: its numbers, and which cells answer to them (docs/lab_format.md).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::lab::report::metric::Metric;
use crate::lab::report::selector::Selector;

/// First word of a paper's table.
pub const PAPER_FORMAT: &str = "joj-lab-paper";
/// Newest version that this joj reads.
pub const PAPER_VERSION: u32 = 2;

/// A table or figure as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperTable {
    /// [`PAPER_FORMAT`]
    pub format: String,
    /// [`PAPER_VERSION`]
    pub version: u32,
    /// A word for it, for example `waldio-table2`.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// Paper and number of the table or figure.
    pub paper: String,
    /// The plan whose cells answer it; none where the device model does.
    #[serde(default)]
    pub plan: Option<String>,
    /// What else has to be known.
    #[serde(default)]
    pub notes: Vec<String>,
    /// A value that is off by more than this factor, either way, is given a reason. Above 1.
    #[serde(default = "factor")]
    pub factor: f64,
    /// What all its cells have in common.
    #[serde(default)]
    pub cell: Selector,
    pub column: Vec<Column>,
    pub row: Vec<PaperRow>,
    /// Rows that the paper calls the highest or lowest, where it has no number for each.
    #[serde(default)]
    pub extreme: Vec<Extreme>,
}

fn factor() -> f64 {
    1.25
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name, by which rows give their values.
    pub label: String,
    /// Which figure of the cell it holds.
    pub metric: Metric,
    /// What its cells have in common.
    #[serde(default)]
    pub cell: Selector,
    /// The range of random requests, in MiB, where the device model answers.
    #[serde(default)]
    pub range_mib: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// Rows of one group are put in order; rows of the same label in several groups are, too.
    #[serde(default)]
    pub group: String,
    /// Its name in the group.
    pub label: String,
    /// Selects the cells of the lab that the row is compared with.
    #[serde(default)]
    pub cell: Selector,
    /// What the paper has, by column; nothing for a row that others are relative to.
    #[serde(default)]
    pub paper: BTreeMap<String, f64>,
    /// The row, as [`PaperRow::name`] has it, that its values are multiples of.
    #[serde(default)]
    pub relative_to: Option<String>,
    /// What one of its transactions writes on the paper's phone, by column, where a table of the same paper says so.
    #[serde(default)]
    pub written: BTreeMap<String, Written>,
    /// Why it has no cell.
    #[serde(default)]
    pub absent: Option<String>,
    /// Where the paper contradicts itself, or what is compared is not quite the same.
    #[serde(default)]
    pub note: Option<String>,
}

/// What a paper says a transaction writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// KiB that a transaction writes, of all classes.
    pub kib: f64,
    #[serde(default)]
    pub writes: Option<f64>,
}

/// A row that is the highest or lowest of its like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extreme {
    pub column: String,
    pub row: String,
    /// Whether the row is the highest or the lowest.
    pub is: End,
    /// The names of the others.
    pub among: Vec<String>,
}

/// An end of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// No other is higher.
    Highest,
    /// No other is lower.
    Lowest,
}

impl PaperRow {
    /// Its name in the table: group and label.
    pub fn name(&self) -> String {
        format!("{} {}", self.group, self.label).trim().to_owned()
    }
}

/// Why a paper's table does not fit together.
#[derive(Debug, PartialEq, Error)]
pub enum PaperError {
    /// It is of another format.
    #[error("format = {0:?}; a paper's table has format = {PAPER_FORMAT:?}")]
    Format(String),
    /// It is of a newer version.
    #[error("version = {0}; this joj reads up to {PAPER_VERSION}: take a newer joj")]
    Version(u32),
    /// Nothing is within such a factor.
    #[error("factor = {0}; it must be above 1")]
    Factor(f64),
    /// A name stands for two columns or two rows.
    #[error("two columns or two rows have the same name")]
    NamedTwice,
    /// A row is wrong.
    #[error("row {row:?}: {error}")]
    Row {
        /// The row's name.
        row: String,
        /// What is wrong with it.
        #[source]
        error: RowError,
    },
    /// An extreme is of a row that is not there.
    #[error("an extreme names {0:?}, which is no row")]
    ExtremeRow(String),
    /// An extreme is of a column that is not there.
    #[error("an extreme names {0:?}, which is no column")]
    ExtremeColumn(String),
    /// Multiples of two different rows cannot be compared.
    #[error("an extreme holds {0:?} against multiples of another row")]
    ExtremeBase(String),
}

/// What is wrong with a row of a paper's table.
#[derive(Debug, PartialEq, Error)]
pub enum RowError {
    /// It has a value for a column that is not there.
    #[error("it has a value for {0:?}, which is no column")]
    Column(String),
    /// No rate or amount is below 0.
    #[error("{column} = {value}; values are 0 or above")]
    Value {
        /// The column's name.
        column: String,
        /// The value.
        value: f64,
    },
    /// Its values are multiples of a row that is not there, or of itself.
    #[error("relative_to = {0:?}, which is no other row")]
    Base(String),
}

impl PaperTable {
    /// Looks whether names are unique and refer to something, and whether factor and values are above 0.
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), PaperError> {
        if self.format != PAPER_FORMAT {
            return Err(PaperError::Format(self.format.clone()));
        }
        if self.version == 0 || self.version > PAPER_VERSION {
            return Err(PaperError::Version(self.version));
        }
        if self.factor.is_nan() || self.factor <= 1.0 {
            return Err(PaperError::Factor(self.factor));
        }
        let columns: BTreeSet<&str> = self.column.iter().map(|column| column.label.as_str()).collect();
        let rows: BTreeSet<String> = self.row.iter().map(PaperRow::name).collect();
        if columns.len() < self.column.len() || rows.len() < self.row.len() {
            return Err(PaperError::NamedTwice);
        }
        for row in &self.row {
            check_row(row, &columns, &rows).map_err(|error| PaperError::Row { row: row.name(), error })?;
        }
        for extreme in &self.extreme {
            let mut named = extreme.among.iter().chain([&extreme.row]);
            if let Some(unknown) = named.find(|name| !rows.contains(*name)) {
                return Err(PaperError::ExtremeRow(unknown.clone()));
            }
            if !columns.contains(extreme.column.as_str()) {
                return Err(PaperError::ExtremeColumn(extreme.column.clone()));
            }
            let is_named = |row: &&PaperRow| row.name() == extreme.row || extreme.among.contains(&row.name());
            let mut bases = self.row.iter().filter(is_named).map(|row| &row.relative_to);
            let first = bases.next();
            if bases.any(|base| Some(base) != first) {
                return Err(PaperError::ExtremeBase(extreme.row.clone()));
            }
        }
        Ok(())
    }

    /// Which cells answer to a value.
    pub fn selector(&self, row: &PaperRow, column: &Column) -> Selector {
        row.cell.over(&column.cell).over(&self.cell)
    }
}

fn check_row(row: &PaperRow, columns: &BTreeSet<&str>, rows: &BTreeSet<String>) -> Result<(), RowError> {
    if let Some(column) =
        row.paper.keys().chain(row.written.keys()).find(|name| !columns.contains(name.as_str()))
    {
        return Err(RowError::Column(column.clone()));
    }
    for (column, value) in &row.paper {
        if !value.is_finite() || *value < 0.0 {
            return Err(RowError::Value { column: column.clone(), value: *value });
        }
    }
    match &row.relative_to {
        Some(base) if !rows.contains(base) || *base == row.name() => Err(RowError::Base(base.clone())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> PaperTable {
        let text = serde_json::json!({
            "format": PAPER_FORMAT, "version": PAPER_VERSION, "name": "made-up", "title": "Made up", "paper": "none",
            "column": [{"label": "insert", "metric": "transactions_per_s", "cell": {"task": "insert"}}],
            "row": [
                {"label": "A", "paper": {"insert": 4}},
                {"group": "g", "label": "A", "paper": {"insert": 2.0}, "relative_to": "A"},
                {"label": "B"},
            ],
            "extreme": [{"column": "insert", "row": "A", "is": "highest", "among": ["B"]}],
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn a_sound_table_is_sound() {
        assert_eq!(table().check(), Ok(()));
        assert_eq!(table().row[1].name(), "g A");
    }

    #[test]
    fn slips_of_the_pen_are_named() {
        type Slip = fn(&mut PaperTable);
        let slips: [(Slip, &str); 10] = [
            (|table| table.version = PAPER_VERSION + 1, "newer joj"),
            (|table| table.format.clear(), PAPER_FORMAT),
            (|table| table.factor = 1.0, "above 1"),
            (|table| table.row[1].group.clear(), "same name"),
            (|table| table.row[1].relative_to = Some("D".to_owned()), "\"D\""),
            (|table| table.row[0].relative_to = Some("A".to_owned()), "no other row"),
            (|table| table.row[0].paper = [("delete".to_owned(), 1.0)].into(), "\"delete\""),
            (|table| table.extreme[0].among.push("C".to_owned()), "\"C\""),
            (|table| table.extreme[0].among.push("g A".to_owned()), "multiples of another row"),
            (|table| table.extreme[0].column = "size".to_owned(), "\"size\""),
        ];
        for (slip, word) in slips {
            let mut wrong = table();
            slip(&mut wrong);
            let said = wrong.check().unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        }
    }
}
