//! `joj lab crash` from its options to its exit code.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;

use joj_analysis::bench::key::{JournalMode, LogState, Schema, Word};
use joj_analysis::lab::cell::{Cell, CellOrder, FILE_MIB, Feature, Recorder, Store, SyncCall, Task};
use joj_analysis::lab::crash::{
    CRASH_FORMAT, CRASH_VERSION, CellStates, CrashResult, CrashVerdict, StateResult,
};
use joj_analysis::lab::crash_script::transactions;

use crate::bench::progress::Progress;
use crate::command_line::lab::crash::CrashOptions;
use crate::command_line::named_twice;
use crate::lab::commands::error::{CrashUsage, LabError};
use crate::lab::commands::parts;
use crate::lab::error::UnitError;
use crate::lab::guest_pool::{self, GuestPool};
use crate::lab::host_share::HostShare;
use crate::lab::image::archive::Contents;
use crate::lab::jobs::crash::{CrashJob, UnitReport};
use crate::lab::kept::made_with::{MadeWith, text_checksum};
use crate::lab::kept::recordings::KeptRecordings;
use crate::lab::life::SessionEnd;
use crate::lab::machine;
use crate::lab::recorded_log::{RECORDING_ENDS, RECORDINGS_DIRECTORY};
use crate::lab::shipped::devices;
use crate::lab::shipped::error::ShippedError;
use crate::lab::work::crash::CrashWork;
use crate::machine::files::output_file;
use crate::machine::proc::signal;
use crate::show::lab::crash_table;

/// Journal modes that are made to survive a power cut.
const SURVIVING: [JournalMode; 5] =
    [JournalMode::Delete, JournalMode::Truncate, JournalMode::Persist, JournalMode::Wal, JournalMode::Waldio];
/// Seconds that a state takes, for the first forecast.
const STATE_SECONDS: f64 = 0.5;
/// Capacity of the device: room for the database, and what mkfs.xfs asks for.
const DEVICE_BYTES: u64 = 512 << 20;

/// The filesystems and modes that `options` name.
/// # Errors
/// Modes or options that cannot be.
pub fn cells(options: &CrashOptions) -> Result<Vec<Cell>, CrashUsage> {
    if options.modes.iter().any(|mode| !SURVIVING.contains(mode)) {
        return Err(CrashUsage::Modes);
    }
    if let Some(what) = named_twice("--filesystems", options.filesystems.iter().map(|one| one.word()))
        .or_else(|| named_twice("--modes", options.modes.iter().map(|one| one.word())))
        .or_else(|| named_twice("--synchronous", options.synchronous.iter().map(|one| one.word())))
    {
        return Err(CrashUsage::Twice(what));
    }
    let waldio_options = &options.waldio_option;
    if !waldio_options.is_empty() && !options.modes.contains(&JournalMode::Waldio) {
        return Err(CrashUsage::WaldioOption);
    }
    let levels = &options.synchronous;
    let modes = || options.modes.iter().flat_map(|mode| levels.iter().map(move |level| (mode, level)));
    let combinations = options.filesystems.iter().flat_map(|kind| modes().map(move |mode| (kind, mode)));
    let cells = combinations.map(|(filesystem, (mode, synchronous))| Cell {
        filesystem: *filesystem,
        feature: Feature::None,
        device: options.device.clone(),
        journal_device: None,
        task: Task::Insert,
        store: Store::Sqlite,
        mode: *mode,
        synchronous: *synchronous,
        sync_call: SyncCall::Fdatasync,
        schema: Schema::Waldio,
        log: LogState::Fresh,
        waldio_options: if *mode == JournalMode::Waldio { waldio_options.clone() } else { Vec::new() },
        batch_atomic: false,
        directory_sync: true,
        threads: 1,
        file_mib: FILE_MIB,
        transactions: options.commits,
        recording: None,
        range_mib: None,
        compat: false,
        order: CellOrder::Timed,
        recorder: Recorder::None,
    });
    Ok(cells.collect())
}

