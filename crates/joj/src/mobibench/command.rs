//! `joj mobibench` from its options to its exit code.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::bench::environment::iso_8601;
use joj_analysis::mobibench::document::{FORMAT, LatencyUs, MobibenchDocument, MobibenchResult, VERSION};
use joj_analysis::mobibench::setup::{DatabaseWork, MobibenchSetup, MobibenchWork};

use crate::bench::ask::{Asker, Stop};
use crate::bench::builds::{SYSTEM_LIBRARY, extension_file};
use crate::bench::conditions::environment;
use crate::bench::worker::libraries::Libraries;
use crate::bench::worker::mobibench::run::{MobibenchFigures, MobibenchSyncTask, MobibenchTask};
use crate::command_line::mobibench::MobibenchOptions;
use crate::command_line::wrong_usage;
use crate::machine::files::output_file::{self, check_writable, is_stdout, print};
use crate::machine::files::place::{Place, warn as warn_of_place};
use crate::machine::files::work_dir::WorkDir;
use crate::machine::proc::clock::calendar_seconds;
use crate::machine::proc::signal;
use crate::machine::proc::worker_process::Workers;
use crate::mobibench::error::MobibenchError;
use crate::mobibench::place::TestPlace;
use crate::mobibench::setup;
use crate::show::mobibench as lines;

/// How many transactions are enough to count what each asks for.
const COUNTED_TRANSACTIONS_MAX: u64 = 1_000;

