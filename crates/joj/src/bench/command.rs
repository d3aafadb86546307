//! `joj bench` from its options to its exit code.

use std::process::ExitCode;
use std::time::Duration;

use joj_analysis::bench::document::{Document, FORMAT, RunPlan, VERSION};
use joj_analysis::bench::environment::{Environment, iso_8601};
use joj_analysis::bench::study::parts::StudyPart;
use joj_analysis::bench::warnings::warnings;
use joj_analysis::statistics::quantile_grid;

use crate::bench::ask::{Asker, Stop};
use crate::bench::builds::{self, Builds};
use crate::bench::conditions;
use crate::bench::disk_limits::DiskLimits;
use crate::bench::error::{BenchError, BenchUsage};
use crate::bench::experiment::{self, Experiment, expected_s, row_count};
use crate::bench::experiments::file_io::{FileIo, IoSelection};
use crate::bench::experiments::many_writers::{Contention, LIMIT_TRANSACTIONS, ManyWriters};
use crate::bench::experiments::of_study;
use crate::bench::experiments::rows::{RowSelection, Rows};
use crate::bench::forecast::rough;
use crate::bench::progress::Progress;
use crate::bench::session::Session;
use crate::bench::worker::limit_run::CalibrationTask;
use crate::command_line::{BenchOptions, wrong_usage};
use crate::machine::files::counters::Sources;
use crate::machine::files::output_file::{self, check_writable};
use crate::machine::files::place::Place;
use crate::machine::files::work_dir::WorkDir;
use crate::machine::proc::clock::{calendar_seconds, now_ns};
use crate::machine::proc::signal;
use crate::machine::proc::worker_process::Workers;
use crate::show::bench::page::page;
use crate::show::bench::table;
use crate::show::paper::Paper;

/// Transactions and runs by default, and with `--quick`.
const COUNTS: (u64, u32) = (1_000, 5);
const QUICK_COUNTS: (u64, u32) = (200, 3);

/// Writers of the default plan beside one alone: programs that have several have some such number of threads.
const DEFAULT_THREADS: u32 = 8;

/// Seconds of a run with many writers, and of file I/O at most, by default and with `--quick`.
const SECONDS: f64 = 2.0;
const QUICK_SECONDS: f64 = 1.0;

/// Runs `joj bench`.
/// # Errors
/// What could not be done, where, and how to mend it. No file is left in the measured directory.
pub fn run(options: &BenchOptions) -> Result<ExitCode, BenchError> {
    let selection = RowSelection {
        workloads: options.workloads.clone(),
        schemas: options.schemas.clone(),
        modes: options.modes.clone(),
        synchronous: options.sync.clone(),
        logs: options.log.clone(),
    };
    if let Err(what) = check(options, &selection) {
        return Ok(wrong_usage(&what.to_string()));
    }
    if let Some(what) = output_file::both_printed(&options.json, &options.markdown) {
        return Ok(wrong_usage(what));
    }
    check_writable([&options.json, &options.markdown, &options.html].into_iter().flatten())?;
    signal::install().map_err(BenchError::Signals)?;
    match measure(options, selection) {
        Ok(document) => report(options, &document),
        Err(Stop::Signal) => {
            eprintln!("joj: stopped; the files it made are removed");
            Ok(ExitCode::from(signal::STOPPED_EXIT_CODE))
        }
        Err(stop) => Err(stop.into()),
    }
}

/// Says what no machine could measure, before anything begins.
fn check(options: &BenchOptions, selection: &RowSelection) -> Result<(), BenchUsage> {
    let has_time = options.is_contended() || options.io.io;
    if !has_time && (options.seconds.is_some() || options.flush_delay.is_some()) {
        return Err(BenchUsage::NoWriters);
    }
    builds::check_names(options)?;
    if options.io.io {
        Ok(io_selection(options).check()?)
    } else if options.is_contended() {
        Ok(contention(options).check()?)
    } else if !options.is_study() && selection.groups(&["any".to_owned()]).is_empty() {
        Err(BenchUsage::NoRow)
    } else {
        Ok(())
    }
}

fn counts(options: &BenchOptions) -> (u64, u32) {
    let (transactions, runs) = if options.quick { QUICK_COUNTS } else { COUNTS };
    (options.transactions.unwrap_or(transactions), options.runs.unwrap_or(runs))
}

