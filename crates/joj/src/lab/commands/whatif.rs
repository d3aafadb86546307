//! `joj whatif` on emulated disks, from its options to its exit code.

use std::process::ExitCode;

use joj_analysis::bench::key::Word;
use joj_analysis::recording::whatif::advice::{self, seconds};
use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::lab_result::{
    RowRounds, WHATIF_LAB_FORMAT, WHATIF_LAB_VERSION, WhatifLabDisk, WhatifLabOutcome, WhatifLabResult,
};
use joj_analysis::recording::whatif::outcome::{WhatifOutcome, WhatifResult};

use crate::bench::builds::extension_file;
use crate::command_line::lab::{GuestOptions, MachineOptions};
use crate::command_line::whatif::WhatifOptions;
use crate::lab::commands::disks::{self, DiskWork};
use crate::lab::commands::error::LabError;
use crate::lab::commands::parts::{self, Needed, environment};
use crate::lab::commands::recordings;
use crate::lab::error::{TimeLimit, UnitError};
use crate::lab::guest_pool::{self, GuestPool};
use crate::lab::host_share::HostShare;
use crate::lab::job::{LabVolume, Setting, guest_path, volumes};
use crate::lab::jobs::replay::{ReplayCommand, ReplayJob};
use crate::lab::machine;
use crate::lab::work::replay::ReplayWork;
use crate::replay::command::bytes_before;
use crate::show::whatif::lab as shown;
use crate::whatif::command::{self, Forms, Recorded};
use crate::whatif::rounds::ROUNDS;

/// Seconds that a row takes, for the first forecast.
const ROW_SECONDS: f64 = 4.0;
/// What can be done without the extension.
const WITHOUT_WALDIO: &str = "or leave its rows out with --only";

/// Runs `joj whatif` on emulated disks.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machines are off, their files are gone.
pub fn run(options: &WhatifOptions) -> Result<ExitCode, LabError> {
    if let Some(wrong) = command::check(options)? {
        return Ok(wrong);
    }
    // What is wrong with a device is said before a command is recorded, and with a recording before anything is fetched or booted.
    if let Some(wrong) = parts::unknown_device(options.emulated.devices().iter())? {
        return Ok(wrong);
    }
    let recorded = match command::recorded(options).and_then(|recorded| {
        let needed_bytes = bytes_before(&recorded.file, false)?;
        Ok((recorded, needed_bytes))
    }) {
        Err(error) => return Ok(command::ended(error)?),
        Ok((recorded, needed_bytes)) => {
            recordings::check_room(&recorded.file, needed_bytes, machine::DEVICE_BYTES)?;
            recorded
        }
    };
    let emulated = &options.emulated;
    let machine_options = MachineOptions {
        kernel: emulated.kernel.clone(),
        modules: emulated.modules.clone(),
        waldio: options.waldio.clone(),
    };
    let needed = Needed { sqlite: options.sqlite == "system", ..Needed::default() };
    let contents = parts::with_sqlite(parts::contents(&machine_options, needed)?, &options.sqlite)?;
    let guests = GuestOptions { jobs: emulated.jobs };
    let limit = TimeLimit { option: "--replay-seconds", seconds: emulated.replay_seconds };
    let pool = parts::pool(&machine_options, &guests, contents, limit)?;
    let volumes = volumes(&emulated.devices(), &emulated.filesystems());
    let volumes: Vec<LabVolume> =
        volumes.into_iter().map(|volume| LabVolume { same_places: true, ..volume }).collect();
    let setting =
        machine::setting(&pool.contents, volumes.iter().map(|volume| &volume.device), machine::DEVICE_BYTES)?;
    let without =
        pool.contents.waldio.is_none().then(|| extension_file(None, WITHOUT_WALDIO).err()).flatten();
    let rows =
        TableRows { wanted: wanted(options), without_waldio: without.map(|reason| reason.to_string()) };
    let job = ReplayJob {
        command: ReplayCommand::Whatif(rows.measured()),
        arguments: arguments(options, &setting),
        rounds: options.rounds.unwrap_or(ROUNDS) as usize,
        environment: environment(),
        setting,
        volumes,
        units: Vec::new(),
    };
    measure(options, &recorded, &pool, (&rows, &ReplayWork::new(job, &recorded.file)))
}

/// The rows of each table.
struct TableRows {
    wanted: Vec<Configuration>,
    /// Why there is no waldio.
    without_waldio: Option<String>,
}

impl TableRows {
    fn reason(&self, row: Configuration) -> Option<&str> {
        let has_waldio = matches!(row, Configuration::Waldio | Configuration::Bounded);
        self.without_waldio.as_deref().filter(|_| has_waldio)
    }

    fn measured(&self) -> Vec<Configuration> {
        self.wanted.iter().copied().filter(|row| self.reason(*row).is_none()).collect()
    }

