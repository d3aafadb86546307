//! All configurations in turn, several times: every other round in the opposite order.

use std::path::Path;

use joj_analysis::bench::run::SyncCount;
use joj_analysis::recording::whatif::breakdown::Breakdown;
use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::forecast::Forecast;
use joj_analysis::recording::whatif::outcome::{WaitRange, WhatifFigures, WhatifOutcome, WhatifRow};
use joj_analysis::statistics::Estimate;

use crate::machine::proc::clock::shared_ns;
use crate::machine::proc::signal;
use crate::replay::error::ReplayError;
use crate::show::text::duration;
use crate::whatif::beside;
use crate::whatif::call_replay::{self, CallFigures};
use crate::whatif::commit_replay::{self, CommitSetting, CountedCommits};
use crate::whatif::settings::{Commits, RowSetting, WhatifSettings};

/// Rounds where the options name no number.
pub const ROUNDS: u32 = 3;
/// Then they end before this time is over, but for the first.
const ROUNDS_NS_MAX: u64 = 60_000_000_000;

/// What a configuration was like in the rounds so far.
#[derive(Debug, Default)]
struct RowRounds {
    forecasts: Vec<Forecast>,
    ratios: Vec<f64>,
    blocked_ns: Vec<f64>,
    device_bytes: Vec<f64>,
    syncs: Option<u64>,
    differing: u64,
    /// Why it cannot be had.
    reason: Option<String>,
}

/// One round of a configuration.
struct RoundFigures {
    forecast: Forecast,
    blocked_ns: u64,
    device_bytes: Option<u64>,
    syncs: Option<u64>,
    differing: u64,
}

impl RowRounds {
    /// Adds a round, or nothing. With it, how long the recorded configuration took in that round.
    fn add(&mut self, found: Option<(&RoundFigures, u64)>) {
        let Some((sample, recorded_ns)) = found else { return };
        self.forecasts.push(sample.forecast);
        self.ratios.push(sample.forecast.elapsed_ns as f64 / recorded_ns.max(1) as f64);
        self.blocked_ns.push(sample.blocked_ns as f64);
        self.device_bytes.extend(sample.device_bytes.map(|bytes| bytes as f64));
        self.syncs = self.syncs.or(sample.syncs);
        self.differing = self.differing.max(sample.differing);
    }

    fn outcome(self) -> WhatifOutcome {
        let elapsed_ns: Vec<f64> = self.forecasts.iter().map(|one| one.elapsed_ns as f64).collect();
        let figures = || {
            Some(WhatifFigures {
                elapsed_ns: Estimate::of(&elapsed_ns)?,
                waits: WaitRange::of(&self.forecasts),
                ratio: Estimate::of(&self.ratios)?,
                blocked_ns: Estimate::of(&self.blocked_ns)?,
                syncs: self.syncs,
                device_bytes: Estimate::of(&self.device_bytes),
                differing: self.differing,
            })
        };
        let none = || WhatifOutcome::Unavailable("it was not measured".to_owned());
        match &self.reason {
            Some(reason) => WhatifOutcome::Unavailable(reason.clone()),
            None => figures().map_or_else(none, WhatifOutcome::Measured),
        }
    }
}

/// What all rounds gave.
#[derive(Debug)]
pub struct RoundsOutcome {
    /// How many there were.
    pub rounds: u32,
    /// The rows, in the order of the table.
    pub rows: Vec<WhatifRow>,
    /// Where the time in calls went.
    pub breakdown: Breakdown,
    /// Version of the SQLite that made commits.
    pub sqlite: Option<String>,
    /// The calls for durability of the first configuration with commits.
    pub commit_syncs: Option<SyncCount>,
    /// What to know of it.
    pub notes: Vec<String>,
}

/// What is measured, and what came of it so far.
struct Rounds<'a> {
    settings: &'a WhatifSettings,
    directory: &'a Path,
    samples: Vec<RowRounds>,
    measured: RoundsOutcome,
    /// Of the round under way: the calls that belong to no commit.
    rest: Option<CallFigures>,
}

/// Measures all settings in a directory.
/// # Errors
/// A signal, or the recorded configuration cannot be replayed.
pub fn run(
    settings: &WhatifSettings,
    rounds: Option<u32>,
    directory: &Path,
) -> Result<RoundsOutcome, ReplayError> {
    let samples = settings
        .rows
        .iter()
        .map(|(_, setting)| RowRounds { reason: setting.as_ref().err().cloned(), ..RowRounds::default() });
    let measured = RoundsOutcome {
        rounds: 0,
        rows: Vec::new(),
        breakdown: Breakdown::default(),
        sqlite: None,
        commit_syncs: None,
        notes: Vec::new(),
    };
    let samples = samples.collect();
    let mut all = Rounds { settings, directory, samples, measured, rest: None };
    let begin_ns = shared_ns();
    let wanted = rounds.unwrap_or(ROUNDS);
    for round in 0..wanted {
        all.round(round, wanted)?;
        all.measured.rounds = round + 1;
        let passed_ns = shared_ns() - begin_ns;
        let next_ns = passed_ns + passed_ns / u64::from(round + 1);
        if rounds.is_none() && round + 1 < wanted && next_ns > ROUNDS_NS_MAX {
            let (made, passed) = (round + 1, duration(passed_ns));
            all.measured.notes.push(format!(
                "{made} of {wanted} rounds took {passed}, and one more would take it past a minute: --rounds {wanted} makes them all."
            ));
            break;
        }
    }
    Ok(all.finish())
}

