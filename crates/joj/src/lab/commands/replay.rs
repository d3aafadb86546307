//! `joj replay --lab` from its options to its exit code.

use std::process::ExitCode;

use joj_analysis::bench::key::Word;
use joj_analysis::recording::lab_result::{
    REPLAY_LAB_FORMAT, REPLAY_LAB_VERSION, ReplayLabOutcome, ReplayLabResult, ReplayLabRow, Replayed,
};

use crate::command_line::lab::{GuestOptions, MachineOptions};
use crate::command_line::replay::ReplayOptions;
use crate::lab::commands::disks::{self, DiskWork};
use crate::lab::commands::error::LabError;
use crate::lab::commands::parts::{self, Needed, contents, environment};
use crate::lab::commands::recordings;
use crate::lab::error::{TimeLimit, UnitError};
use crate::lab::guest_pool::{self, GuestPool};
use crate::lab::host_share::HostShare;
use crate::lab::image::archive::Contents;
use crate::lab::job::{Setting, guest_path, volumes};
use crate::lab::jobs::replay::{ReplayCommand, ReplayJob};
use crate::lab::machine;
use crate::lab::work::replay::ReplayWork;
use crate::machine::files::output_file;
use crate::machine::proc::signal;
use crate::replay::command::bytes_needed;
use crate::replay::error::ReplayError;
use crate::show::lab::replay_table as table;
use crate::workloads;

/// Seconds that a replay takes, for the first forecast: the guest's way to it, and some thousand calls.
const REPLAY_SECONDS: f64 = 10.0;

/// Runs `joj replay --lab`.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machines are off, their files are gone.
pub fn run(options: &ReplayOptions) -> Result<ExitCode, LabError> {
    output_file::check_apart([&options.recording], &options.json)?;
    signal::install().map_err(LabError::Signals)?;
    let volumes = volumes(&options.emulated.device, &options.emulated.filesystem);
    // What is wrong with the recording or a device is said before anything is fetched or booted.
    if let Some(wrong) = parts::unknown_device(volumes.iter().map(|volume| &volume.device))? {
        return Ok(wrong);
    }
    match check_room(options) {
        Err(LabError::Replay(ReplayError::Stopped)) => {
            return Ok(ExitCode::from(signal::STOPPED_EXIT_CODE));
        }
        checked => checked?,
    }
    let kernel = &options.emulated;
    let machine_options = MachineOptions {
        kernel: kernel.kernel.clone(),
        modules: kernel.modules.clone(),
        waldio: options.waldio.clone(),
    };
    let contents = libraries(options, &machine_options)?;
    let guests = GuestOptions { jobs: options.emulated.jobs };
    let limit = TimeLimit { option: "--replay-seconds", seconds: options.emulated.replay_seconds };
    let pool = parts::pool(&machine_options, &guests, contents, limit)?;
    let setting =
        machine::setting(&pool.contents, volumes.iter().map(|volume| &volume.device), machine::DEVICE_BYTES)?;
    let job = ReplayJob {
        command: ReplayCommand::Replay,
        arguments: arguments(options, &setting),
        rounds: 1,
        environment: environment(),
        setting,
        volumes,
        units: Vec::new(),
    };
    replay(options, &pool, &ReplayWork::new(job, &options.recording))
}

fn replay(
    options: &ReplayOptions,
    pool: &GuestPool,
    work: &ReplayWork<'_, Replayed>,
) -> Result<ExitCode, LabError> {
    let volumes = &work.job.volumes;
    let mut outcome = |_, report: Result<Replayed, UnitError>, _: &HostShare| match report {
        Ok(replayed) => ReplayLabOutcome::Replayed(replayed),
        Err(reason) => ReplayLabOutcome::Failed(reason.to_string()),
    };
    let disk = DiskWork {
        seconds: REPLAY_SECONDS,
        outcome: &mut outcome,
        failed: ReplayLabOutcome::Failed,
        line: Some(|done, name, outcome| format!("{done}: {name}: {}", table::in_short(outcome))),
    };
    let found = disks::work_off(pool, work, volumes.len(), disk)?;
    if !found.outcomes.is_empty() {
        let rows = volumes.iter().zip(found.outcomes).map(|(volume, outcome)| ReplayLabRow {
            filesystem: volume.filesystem,
            device: volume.device.clone(),
            outcome,
        });
        let result = ReplayLabResult {
            format: REPLAY_LAB_FORMAT.to_owned(),
            version: REPLAY_LAB_VERSION,
            recording: workloads::told(&options.recording),
            rows: rows.collect(),
            machine: found.machine,
        };
        output_file::report(options.json.as_deref(), &result, || table::table(&result))?;
        if found.stop.is_none() {
            return Ok(if result.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    }
    Ok(guest_pool::exit_code(found.stop)?)
}

/// Reads the recording. Files that grow past the device later end that row.
fn check_room(options: &ReplayOptions) -> Result<(), LabError> {
    recordings::check_room(&options.recording, bytes_needed(options)?, machine::DEVICE_BYTES)
}

/// What the guest loads. A SQLite that is named goes there instead of the system's.
fn libraries(options: &ReplayOptions, machine: &MachineOptions) -> Result<Contents, LabError> {
    let needed = Needed {
        sqlite: options.mode.is_some() && options.sqlite == "system",
        waldio: options.mode.is_some_and(|mode| mode.uses_waldio()),
        without_waldio: "or replay in another mode (`--as wal`)",
    };
    parts::with_sqlite(contents(machine, needed)?, &options.sqlite)
}

/// The words of the guest's `joj replay`: those of this one's, with the guest's files.
fn arguments(options: &ReplayOptions, setting: &Setting) -> Vec<String> {
    let mut words = vec!["--order".to_owned(), options.order.word().to_owned()];
    let mut add = |word: &str| words.push(word.to_owned());
    if options.check {
        add("--check");
    }
    if options.compat {
        add("--compat");
    }
    let Some(mode) = options.mode else { return words };
    ["--as", mode.word(), "--synchronous", options.synchronous.word()].into_iter().for_each(&mut add);
    if let Some(size) = options.cache_size {
        add(&format!("--cache-size={size}"));
    }
    if options.sqlite != "bundled" {
        ["--sqlite", &setting.sqlite].into_iter().for_each(&mut add);
    }
    if mode.uses_waldio() {
        ["--waldio", guest_path::WALDIO].into_iter().for_each(&mut add);
    }
    words
}
