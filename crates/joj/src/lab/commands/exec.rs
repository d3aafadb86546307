//! `joj lab exec` from its options to its exit code.

use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::bench::key::Word;
use joj_analysis::lab::exec_result::{
    CommandRun, EXEC_FORMAT, EXEC_VERSION, ExecOutcome, ExecResult, ExecRow,
};

use crate::command_line::lab::exec::ExecOptions;
use crate::command_line::{named_twice, wrong_usage};
use crate::lab::commands::disks::{self, DiskWork};
use crate::lab::commands::error::LabError;
use crate::lab::commands::host_command::{command, environment, program_without_text};
use crate::lab::commands::parts::{self, Needed, contents};
use crate::lab::error::{TimeLimit, UnitError};
use crate::lab::guest_pool::{self, GuestPool};
use crate::lab::host_share::HostShare;
use crate::lab::job::{LabVolume, volumes};
use crate::lab::jobs::exec::{ExecJob, taken_file};
use crate::lab::machine;
use crate::lab::work::exec::ExecWork;
use crate::machine::files::output_file;
use crate::machine::proc::signal;
use crate::show::lab::exec_table as table;

/// Seconds that a run takes, for the first forecast.
const EXEC_SECONDS: f64 = 15.0;
/// Where a command has files that can be kept.
const KEEPABLE: [&str; 2] = ["/data/", "/tmp/"];
/// Added to the number of a signal, as shells do.
const SIGNAL_EXIT_CODE: i32 = 128;

/// Runs `joj lab exec`.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machines are off, their files are gone.
pub fn run(options: &ExecOptions) -> Result<ExitCode, LabError> {
    let is_keepable = |file: &&PathBuf| {
        let stays = !file.components().any(|part| part == Component::ParentDir);
        stays && KEEPABLE.iter().any(|place| file.starts_with(place))
    };
    if let Some(other) = options.take.iter().find(|file| !is_keepable(file)) {
        let what = format!("`--take {}`: give a file below /data or /tmp", other.display());
        return Ok(wrong_usage(&what));
    }
    if let Some(what) = named_twice("--filesystem", options.filesystem.iter().map(|one| one.word()))
        .or_else(|| named_twice("--device", &options.device))
        .or_else(|| program_without_text(&options.command))
    {
        return Ok(wrong_usage(&what));
    }
    let volumes = volumes(&options.device, &options.filesystem);
    let kept: Vec<PathBuf> =
        (0..volumes.len()).flat_map(|index| kept_files(options, &volumes, index)).collect();
    output_file::check_writable(options.json.iter().chain(&kept))?;
    signal::install().map_err(LabError::Signals)?;
    if let Some(wrong) = parts::unknown_device(options.device.iter())? {
        return Ok(wrong);
    }
    let contents = contents(&options.machine, Needed::default())?;
    let limit = TimeLimit { option: "--exec-seconds", seconds: options.exec_seconds };
    let pool = parts::pool(&options.machine, &options.guests, contents, limit)?;
    let job = ExecJob {
        setting: machine::setting(&pool.contents, options.device.iter(), machine::DEVICE_BYTES)?,
        volumes,
        command: command(&options.command),
        environment: environment(),
        take: options.take.iter().map(|file| file.display().to_string()).collect(),
        units: Vec::new(),
    };
    execute(options, &pool, &ExecWork { job })
}

fn execute(options: &ExecOptions, pool: &GuestPool, work: &ExecWork) -> Result<ExitCode, LabError> {
    let volumes = &work.job.volumes;
    let mut outcome = |index: usize, report: Result<CommandRun, UnitError>, share: &HostShare| {
        outcome(options, work, index, report, share)
    };
    let line = |done: &str, name: &str, outcome: &ExecOutcome| {
        format!("{done}: {name}: {}", table::in_short(outcome))
    };
    let disk = DiskWork {
        seconds: EXEC_SECONDS,
        outcome: &mut outcome,
        failed: ExecOutcome::Failed,
        line: (volumes.len() > 1).then_some(line),
    };
    let found = disks::work_off(pool, work, volumes.len(), disk)?;
    if !found.outcomes.is_empty() {
        let rows = volumes.iter().zip(found.outcomes).map(|(volume, outcome)| ExecRow {
            filesystem: volume.filesystem,
            device: volume.device.clone(),
            outcome,
        });
        let result = ExecResult {
            format: EXEC_FORMAT.to_owned(),
            version: EXEC_VERSION,
            command: options.command.clone(),
            rows: rows.collect(),
            machine: found.machine,
        };
        if let Some(run) = table::only_run(&result) {
            eprint!("{}", run.stderr);
        }
        output_file::report(options.json.as_deref(), &result, || table::text(&result))?;
        if found.stop.is_none() {
            return Ok(exit_code(&result));
        }
    }
    Ok(guest_pool::exit_code(found.stop)?)
}

/// A run's outcome. A file that cannot be kept makes it a failure.
fn outcome(
    options: &ExecOptions,
    work: &ExecWork,
    index: usize,
    report: Result<CommandRun, UnitError>,
    share: &HostShare,
) -> ExecOutcome {
    let run = match report {
        Ok(run) => run,
        Err(reason) => return ExecOutcome::Failed(reason.to_string()),
    };
    for (number, to) in kept_files(options, &work.job.volumes, index).into_iter().enumerate() {
        if let Err(reason) = share.take(&taken_file(index, number), &to) {
            return ExecOutcome::Failed(reason.to_string());
        }
    }
    ExecOutcome::Ran(run)
}

/// Where the files of one run go that are kept.
fn kept_files(options: &ExecOptions, volumes: &[LabVolume], index: usize) -> Vec<PathBuf> {
    let volume = &volumes[index];
    let device = Path::new(&volume.device).file_stem().unwrap_or_default().to_string_lossy();
    let kept = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        options.take_to.join(match volumes.len() {
            1 => name.into_owned(),
            _ => format!("{}-{device}-{name}", volume.filesystem.word()),
        })
    };
    options.take.iter().map(kept).collect()
}

fn exit_code(result: &ExecResult) -> ExitCode {
    match &result.rows[..] {
        [ExecRow { outcome: ExecOutcome::Ran(run), .. }] => {
            let code = run.exit_code.or(run.signal.map(|signal| SIGNAL_EXIT_CODE + signal));
            ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        _ if result.has_failed() => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
