//! `joj lab` from its options to its exit code.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::process::ExitCode;

use joj_analysis::lab::cell::{Cell, PROBE_FILLED_MIB};
use joj_analysis::lab::plan::Plan;
use joj_analysis::lab::result::{
    CellMeasurement, CellOutcome, CellResult, LabResult, RESULT_FORMAT, RESULT_VERSION,
};

use crate::bench::forecast::rough;
use crate::bench::progress::Progress;
use crate::command_line::lab::{CrashLabOptions, LabAction, LabOptions, MachineOptions, RunOptions};
use crate::command_line::wrong_usage;
use crate::lab::commands::crash as crash_states;
use crate::lab::commands::error::LabError;
use crate::lab::commands::exec;
use crate::lab::commands::parts::{self, Needed, contents, packages};
use crate::lab::commands::recordings;
use crate::lab::commands::report;
use crate::lab::costs;
use crate::lab::error::UnitError;
use crate::lab::guest_pool::{self, GuestPool};
use crate::lab::host_share::HostShare;
use crate::lab::image::archive;
use crate::lab::job::{HOST_TAG, Job, SHARE_TAG};
use crate::lab::life::MEMORY_MIB;
use crate::lab::machine;
use crate::lab::shipped::devices;
use crate::lab::shipped::error::ShippedError;
use crate::lab::shipped::plans;
use crate::lab::work::plan::PlanWork;
use crate::machine::files::output_file;
use crate::machine::proc::signal;
use crate::machine::qemu::process::{self, Machine, MachineStart, Qemu};
use crate::replay::error::ReplayError;
use crate::show::lab::table;
use crate::workloads;

/// Seconds that a cell takes, without and with a trace, for the first forecast: those of a hundred transactions on two processors.
const CELL_SECONDS: (f64, f64) = (8.0, 18.0);

/// Runs `joj lab`.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machine is off, its files are gone.
pub fn run(options: &LabOptions) -> Result<ExitCode, LabError> {
    match &options.action {
        LabAction::List => {
            output_file::print(&(plans::list()? + &workloads::list()))?;
            Ok(ExitCode::SUCCESS)
        }
        LabAction::Run(options) => match measure(options) {
            Err(LabError::Replay(ReplayError::Stopped)) => Ok(ExitCode::from(signal::STOPPED_EXIT_CODE)),
            measured => measured,
        },
        LabAction::Crash(options) => crash(options),
        LabAction::Exec(options) => exec::run(options),
        LabAction::Report(options) => Ok(report::run(options)?),
        LabAction::Shell(options) => shell(options),
    }
}

/// Runs `joj lab crash`.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machines are off, their files are gone.
pub fn crash(options: &CrashLabOptions) -> Result<ExitCode, LabError> {
    let cells = match crash_states::cells(&options.crash) {
        Ok(cells) => cells,
        Err(what) => return Ok(wrong_usage(&what.to_string())),
    };
    let contents = contents(&options.machine, Needed::by(&cells))?;
    let pool = parts::pool(&options.machine, &options.guests, contents, options.crash.state_seconds)?;
    crash_states::run(&options.crash, cells, &pool)
}

/// Capacity of the devices: what probes of a range write first does not fit into the usual one, with a filesystem below it.
fn device_bytes(cells: &[Cell]) -> u64 {
    let has_range = cells.iter().any(|cell| cell.range_mib.is_some());
    if has_range { (PROBE_FILLED_MIB << 20) / 4 * 5 } else { machine::DEVICE_BYTES }
}

