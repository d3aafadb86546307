//! What `joj whatif` found, as docs/whatif.md describes its JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::recording::page_transactions::{PageTransactions, RecordedDatabase, RecordedMode};
use crate::recording::whatif::breakdown::BlockedPart;
use crate::recording::whatif::configuration::Configuration;
use crate::recording::whatif::forecast::Forecast;
use crate::statistics::Estimate;

/// First word of a result.
pub const WHATIF_FORMAT: &str = "joj-whatif";
/// Version that this joj writes.
pub const WHATIF_VERSION: u32 = 2;

/// What a configuration was like.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WhatifFigures {
    /// From the program's first call to its last one's end: its think time, and the time in calls as measured.
    pub elapsed_ns: Estimate,
    /// Between which times that lies where it is not known whether waits in vain end earlier; `null` where that makes little difference.
    #[serde(default)]
    pub waits: Option<WaitRange>,
    /// That as a multiple of the configuration `recorded`: round by round, and of the medians on an emulated disk.
    pub ratio: Estimate,
    /// Time in calls on files and in commits, of all threads together.
    pub blocked_ns: Estimate,
    /// Calls that make something durable; `null` where the kernel refuses to count them.
    pub syncs: Option<u64>,
    /// What the device of the directory wrote, by whomever; `null` where there is none.
    pub device_bytes: Option<Estimate>,
    /// Calls with another result than in the recording.
    pub differing: u64,
}

impl WhatifFigures {
    /// The shortest and the longest that elapsed may be, in nanoseconds: by chance, and by the waits.
    pub fn range_ns(&self) -> (f64, f64) {
        let Estimate { low, high, .. } = self.elapsed_ns;
        self.waits.map_or((low, high), |waits| (low.min(waits.shortest_ns), high.max(waits.longest_ns)))
    }
}

/// Where the two make less of a difference, as a part of elapsed, it is as good as known.
const WAITS_DIFFER_MIN: f64 = 0.05;

/// How long a program takes if its waits in vain end earlier, and if none does: medians, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WaitRange {
    /// Each ends as soon as what ended the last one of them is there.
    pub shortest_ns: f64,
    /// Each lasts as long as recorded.
    pub longest_ns: f64,
}

impl WaitRange {
    /// Of the forecasts of all rounds.
    pub fn of(rounds: &[Forecast]) -> Option<Self> {
        let range = |round: &Forecast| (round.shortest_ns as f64, round.longest_ns as f64);
        let elapsed_ns =
            Estimate::of(&rounds.iter().map(|round| round.elapsed_ns as f64).collect::<Vec<_>>())?;
        let range = Self::median(rounds.iter().map(range))?;
        (range.longest_ns - range.shortest_ns > elapsed_ns.median * WAITS_DIFFER_MIN).then_some(range)
    }

    /// Of rounds that were measured apart; one in which the two are the same has elapsed.
    pub fn of_rounds(rounds: &[WhatifFigures]) -> Option<Self> {
        let is_known = rounds.iter().all(|round| round.waits.is_none());
        Self::median(rounds.iter().map(WhatifFigures::range_ns)).filter(|_| !is_known)
    }

    fn median(ranges_ns: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let (shortest, longest): (Vec<f64>, Vec<f64>) = ranges_ns.unzip();
        let (shortest, longest) = (Estimate::of(&shortest)?, Estimate::of(&longest)?);
        Some(Self { shortest_ns: shortest.median, longest_ns: longest.median })
    }
}

/// What came of a configuration.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhatifOutcome {
    /// It was measured.
    Measured(WhatifFigures),
    /// It cannot be had, for this reason.
    Unavailable(String),
}

/// What came of the program itself, run in a configuration.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhatifRerun {
    /// How long it took, from its start to its end, in nanoseconds.
    Measured(Estimate),
    /// It cannot be run so, for this reason.
    Unavailable(String),
}

/// A row.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WhatifRow {
    /// Which.
    pub configuration: Configuration,
    /// What of durability it gives up, in words.
    pub gives_up: String,
    /// What came of it.
    pub outcome: WhatifOutcome,
    /// What came of the program itself, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun: Option<WhatifRerun>,
}

