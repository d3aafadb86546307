//! `joj lab` from its options to its exit code.

use std::collections::BTreeMap;
use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::process::ExitCode;

use joj_analysis::lab::cell::{Cell, PROBE_FILLED_MIB};
use joj_analysis::lab::plan::Plan;
use joj_analysis::lab::result::{
    CellMeasurement, CellOutcome, CellResult, LabMachine, LabResult, RESULT_FORMAT, RESULT_VERSION,
};
use joj_analysis::lab::shards::plan::{IndexedOutcome, LAB_PART_FORMAT, LAB_PART_VERSION, LabPart};
use joj_analysis::lab::shards::shard::Shard;
use joj_analysis::lab::shards::whole::sealed;

use crate::bench::forecast::rough;
use crate::bench::progress::Progress;
use crate::command_line::lab::{CrashLabOptions, LabAction, LabOptions, MachineOptions, RunOptions};
use crate::command_line::wrong_usage;
use crate::lab::commands::crash as crash_states;
use crate::lab::commands::error::LabError;
use crate::lab::commands::exec;
use crate::lab::commands::merge::{self, plan_exit_code};
use crate::lab::commands::parts::{self, Needed, contents, packages};
use crate::lab::commands::recordings;
use crate::lab::commands::report;
use crate::lab::costs;
use crate::lab::error::{TimeLimit, UnitError};
use crate::lab::guest_pool::{self, GuestPool};
use crate::lab::host_share::HostShare;
use crate::lab::image::archive;
use crate::lab::job::{HOST_TAG, Job, SHARE_TAG};
use crate::lab::life::{MEMORY_MIB, SessionEnd};
use crate::lab::machine;
use crate::lab::shipped::devices;
use crate::lab::shipped::error::ShippedError;
use crate::lab::shipped::plans;
use crate::lab::work::plan::PlanWork;
use crate::machine::files::output_file::{self, OutputError};
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
        LabAction::Merge(options) => Ok(merge::run(options)?),
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
    output_file::check_writable(&options.crash.json)?;
    let contents = contents(&options.machine, Needed::by(&cells))?;
    let limit = TimeLimit { option: "--state-seconds", seconds: options.crash.state_seconds };
    let pool = parts::pool(&options.machine, &options.guests, contents, limit)?;
    crash_states::run(&options.crash, cells, &pool)
}

/// Capacity of the devices: what probes of a range write first does not fit into the usual one, with a filesystem below it.
fn device_bytes(cells: &[Cell]) -> u64 {
    let has_range = cells.iter().any(|cell| cell.range_mib.is_some());
    if has_range { (PROBE_FILLED_MIB << 20) / 4 * 5 } else { machine::DEVICE_BYTES }
}