impl Rounds<'_> {
    fn round(&mut self, round: u32, wanted: u32) -> Result<(), ReplayError> {
        self.rest = None;
        let mut order: Vec<usize> = (0..self.settings.rows.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        let mut found: Vec<Option<RoundFigures>> = order.iter().map(|_| None).collect();
        for row in order {
            let (configuration, setting) = &self.settings.rows[row];
            let Ok(setting) = setting else { continue };
            if self.samples[row].reason.is_some() {
                continue;
            }
            match self.one(row, setting).map_err(|error| error.where_emulated(self.settings.alone)) {
                Ok(sample) => {
                    let elapsed = duration(sample.forecast.elapsed_ns);
                    eprintln!("joj: round {} of {wanted}, {}: {elapsed}", round + 1, configuration.title());
                    found[row] = Some(sample);
                }
                Err(ReplayError::Stopped) => return Err(ReplayError::Stopped),
                Err(error) if *configuration == Configuration::Recorded => return Err(error),
                Err(_) if signal::is_stopped() => return Err(ReplayError::Stopped),
                Err(error) => self.samples[row].reason = Some(error.to_string()),
            }
        }
        let recorded_ns =
            found.first().and_then(Option::as_ref).map_or(1, |sample| sample.forecast.elapsed_ns);
        for (samples, sample) in self.samples.iter_mut().zip(found) {
            samples.add(sample.as_ref().map(|sample| (sample, recorded_ns)));
        }
        Ok(())
    }

    fn one(&mut self, row: usize, setting: &RowSetting) -> Result<RoundFigures, ReplayError> {
        match setting {
            RowSetting::Calls { plan, in_memory } => {
                self.settings.align();
                let found = call_replay::replay(plan, self.settings.order, self.directory, *in_memory)?;
                let recorded = &self.settings.recorded;
                if self.settings.rows[row].0 == Configuration::Recorded {
                    self.measured.breakdown.add(&recorded.recording, &found.durations_ns);
                }
                Ok(RoundFigures {
                    forecast: self.forecast(&found.durations_ns, |_| 0),
                    blocked_ns: found.durations_ns.iter().sum(),
                    device_bytes: found.device_bytes,
                    syncs: Some(found.syncs),
                    differing: found.differing,
                })
            }
            RowSetting::Commits(setting) => {
                let Ok(commits) = &self.settings.commits else {
                    return Err(ReplayError::Sqlite("there are no commits".to_owned()));
                };
                self.commits(row, setting, commits)
            }
        }
    }

    fn commits(
        &mut self,
        row: usize,
        setting: &CommitSetting,
        commits: &Commits,
    ) -> Result<RoundFigures, ReplayError> {
        let counted = match &self.settings.beside {
            Some(beside) => {
                self.rest = Some(beside.rest.clone());
                self.counted(beside.counted.clone(), setting)
            }
            // Counting costs time, and counts are the same each time.
            None if self.samples[row].forecasts.is_empty() => self.count(setting, commits)?,
            None => None,
        };
        if self.rest.is_none() {
            self.rest = Some(beside::rest(self.settings, commits, self.directory)?);
        }
        let closes = commits.calls.closed_connections();
        self.settings.align();
        let found =
            commit_replay::measure(&commits.plan, &closes, setting, self.settings.order, self.directory)?;
        let Some(rest) = &self.rest else { return Err(ReplayError::Stopped) };
        let durations_ns = commits.calls.durations_ns(&rest.durations_ns, &found.times_ns, &found.closes_ns);
        self.measured.sqlite = Some(found.version);
        Ok(RoundFigures {
            forecast: self.forecast(&durations_ns, |call| commits.calls.sqlite_ns[call]),
            blocked_ns: durations_ns.iter().sum(),
            device_bytes: found.device_bytes.zip(rest.device_bytes).map(|(commits, rest)| commits + rest),
            syncs: counted.map(|counted| counted + rest.syncs),
            differing: 0,
        })
    }

    /// How many calls for durability the commits make.
    fn count(&mut self, setting: &CommitSetting, commits: &Commits) -> Result<Option<u64>, ReplayError> {
        let closes = commits.calls.closed_connections();
        let counted = commit_replay::count(&commits.plan, &closes, setting, self.directory)?;
        Ok(self.counted(counted, setting))
    }

    fn counted(&mut self, counted: CountedCommits, setting: &CommitSetting) -> Option<u64> {
        if let Some(why) = counted.refused {
            let note = format!("Calls for durability of commits were not counted: {why}.");
            if !self.measured.notes.contains(&note) {
                self.measured.notes.push(note);
            }
        }
        let syncs = counted.syncs.as_ref().map(SyncCount::all);
        if !setting.mode.uses_waldio() && self.measured.commit_syncs.is_none() {
            self.measured.commit_syncs = counted.syncs;
        }
        syncs
    }

    fn forecast(&self, durations_ns: &[u64], sqlite_ns: impl Fn(usize) -> u64) -> Forecast {
        let recorded = &self.settings.recorded;
        Forecast::of(&recorded.recording.calls, &recorded.order, durations_ns, sqlite_ns)
    }

    fn finish(mut self) -> RoundsOutcome {
        for ((configuration, _), samples) in self.settings.rows.iter().zip(self.samples) {
            self.measured.rows.push(WhatifRow {
                configuration: *configuration,
                gives_up: self.settings.gives_up(*configuration).to_owned(),
                outcome: samples.outcome(),
                rerun: None,
            });
        }
        self.measured
    }
}