impl WhatifRow {
    /// How long the program itself took so, where it was run.
    pub fn truth(&self) -> Option<&Estimate> {
        match &self.rerun {
            Some(WhatifRerun::Measured(elapsed_ns)) => Some(elapsed_ns),
            _ => None,
        }
    }

    /// By which part of the truth the forecast is off.
    pub fn error(&self) -> Option<f64> {
        let (figures, truth) = (self.figures()?, self.truth()?);
        (truth.median > 0.0).then(|| figures.elapsed_ns.median / truth.median - 1.0)
    }

    /// Its figures, where it has any.
    pub fn figures(&self) -> Option<&WhatifFigures> {
        match &self.outcome {
            WhatifOutcome::Measured(figures) => Some(figures),
            WhatifOutcome::Unavailable(_) => None,
        }
    }
}

/// A database of the recording.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct WhatifDatabase {
    /// Its path.
    pub path: String,
    /// How most of its commits are made safe.
    pub journal_mode: String,
    /// How many commits it has.
    pub commits: u64,
}

impl WhatifDatabase {
    /// Those of these commits.
    pub fn of(found: &PageTransactions) -> Vec<Self> {
        let mut modes: Vec<BTreeMap<RecordedMode, u64>> = vec![BTreeMap::new(); found.databases.len()];
        for part in found.parts() {
            *modes[part.database].entry(part.mode).or_default() += 1;
        }
        let one = |(database, modes): (&RecordedDatabase, BTreeMap<RecordedMode, u64>)| {
            let most = modes.iter().max_by_key(|(_, commits)| **commits);
            let journal_mode = most.map_or("", |(mode, _)| mode.word()).to_owned();
            Self { path: database.path.clone(), journal_mode, commits: modes.values().sum() }
        };
        found.databases.iter().zip(modes).map(one).collect()
    }
}

/// The result.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WhatifResult {
    /// Always `joj-whatif`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// The recording's file, as it was given, or the command.
    pub recording: String,
    /// Where it was replayed: the directory, its filesystem and device.
    pub place: String,
    /// Calls and threads of the recording.
    pub calls: u64,
    /// See above.
    pub threads: u64,
    /// How long the recording is.
    pub recorded_ns: u64,
    /// SQLite of the rows with commits; `null` where there is none.
    pub sqlite: Option<String>,
    /// How often each configuration was replayed; on an emulated disk the first one, and others may have fewer samples.
    pub rounds: u32,
    /// True where the disk is an emulated one: then each round of each row had a new disk, and no round of a row belongs to one of another.
    #[serde(default)]
    pub emulated: bool,
    /// How many calls on files of the recording no row replays although the disk may have worked for them, by the call: their time is think
    /// time.
    #[serde(default)]
    pub left_out: BTreeMap<String, u64>,
    /// True where the rows with commits lack so many closes of a database that they may in truth be slower than the program as it is.
    #[serde(default)]
    pub lacks_closes: bool,
    /// The databases to which the program commits.
    pub databases: Vec<WhatifDatabase>,
    /// The rows.
    pub rows: Vec<WhatifRow>,
    /// Where the time in calls went, as recorded.
    pub parts: Vec<BlockedPart>,
    /// What to make of it.
    pub advice: Vec<String>,
    /// What to know of it.
    pub notes: Vec<String>,
}

impl WhatifResult {
    /// The figures of a configuration.
    pub fn figures(&self, configuration: Configuration) -> Option<&WhatifFigures> {
        self.rows.iter().find(|row| row.configuration == configuration)?.figures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast(elapsed_ns: u64, shortest_ns: u64, longest_ns: u64) -> Forecast {
        Forecast { elapsed_ns, shortest_ns, longest_ns }
    }

    #[test]
    fn a_range_of_waits_is_told_where_it_makes_a_difference() {
        let found = WaitRange::of(&[forecast(100, 90, 100), forecast(110, 20, 300), forecast(105, 40, 200)]);
        assert_eq!(found, Some(WaitRange { shortest_ns: 40.0, longest_ns: 200.0 }));
        assert_eq!(WaitRange::of(&[forecast(100, 98, 103)]), None);
        assert_eq!(WaitRange::of(&[]), None);
    }
}