fn measure(options: &RunOptions) -> Result<ExitCode, LabError> {
    if let Some(shard) = options.shard.filter(|_| options.json.is_none() && !options.dry_run) {
        let what = format!("`--shard {shard}` needs `--json PART`: the file that `joj lab merge` takes");
        return Ok(wrong_usage(&what));
    }
    let (plan, cells) = planned(options)?;
    let shard = options.shard.unwrap_or(Shard::WHOLE);
    if options.dry_run {
        let own = shard.indices(cells.len()).map(|index| &cells[index]);
        let lines: String = own.map(|cell| format!("{cell}, {} transactions\n", cell.transactions)).collect();
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
    let limit = TimeLimit { option: "--cell-seconds", seconds: options.cell_seconds };
    let pool = parts::pool(&options.machine, &options.guests, contents, limit)?;
    // Guests of a shard are told of all cells, too: what they read is what they read in one run.
    let job = Job {
        setting: machine::setting(&pool.contents, devices::names(&cells), device_bytes(&cells))?,
        cells,
        trace: plan.trace || options.traces.is_some(),
        traced_transactions: options.traced_transactions,
        trace_backend: options.trace_backend.word().to_owned(),
        units: Vec::new(),
    };
    let work = PlanWork { job, recordings: &recordings };
    let measured = work_off(&work, &pool, shard, options.traces.as_deref())?;
    if options.shard.is_none() {
        return give_result(options, plan.title, work.job.cells, measured);
    }
    let made_from = made_from(&work, &pool)?;
    give_part(options, shard, (plan.title, made_from, work.job.cells), measured)
}

/// What came of the cells that were to be measured.
struct MeasuredCells {
    /// Of each cell of the plan; none where no guest came to it.
    outcomes: Vec<Option<CellOutcome>>,
    machine: LabMachine,
    /// Why it ended early.
    stop: Option<SessionEnd>,
}

impl MeasuredCells {
    /// True where a guest came to a cell.
    fn has_any(&self) -> bool {
        self.outcomes.iter().any(Option::is_some)
    }

    /// What came of a cell.
    fn take(&mut self, index: usize) -> CellOutcome {
        let unmeasured = || CellOutcome::Failed(guest_pool::unmeasured(self.stop.as_ref()));
        self.outcomes[index].take().unwrap_or_else(unmeasured)
    }
}

/// Has guests measure the cells of `shard`.
fn work_off(
    work: &PlanWork<'_>,
    pool: &GuestPool,
    shard: Shard,
    traces: Option<&Path>,
) -> Result<MeasuredCells, LabError> {
    let job = &work.job;
    let own: Vec<usize> = shard.indices(job.cells.len()).collect();
    let outcomes = vec![None; job.cells.len()];
    let mut measured = MeasuredCells { outcomes, machine: machine::told(pool)?, stop: None };
    let prefix = if shard == Shard::WHOLE { String::new() } else { format!("shard {shard}: ") };
    if own.is_empty() {
        eprintln!("{prefix}no cell of {}", job.cells.len());
        return Ok(measured);
    }
    let mut progress = announce(&prefix, job, own.len(), pool);
    let mut done = 0;
    let batches = PlanWork::batches(&own);
    let ended = pool.work_off(batches, work, &mut progress, &mut |index, report, share| {
        let outcome = outcome(index, report, share, traces);
        done += 1;
        // Where no line can change, one line a cell: a plan takes minutes.
        if !stderr().is_terminal() {
            let cells = own.len();
            eprintln!("{prefix}{done} of {cells}: {}: {}", job.cells[index], table::in_short(&outcome));
        }
        measured.outcomes[index] = Some(outcome);
    });
    progress.clear();
    measured.stop = ended.map(|kernel| measured.machine.kernel = kernel).err();
    Ok(measured)
}

/// Gives the result of a whole plan.
fn give_result(
    options: &RunOptions,
    title: String,
    cells: Vec<Cell>,
    mut measured: MeasuredCells,
) -> Result<ExitCode, LabError> {
    if measured.has_any() {
        let results = cells.into_iter().enumerate();
        let results = results.map(|(index, cell)| CellResult { cell, outcome: measured.take(index) });
        let result = LabResult {
            format: RESULT_FORMAT.to_owned(),
            version: RESULT_VERSION,
            title,
            cells: results.collect(),
            machine: measured.machine,
        };
        output_file::report(options.json.as_deref(), &result, || table::table(&result))?;
        if measured.stop.is_none() {
            return Ok(plan_exit_code(&result));
        }
    }
    Ok(guest_pool::exit_code(measured.stop)?)
}

/// Gives what a shard measured. One that was stopped leaves no part: it is run again.
fn give_part(
    options: &RunOptions,
    shard: Shard,
    (title, made_from, cells): (String, BTreeMap<String, String>, Vec<Cell>),
    mut measured: MeasuredCells,
) -> Result<ExitCode, LabError> {
    let is_any = measured.has_any();
    let own = shard.indices(cells.len());
    let part = LabPart {
        format: LAB_PART_FORMAT.to_owned(),
        version: LAB_PART_VERSION,
        shard: shard.number(),
        shards: shard.count(),
        title,
        made_from,
        outcomes: own.map(|index| IndexedOutcome { index, outcome: measured.take(index) }).collect(),
        machine: measured.machine,
        cells,
        checksum: String::new(),
    };
    let part = sealed(part).map_err(OutputError::Json)?;
    let result = part.own_result();
    if measured.stop.is_none() {
        output_file::report(options.json.as_deref(), &part, || table::table(&result))?;
        return Ok(plan_exit_code(&result));
    }
    if is_any {
        output_file::print(&table::table(&result))?;
    }
    eprintln!("joj lab: shard {shard} came to no end, and leaves no part; run it again");
    Ok(guest_pool::exit_code(measured.stop)?)
}

/// What all shards have to have alike, besides the cells.
fn made_from(work: &PlanWork<'_>, pool: &GuestPool) -> Result<BTreeMap<String, String>, LabError> {
    let job = &work.job;
    let mut made_from = parts::made_from(&pool.contents, &job.setting)?;
    for (name, file) in work.recordings {
        made_from.insert(format!("recording {name}"), parts::checksum([file])?);
    }
    if job.trace {
        let how = format!("{}, {} transactions at most", job.trace_backend, job.traced_transactions);
        made_from.insert("trace".to_owned(), how);
    }
    Ok(made_from)
}

/// Says how long the cells take.
fn announce(prefix: &str, job: &Job, cells: usize, pool: &GuestPool) -> Progress {
    let cell_s = if job.trace { CELL_SECONDS.1 } else { CELL_SECONDS.0 };
    // The last round of guests takes its time also where some have nothing to do.
    let expected_s = cell_s * (cells as f64 / pool.jobs as f64).ceil();
    let of = if cells == job.cells.len() { String::new() } else { format!(" of {}", job.cells.len()) };
    eprintln!("{prefix}cells: {cells}{of}; expect about {}", rough(expected_s));
    Progress::new(cells, expected_s)
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