fn measure(options: &BenchOptions, selection: RowSelection) -> Result<Document, Stop> {
    let began_ns = now_ns();
    let environment_of_workers = options
        .waldio_option
        .iter()
        .map(|(name, value)| (format!("WALDIO_{}", name.to_uppercase()), value.clone()));
    let workers =
        Workers::new(environment_of_workers.collect()).map_err(|error| Stop::Failed(error.to_string()))?;
    let work_dir = WorkDir::create(&options.directory).map_err(|error| Stop::Failed(error.to_string()))?;
    let place = Place::of(work_dir.path());
    let is_without_sqlite =
        options.io.io || (options.is_study() && !options.waldio_study.contains(&StudyPart::Table2));
    let builds = if is_without_sqlite {
        Builds::default()
    } else {
        Builds::find(options, selection.needs_waldio(), &work_dir, &Asker::new(&workers))?
    };
    let environment = Environment {
        waldio: builds.waldio.clone(),
        ..conditions::environment(&options.directory, &place, iso_8601(calendar_seconds()))
    };
    let (transactions, runs) = counts(options);
    let asker = Asker::new(&workers);
    let directory = work_dir.path().to_string_lossy().into_owned();
    let calibration = asker.ask(&CalibrationTask { directory })?;
    let session = Session {
        work_dir: &work_dir,
        asker,
        builds: &builds.list,
        waldio: builds.waldio.as_ref(),
        sources: Sources::of(&place),
        transactions: if seconds(options).is_some() { LIMIT_TRANSACTIONS } else { transactions },
        calibration,
        runs,
    };
    eprintln!("measuring {}", table::place_line(&environment));
    for note in &builds.notes {
        eprintln!("note: {note}");
    }
    let mut experiments = experiments(options, selection, &session)?;
    let expected_s = announce(options, &experiments, &session);
    let limits = measure_all(&mut experiments, &session, expected_s)?;
    let plan = match seconds(options) {
        Some(seconds) => RunPlan { seconds: Some(seconds), runs, expected_s, ..RunPlan::default() },
        None => {
            let seconds = seconds_beside(options);
            RunPlan { transactions, seconds, runs, expected_s, ..RunPlan::default() }
        }
    };
    let mut document = Document {
        format: FORMAT.to_owned(),
        version: VERSION,
        environment,
        builds: builds.list,
        plan,
        // On a device made slow, what the disk does says nothing.
        limits: if options.flush_delay.unwrap_or(0) == 0 { limits.finish() } else { Vec::new() },
        quantile_parts: quantile_grid(),
        rows: Vec::new(),
        contended: Vec::new(),
        io: Vec::new(),
        study: None,
        warnings: Vec::new(),
    };
    for experiment in experiments {
        experiment.finish(&mut document);
    }
    document.plan.elapsed_s = (now_ns() - began_ns) as f64 / 1e9;
    document.warnings = warnings(&document);
    Ok(document)
}

/// What the options ask for.
fn experiments(
    options: &BenchOptions,
    selection: RowSelection,
    session: &Session<'_>,
) -> Result<Vec<Box<dyn Experiment>>, Stop> {
    if options.is_study() {
        return options.waldio_study.iter().map(|part| of_study(*part, session)).collect();
    }
    if options.io.io {
        return Ok(vec![Box::new(FileIo::new(&io_selection(options)))]);
    }
    let libraries = session.build_names();
    Ok(if options.is_contended() {
        vec![Box::new(ManyWriters::new(contention(options), &libraries))]
    } else {
        let mut all: Vec<Box<dyn Experiment>> = vec![Box::new(Rows::new(selection, &libraries))];
        if seconds_beside(options).is_some() {
            let library = libraries.iter().find(|name| *name == "system").or(libraries.first());
            let library: Vec<String> = library.into_iter().cloned().collect();
            all.push(Box::new(ManyWriters::new(contention(options), &library)));
        }
        all
    })
}

