//! The result file of `joj bench`, described field by field in docs/result_format.md.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::environment::{Environment, SqliteBuild};
use crate::bench::io::row::IoRow;
use crate::bench::many_writers::ContendedRow;
use crate::bench::row::Row;
use crate::bench::run::{DeviceDelta, Latency};
use crate::bench::study::parts::Study;
use crate::statistics::Estimate;

/// The value of `format` in every file of this kind.
pub const FORMAT: &str = "joj-bench";

/// The newest version this program writes and reads.
pub const VERSION: u32 = 2;

/// What `joj bench --json` writes.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Document {
    /// Always `joj-bench`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// Conditions.
    pub environment: Environment,
    /// Builds of SQLite.
    pub builds: Vec<SqliteBuild>,
    /// What was asked for and what it took.
    pub plan: RunPlan,
    /// The disk's own limit.
    pub limits: Vec<Limit>,
    /// Points of the latency distributions, in parts of 100,000.
    pub quantile_parts: Vec<u64>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Rows of contended commits; empty where none were asked for, and in files of older programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contended: Vec<ContendedRow>,
    /// Rows of `--io`; empty where it was not asked for, and in files of older programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<IoRow>,
    /// What `--waldio-study` measured; absent where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<Study>,
    /// What to hold against the figures.
    pub warnings: Vec<Warning>,
}

/// Something that makes a figure doubtful.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Warning {
    /// Which of the checks: a stable word for programs.
    pub kind: String,
    /// What was seen.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// How much was measured.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
pub struct RunPlan {
    /// Transactions per run that were asked for; 0 where runs end by time.
    pub transactions: u64,
    /// Seconds that the clock of a contended run covers, and of one of `--io` at most; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Runs per row.
    pub runs: u32,
    /// Seconds it was expected to take.
    pub expected_s: f64,
    /// Seconds it took.
    pub elapsed_s: f64,
}

/// A way to make 4 KiB durable without SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Overwrites of 4 KiB with O_DIRECT and RWF_DSYNC.
    DirectDurableWrite,
    /// Overwrites of 4 KiB through the page cache, fdatasync after each.
    WriteFdatasync,
    /// fdatasync of a file that has nothing to write.
    LoneFlush,
}

impl LimitKind {
    /// As tables name it.
    pub fn title(self) -> &'static str {
        match self {
            Self::DirectDurableWrite => "4 KiB overwrite, O_DIRECT + RWF_DSYNC",
            Self::WriteFdatasync => "4 KiB overwrite, then fdatasync",
            Self::LoneFlush => "fdatasync of a clean file",
        }
    }

    /// True for what a commit could at best be; a flush alone stores nothing.
    pub fn stores_data(self) -> bool {
        self != Self::LoneFlush
    }
}

/// One way, measured before every group of rows.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Limit {
    /// Which.
    pub kind: LimitKind,
    /// Why it could not be measured here; `null` where it was.
    pub refused: Option<String>,
    /// The measurements.
    pub runs: Vec<LimitRun>,
    /// Latencies of all of them at the points of `quantile_parts`, in nanoseconds.
    pub latency_quantiles_ns: Vec<u64>,
    /// Operations per second.
    pub operations_per_s: Option<Estimate>,
    /// Latencies of all of them.
    pub latency: Latency,
}

/// One measurement of a limit.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LimitRun {
    /// Which round it belonged to; the first is 0.
    pub round: u32,
    /// Operations that the clock covers.
    pub operations: u64,
    /// Wall time of all of them, in nanoseconds.
    pub elapsed_ns: u64,
    /// Latencies of single operations.
    pub latency: Latency,
    /// Bytes this process wrote.
    pub own_bytes: u64,
    /// What the block device did meanwhile.
    pub device: Option<DeviceDelta>,
    /// Processor cores that others kept busy meanwhile.
    pub others_cores: Option<f64>,
    /// Share of latencies near the scheduler's tick.
    pub tick_share: f64,
}

impl LimitRun {
    /// Operations per second.
    pub fn operations_per_s(&self) -> f64 {
        self.operations as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// Why a file is not a result this program can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormatError {
    /// Not JSON, or not of this shape.
    Shape(String),
    /// JSON of some other kind.
    Foreign,
    /// Written by a newer joj.
    Newer(u32),
}

impl fmt::Display for FormatError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(reason) => write!(
                formatter,
                "it is not a whole result file ({reason}); write one with `joj bench --json FILE`"
            ),
            Self::Foreign => write!(
                formatter,
                "its `format` is not \"{FORMAT}\"; give a file that `joj bench --json FILE` wrote"
            ),
            Self::Newer(version) => write!(
                formatter,
                "it has version {version} of the format and this joj reads up to {VERSION}; use a newer joj"
            ),
        }
    }
}