fn measure(options: &RunOptions) -> Result<ExitCode, LabError> {
    let (plan, cells) = planned(options)?;
    if options.dry_run {
        let lines: String =
            cells.iter().map(|cell| format!("{cell}, {} transactions\n", cell.transactions)).collect();
        output_file::print(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    signal::install().map_err(LabError::Signals)?;
    let (recordings, _brought) = recordings::read(&cells, &options.recordings, machine::DEVICE_BYTES)?;
    output_file::check_apart(recordings.values(), &options.json)?;
    if let Some(directory) = &options.traces {
        fs::create_dir_all(directory)
            .map_err(|error| LabError::Directory { directory: directory.clone(), error })?;
    }
    let contents = contents(&options.machine, Needed::by(&cells))?;
    let pool = parts::pool(&options.machine, &options.guests, contents, options.cell_seconds)?;
    let mut machine = machine::told(&pool)?;
    let job = Job {
        setting: machine::setting(&pool.contents, devices::names(&cells), device_bytes(&cells))?,
        cells,
        trace: plan.trace || options.traces.is_some(),
        traced_transactions: options.traced_transactions,
        trace_backend: options.trace_backend.word().to_owned(),
        units: Vec::new(),
    };
    let work = PlanWork { job, recordings: &recordings };
    let job = &work.job;
    let mut outcomes: Vec<Option<CellOutcome>> = vec![None; job.cells.len()];
    let mut progress = announce(job, &pool);
    let mut done = 0;
    let ended = pool.work_off(work.batches(), &work, &mut progress, &mut |index, report, share| {
        let outcome = outcome(index, report, share, options.traces.as_deref());
        done += 1;
        // Where no line can change, one line a cell: a plan takes minutes.
        if !stderr().is_terminal() {
            let cells = job.cells.len();
            eprintln!("{done} of {cells}: {}: {}", job.cells[index], table::in_short(&outcome));
        }
        outcomes[index] = Some(outcome);
    });
    progress.clear();
    let stop = ended.map(|kernel| machine.kernel = kernel).err();
    if done > 0 {
        let results = job.cells.iter().zip(outcomes).map(|(cell, outcome)| CellResult {
            cell: cell.clone(),
            outcome: outcome.unwrap_or_else(|| CellOutcome::Failed(guest_pool::unmeasured(stop.as_ref()))),
        });
        let result = LabResult {
            format: RESULT_FORMAT.to_owned(),
            version: RESULT_VERSION,
            title: plan.title,
            machine,
            cells: results.collect(),
        };
        output_file::report(options.json.as_deref(), &result, || table::table(&result))?;
        let failed = result.cells.iter().any(|cell| matches!(cell.outcome, CellOutcome::Failed(_)));
        if stop.is_none() {
            return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    }
    Ok(guest_pool::exit_code(stop)?)
}

/// Says how long the cells take.
fn announce(job: &Job, pool: &GuestPool) -> Progress {
    let cell_s = if job.trace { CELL_SECONDS.1 } else { CELL_SECONDS.0 };
    // The last round of guests takes its time also where some have nothing to do.
    let expected_s = cell_s * (job.cells.len() as f64 / pool.jobs as f64).ceil();
    eprintln!("cells: {}; expect about {}", job.cells.len(), rough(expected_s));
    Progress::new(job.cells.len(), expected_s)
}

fn planned(options: &RunOptions) -> Result<(Plan, Vec<Cell>), LabError> {
    let plan = plans::read(&options.plan)?;
    let mut cells =
        plan.cells().map_err(|error| ShippedError::Cells { name: options.plan.clone(), error })?;
    cells.retain(|cell| {
        let line = cell.to_string();
        options.only.iter().all(|text| line.contains(text.as_str()))
    });
    if cells.is_empty() {
        return Err(LabError::NoCell);
    }
    Ok((plan, cells))
}

/// What the guest reported, and the costs that its trace shows.
fn outcome(
    index: usize,
    report: Result<CellMeasurement, UnitError>,
    share: &HostShare,
    traces: Option<&Path>,
) -> CellOutcome {
    let mut measurement = match report {
        Ok(measurement) => measurement,
        Err(reason) => return CellOutcome::Failed(reason.to_string()),
    };
    if let (Some(name), Some(traced)) = (measurement.trace.take(), &measurement.traced_run) {
        let kept = match traces {
            Some(directory) => directory.join(format!("{index:04}.parquet")),
            None => share.beside("trace.parquet"),
        };
        let looked = share
            .take(&name, &kept)
            .map_err(|error| error.to_string())
            .and_then(|()| costs::of(&kept, traced.transactions).map_err(|error| error.to_string()));
        match looked {
            Ok(costs) => measurement.costs = costs,
            Err(reason) => measurement.trace_failure = Some(reason),
        }
        measurement.trace = traces.and(kept.file_name()).map(|name| name.to_string_lossy().into_owned());
    }
    CellOutcome::Measured(Box::new(measurement))
}

fn shell(options: &MachineOptions) -> Result<ExitCode, LabError> {
    process::version()?;
    let packages = packages(options)?;
    let contents = contents(options, Needed::default())?;
    let share = HostShare::create()?;
    let image = share.beside("image");
    archive::write(&image, &contents, &packages)?;
    let machine = Machine {
        kernel: packages.kernel(),
        image,
        share: (share.shared(), SHARE_TAG.to_owned()),
        host: HOST_TAG.to_owned(),
        memory_mib: MEMORY_MIB,
    };
    let code = Qemu::start(&machine, &MachineStart::Terminal("joj.shell".to_owned()))?.wait();
    Ok(if code == Some(0) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
