//! The report: each value of a paper beside the lab's (docs/lab_format.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab::report::paper::End;
use crate::lab::result::LabMachine;

/// First word of a report.
pub const REPORT_FORMAT: &str = "joj-lab-report";
/// Version that this joj writes.
pub const REPORT_VERSION: u32 = 1;

/// The report of `joj lab report`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Report {
    /// Always `joj-lab-report`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// The results it was made of.
    pub sources: Vec<ReportSource>,
    /// Tables with one measured value at least.
    pub tables: Vec<TableReport>,
    /// Papers' tables for which the result has no cell.
    pub unserved: Vec<Unserved>,
}

/// A result that a report was made of.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ReportSource {
    /// The title of the plan that was measured.
    pub title: String,
    /// What it ran on.
    pub machine: LabMachine,
}

/// A table of which nothing was measured.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Unserved {
    pub name: String,
    /// Paper and number of the table or figure.
    pub paper: String,
    /// What the table shows, in a line.
    pub title: String,
    /// The plan that would serve it; `null` where the device model does.
    pub plan: Option<String>,
}

/// A table or figure.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TableReport {
    pub name: String,
    /// What the table shows, in a line.
    pub title: String,
    /// The paper, and the table's number in it.
    pub paper: String,
    /// The plan that serves it; `null` where the device model does.
    pub plan: Option<String>,
    /// What else has to be known.
    pub notes: Vec<String>,
    /// From which factor on a difference is given a reason.
    pub factor: f64,
    pub columns: Vec<ColumnReport>,
    pub rows: Vec<RowReport>,
    /// Whether rows stand in the paper's order.
    pub orders: Vec<Order>,
    /// Whether rows are at the end where the paper has them.
    pub extremes: Vec<ExtremeReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ColumnReport {
    pub label: String,
    /// Unit of its values.
    pub unit: String,
    /// True where they are the device model's, without a guest.
    pub of_device: bool,
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RowReport {
    /// Its group; may be empty.
    pub group: String,
    /// Its name in the group.
    pub label: String,
    /// The row's group and label.
    pub name: String,
    /// The row that its values are multiples of.
    pub relative_to: Option<String>,
    /// What has to be known of it.
    pub note: Option<String>,
    /// One for each column.
    pub values: Vec<ValueReport>,
}

/// A value of the paper beside joj's.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ValueReport {
    /// The paper's; `null` where it has none.
    pub paper: Option<f64>,
    /// The lab's; `null` where it was not measured.
    pub here: Option<f64>,
    /// Why it was not measured.
    pub not_measured: Option<String>,
    /// The lab's as a multiple of the paper's.
    pub ratio: Option<f64>,
    /// The line of the cell that it comes from.
    pub cell: Option<String>,
    /// Where it is off by more than the table's factor: what was measured that goes with it.
    pub reason: Option<Reason>,
}

/// Why a value is not the paper's.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Reason {
    /// Where the difference comes from.
    pub cause: Cause,
    /// The figures that say so.
    pub text: String,
}

/// Where a difference lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Another amount is written: kernel and SQLite are newer than the paper's.
    Software,
    /// Another amount is written, without SQLite: the kernel is newer than the paper's.
    Kernel,
    /// Another amount is written: waldio is not the paper's WALDIO.
    Waldio,
    /// Another amount is written: what stands in the paper's place is a model of it.
    Model,
    /// The emulated processor's time.
    Processor,
    /// The device's description.
    DeviceModel,
    /// Either of two rows: the value is a multiple, and the paper has no more.
    Quotient,
}

impl Cause {
    /// The cause as the report's text names it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Software => "newer kernel and SQLite",
            Self::Kernel => "newer kernel",
            Self::Waldio => "waldio, not the paper's WALDIO",
            Self::Model => "a model, not the paper's program",
            Self::Processor => "emulated processor",
            Self::DeviceModel => "device model",
            Self::Quotient => "what the two cost here",
        }
    }
}

/// Whether rows stand in the paper's order: every two of them whose paper values are 5 % or more apart.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Order {
    pub column: String,
    /// The group that the rows are of, or the label that they share.
    pub among: String,
    /// How many were put in order.
    pub rows: usize,
    /// Pairs that stand the other way round: the paper's higher one first.
    pub reversed: Vec<(String, String)>,
    /// Pairs that are equal here, within the 0.5 % by which two runs may differ: the paper's higher one first.
    #[serde(default)]
    pub equal: Vec<(String, String)>,
}

/// Whether a row is at the end where the paper has it.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ExtremeReport {
    pub column: String,
    pub row: String,
    /// Whether the paper has the row as the highest or as the lowest.
    pub is: End,
    /// With how many others it was held against.
    pub others: usize,
    /// Others that are beyond it; empty where it is as in the paper.
    pub beyond: Vec<String>,
}
