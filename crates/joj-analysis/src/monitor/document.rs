//! The file of `joj monitor --json`. Field by field: docs/monitor_format.md.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::monitor::quantity::QuantityKind;
use crate::monitor::summary::SeriesSummary;
use crate::monitor::table::Table;

/// The value of `format` in each file.
pub const FORMAT: &str = "joj-monitor";
/// The version of the format that this joj writes.
pub const VERSION: u32 = 1;

/// A file that `joj monitor --json` writes.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MonitorDocument {
    /// Always `joj-monitor`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    pub conditions: Conditions,
    pub ending: MonitorEnding,
    /// What the monitor itself used.
    pub own_cost: OwnCost,
    /// What to hold against the figures.
    pub warnings: Vec<String>,
    /// When each sample ended, in milliseconds since the first reading.
    pub at_ms: Numbers,
    /// How long each sample was, in milliseconds.
    pub span_ms: Numbers,
    /// The quantities, each with its value in every interval.
    pub quantities: Vec<Series>,
}

/// The machine and the settings of the measurement.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Conditions {
    pub joj_version: String,
    /// Commit it was built from.
    pub joj_commit: String,
    /// Words, the program first.
    pub command_line: Vec<String>,
    /// UTC, ISO 8601.
    pub started_at: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Processors this process may use.
    pub cores: usize,
    /// Ticks that a processor has in a second.
    pub ticks_per_s: u64,
    /// Interval asked for, in milliseconds.
    pub every_ms: u64,
    /// Time asked for, in milliseconds.
    pub for_ms: Option<u64>,
    /// The COMMAND and its words; empty without one.
    pub command: Vec<String>,
}

/// How the measurement ended.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MonitorEnding {
    /// `time`, `command`, `signal`, `limit` (of samples), `error`.
    pub reason: EndReason,
    /// What was wrong; only with `error`.
    pub error: Option<String>,
    /// The COMMAND's exit code, 128 and the signal's number where one ended it.
    pub exit_code: Option<i32>,
    /// Intervals that passed without a sample of their own because the machine was late.
    pub late_intervals: u64,
}

/// What ended the sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The time asked for was over.
    Time,
    /// The COMMAND ended.
    Command,
    /// Ctrl-C, or SIGTERM, or SIGHUP.
    Signal,
    /// The table was full.
    Limit,
    /// A text of /proc could not be read.
    Error,
}

/// What the monitor itself used, from its first reading to its last.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnCost {
    /// Processor time in user mode and in the kernel, in milliseconds.
    pub cpu_ms: f64,
    /// Wall time, in milliseconds.
    pub elapsed_ms: f64,
    /// Processor time in per cent of the wall time: of one processor.
    pub percent: f64,
}

impl OwnCost {
    /// Of processor time and wall time.
    pub fn of(cpu_us: u64, elapsed_ns: u64) -> OwnCost {
        let (cpu_ms, elapsed_ms) = (cpu_us as f64 / 1e3, elapsed_ns as f64 / 1e6);
        OwnCost {
            cpu_ms,
            elapsed_ms,
            percent: if elapsed_ns > 0 { cpu_ms * 100.0 / elapsed_ms } else { 0.0 },
        }
    }
}

/// One quantity of one thing.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Series {
    /// What the thing is.
    pub kind: QuantityKind,
    /// Its name; empty for what a machine has one of.
    pub name: String,
    pub quantity: String,
    pub unit: String,
    /// What it was like.
    pub summary: SeriesSummary,
    /// A value for each sample.
    pub values: Numbers,
}

/// Numbers, or nothing (`null`) where a value is not a number. Three digits behind the point are written.
#[derive(Debug, Clone, Default, JsonSchema)]
pub struct Numbers(#[schemars(with = "Vec<Option<f64>>")] pub Vec<f64>);

impl PartialEq for Numbers {
    fn eq(&self, other: &Numbers) -> bool {
        let same = |(one, other): (&f64, &f64)| one == other || (one.is_nan() && other.is_nan());
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

/// Rounded to three digits behind the point.
pub fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_seq(self.0.iter().map(|value| Some(rounded(*value)).filter(|value| value.is_finite())))
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Numbers, D::Error> {
        let values = Vec::<Option<f64>>::deserialize(deserializer)?;
        Ok(Numbers(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()))
    }
}

impl MonitorDocument {
    /// Everything that `table` has.
    pub fn new(
        table: &Table,
        conditions: Conditions,
        ending: MonitorEnding,
        own_cost: OwnCost,
        warnings: Vec<String>,
    ) -> MonitorDocument {
        let in_ms =
            |times_ns: &[u64]| Numbers(times_ns.iter().map(|time_ns| *time_ns as f64 / 1e6).collect());
        let mut quantities = Vec::new();
        for thing in table.things() {
            for (index, quantity) in thing.kind.quantities().iter().enumerate() {
                let Some(summary) = table.summary(thing, index, conditions.every_ms * 1_000_000) else {
                    continue;
                };
                quantities.push(Series {
                    kind: thing.kind,
                    name: thing.name.clone(),
                    quantity: quantity.name.to_owned(),
                    unit: quantity.unit.to_owned(),
                    summary,
                    values: Numbers(table.column(thing, index)),
                });
            }
        }
        MonitorDocument {
            format: FORMAT.to_owned(),
            version: VERSION,
            conditions,
            ending,
            own_cost,
            warnings,
            at_ms: in_ms(&table.ends_ns),
            span_ms: in_ms(&table.spans_ns),
            quantities,
        }
    }

    /// How many intervals were measured.
    pub fn samples(&self) -> usize {
        self.span_ms.0.len()
    }

    /// The series of one thing, in the order of its kind's quantities.
    pub fn things(&self) -> impl Iterator<Item = &[Series]> {
        self.quantities.chunk_by(|one, other| one.kind == other.kind && one.name == other.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::table;
    use super::*;

    fn document() -> MonitorDocument {
        let ending =
            MonitorEnding { reason: EndReason::Time, error: None, exit_code: None, late_intervals: 0 };
        let conditions = Conditions { every_ms: 500, ..Conditions::default() };
        MonitorDocument::new(&table(), conditions, ending, OwnCost::of(1_500, 1_500_000_000), Vec::new())
    }

    #[test]
    fn a_document_survives_its_own_text() {
        let document = document();
        let text = serde_json::to_string(&document).unwrap();
        assert!(text.starts_with("{\"format\":\"joj-monitor\",\"version\":1,"), "{text:.80}");
        assert!(!text.contains("NaN"));
        assert_eq!(serde_json::from_str::<MonitorDocument>(&text).unwrap(), document);
        assert_eq!(document.own_cost.percent, 0.1);
    }

    #[test]
    fn every_series_is_as_long_as_the_samples() {
        let document = document();
        assert_eq!(document.samples(), 3);
        assert_eq!(document.at_ms, Numbers(vec![500.0, 1_000.0, 1_500.0]));
        for series in &document.quantities {
            assert_eq!(series.values.0.len(), 3, "{} {}", series.name, series.quantity);
        }
        let vda: Vec<&Series> = document.quantities.iter().filter(|series| series.name == "vda").collect();
        assert_eq!((vda[0].quantity.as_str(), vda[0].summary.mean), ("busy", 20.0));
        assert_eq!(document.things().count(), 6);
    }

    #[test]
    fn missing_values_are_null() {
        let text = serde_json::to_string(&Numbers(vec![1.0, f64::NAN, 2.000_49])).unwrap();
        assert_eq!(text, "[1.0,null,2.0]");
    }
}
