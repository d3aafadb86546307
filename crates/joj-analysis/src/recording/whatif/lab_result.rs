//! What `joj whatif` found on emulated disks: its JSON, as docs/whatif.md describes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filesystem::Filesystem;
use crate::lab::result::LabMachine;
use crate::recording::whatif::configuration::Configuration;
use crate::recording::whatif::outcome::{WaitRange, WhatifFigures, WhatifOutcome, WhatifResult, WhatifRow};
use crate::statistics::Estimate;

/// First word of a result.
pub const WHATIF_LAB_FORMAT: &str = "joj-lab-whatif";
/// Version that this joj writes.
pub const WHATIF_LAB_VERSION: u32 = 2;

/// The result of `joj whatif` with --device or --filesystem.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WhatifLabResult {
    /// Always `joj-lab-whatif`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// The recording's file, as it was given, or the command.
    pub recording: String,
    /// What it ran on.
    pub machine: LabMachine,
    /// Devices in the order in which they were given, and on each the filesystems.
    pub disks: Vec<WhatifLabDisk>,
}

/// All configurations on one emulated disk.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WhatifLabDisk {
    /// The filesystem.
    pub filesystem: Filesystem,
    /// The emulated device below, by its name or file.
    pub device: String,
    /// What came of it.
    pub outcome: WhatifLabOutcome,
}

/// What came of one disk.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhatifLabOutcome {
    /// A table as on a disk of this machine.
    Measured(Box<WhatifResult>),
    /// There is no result, for this reason.
    Failed(String),
}

/// A row, and of each of its rounds, which was measured alone, a result without other rows, or why there is none.
pub type RowRounds = (Configuration, Vec<Result<WhatifResult, String>>);

impl WhatifLabOutcome {
    /// Puts the rows of a disk together, in their order, each as a multiple of the recorded one. Without that there is no result. The
    /// advice is for whoever knows the rest.
    pub fn of_rows(rows: Vec<RowRounds>) -> Self {
        let rows: Vec<RowTogether> = rows.into_iter().map(RowTogether::of).collect();
        let first = rows.iter().find(|row| row.configuration == Configuration::Recorded);
        let (mut all, recorded) = match first.map(|row| &row.found) {
            Some(Ok(found)) => found.clone(),
            Some(Err(reason)) => return Self::Failed(reason.clone()),
            None => return Self::Failed("the recorded row is missing".to_owned()),
        };
        let lost = lost_rounds(&rows);
        all.rows.clear();
        for row in rows {
            all.add(row, &recorded);
        }
        all.notes.extend(lost);
        Self::Measured(Box::new(all))
    }
}

/// The rounds of a row as one.
struct RowTogether {
    configuration: Configuration,
    /// The first round that has figures, and those of all; or why there are none.
    found: Result<(WhatifResult, WhatifFigures), String>,
    /// Where not all rounds have figures.
    lost: Option<LostRounds>,
}

#[derive(PartialEq)]
struct LostRounds {
    /// So many have figures, of so many.
    measured: usize,
    all: usize,
    reason: String,
}

impl RowTogether {
    fn of((configuration, rounds): RowRounds) -> Self {
        let all = rounds.len();
        let (mut results, mut figures, mut reason) = (Vec::new(), Vec::new(), None);
        for round in rounds {
            match round.and_then(|found| Ok((figures_of(&found, configuration)?, found))) {
                Ok((of_round, found)) => {
                    figures.push(of_round);
                    results.push(found);
                }
                Err(why) => {
                    reason.get_or_insert(why);
                }
            }
        }
        let none = || reason.clone().unwrap_or_else(not_measured);
        let found = WhatifResult::of_rounds(results).zip(WhatifFigures::of_rounds(&figures));
        let found = found.ok_or_else(none);
        let lost = reason
            .map(|reason| LostRounds { measured: figures.len(), all, reason })
            .filter(|_| found.is_ok());
        Self { configuration, found, lost }
    }
}

fn not_measured() -> String {
    "it was not measured".to_owned()
}

fn figures_of(found: &WhatifResult, configuration: Configuration) -> Result<WhatifFigures, String> {
    let row = found.rows.iter().find(|row| row.configuration == configuration).ok_or_else(not_measured)?;
    match &row.outcome {
        WhatifOutcome::Measured(figures) => Ok(figures.clone()),
        WhatifOutcome::Unavailable(reason) => Err(reason.clone()),
    }
}

