//! `joj bench` from its options to its exit code.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use joj_analysis::bench::document::{Document, FORMAT, Limit, Plan, VERSION};
use joj_analysis::bench::environment::{Environment, iso_8601};
use joj_analysis::bench::key::JournalMode;
use joj_analysis::bench::study::parts::StudyPart;
use joj_analysis::bench::warnings::warnings;
use joj_analysis::statistics::quantile_grid;

use crate::bench::ask::{Asker, Stop};
use crate::bench::builds::{self, Builds};
use crate::bench::contention::ContendedSession;
use crate::bench::plans::contended::Contention;
use crate::bench::plans::forecast::{
    LIMIT_TRANSACTIONS, contended_expected_s, expected_s, rough, study_expected_s,
};
use crate::bench::plans::rows::{Group, Selection};
use crate::bench::plans::study::{StudyPlan, table_two_keys};
use crate::bench::progress::Progress;
use crate::bench::session::{Session, name_sync_calls};
use crate::bench::study;
use crate::bench::table_two::known_layouts;
use crate::bench::worker::limit_run::{Calibration, CalibrationTask};
use crate::command_line::{BenchOptions, wrong_usage};
use crate::machine::files::counters::Sources;
use crate::machine::files::output_file::{self, check_writable, write};
use crate::machine::files::place::Place;
use crate::machine::files::work_dir::WorkDir;
use crate::machine::proc::clock::{calendar_seconds, now_ns};
use crate::machine::proc::signal;
use crate::machine::proc::worker_process::Workers;
use crate::show::bench::page::page;
use crate::show::bench::table;

/// Transactions and runs by default, and with `--quick`.
const COUNTS: (u64, u32) = (1_000, 5);
const QUICK_COUNTS: (u64, u32) = (200, 3);

/// Seconds of a run with many writers by default, and with `--quick`.
const SECONDS: f64 = 2.0;
const QUICK_SECONDS: f64 = 1.0;

/// Runs `joj bench`.
/// # Errors
/// What could not be done, where, and how to mend it. No file is left in the measured directory.
pub fn run(options: &BenchOptions) -> Result<ExitCode, String> {
    let selection = Selection {
        workloads: options.workloads.clone(),
        schemas: options.schemas.clone(),
        modes: options.modes.clone(),
        synchronous: options.sync.clone(),
        logs: options.log.clone(),
    };
    if !options.is_contended() && (options.seconds.is_some() || options.flush_delay.is_some()) {
        let text =
            "`--seconds` and `--flush-delay` are for many writers; add `--threads 1,4,16` or `--processes 4`";
        return Ok(wrong_usage(text));
    }
    if let Err(text) = check(options, &selection) {
        return Ok(wrong_usage(&text));
    }
    check_writable([&options.json, &options.html].into_iter().flatten())?;
    signal::install().map_err(|error| format!("cannot catch Ctrl-C: {error}"))?;
    match measure(options, &selection) {
        Ok(document) => report(options, &document),
        Err(Stop::Signal) => {
            eprintln!("joj: stopped; the files it made are removed");
            Ok(ExitCode::from(signal::STOPPED_EXIT_CODE))
        }
        Err(Stop::Full(message) | Stop::Failed(message)) => Err(message),
    }
}

/// Says what no machine could measure, before anything begins.
fn check(options: &BenchOptions, selection: &Selection) -> Result<(), String> {
    builds::check_names(options)?;
    if options.is_contended() {
        contention(options).check()
    } else if !options.is_study() && selection.groups(&["any".to_owned()]).is_empty() {
        let text = "these options leave no row to measure: reads have no fresh or steady log, `open` has only a fresh \
                    one; leave one option out";
        Err(text.to_owned())
    } else {
        Ok(())
    }
}

fn counts(options: &BenchOptions) -> (u64, u32) {
    let (transactions, runs) = if options.quick { QUICK_COUNTS } else { COUNTS };
    (options.transactions.unwrap_or(transactions), options.runs.unwrap_or(runs))
}

/// What a measurement of either kind begins with.
struct Start<'a> {
    options: &'a BenchOptions,
    work_dir: &'a WorkDir,
    place: Place,
    builds: Builds,
    environment: Environment,
    began_ns: u64,
}

