//! `joj lab crash` from its options to its exit code.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::process::ExitCode;

use joj_analysis::key::{LogState, Schema, Side};
use joj_analysis::lab::cell::{Cell, Feature, SyncCall, Task};
use joj_analysis::lab::crash::{CRASH_FORMAT, CRASH_VERSION, CellStates, CrashResult, StateResult, Verdict};
use joj_analysis::lab::result::LabMachine;
use joj_device::description::Description;

use crate::bench::progress::Progress;
use crate::lab::crash_job::{CrashJob, RECORDINGS_DIRECTORY, UnitReport};
use crate::lab::crash_session::{CrashSession, Stop};
use crate::lab::devices;
use crate::lab::image::Contents;
use crate::lab::job::guest_path;
use crate::lab::packages::Packages;
use crate::lab_crash_options::CrashOptions;
use crate::machine::qemu;
use crate::machine::{output_file, signal};
use crate::show::crash_table;

/// Exit code of a program that SIGINT ended, by the shell's convention.
const STOPPED_EXIT_CODE: u8 = 130;
/// Seconds that a state takes, for the first forecast.
const STATE_SECONDS: f64 = 0.5;
/// Capacity of the device: room for the database, and what mkfs.xfs asks for.
const DEVICE_BYTES: u64 = 512 << 20;

/// The filesystems and sides that `options` name.
/// # Errors
/// Sides or options that cannot be.
pub fn cells(options: &CrashOptions) -> Result<Vec<Cell>, String> {
    if options.sides.iter().any(|side| !matches!(side, Side::Wal | Side::Waldio)) {
        return Err("`--sides` takes wal and waldio here".to_owned());
    }
    let waldio_options = &options.waldio_option;
    if !waldio_options.is_empty() && !options.sides.contains(&Side::Waldio) {
        return Err("`--waldio-option` needs `--sides waldio`".to_owned());
    }
    let combinations =
        options.filesystems.iter().flat_map(|kind| options.sides.iter().map(move |side| (kind, side)));
    let cells = combinations.map(|(filesystem, side)| Cell {
        filesystem: *filesystem,
        feature: Feature::None,
        device: options.device.clone(),
        journal_device: None,
        task: Task::Insert,
        side: *side,
        synchronous: options.synchronous,
        sync_call: SyncCall::Fdatasync,
        schema: Schema::Waldio,
        log: LogState::Fresh,
        waldio_options: if *side == Side::Waldio { waldio_options.clone() } else { Vec::new() },
        transactions: options.commits,
    });
    Ok(cells.collect())
}

/// Runs `joj lab crash` for `cells`.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machine is off, its files are gone.
pub fn run(
    options: &CrashOptions,
    cells: Vec<Cell>,
    packages: &Packages,
    contents: &Contents,
) -> Result<ExitCode, String> {
    if let Some(file) = options.json.as_ref().filter(|file| file.as_os_str() != "-") {
        output_file::check_writable(file)?;
    }
    if let Some(directory) = &options.recordings {
        let directory = directory.join(RECORDINGS_DIRECTORY);
        fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    }
    signal::install().map_err(|error| format!("cannot catch Ctrl-C: {error}"))?;
    let job = job(options, &cells, contents)?;
    let mut result = CrashResult {
        format: CRASH_FORMAT.to_owned(),
        version: CRASH_VERSION,
        seed: options.seed,
        planted: job.ignore_flushes.then(|| "ignored-flushes".to_owned()),
        machine: LabMachine {
            joj: env!("CARGO_PKG_VERSION").to_owned(),
            qemu: qemu::version()?,
            kernel: packages.release.clone(),
            clock: qemu::CLOCK.to_owned(),
            sqlite: Vec::new(),
        },
        cells: cells.into_iter().map(unlooked).collect(),
    };
    let mut progress = Progress::new(job.units_max(), STATE_SECONDS * job.units_max() as f64);
    let session = CrashSession {
        job: job.clone(),
        packages,
        contents,
        state_seconds: options.state_seconds,
        recordings: options.recordings.as_deref(),
    };
    let ended = session.run(&mut progress, &mut |number, report| {
        let unit = job.unit(number);
        // Where no line can change, one line a cell: a thousand states take an hour.
        if unit.state == 0 && !stderr().is_terminal() {
            eprintln!("{}, cell {} of {}", job.cells[unit.cell], unit.cell + 1, job.cells.len());
        }
        take(&mut result.cells[unit.cell], unit.state, report);
    });
    progress.clear();
    match ended {
        Err(Stop::Signal) => return Ok(ExitCode::from(STOPPED_EXIT_CODE)),
        Err(Stop::Failed(reason)) => return Err(reason),
        Ok(()) => {}
    }
    report(options, &result)
}

fn job(options: &CrashOptions, cells: &[Cell], contents: &Contents) -> Result<CrashJob, String> {
    let devices = devices::of(cells)?;
    for (name, text) in &devices {
        let description = Description::parse(text, name).map_err(|error| error.to_string())?;
        if !description.has_volatile_cache() {
            return Err(format!(
                "{name} has no volatile cache: a power cut takes nothing of what it acknowledged; name another with --device"
            ));
        }
    }
    let sqlite = contents.sqlite.first().and_then(|file| file.file_name()).unwrap_or_default();
    let mut job = CrashJob {
        cells: cells.to_vec(),
        states: options.states,
        seed: options.seed,
        torn: options.torn.clone(),
        ignore_flushes: options.plant.is_some(),
        sqlite: format!("{}/{}", guest_path::LIBRARIES, sqlite.to_string_lossy()),
        devices,
        device_bytes: DEVICE_BYTES,
        units: Vec::new(),
    };
    job.units = (0..job.units_max()).collect();
    Ok(job)
}

fn unlooked(cell: Cell) -> CellStates {
    CellStates { cell, failure: None, entries: 0, states: Vec::new() }
}

/// Notes what came of a state, or, where `state` is 0, of the recording.
fn take(cell: &mut CellStates, state: u64, report: Result<UnitReport, String>) {
    match report {
        Ok(UnitReport::Recorded(entries)) => cell.entries = entries,
        Ok(UnitReport::State(result)) => cell.states.push(result),
        Err(reason) if state == 0 => cell.failure = Some(reason),
        Err(reason) => {
            let verdict = Verdict::Ended(reason);
            cell.states.push(StateResult { state, cut: None, verdict, stock: None });
        }
    }
}

fn report(options: &CrashOptions, result: &CrashResult) -> Result<ExitCode, String> {
    let to_stdout = options.json.as_deref() == Some(Path::new("-"));
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(result).map_err(|error| error.to_string())?;
        if to_stdout {
            println!("{text}");
        } else {
            output_file::write(file, &text)?;
        }
    }
    if !to_stdout {
        print!("{}", crash_table::table(result));
    }
    let sound = result.cells.iter().all(CellStates::is_sound);
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