    /// All rows of each disk with their rounds, from the outcomes of a job's units.
    fn of_disks(&self, job: &ReplayJob, outcomes: Vec<Outcome>) -> Vec<Vec<RowRounds>> {
        let rounds = |row: &Configuration| match self.reason(*row) {
            Some(reason) => (*row, vec![Err(reason.to_owned())]),
            None => (*row, Vec::new()),
        };
        let mut disks: Vec<Vec<RowRounds>> =
            job.volumes.iter().map(|_| self.wanted.iter().map(rounds).collect()).collect();
        for (number, outcome) in outcomes.into_iter().enumerate() {
            let unit = job.unit(number);
            let mut rows = disks[unit.disk].iter_mut();
            if let Some((_, rounds)) = rows.find(|(configuration, _)| Some(*configuration) == unit.row) {
                rounds.push(outcome);
            }
        }
        disks
    }
}

/// What came of one round of a row.
type Outcome = Result<WhatifResult, String>;

fn wanted(options: &WhatifOptions) -> Vec<Configuration> {
    let is_wanted = |row: &Configuration| {
        *row == Configuration::Recorded || options.only.is_empty() || options.only.contains(row)
    };
    Configuration::ALL.iter().copied().filter(is_wanted).collect()
}

fn measure(
    options: &WhatifOptions,
    recorded: &Recorded,
    pool: &GuestPool,
    (rows, work): (&TableRows, &ReplayWork<'_, WhatifResult>),
) -> Result<ExitCode, LabError> {
    let mut outcome = |_: usize, report: Result<WhatifResult, UnitError>, _: &HostShare| {
        report.map_err(|reason| reason.to_string())
    };
    let row = DiskWork {
        seconds: ROW_SECONDS,
        outcome: &mut outcome,
        failed: Err,
        line: Some(|done, name, outcome| format!("joj: {done}, {name}: {}", in_short(outcome))),
    };
    let found = disks::work_off(pool, work, work.job.len(), row)?;
    if !found.outcomes.is_empty() {
        let has_failed = found.outcomes.iter().any(Result::is_err);
        let outcomes = rows.of_disks(&work.job, found.outcomes);
        let disks = work.job.volumes.iter().zip(outcomes).map(|(volume, rows)| WhatifLabDisk {
            filesystem: volume.filesystem,
            device: volume.device.clone(),
            outcome: told(WhatifLabOutcome::of_rows(rows), recorded, volume),
        });
        let result = WhatifLabResult {
            format: WHATIF_LAB_FORMAT.to_owned(),
            version: WHATIF_LAB_VERSION,
            recording: recorded.name.clone(),
            disks: disks.collect(),
            machine: found.machine,
        };
        let forms = Forms { text: shown::text, markdown: shown::markdown, page: shown::page };
        command::report(options, &result, &forms)?;
        if found.stop.is_none() {
            return Ok(if has_failed || result.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    }
    Ok(guest_pool::exit_code(found.stop)?)
}

/// Of a row that was measured alone.
fn in_short(outcome: &Result<WhatifResult, String>) -> String {
    let row = outcome.as_ref().map(|found| found.rows.first().map(|row| &row.outcome));
    match row {
        Err(reason) => format!("FAILED: {reason}"),
        Ok(Some(WhatifOutcome::Measured(figures))) => seconds(figures.elapsed_ns.median),
        Ok(Some(WhatifOutcome::Unavailable(reason))) => format!("cannot be had: {reason}"),
        Ok(None) => "no row".to_owned(),
    }
}

/// A disk's rows with what the guests do not know: names of this machine, and that their disk is an emulated one.
fn told(found: WhatifLabOutcome, recorded: &Recorded, volume: &LabVolume) -> WhatifLabOutcome {
    let WhatifLabOutcome::Measured(mut result) = found else { return found };
    result.recording.clone_from(&recorded.name);
    result.place = format!("{} on {}", volume.filesystem.word(), volume.device);
    result.emulated = true;
    result.notes.splice(0..0, recorded.how_it_ended());
    result.advice = advice::sentences(&result);
    WhatifLabOutcome::Measured(result)
}

/// The words of the guest's `joj whatif`: those of this one's, with the guest's files.
fn arguments(options: &WhatifOptions, setting: &Setting) -> Vec<String> {
    // It passes at once there. Each round has a guest of its own.
    let mut words: Vec<String> = vec!["--think-time".to_owned()];
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
    add("--rounds", "1");
    add("--waldio", guest_path::WALDIO);
    for (class, pattern) in &options.classes {
        add("--class", &format!("{}:{pattern}", class.word()));
    }
    if options.sqlite != "bundled" {
        add("--sqlite", &setting.sqlite);
    }
    words
}