fn measure(options: &BenchOptions, selection: &Selection) -> Result<Document, Stop> {
    let began_ns = now_ns();
    let contention = contention(options);
    let environment_of_workers = options
        .waldio_option
        .iter()
        .map(|(name, value)| (format!("WALDIO_{}", name.to_uppercase()), value.clone()));
    let workers = Workers::new(environment_of_workers.collect()).map_err(Stop::Failed)?;
    let work_dir = WorkDir::create(&options.directory).map_err(Stop::Failed)?;
    let place = Place::of(work_dir.path());
    let builds = if options.is_study() && !options.waldio_study.contains(&StudyPart::Table2) {
        Builds::default()
    } else {
        Builds::find(options, (selection.needs_waldio(), &work_dir), &Asker::new(&workers))?
    };
    let environment = environment(options, &place, &builds);
    let start = Start { options, work_dir: &work_dir, place, builds, environment, began_ns };
    let asker = Asker::new(&workers);
    let mut document = match options {
        _ if options.is_study() => waldio_study(start, asker)?,
        _ if options.is_contended() => many_writers(start, asker, &contention)?,
        _ => one_writer(start, asker, selection)?,
    };
    document.warnings = warnings(&document);
    Ok(document)
}

fn one_writer(start: Start<'_>, asker: Asker<'_>, selection: &Selection) -> Result<Document, Stop> {
    let groups = selection.groups(&start.build_names());
    let (transactions, runs) = counts(start.options);
    let calibration = start.announce(&asker)?;
    let expected = expected_s(selection, &groups, (transactions, runs), calibration);
    let rows: usize = groups.iter().map(|group| group.keys.len()).sum();
    eprintln!(
        "{rows} rows, {transactions} transactions, {runs} runs; a 4 KiB write and its flush take {:.2} ms here: \
         expect about {}",
        calibration.overwrite_ns as f64 / 1e6,
        rough(expected)
    );
    advise_quick(expected, expected_s(selection, &groups, QUICK_COUNTS, calibration), calibration);
    let session = start.session(asker, (transactions, runs), selection);
    let mut progress = Progress::new(steps(&groups, runs), expected);
    let collected = session.measure(&groups, &mut progress);
    progress.clear();
    let (rows, limits) = collected?.finish();
    let plan = Plan { transactions, runs, expected_s: expected, ..Plan::default() };
    let mut document = start.finish(plan, limits);
    let stock = rows.iter().filter(|row| row.key.mode != JournalMode::Waldio);
    let counts: Vec<_> =
        stock.filter_map(|row| Some((row.key.library.as_str(), row.syncs.as_ref()?))).collect();
    name_sync_calls(&mut document.builds, &counts);
    document.rows = rows;
    Ok(document)
}

fn many_writers(start: Start<'_>, asker: Asker<'_>, contention: &Contention) -> Result<Document, Stop> {
    let groups = contention.groups(&start.build_names());
    let runs = counts(start.options).1;
    let calibration = start.announce(&asker)?;
    let expected = contended_expected_s(contention, &groups, runs, calibration);
    let rows: usize = groups.iter().map(Vec::len).sum();
    let seconds = contention.run_ns as f64 / 1e9;
    eprintln!("{rows} rows, {runs} runs of {seconds} s and a warm-up: expect about {}", rough(expected));
    let selection = Selection::default();
    let session = start.session(asker, (LIMIT_TRANSACTIONS, runs), &selection);
    let mut progress = Progress::new(ContendedSession::steps(contention, &groups, runs), expected);
    let collected = ContendedSession::new(&session, contention).measure(&groups, &mut progress);
    progress.clear();
    let (rows, limits) = collected?;
    let plan = Plan { seconds: Some(seconds), runs, expected_s: expected, ..Plan::default() };
    let mut document = start.finish(plan, limits);
    let stock = rows.iter().filter(|row| row.key.mode != JournalMode::Waldio);
    let counts: Vec<_> =
        stock.filter_map(|row| Some((row.key.library.as_str(), row.syncs.as_ref()?))).collect();
    name_sync_calls(&mut document.builds, &counts);
    document.contended = rows;
    Ok(document)
}

