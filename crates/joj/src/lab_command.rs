//! `joj lab` from its options to its exit code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::key::Side;
use joj_analysis::lab::cell::{Cell, SyncCall};
use joj_analysis::lab::plan::Plan;
use joj_analysis::lab::result::{CellResult, LabMachine, LabResult, Outcome, RESULT_FORMAT, RESULT_VERSION};

use crate::bench::ask::Asker;
use crate::bench::builds::{SYSTEM_LIBRARY, extension_file};
use crate::bench::progress::Progress;
use crate::bench::task::{Answer, Libraries, Task};
use crate::lab::costs;
use crate::lab::devices;
use crate::lab::host_share::HostShare;
use crate::lab::image::{self, Contents};
use crate::lab::job::{CellReport, Job, guest_path};
use crate::lab::libraries;
use crate::lab::packages::Packages;
use crate::lab::plans;
use crate::lab::session::{MEMORY_MIB, Session, Stop};
use crate::lab_crash_command;
use crate::lab_options::{LabAction, LabOptions, MachineOptions, RunOptions};
use crate::lab_report_command;
use crate::machine::qemu::{self, Boot, Qemu};
use crate::machine::worker_process::Workers;
use crate::machine::{output_file, signal};
use crate::show::lab_table;

/// Exit code of a program that SIGINT ended, by the shell's convention.
const STOPPED_EXIT_CODE: u8 = 130;
/// Seconds that a cell takes, for the first forecast.
const CELL_SECONDS: f64 = 3.0;
/// Capacity of an emulated device: room for every cell, and blocks for the filesystem's own layout.
const DEVICE_BYTES: u64 = 1 << 30;

/// Runs `joj lab`.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machine is off, its files are gone.
pub fn run(options: &LabOptions) -> Result<ExitCode, String> {
    match &options.action {
        LabAction::List => {
            output_file::print(&plans::list()?)?;
            Ok(ExitCode::SUCCESS)
        }
        LabAction::Run(options) => measure(options),
        LabAction::Crash(options) => {
            let cells = lab_crash_command::cells(&options.crash)?;
            qemu::version()?;
            let contents = contents(&options.machine, &cells)?;
            lab_crash_command::run(&options.crash, cells, &packages(&options.machine)?, &contents)
        }
        LabAction::Report(options) => lab_report_command::run(options),
        LabAction::Shell(options) => shell(options),
    }
}

