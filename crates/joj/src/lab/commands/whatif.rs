//! `joj whatif` on emulated disks, from its options to its exit code.

use std::process::ExitCode;

use joj_analysis::bench::key::Word;
use joj_analysis::recording::whatif::advice::{self, seconds};
use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::lab_result::{
    WHATIF_LAB_FORMAT, WHATIF_LAB_VERSION, WhatifLabDisk, WhatifLabOutcome, WhatifLabResult,
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
use crate::lab::shipped::devices;
use crate::lab::work::replay::ReplayWork;
use crate::replay::command::bytes_before;
use crate::show::whatif::lab as shown;
use crate::whatif::command::{self, Forms, Recorded};

/// Seconds that all configurations take on one disk, for the first forecast.
const DISK_SECONDS: f64 = 40.0;
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
    devices::of(options.emulated.devices().iter())?;
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
    let setting =
        machine::setting(&pool.contents, volumes.iter().map(|volume| &volume.device), machine::DEVICE_BYTES)?;
    let job = ReplayJob {
        command: ReplayCommand::Whatif,
        arguments: arguments(options, &setting),
        environment: environment(),
        setting,
        volumes,
        units: Vec::new(),
    };
    measure(options, &recorded, &pool, &ReplayWork::new(job, &recorded.file))
}

fn measure(
    options: &WhatifOptions,
    recorded: &Recorded,
    pool: &GuestPool,
    work: &ReplayWork<'_, WhatifResult>,
) -> Result<ExitCode, LabError> {
    let volumes = &work.job.volumes;
    let mut outcome = |index: usize, report: Result<WhatifResult, UnitError>, _: &HostShare| match report {
        Ok(found) => told(found, recorded, &volumes[index], pool),
        Err(reason) => WhatifLabOutcome::Failed(reason.to_string()),
    };
    let disk = DiskWork {
        seconds: DISK_SECONDS,
        outcome: &mut outcome,
        failed: WhatifLabOutcome::Failed,
        line: Some(|done, name, outcome| format!("joj: {done}, {name}: {}", in_short(outcome))),
    };
    let found = disks::work_off(pool, work, volumes, disk)?;
    if !found.outcomes.is_empty() {
        let disks = volumes.iter().zip(found.outcomes).map(|(volume, outcome)| WhatifLabDisk {
            filesystem: volume.filesystem,
            device: volume.device.clone(),
            outcome,
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
            return Ok(if result.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    }
    Ok(guest_pool::exit_code(found.stop)?)
}

fn in_short(outcome: &WhatifLabOutcome) -> String {
    match outcome {
        WhatifLabOutcome::Failed(reason) => format!("FAILED: {reason}"),
        WhatifLabOutcome::Measured(result) => {
            let recorded = result.figures(Configuration::Recorded);
            recorded.map_or_else(String::new, |figures| {
                format!("{} as recorded", seconds(figures.elapsed_ns.median))
            })
        }
    }
}

/// The guest's result with what it does not know: names of this machine, and that its clock is exact.
fn told(found: WhatifResult, recorded: &Recorded, volume: &LabVolume, pool: &GuestPool) -> WhatifLabOutcome {
    let mut result = WhatifResult {
        recording: recorded.name.clone(),
        place: format!("{} on {}", volume.filesystem.word(), volume.device),
        exact: true,
        ..found
    };
    if pool.contents.waldio.is_none()
        && let Err(reason) = extension_file(None, WITHOUT_WALDIO)
    {
        let has_waldio =
            |which: Configuration| matches!(which, Configuration::Waldio | Configuration::Bounded);
        for row in result.rows.iter_mut().filter(|row| has_waldio(row.configuration)) {
            row.outcome = WhatifOutcome::Unavailable(reason.to_string());
        }
    }
    result.notes.splice(0..0, recorded.how_it_ended());
    result.advice = advice::sentences(&result);
    WhatifLabOutcome::Measured(Box::new(result))
}

/// The words of the guest's `joj whatif`: those of this one's, with the guest's files.
fn arguments(options: &WhatifOptions, setting: &Setting) -> Vec<String> {
    // It passes at once there.
    let mut words: Vec<String> = vec!["--think-time".to_owned()];
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
    add("--rounds", "1");
    add("--waldio", guest_path::WALDIO);
    for configuration in &options.only {
        add("--only", configuration.word());
    }
    for (class, pattern) in &options.classes {
        add("--class", &format!("{}:{pattern}", class.word()));
    }
    if options.sqlite != "bundled" {
        add("--sqlite", &setting.sqlite);
    }
    words
}