/// Runs `joj lab crash` for `cells`.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machine is off, its files are gone.
pub fn run(options: &CrashOptions, cells: Vec<Cell>, pool: &GuestPool) -> Result<ExitCode, LabError> {
    if let Some(directory) = &options.recordings {
        let directory = directory.join(RECORDINGS_DIRECTORY);
        fs::create_dir_all(&directory).map_err(|error| LabError::Directory { directory, error })?;
    }
    signal::install().map_err(LabError::Signals)?;
    let mut machine = machine::told(pool)?;
    let job = job(options, &cells, &pool.contents)?;
    let mut looked: Vec<CellStates> = cells.into_iter().map(unlooked).collect();
    let kept = options.recordings.as_deref().map(|directory| KeptRecordings::of(directory, &RECORDING_ENDS));
    // Held to the end: recordings are made between states of others.
    let _turn = match kept.map_or(Ok(None), |kept| kept.turn(0..looked.len())) {
        Ok(turn) => turn,
        Err(stop) => return Ok(guest_pool::exit_code(Some(stop))?),
    };
    let recordings = kept.map(|kept| take_kept(kept, &job, &pool.contents, &mut looked)).transpose()?;
    let work = CrashWork { job, recordings };
    let job = &work.job;
    let expected_s = STATE_SECONDS * job.units_max() as f64 / pool.jobs as f64;
    let mut progress = Progress::new(job.units_max(), expected_s);
    let batches = work.batches(|cell| looked[cell].failure.is_none());
    let mut told = |number, report: Result<UnitReport, UnitError>, share: &HostShare| {
        let unit = job.unit(number);
        if unit.state == 0 {
            if report.is_ok()
                && let Err(reason) = work.keep(unit.cell, share)
            {
                eprintln!("joj lab: the recording is not kept: {reason}");
            }
            // Where no line can change, one line a cell: a thousand states take an hour.
            if !stderr().is_terminal() {
                eprintln!("{}, cell {} of {}", job.cells[unit.cell], unit.cell + 1, job.cells.len());
            }
        }
        take(&mut looked[unit.cell], unit.state, report);
    };
    let ended = if batches.is_empty() {
        Ok(std::mem::take(&mut machine.kernel))
    } else {
        pool.work_off(batches, &work, &mut progress, &mut told)
    };
    progress.clear();
    let stop = ended.map(|kernel| machine.kernel = kernel).err();
    if looked.iter().all(|cell| cell.states.is_empty() && cell.failure.is_none()) {
        return Ok(guest_pool::exit_code(stop)?);
    }
    for cell in &mut looked {
        let done = cell.states.len() as u64;
        if done < options.states && cell.failure.is_none() {
            let why = guest_pool::unmeasured(stop.as_ref());
            cell.failure = Some(format!("{done} of {} states: {why}", options.states));
        }
    }
    let result = CrashResult {
        format: CRASH_FORMAT.to_owned(),
        version: CRASH_VERSION,
        seed: options.seed,
        planted: job.ignore_flushes.then(|| "ignored-flushes".to_owned()),
        machine,
        cells: looked,
    };
    give(options, &result, stop)
}

/// Gives what was found, and the exit code.
fn give(
    options: &CrashOptions,
    result: &CrashResult,
    stop: Option<SessionEnd>,
) -> Result<ExitCode, LabError> {
    output_file::report(options.json.as_deref(), result, || crash_table::table(result))?;
    if stop.is_some() {
        return Ok(guest_pool::exit_code(stop)?);
    }
    let sound = result.cells.iter().all(CellStates::is_sound);
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn job(options: &CrashOptions, cells: &[Cell], contents: &Contents) -> Result<CrashJob, LabError> {
    let setting = machine::setting(contents, devices::names(cells), DEVICE_BYTES)?;
    Ok(CrashJob {
        setting,
        cells: cells.to_vec(),
        states: options.states,
        seed: options.seed,
        torn: options.torn.clone(),
        ignore_flushes: options.plant.is_some(),
        units: Vec::new(),
    })
}

/// Looks which recordings are there: a cell whose recording is not the one that it would make fails. Gives what each is made with.
fn take_kept<'a>(
    kept: KeptRecordings<'a>,
    job: &CrashJob,
    contents: &Contents,
    looked: &mut [CellStates],
) -> Result<(KeptRecordings<'a>, Vec<MadeWith>), LabError> {
    let made = job.cells.iter().map(|cell| made_with(cell, job, contents));
    let made = made.collect::<Result<Vec<MadeWith>, LabError>>()?;
    let there = (0..looked.len()).filter(|number| kept.is_any(*number));
    let mut is_one = false;
    for number in there {
        match kept.check(number, &made[number]) {
            Ok(()) => is_one = true,
            Err(reason) => {
                looked[number].failure = Some(format!("{reason}; name an empty DIR, to record anew"));
            }
        }
    }
    if is_one {
        eprintln!("joj lab: recordings are taken from {}", kept.directory.display());
    }
    Ok((kept, made))
}

/// What the recording of `cell` is made with.
fn made_with(cell: &Cell, job: &CrashJob, contents: &Contents) -> Result<MadeWith, LabError> {
    let mut made = MadeWith::by("joj crash sqlite")
        .with("--filesystems", cell.filesystem.word())
        .with_device("--device", &cell.device, &job.setting)
        .map_err(ShippedError::from)?
        .with("--modes", cell.mode.word())
        .with("--synchronous", cell.synchronous.word())
        .with("--commits", cell.transactions)
        .with("list of transactions", text_checksum([transactions(cell.transactions).as_str()]));
    for sqlite in &contents.sqlite {
        made = made.with("SQLite library", parts::lasting_checksum(sqlite)?);
    }
    if cell.mode.uses_waldio() {
        made = made.with("--waldio-option", cell.waldio_options.join(" "));
        if let Some(library) = &contents.waldio {
            made = made.with("waldio library", parts::lasting_checksum(library)?);
        }
    }
    Ok(made)
}

fn unlooked(cell: Cell) -> CellStates {
    CellStates { cell, failure: None, entries: 0, longest_flush_ns: 0, states: Vec::new() }
}

/// Notes what came of a state, or, where `state` is 0, of the recording.
fn take(cell: &mut CellStates, state: u64, report: Result<UnitReport, UnitError>) {
    match report {
        Ok(UnitReport::Recorded { entries, longest_flush_ns }) => {
            (cell.entries, cell.longest_flush_ns) = (entries, longest_flush_ns);
        }
        Ok(UnitReport::State(result)) => cell.states.push(result),
        Err(reason) if state == 0 => cell.failure = Some(reason.to_string()),
        // Its guest goes on to the states, which have nothing to be made of.
        Err(_) if cell.failure.is_some() => {}
        Err(reason) => {
            let verdict = CrashVerdict::Ended(reason.to_string());
            cell.states.push(StateResult { state, cut: None, verdict, stock: None, lost_age_ns: None });
        }
    }
}