/// Says how much there is to do, and how long that takes: the seconds.
fn announce(options: &BenchOptions, experiments: &[Box<dyn Experiment>], session: &Session<'_>) -> f64 {
    let calibration = session.calibration;
    let expected = |transactions, runs| -> f64 {
        let each = experiments.iter().map(|experiment| experiment.as_ref());
        each.map(|experiment| expected_s(experiment, transactions, runs, calibration)).sum()
    };
    let (transactions, runs) = (session.transactions, session.runs);
    let rows: usize = experiments.iter().map(|experiment| row_count(experiment.as_ref())).sum();
    let work = match seconds(options) {
        _ if options.is_study() => format!("{rows} rows of the study, {runs} runs"),
        Some(seconds) if options.io.io => format!("{rows} rows, {runs} runs of {seconds} s at most"),
        Some(seconds) => format!("{rows} rows, {runs} runs of {seconds} s and a warm-up"),
        None => {
            let many = seconds_beside(options)
                .map_or_else(String::new, |seconds| format!(" ({DEFAULT_THREADS} threads: {seconds} s)"));
            let flush_ms = calibration.overwrite_ns as f64 / 1e6;
            format!("{rows} rows, {transactions} transactions{many}, {runs} runs; a flush: {flush_ms:.2} ms")
        }
    };
    let all = expected(transactions, runs);
    eprintln!("{work}\nexpect about {}", rough(all));
    if seconds(options).is_none() {
        let (transactions, runs) = QUICK_COUNTS;
        advise_quick(all, expected(transactions, runs), calibration.append_ns);
    }
    all
}

fn measure_all(
    experiments: &mut [Box<dyn Experiment>],
    session: &Session<'_>,
    expected_s: f64,
) -> Result<DiskLimits, Stop> {
    let mut progress = Progress::of_steps(expected_s);
    let mut limits = DiskLimits::new();
    let end = experiments.iter_mut().try_for_each(|experiment| {
        experiment::measure(experiment.as_mut(), session, &mut limits, &mut progress)
    });
    progress.clear();
    end.map(|()| limits)
}

/// How long the clock of a run with many writers goes, and of one of file I/O at most; `None` for one writer.
fn seconds(options: &BenchOptions) -> Option<f64> {
    (options.is_contended() || options.io.io).then(|| run_seconds(options))
}

/// The seconds of a run with many writers that the default plan has beside one writer; `None` in other plans.
fn seconds_beside(options: &BenchOptions) -> Option<f64> {
    options.is_default_plan().then(|| run_seconds(options))
}

/// The seconds that such a run has.
fn run_seconds(options: &BenchOptions) -> f64 {
    options.seconds.unwrap_or(if options.quick { QUICK_SECONDS } else { SECONDS })
}

/// The same in nanoseconds.
fn run_ns(options: &BenchOptions) -> u64 {
    let run = Duration::from_secs_f64(run_seconds(options));
    u64::try_from(run.as_nanos()).unwrap_or(u64::MAX)
}

/// What the options say about file I/O.
fn io_selection(options: &BenchOptions) -> IoSelection {
    IoSelection {
        jobs: options.io.jobs.clone(),
        ways: options.io.ways.clone(),
        record_bytes: options.io.record.clone(),
        file_bytes: options.io.file,
        time_max_ns: run_ns(options),
    }
}

/// What the options say about many writers.
fn contention(options: &BenchOptions) -> Contention {
    Contention {
        threads: if options.is_contended() { options.threads.clone() } else { vec![DEFAULT_THREADS] },
        processes: options.processes.clone(),
        schemas: options.schemas.clone(),
        modes: options.modes.clone(),
        synchronous: options.sync.clone(),
        run_ns: run_ns(options),
        flush_delay_ns: options.flush_delay.unwrap_or(0),
    }
}

fn advise_quick(expected: f64, quick: f64, append_ns: u64) {
    const LONG_S: f64 = 300.0;
    if expected > LONG_S && quick < expected / 2.0 {
        let latency_ms = append_ns as f64 / 1e6;
        eprintln!(
            "this disk is slow ({latency_ms:.1} ms to append 4 KiB): `--quick` would take {}",
            rough(quick)
        );
    }
}

fn report(options: &BenchOptions, document: &Document) -> Result<ExitCode, BenchError> {
    let paper = Paper::of_output(options.wide);
    let markdown = Paper::of_markdown(options.wide);
    let reported = output_file::report_with_markdown(
        options.json.as_deref(),
        options.markdown.as_deref(),
        document,
        || table::render(document, &paper),
        || table::render(document, &markdown),
    );
    let written = output_file::write_where(options.html.as_deref(), || page(document));
    reported.and(written)?;
    Ok(if document.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