impl std::error::Error for FormatError {}

/// Only what tells a format apart, so that a newer version is refused for its version and not for its shape.
#[derive(Deserialize)]
struct Heading {
    format: Option<String>,
    version: Option<u32>,
}

impl Document {
    /// Reads the text of a result file.
    /// # Errors
    /// [`FormatError`] for anything but a result of a known version.
    pub fn parse(text: &str) -> Result<Document, FormatError> {
        let shape = |error: serde_json::Error| FormatError::Shape(error.to_string());
        let heading: Heading = serde_json::from_str(text).map_err(shape)?;
        if heading.format.as_deref() != Some(FORMAT) {
            return Err(FormatError::Foreign);
        }
        match heading.version {
            Some(1..=VERSION) => serde_json::from_str(text).map_err(shape),
            Some(newer) if newer > VERSION => Err(FormatError::Newer(newer)),
            _ => Err(FormatError::Shape("its `version` is missing or 0".to_owned())),
        }
    }

    /// The faster of the ways that store data: what every row is a share of.
    pub fn best_limit(&self) -> Option<&Limit> {
        let speed = |limit: &&Limit| limit.operations_per_s.map_or(0.0, |speed| speed.median);
        let storing = self.limits.iter().filter(|limit| limit.kind.stores_data());
        storing
            .filter(|limit| limit.operations_per_s.is_some())
            .max_by(|left, right| speed(left).total_cmp(&speed(right)))
    }

    /// Rows that are not to be used, of whatever kind: (what was measured, what was wrong).
    pub fn failures(&self) -> Vec<(String, &str)> {
        let of_rows = self.rows.iter().map(|row| (row.key.to_string(), row.failure.as_deref()));
        let of_contended = self.contended.iter().map(|row| (row.key.to_string(), row.failure.as_deref()));
        let of_study = self.study.iter().flat_map(Study::failures);
        let of_io = self.io.iter().map(|row| (row.key.to_string(), row.failure.as_deref()));
        of_rows
            .chain(of_contended)
            .chain(of_io)
            .chain(of_study)
            .filter_map(|(key, failure)| Some((key, failure?)))
            .collect()
    }