/// Which rows have fewer rounds than they were to have, those with the same reason together.
fn lost_rounds(rows: &[RowTogether]) -> Vec<String> {
    let mut lost: Vec<(&LostRounds, Vec<&str>)> = Vec::new();
    for row in rows {
        let Some(reason) = &row.lost else { continue };
        match lost.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, titles)) => titles.push(row.configuration.title()),
            None => lost.push((reason, vec![row.configuration.title()])),
        }
    }
    let told = lost.iter().map(|(LostRounds { measured, all, reason }, titles)| {
        format!("Measured in {measured} of {all} rounds: {} ({reason}).", titles.join("; "))
    });
    told.collect()
}

impl WhatifFigures {
    /// Of rounds of one sample each; the ratio is for whoever knows the recorded row.
    fn of_rounds(rounds: &[Self]) -> Option<Self> {
        let estimate =
            |of: fn(&Self) -> Option<f64>| Estimate::of(&rounds.iter().filter_map(of).collect::<Vec<f64>>());
        let mut syncs: Vec<u64> = rounds.iter().filter_map(|round| round.syncs).collect();
        syncs.sort_unstable();
        Some(Self {
            elapsed_ns: estimate(|round| Some(round.elapsed_ns.median))?,
            waits: WaitRange::of_rounds(rounds),
            ratio: rounds.first()?.ratio,
            blocked_ns: estimate(|round| Some(round.blocked_ns.median))?,
            syncs: syncs.get(syncs.len().saturating_sub(1) / 2).copied(),
            device_bytes: estimate(|round| Some(round.device_bytes?.median)),
            differing: rounds.iter().map(|round| round.differing).max()?,
        })
    }
}

impl WhatifResult {
    /// The first of these rounds, with where the time in calls went in all of them.
    fn of_rounds(rounds: Vec<Self>) -> Option<Self> {
        let mut first = rounds.first()?.clone();
        for part in &mut first.parts {
            let same = |round: &Self| {
                let parts = &mut round.parts.iter();
                parts.find(|other| other.call == part.call && other.files == part.files).cloned()
            };
            let times_ns: Vec<f64> =
                rounds.iter().filter_map(same).map(|other| other.blocked_ns.median).collect();
            part.blocked_ns = Estimate::of(&times_ns).unwrap_or(part.blocked_ns);
        }
        first.parts.sort_by(|one, other| other.blocked_ns.median.total_cmp(&one.blocked_ns.median));
        first.rounds = rounds.len().try_into().unwrap_or(u32::MAX);
        Some(first)
    }