fn waldio_study(start: Start<'_>, asker: Asker<'_>) -> Result<Document, Stop> {
    let (transactions, runs) = counts(start.options);
    let calibration = start.announce(&asker)?;
    let selection = Selection::default();
    let session = start.session(asker, (transactions, runs), &selection);
    let mut plan = StudyPlan { parts: start.options.waldio_study.clone(), table_two: Vec::new() };
    for library in start.build_names() {
        plan.table_two.extend(table_two_keys(&library, &known_layouts(&session, &library)?));
    }
    let expected = study_expected_s(&plan, (transactions, runs), calibration);
    eprintln!("{} rows of the study, {runs} runs: expect about {}", plan.row_count_of_all(), rough(expected));
    advise_quick(expected, study_expected_s(&plan, QUICK_COUNTS, calibration), calibration);
    let mut progress = Progress::new(plan.steps(runs), expected);
    let measured = study::measure(&session, &plan, &mut progress);
    progress.clear();
    let (study, limits) = measured?;
    let plan = Plan { transactions, runs, expected_s: expected, ..Plan::default() };
    Ok(Document { study: Some(study), ..start.finish(plan, limits) })
}

impl Start<'_> {
    fn build_names(&self) -> Vec<String> {
        self.builds.list.iter().map(|build| build.name.clone()).collect()
    }

    /// Says where, and times a few writes.
    fn announce(&self, asker: &Asker<'_>) -> Result<Calibration, Stop> {
        let directory = self.work_dir.path().to_string_lossy().into_owned();
        let calibration = asker.ask(&CalibrationTask { directory })?;
        eprintln!("measuring {}", table::place_line(&self.environment));
        for note in &self.builds.notes {
            eprintln!("note: {note}");
        }
        Ok(calibration)
    }

    fn session<'a>(
        &'a self,
        asker: Asker<'a>,
        (transactions, runs): (u64, u32),
        selection: &'a Selection,
    ) -> Session<'a> {
        Session {
            work_dir: self.work_dir,
            asker,
            builds: &self.builds.list,
            waldio: self.builds.waldio.as_ref(),
            sources: Sources::of(&self.place),
            transactions,
            runs,
            selection,
        }
    }

    /// The document, without rows.
    fn finish(self, plan: Plan, limits: Vec<Limit>) -> Document {
        let elapsed_s = (now_ns() - self.began_ns) as f64 / 1e9;
        Document {
            format: FORMAT.to_owned(),
            version: VERSION,
            environment: self.environment,
            builds: self.builds.list,
            plan: Plan { elapsed_s, ..plan },
            limits,
            quantile_parts: quantile_grid(),
            rows: Vec::new(),
            contended: Vec::new(),
            study: None,
            warnings: Vec::new(),
        }
    }
}

/// What the options say about many writers.
fn contention(options: &BenchOptions) -> Contention {
    let seconds = options.seconds.unwrap_or(if options.quick { QUICK_SECONDS } else { SECONDS });
    let run_ns = u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap_or(u64::MAX);
    Contention {
        threads: options.threads.clone(),
        processes: options.processes.clone(),
        schemas: options.schemas.clone(),
        modes: options.modes.clone(),
        run_ns,
        flush_delay_ns: options.flush_delay.unwrap_or(0),
    }
}

fn environment(options: &BenchOptions, place: &Place, builds: &Builds) -> Environment {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let directory: PathBuf = options.directory.canonicalize().unwrap_or_else(|_| options.directory.clone());
    Environment {
        joj_version: env!("CARGO_PKG_VERSION").to_owned(),
        joj_commit: env!("JOJ_COMMIT").to_owned(),
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_at: iso_8601(calendar_seconds()),
        kernel: kernel.trim().to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        directory: directory.to_string_lossy().into_owned(),
        filesystem: place.filesystem.clone(),
        device: place.device.clone(),
        waldio: builds.waldio.clone(),
    }
}

fn advise_quick(expected: f64, quick: f64, calibration: Calibration) {
    const LONG_S: f64 = 300.0;
    if expected > LONG_S && quick < expected / 2.0 {
        let latency_ms = calibration.append_ns as f64 / 1e6;
        eprintln!(
            "this disk is slow ({latency_ms:.1} ms to append 4 KiB): `--quick` would take {}",
            rough(quick)
        );
    }
}

fn steps(groups: &[Group], runs: u32) -> usize {
    let rows: usize = groups.iter().map(|group| group.keys.len()).sum();
    let rounds = usize::try_from(runs).unwrap_or(1);
    // The few measurements of the limit are not worth counting exactly.
    rows + rounds * (rows + groups.len())
}

fn report(options: &BenchOptions, document: &Document) -> Result<ExitCode, String> {
    output_file::report(options.json.as_deref(), document, || table::render(document))?;
    if let Some(file) = &options.html {
        write(file, &page(document))?;
    }
    Ok(if document.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