    /// True where every row is sound.
    pub fn is_sound(&self) -> bool {
        self.failures().is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::io::row::tests::row as io_row;
    use crate::bench::io::way::SyncWay;
    use crate::bench::key::{JournalMode, LogState};
    use crate::bench::many_writers::tests::{key as contended_key, row as contended_row};
    use crate::bench::row::tests::{key, row};
    use crate::bench::study::durability::Durability;
    use crate::bench::study::initialisation::Approach;
    use crate::bench::study::initialisation::tests::row as initialisation_row;
    use crate::bench::study::pattern::Pattern;
    use crate::bench::study::pattern::tests::row as pattern_row;
    use crate::bench::study::table_two::tests::row as table_two_row;

    pub(crate) fn document() -> Document {
        let mut rows = vec![
            row(key(JournalMode::Wal, LogState::Fresh), &[500, 510, 490]),
            row(key(JournalMode::Waldio, LogState::Fresh), &[900, 910, 890]),
        ];
        crate::bench::row::summarise(&mut rows, &[Latency::default(); 2]);
        let limit = |kind, speed| Limit {
            kind,
            refused: None,
            runs: Vec::new(),
            latency_quantiles_ns: Vec::new(),
            operations_per_s: Estimate::of(&[speed]),
            latency: Latency::default(),
        };
        Document {
            format: FORMAT.to_owned(),
            version: VERSION,
            environment: Environment { cores: 2, ..Environment::default() },
            builds: Vec::new(),
            plan: RunPlan::default(),
            limits: vec![
                limit(LimitKind::DirectDurableWrite, 1_000.0),
                limit(LimitKind::WriteFdatasync, 800.0),
                limit(LimitKind::LoneFlush, 2_000.0),
            ],
            quantile_parts: crate::statistics::quantile_grid(),
            rows,
            contended: Vec::new(),
            io: Vec::new(),
            study: None,
            warnings: Vec::new(),
        }
    }

    /// A result of contended commits alone.
    pub(crate) fn contended() -> Document {
        let mut contended = vec![
            contended_row(contended_key(JournalMode::Wal, 2), &[(500, 90_000), (510, 80_000), (490, 70_000)]),
            contended_row(contended_key(JournalMode::Waldio, 2), &[(900, 9_000), (910, 8_000), (890, 7_000)]),
        ];
        contended.iter_mut().flat_map(|row| &mut row.runs).for_each(|run| {
            run.errors.clear();
            run.longest_failed_ns = None;
        });
        crate::bench::many_writers::summarise(&mut contended, &[Latency::default(); 2]);
        let plan = RunPlan { seconds: Some(2.0), ..RunPlan::default() };
        Document { plan, rows: Vec::new(), contended, ..document() }
    }

    /// A result of the study alone.
    pub(crate) fn study() -> Document {
        let initialisation = vec![
            initialisation_row(Approach::Zeroes, &[500, 510, 490]),
            initialisation_row(Approach::Unwritten, &[400, 410, 390]),
        ];
        let patterns = vec![pattern_row(Pattern::Embedded, &[500, 510, 490])];
        let table_two = vec![table_two_row(JournalMode::Waldio, Durability::Pd, &[500, 510, 490])];
        let study = Study { initialisation, patterns, table_two };
        Document { rows: Vec::new(), study: Some(study), ..document() }
    }

    /// A result of file I/O alone.
    pub(crate) fn io() -> Document {
        let plan = RunPlan { seconds: Some(2.0), ..RunPlan::default() };
        let io = vec![io_row(SyncWay::Fsync, &[500, 510, 490]), io_row(SyncWay::None, &[900, 910, 890])];
        Document { plan, rows: Vec::new(), io, ..document() }
    }

    #[test]
    fn a_document_survives_its_own_text() {
        for written in [document(), contended(), io(), study()] {
            let text = serde_json::to_string(&written).unwrap();
            assert!(Document::parse(&text).unwrap() == written, "reading back changed {text:.200}");
            assert_eq!(text.contains("\"contended\""), !written.contended.is_empty());
            assert_eq!(text.contains("\"io\""), !written.io.is_empty());
            assert_eq!(text.contains("\"study\""), written.study.is_some());
        }
    }

    /// Goal: what older programs measured stays comparable. Method: version 1 wrote `side` where version 2 writes `mode`.
    #[test]
    fn files_of_version_1_are_read() {
        for written in [document(), contended(), study()] {
            let text = serde_json::to_string(&written).unwrap();
            let old = text.replacen("\"version\":2", "\"version\":1", 1).replace("\"mode\":", "\"side\":");
            assert!(old.contains("\"side\":\"waldio\""), "{old:.200}");
            assert!(
                Document::parse(&old).unwrap() == Document { version: 1, ..written },
                "read as another: {old:.200}"
            );
        }
    }

    #[test]
    fn garbage_foreign_and_newer_files_are_told_apart() {
        let text = serde_json::to_string(&document()).unwrap();
        let newer = text.replacen("\"version\":2", "\"version\":3,\"surprise\":[]", 1);
        assert_eq!(Document::parse(&newer), Err(FormatError::Newer(3)));
        assert_eq!(Document::parse("{\"format\":\"fio\"}"), Err(FormatError::Foreign));
        assert_eq!(Document::parse("{}"), Err(FormatError::Foreign));
        for garbage in ["", "garbage", "[1]", &text[..text.len() / 2], "{\"format\":\"joj-bench\"}"] {
            assert!(matches!(Document::parse(garbage), Err(FormatError::Shape(_))), "{garbage:.40}");
        }
        let halved = "{\"format\":\"joj-bench\",\"version\":1}";
        assert!(matches!(Document::parse(halved), Err(FormatError::Shape(_))));
    }

    #[test]
    fn the_limit_is_the_faster_way_that_stores_data() {
        assert_eq!(document().best_limit().unwrap().kind, LimitKind::DirectDurableWrite);
        let mut refused = document();
        refused.limits[0].operations_per_s = None;
        assert_eq!(refused.best_limit().unwrap().kind, LimitKind::WriteFdatasync);
        refused.limits.clear();
        assert_eq!(refused.best_limit(), None);
    }
}
