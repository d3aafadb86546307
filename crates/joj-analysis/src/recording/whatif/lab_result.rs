//! What `joj whatif` found on emulated disks: its JSON, as docs/whatif.md describes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filesystem::Filesystem;
use crate::lab::result::LabMachine;
use crate::recording::whatif::configuration::Configuration;
use crate::recording::whatif::outcome::{WhatifFigures, WhatifOutcome, WhatifResult, WhatifRow};
use crate::statistics::Estimate;

/// First word of a result.
pub const WHATIF_LAB_FORMAT: &str = "joj-lab-whatif";
/// Version that this joj writes.
pub const WHATIF_LAB_VERSION: u32 = 1;

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

/// A row that was measured alone: a result without others, or why there is none.
pub type RowAlone = (Configuration, Result<WhatifResult, String>);

impl WhatifLabOutcome {
    /// Puts the rows of a disk together, in their order, each as a multiple of the recorded one. Without that there is no result. The
    /// advice is for whoever knows the rest.
    pub fn of_rows(rows: Vec<RowAlone>) -> Self {
        let mut recorded =
            match rows.iter().find(|(configuration, _)| *configuration == Configuration::Recorded) {
                Some((_, Ok(found))) => found.clone(),
                Some((_, Err(reason))) => return Self::Failed(reason.clone()),
                None => return Self::Failed("the recorded row is missing".to_owned()),
            };
        let Some(figures) = recorded.figures(Configuration::Recorded).cloned() else {
            return Self::Failed("the recorded row has no figures".to_owned());
        };
        recorded.rows.clear();
        for (configuration, found) in rows {
            recorded.add(configuration, found, &figures);
        }
        Self::Measured(Box::new(recorded))
    }
}

impl WhatifResult {
    fn add(
        &mut self,
        configuration: Configuration,
        found: Result<WhatifResult, String>,
        recorded: &WhatifFigures,
    ) {
        let mut gives_up = configuration.gives_up().to_owned();
        let outcome = found.and_then(|found| {
            for note in found.notes {
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            self.sqlite = self.sqlite.take().or(found.sqlite);
            let mut rows = found.rows.into_iter();
            let row = rows.find(|row| row.configuration == configuration);
            let row = row.ok_or_else(|| "it was not measured".to_owned())?;
            gives_up = row.gives_up;
            Ok(row.outcome)
        });
        let outcome = match outcome {
            Ok(WhatifOutcome::Measured(figures)) => {
                let ratio = figures.elapsed_ns.median / recorded.elapsed_ns.median.max(1.0);
                let ratio = Estimate::of(&[ratio]).unwrap_or(figures.ratio);
                WhatifOutcome::Measured(WhatifFigures { ratio, ..figures })
            }
            Ok(unavailable) => unavailable,
            Err(reason) => WhatifOutcome::Unavailable(reason),
        };
        self.rows.push(WhatifRow { configuration, gives_up, outcome, rerun: None });
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

    fn alone(configuration: Configuration, elapsed_ns: f64, notes: &[&str]) -> RowAlone {
        let one = |value: f64| Estimate::of(&[value]).unwrap();
        let figures = WhatifFigures {
            elapsed_ns: one(elapsed_ns),
            ratio: one(1.0),
            blocked_ns: one(1e9),
            syncs: Some(7),
            device_bytes: None,
            differing: 0,
        };
        let (gives_up, outcome) = (format!("as {configuration:?} says"), WhatifOutcome::Measured(figures));
        let found = WhatifResult {
            sqlite: configuration.has_commits().then(|| "3.54.1".to_owned()),
            rows: vec![WhatifRow { configuration, gives_up, outcome, rerun: None }],
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            ..WhatifResult::default()
        };
        (configuration, Ok(found))
    }

    #[test]
    fn rows_that_were_measured_alone_are_multiples_of_the_recorded_one() {
        let rows = vec![
            alone(Configuration::Recorded, 4e9, &["of all"]),
            (Configuration::NoSync, Err("the guest ended".to_owned())),
            alone(Configuration::Wal, 1e9, &["of all", "of commits"]),
            alone(Configuration::Waldio, 2e9, &["of all", "of commits"]),
        ];
        let WhatifLabOutcome::Measured(found) = WhatifLabOutcome::of_rows(rows.clone()) else {
            panic!("there are figures")
        };
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
        assert_eq!(found.notes, ["of all", "of commits"]);
        assert_eq!(found.sqlite.as_deref(), Some("3.54.1"));
        let failed = vec![(Configuration::Recorded, Err("too long".to_owned())), rows[2].clone()];
        assert_eq!(WhatifLabOutcome::of_rows(failed), WhatifLabOutcome::Failed("too long".to_owned()));
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
    }
}