    fn add(&mut self, row: RowTogether, recorded: &WhatifFigures) {
        let configuration = row.configuration;
        let mut gives_up = configuration.gives_up().to_owned();
        let outcome = match row.found {
            Err(reason) => WhatifOutcome::Unavailable(reason),
            Ok((found, figures)) => {
                for note in found.notes {
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
                self.sqlite = self.sqlite.take().or(found.sqlite);
                self.lacks_closes |= found.lacks_closes;
                let mut rows = found.rows.into_iter();
                if let Some(row) = rows.find(|row| row.configuration == configuration) {
                    gives_up = row.gives_up;
                }
                let ratio = match configuration {
                    Configuration::Recorded => {
                        Estimate { median: 1.0, low: 1.0, high: 1.0, ..figures.elapsed_ns }
                    }
                    _ => quotient(&figures.elapsed_ns, &recorded.elapsed_ns),
                };
                WhatifOutcome::Measured(WhatifFigures { ratio, ..figures })
            }
        };
        self.rows.push(WhatifRow { configuration, gives_up, outcome, rerun: None });
    }
}

/// One time as a multiple of another that was measured apart from it: its interval encloses the true one if both intervals do.
fn quotient(time: &Estimate, of: &Estimate) -> Estimate {
    Estimate {
        median: time.median / of.median.max(1.0),
        low: time.low / of.high.max(1.0),
        high: time.high / of.low.max(1.0),
        confidence: time.confidence * of.confidence,
        samples: time.samples.min(of.samples),
    }
}

impl WhatifLabResult {
    /// True where a disk has no result.
    pub fn has_failed(&self) -> bool {
        self.disks.iter().any(|disk| matches!(disk.outcome, WhatifLabOutcome::Failed(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::whatif::breakdown::BlockedPart;

    fn alone(configuration: Configuration, elapsed_ns: f64, notes: &[&str]) -> Result<WhatifResult, String> {
        let one = |value: f64| Estimate::of(&[value]).unwrap();
        let figures = WhatifFigures {
            elapsed_ns: one(elapsed_ns),
            waits: None,
            ratio: one(1.0),
            blocked_ns: one(elapsed_ns / 2.0),
            syncs: Some(if elapsed_ns < 1e9 { 5 } else { 7 }),
            device_bytes: Some(one(elapsed_ns / 1e3)),
            differing: 0,
        };
        let part = |call: &str, time_ns: f64| BlockedPart {
            call: call.to_owned(),
            files: "/a".to_owned(),
            calls: 1,
            blocked_ns: one(time_ns),
        };
        let (gives_up, outcome) = (format!("as {configuration:?} says"), WhatifOutcome::Measured(figures));
        Ok(WhatifResult {
            rounds: 1,
            sqlite: configuration.has_commits().then(|| "3.54.1".to_owned()),
            lacks_closes: configuration.has_commits(),
            rows: vec![WhatifRow { configuration, gives_up, outcome, rerun: None }],
            parts: vec![part("fsync", elapsed_ns), part("write", 4.05e9)],
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            ..WhatifResult::default()
        })
    }

    fn measured(rows: Vec<RowRounds>) -> WhatifResult {
        let WhatifLabOutcome::Measured(found) = WhatifLabOutcome::of_rows(rows) else {
            panic!("there are figures")
        };
        *found
    }

    #[test]
    fn rows_that_were_measured_alone_are_multiples_of_the_recorded_one() {
        let of_all: &[&str] = &["of all"];
        let both: &[&str] = &["of all", "of commits"];
        let row =
            |configuration, elapsed_ns, notes| (configuration, vec![alone(configuration, elapsed_ns, notes)]);
        let rows = vec![
            row(Configuration::Recorded, 4e9, of_all),
            (Configuration::NoSync, vec![Err("the guest ended".to_owned())]),
            row(Configuration::Wal, 1e9, both),
            row(Configuration::Waldio, 2e9, both),
        ];
        let found = measured(rows.clone());
        let ratio = |which| found.figures(which).map(|figures| figures.ratio.median);
        let order: Vec<Configuration> = found.rows.iter().map(|row| row.configuration).collect();
        assert_eq!(order, rows.iter().map(|(configuration, _)| *configuration).collect::<Vec<_>>());
        assert_eq!(ratio(Configuration::Recorded), Some(1.0));
        assert_eq!(ratio(Configuration::Wal), Some(0.25));
        assert_eq!(ratio(Configuration::Waldio), Some(0.5));
        assert_eq!(found.rows[1].outcome, WhatifOutcome::Unavailable("the guest ended".to_owned()));
        assert_eq!(
            [1, 2].map(|row| &*found.rows[row].gives_up),
            [Configuration::NoSync.gives_up(), "as Wal says"]
        );
        assert_eq!(found.notes, both);
        assert_eq!((found.rounds, found.sqlite.as_deref()), (1, Some("3.54.1")));
        let failed = vec![(Configuration::Recorded, vec![Err("too long".to_owned())]), rows[2].clone()];
        assert_eq!(WhatifLabOutcome::of_rows(failed), WhatifLabOutcome::Failed("too long".to_owned()));
    }

    #[test]
    fn rounds_that_were_measured_alone_give_medians_and_intervals() {
        let row = |configuration, rounds: &[f64]| {
            (configuration, rounds.iter().map(|time_ns| alone(configuration, *time_ns, &[])).collect())
        };
        let found = measured(vec![
            row(Configuration::Recorded, &[4.2e9, 4e9, 3.9e9]),
            row(Configuration::Wal, &[2e9, 0.5e9, 1e9]),
        ]);
        let figures = |which| found.figures(which).unwrap();
        let told = |estimate: &Estimate| (estimate.median, estimate.low, estimate.high, estimate.samples);
        let wal = figures(Configuration::Wal);
        assert_eq!(told(&wal.elapsed_ns), (1e9, 0.5e9, 2e9, 3));
        assert_eq!(told(&wal.blocked_ns), (0.5e9, 0.25e9, 1e9, 3));
        assert_eq!((wal.waits, wal.range_ns()), (None, (0.5e9, 2e9)));
        assert_eq!(told(&wal.ratio), (0.25, 0.5e9 / 4.2e9, 2e9 / 3.9e9, 3));
        assert_eq!(told(&figures(Configuration::Recorded).ratio), (1.0, 1.0, 1.0, 3));
        assert_eq!(
            (wal.syncs, wal.device_bytes.map(|bytes| told(&bytes))),
            (Some(7), Some((1e6, 0.5e6, 2e6, 3)))
        );
        assert_eq!((found.rounds, found.lacks_closes), (3, true));
        // In the first round the syncs took longer than the writes, in the others not.
        let parts: Vec<_> = found.parts.iter().map(|part| (&*part.call, part.blocked_ns.median)).collect();
        assert_eq!(parts, [("write", 4.05e9), ("fsync", 4e9)]);
    }

    #[test]
    fn ranges_of_waits_of_rounds_are_one() {
        let rounds = [(2e9, Some((1e9, 3e9))), (1e9, None), (1.5e9, Some((0.5e9, 9e9)))];
        let row = rounds.map(|(time_ns, waits)| {
            let mut found = alone(Configuration::Recorded, time_ns, &[])?;
            let WhatifOutcome::Measured(figures) = &mut found.rows[0].outcome else { return Ok(found) };
            figures.waits = waits.map(|(shortest_ns, longest_ns)| WaitRange { shortest_ns, longest_ns });
            Ok(found)
        });
        let found = measured(vec![(Configuration::Recorded, row.to_vec())]);
        let waits = found.figures(Configuration::Recorded).and_then(|figures| figures.waits);
        assert_eq!(waits, Some(WaitRange { shortest_ns: 1e9, longest_ns: 3e9 }));
    }

    #[test]
    fn rows_that_lost_a_round_say_why_and_have_the_others() {
        let lost = || Err("the guest ended".to_owned());
        let row = |configuration, time_ns| {
            (
                configuration,
                vec![alone(configuration, time_ns, &[]), lost(), alone(configuration, time_ns, &[])],
            )
        };
        let found = measured(vec![
            row(Configuration::Recorded, 4e9),
            row(Configuration::Wal, 1e9),
            (Configuration::NoSync, vec![lost(), lost(), lost()]),
            (
                Configuration::AllInMemory,
                vec![Err("stopped".to_owned()), alone(Configuration::AllInMemory, 1e9, &[])],
            ),
        ]);
        let samples = |which| found.figures(which).map(|figures| figures.elapsed_ns.samples);
        let all =
            [Configuration::Recorded, Configuration::Wal, Configuration::NoSync, Configuration::AllInMemory];
        assert_eq!(all.map(samples), [Some(2), Some(2), None, Some(1)]);
        assert_eq!(
            found.notes,
            [
                "Measured in 2 of 3 rounds: as recorded; WAL (the guest ended).",
                "Measured in 1 of 2 rounds: all in RAM (stopped)."
            ]
        );
        assert_eq!(found.rounds, 2);
    }

    #[test]
    fn it_is_read_back_as_it_was_written() {
        let disk =
            |outcome| WhatifLabDisk { filesystem: Filesystem::F2fs, device: "kingston".to_owned(), outcome };
        let result = WhatifLabResult {
            format: WHATIF_LAB_FORMAT.to_owned(),
            version: WHATIF_LAB_VERSION,
            recording: "app.joj".to_owned(),
            machine: LabMachine::default(),
            disks: vec![
                disk(WhatifLabOutcome::Measured(Box::default())),
                disk(WhatifLabOutcome::Failed("the guest ended in it".to_owned())),
            ],
        };
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<WhatifLabResult>(&text).unwrap(), result, "{text}");
        assert!(result.has_failed());
        let version_1 = text.replace(r#""emulated":false"#, r#""exact":true"#);
        assert!(version_1 != text && serde_json::from_str::<WhatifLabResult>(&version_1).unwrap() == result);
    }
}