fn measure(options: &RunOptions) -> Result<ExitCode, String> {
    let (plan, cells) = planned(options)?;
    if options.dry_run {
        let lines: String =
            cells.iter().map(|cell| format!("{cell}, {} transactions\n", cell.transactions)).collect();
        output_file::print(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = options.json.as_ref().filter(|file| file.as_os_str() != "-") {
        output_file::check_writable(file)?;
    }
    if let Some(directory) = &options.traces {
        fs::create_dir_all(directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    }
    signal::install().map_err(|error| format!("cannot catch Ctrl-C: {error}"))?;
    let version = qemu::version()?;
    let packages = packages(&options.machine)?;
    let contents = contents(&options.machine, &cells)?;
    let sqlite = contents.sqlite.first().and_then(|file| file.file_name()).unwrap_or_default();
    let job = Job {
        cells: Vec::new(),
        trace: plan.trace || options.traces.is_some(),
        trace_backend: options.trace_backend.word().to_owned(),
        sqlite: format!("{}/{}", guest_path::LIBRARIES, sqlite.to_string_lossy()),
        devices: devices::of(&cells)?,
        device_bytes: DEVICE_BYTES,
    };
    let session = Session {
        cells: &cells,
        packages: &packages,
        contents: &contents,
        job,
        cell_seconds: options.cell_seconds,
    };
    let mut outcomes: Vec<Option<Outcome>> = vec![None; cells.len()];
    let mut progress = Progress::new(cells.len(), CELL_SECONDS * cells.len() as f64);
    let ended = session.run(&mut progress, &mut |index, report, share| {
        outcomes[index] = Some(outcome(index, report, share, options.traces.as_deref()));
    });
    progress.clear();
    match ended {
        Err(Stop::Signal) => return Ok(ExitCode::from(STOPPED_EXIT_CODE)),
        Err(Stop::Failed(reason)) => return Err(reason),
        Ok(()) => {}
    }
    let results = cells.into_iter().zip(outcomes).map(|(cell, outcome)| CellResult {
        cell,
        outcome: outcome.unwrap_or_else(|| Outcome::Failed("the guest ended before it".to_owned())),
    });
    let machine = LabMachine {
        joj: env!("CARGO_PKG_VERSION").to_owned(),
        qemu: version,
        kernel: packages.release.clone(),
        clock: qemu::CLOCK.to_owned(),
        sqlite: versions(&contents)?,
    };
    let result = LabResult {
        format: RESULT_FORMAT.to_owned(),
        version: RESULT_VERSION,
        title: plan.title,
        machine,
        cells: results.collect(),
    };
    report(options, &result)
}

fn report(options: &RunOptions, result: &LabResult) -> Result<ExitCode, String> {
    let to_stdout = options.json.as_deref() == Some(Path::new("-"));
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(result).map_err(|error| error.to_string())?;
        if to_stdout {
            output_file::print(&format!("{text}\n"))?;
        } else {
            output_file::write(file, &text)?;
        }
    }
    if !to_stdout {
        output_file::print(&lab_table::table(result))?;
    }
    let failed = result.cells.iter().any(|cell| matches!(cell.outcome, Outcome::Failed(_)));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn planned(options: &RunOptions) -> Result<(Plan, Vec<Cell>), String> {
    let plan = plans::read(&options.plan)?;
    let mut cells = plan.cells().map_err(|error| format!("{}: {error}", options.plan))?;
    cells.retain(|cell| {
        let line = cell.to_string();
        options.only.iter().all(|text| line.contains(text.as_str()))
    });
    if cells.is_empty() {
        return Err("no cell has all texts of --only; `--dry-run` lists the cells".to_owned());
    }
    Ok((plan, cells))
}

/// What the guest reported, and the costs that its trace shows.
fn outcome(index: usize, report: CellReport, share: &HostShare, traces: Option<&Path>) -> Outcome {
    let mut measurement = match report {
        Ok(measurement) => measurement,
        Err(reason) => return Outcome::Failed(reason),
    };
    if let Some(name) = measurement.trace.take() {
        let kept = match traces {
            Some(directory) => directory.join(format!("{index:04}.parquet")),
            None => share.beside("trace.parquet"),
        };
        let looked = share.take(&name, &kept).and_then(|()| costs::of(&kept, measurement.run.transactions));
        match looked {
            Ok(costs) => measurement.costs = costs,
            Err(reason) => measurement.trace_failure = Some(reason),
        }
        measurement.trace = traces.and(kept.file_name()).map(|name| name.to_string_lossy().into_owned());
    }
    Outcome::Measured(Box::new(measurement))
}

fn packages(machine: &MachineOptions) -> Result<Packages, String> {
    let say = |text: &str| eprintln!("joj lab: {text}");
    let packages = Packages::get(&say)?;
    match (&machine.kernel, &machine.modules) {
        (Some(kernel), Some(modules)) => packages.with_kernel(kernel, modules),
        _ => Ok(packages),
    }
}

/// The files of this machine that the guest runs.
fn contents(machine: &MachineOptions, cells: &[Cell]) -> Result<Contents, String> {
    let joj = std::env::current_exe().map_err(|error| format!("cannot find joj's own file: {error}"))?;
    let needs_sqlite =
        cells.iter().any(|cell| cell.sync_call == SyncCall::Fdatasync && cell.task.workload().is_some());
    let sqlite = if needs_sqlite { vec![libraries::installed(SYSTEM_LIBRARY)?] } else { Vec::new() };
    let needs_waldio = cells.iter().any(|cell| cell.side == Side::Waldio);
    let without = "or leave its cells out: `--only`";
    let waldio = needs_waldio.then(|| extension_file(machine.waldio.as_deref(), without)).transpose()?;
    Ok(Contents { joj, sqlite, waldio })
}

/// Versions of the SQLite builds that cells may load: asked here, as the guest loads the same files.
fn versions(contents: &Contents) -> Result<Vec<(String, String)>, String> {
    let workers = Workers::new(Vec::new())?;
    let ask = |name: &str, sqlite: Option<String>| {
        let task = Task::Describe(Libraries { sqlite, extension: None });
        match Asker::new(&workers).ask(&task) {
            Ok(Answer::Described { version, .. }) => Ok((name.to_owned(), version)),
            other => Err(format!("the {name} SQLite does not say its version: {other:?}")),
        }
    };
    let system = contents.sqlite.iter().map(|file| ask("system", Some(file.to_string_lossy().into_owned())));
    system.chain([ask("bundled", None)]).collect()
}

fn shell(options: &MachineOptions) -> Result<ExitCode, String> {
    qemu::version()?;
    let packages = packages(options)?;
    let joj = std::env::current_exe().map_err(|error| format!("cannot find joj's own file: {error}"))?;
    let waldio = extension_file(options.waldio.as_deref(), "").ok();
    let sqlite: Vec<PathBuf> = libraries::installed(SYSTEM_LIBRARY).into_iter().collect();
    let share = HostShare::create()?;
    let image = share.beside("image");
    image::write(&image, &Contents { joj, sqlite, waldio }, &packages)?;
    let boot = Boot {
        kernel: packages.kernel(),
        image,
        share: (share.shared(), crate::lab::job::SHARE_TAG.to_owned()),
        words: "joj.shell".to_owned(),
        memory_mib: MEMORY_MIB,
        interactive: true,
    };
    let code = Qemu::start(&boot)?.wait();
    Ok(if code == Some(0) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