/// A file of Mobibench's that lines are appended to, and its option.
type LinesFile = (&'static str, PathBuf, File);

/// Runs `joj mobibench`.
/// # Errors
/// What could not be done, where, and how to mend it. Files that were not there before are removed then.
pub fn run(options: &MobibenchOptions) -> Result<ExitCode, MobibenchError> {
    let setup = match setup::setup(options) {
        Ok(setup) => setup,
        Err(what) => return Ok(wrong_usage(&what.to_string())),
    };
    check_writable([&options.json, &options.latency_file, &options.iops_file].into_iter().flatten())?;
    let latencies = open_lines("-L", options.latency_file.as_deref())?;
    let seconds = open_lines("-k", options.iops_file.as_deref())?;
    let libraries = libraries(options)?;
    let workers = Workers::new(Vec::new())?;
    let asker = Asker::new(&workers);
    let place = TestPlace::make(&setup)?;
    signal::install().map_err(MobibenchError::Signals)?;
    let started_at = iso_8601(calendar_seconds());
    let mobibench = LinesScreen { is_taken: options.json.as_deref().is_some_and(is_stdout) };
    // States of Mobibench's, which it prints as numbers: ready, at work, at the end.
    mobibench.print(&format!("{}setState: 1\n", lines::setup(&setup)))?;
    let task =
        MobibenchTask { setup: setup.clone(), libraries: libraries.clone(), is_quiet: options.is_quiet };
    let asked = asker.ask(&task).and_then(|mut figures| {
        if options.json.is_some() && figures.syncs.is_none() {
            count_syncs(&asker, &setup, libraries, &mut figures)?;
        }
        Ok(figures)
    });
    let figures = match asked {
        Ok(figures) => figures,
        Err(stop) => {
            place.remove_new();
            return stopped(stop, &setup, &mobibench);
        }
    };
    warn_of_place(Path::new(&setup.directory));
    for note in &figures.notes {
        eprintln!("note: {note}");
    }
    let result = result(&setup, &figures);
    let databases = figures.sqlite.as_ref().map(lines::databases).unwrap_or_default();
    let shown = lines::result(&setup, &result, figures.elapsed_ns);
    mobibench.print(&format!("{databases}setState: 2\n{shown}setState: 3\nErr string : No error\n"))?;
    let elapsed_ns = figures.elapsed_ns;
    append(latencies, || lines::latency_lines(&setup, &figures.latencies_ns, &result, elapsed_ns))?;
    if let MobibenchWork::Files(work) = &setup.work {
        append(seconds, || lines::second_lines(&setup, work, &figures.latencies_ns))?;
    } else if seconds.is_some() {
        eprintln!("note: -k is about files: nothing was appended");
    }
    let document = MobibenchDocument {
        format: FORMAT.to_owned(),
        version: VERSION,
        environment: environment(
            Path::new(&setup.directory),
            &Place::of(Path::new(&setup.directory)),
            started_at,
        ),
        setup,
        sqlite: figures.sqlite,
        result,
        notes: figures.notes,
    };
    if let Some(file) = &options.json {
        output_file::report(Some(file), &document, String::new)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the options say of SQLite.
fn libraries(options: &MobibenchOptions) -> Result<Libraries, MobibenchError> {
    let sqlite = match options.sqlite.as_str() {
        "bundled" => None,
        "system" => Some(SYSTEM_LIBRARY.to_owned()),
        file => Some(file.to_owned()),
    };
    let extension = match &options.waldio {
        Some(file) => Some(extension_file(Some(file), "")?.to_string_lossy().into_owned()),
        None => None,
    };
    Ok(Libraries { sqlite, extension, ..Libraries::default() })
}

/// Counts what the transactions of one thread ask for durability, in a run that no clock covers: counting slows them down.
fn count_syncs(
    asker: &Asker<'_>,
    setup: &MobibenchSetup,
    libraries: Libraries,
    figures: &mut MobibenchFigures,
) -> Result<(), Stop> {
    let MobibenchWork::Databases(work) = &setup.work else { return Ok(()) };
    let work_dir =
        WorkDir::create(Path::new(&setup.directory)).map_err(|error| Stop::Failed(error.to_string()))?;
    let work = DatabaseWork {
        transactions: work.transactions.min(COUNTED_TRANSACTIONS_MAX),
        pause_ms: 0,
        ..work.clone()
    };
    let directory = work_dir.path().to_string_lossy().into_owned();
    let setup = MobibenchSetup { directory, threads: 1, work: MobibenchWork::Databases(work) };
    match asker.ask(&MobibenchSyncTask { setup, libraries })? {
        Ok(calls) => figures.syncs = Some(calls),
        Err(why) => figures.notes.push(format!("calls for durability were not counted: {why}")),
    }
    Ok(())
}

/// Standard output, which may be for JSON alone.
struct LinesScreen {
    is_taken: bool,
}

impl LinesScreen {
    fn print(&self, text: &str) -> Result<(), MobibenchError> {
        if self.is_taken { Ok(()) } else { Ok(print(text)?) }
    }
}

fn stopped(stop: Stop, setup: &MobibenchSetup, mobibench: &LinesScreen) -> Result<ExitCode, MobibenchError> {
    if stop == Stop::Signal {
        eprintln!("joj: stopped; the files it made are removed");
        return Ok(ExitCode::from(signal::STOPPED_EXIT_CODE));
    }
    let is_mapped = matches!(&setup.work, MobibenchWork::Files(work) if work.sync.is_mapped());
    // SIGBUS, 7 where Linux has it at its usual place.
    let hint = match is_mapped && stop.to_string().contains(&format!("signal {} ", libc::SIGBUS)) {
        true => {
            ": a page of the mapping (-y 5 to 7) found no room, the disk or the quota is full; make room, or take a smaller -f"
        }
        false => "",
    };
    let error = MobibenchError::Stopped { stop, hint };
    mobibench.print(&format!("Err string : {error}\n"))?;
    Err(error)
}

fn result(setup: &MobibenchSetup, figures: &MobibenchFigures) -> MobibenchResult {
    let operations = figures.latencies_ns.iter().map(|of_thread| of_thread.len() as u64).sum();
    let elapsed_s = figures.elapsed_ns.max(1) as f64 / 1e9;
    let bytes = match &setup.work {
        MobibenchWork::Files(work) => Some(operations * work.record_bytes()),
        MobibenchWork::Databases(_) => None,
    };
    MobibenchResult {
        elapsed_s,
        operations,
        operations_per_s: operations as f64 / elapsed_s,
        bytes,
        bytes_per_s: bytes.map(|bytes| bytes as f64 / elapsed_s),
        cpu_percent: figures.cpu_percent,
        context_switches: figures.context_switches,
        latency_us: LatencyUs::of(figures.latencies_ns.concat()),
        syncs: figures.syncs,
    }
}

/// Opens one before the test, so that a test is not for nothing.
fn open_lines(option: &'static str, path: Option<&Path>) -> Result<Option<LinesFile>, MobibenchError> {
    let Some(path) = path else { return Ok(None) };
    let path = path.to_owned();
    match OpenOptions::new().append(true).create(true).open(&path) {
        Ok(file) => Ok(Some((option, path, file))),
        Err(error) => Err(MobibenchError::Lines { path, option, error }),
    }
}

fn append(file: Option<LinesFile>, text: impl FnOnce() -> String) -> Result<(), MobibenchError> {
    let Some((option, path, mut file)) = file else { return Ok(()) };
    file.write_all(text().as_bytes()).map_err(|error| MobibenchError::Lines { path, option, error })
}
