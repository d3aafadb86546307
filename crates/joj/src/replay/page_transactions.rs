//! `joj replay --as`: the commits on SQLite databases alone, made again through SQLite in another journal mode.
//!
//!   recording -> commits -> plan -> a worker with a clock -> a worker that counts -> one row beside the recording's

use std::path::Path;
use std::process::ExitCode;

use joj_analysis::bench::key::{JournalMode, Word};
use joj_analysis::recording::page_transactions::derive::derive;
use joj_analysis::recording::page_transactions::outcome::{
    CommitTimes, DatabaseOutcome, ReplaySqlite, TransactionsOutcome, TransactionsRow, lateness,
};
use joj_analysis::recording::page_transactions::plan::TransactionPlan;
use joj_analysis::recording::page_transactions::{PageTransactions, RecordedDatabase};

use crate::bench::ask::{Asker, Stop};
use crate::bench::builds::{SYSTEM_LIBRARY, extension_file};
use crate::bench::worker::libraries::Libraries;
use crate::bench::worker::page_transactions::run::{PageTransactionsFigures, PageTransactionsTask};
use crate::command_line::replay::{OrderChoice, ReplayOptions};
use crate::machine::files::counters::Sources;
use crate::machine::files::output_file;
use crate::machine::files::place::Place;
use crate::machine::proc::worker_process::Workers;
use crate::replay::error::ReplayError;
use crate::replay::plan;
use crate::replay::recorded_pass;
use crate::replay::room;
use crate::show::replay::page_transactions as text;

/// Replays the commits in a journal mode.
/// # Errors
/// What could not be done, where, and how to mend it.
pub fn run(options: &ReplayOptions, directory: &Path, mode: JournalMode) -> Result<ExitCode, ReplayError> {
    let without = "or replay in another mode (`--as wal`)";
    let libraries = libraries(&options.sqlite, options.waldio.as_deref(), mode, without)?;
    let (found, planned, source) = planned(options)?;
    let outcome = replay(options, directory, mode, libraries, &found, planned, source)?;
    output_file::report(options.json.as_deref(), &outcome, || text::outcome(&outcome))?;
    Ok(ExitCode::SUCCESS)
}

/// Bytes of the databases that a replay makes.
/// # Errors
/// Why the recording cannot be replayed so.
pub fn bytes_needed(options: &ReplayOptions) -> Result<u64, ReplayError> {
    planned(options).map(|(_, planned, _)| planned.database_bytes())
}

/// The recording's commits, how they are made again, and where the recording comes from.
fn planned(options: &ReplayOptions) -> Result<(PageTransactions, TransactionPlan, String), ReplayError> {
    let recording = plan::read(&options.recording)?;
    let named = || options.recording.clone();
    let found = derive(&recording).map_err(|error| ReplayError::Derive { recording: named(), error })?;
    let planned = TransactionPlan::of(&found);
    let planned = planned.map_err(|error| ReplayError::Transactions { recording: named(), error })?;
    let source = serde_json::to_value(recording.header.source)
        .map_or_else(|_| String::new(), |word| word.as_str().unwrap_or_default().to_owned());
    Ok((found, planned, source))
}

/// What a mode needs of these: `bundled`, `system` or a library, and the extension. `without`: what can be done without it.
/// # Errors
/// There is no extension.
pub fn libraries(
    sqlite: &str,
    extension: Option<&Path>,
    mode: JournalMode,
    without: &'static str,
) -> Result<Libraries, ReplayError> {
    let sqlite = match sqlite {
        "bundled" => None,
        "system" => Some(SYSTEM_LIBRARY.to_owned()),
        file => Some(file.to_owned()),
    };
    let extension = match mode.uses_waldio() {
        true => Some(extension_file(extension, without)?.to_string_lossy().into_owned()),
        false => None,
    };
    Ok(Libraries { sqlite, extension, without: Some(without.to_owned()), ..Libraries::default() })
}

fn replay(
    options: &ReplayOptions,
    directory: &Path,
    mode: JournalMode,
    libraries: Libraries,
    found: &PageTransactions,
    planned: TransactionPlan,
    source: String,
) -> Result<TransactionsOutcome, ReplayError> {
    let workers = Workers::new(Vec::new())?;
    let asker = Asker::new(&workers);
    let work_dir = plan::make_directory(directory)?;
    room::check(work_dir.path(), planned.database_bytes(), "the recorded databases")?;
    let outcome = TransactionsOutcome::of(found, &planned);
    let task = PageTransactionsTask {
        libraries,
        directory: work_dir.path().to_string_lossy().into_owned(),
        plan: planned,
        mode,
        synchronous: options.synchronous.word().to_owned(),
        cache_size: options.cache_size,
        order: options.order,
        sources: Sources::of(&Place::of(work_dir.path())),
        counts: false,
        settles: false,
        closes: Vec::new(),
    };
    let problem = |stop: Stop| ReplayError::of_stop(stop, directory);
    // The run that counts is the first, so that what stays with --keep is the one with the clock.
    let count = PageTransactionsTask { counts: true, order: OrderChoice::Fast, ..task.clone() };
    let counted = asker.ask(&count).map_err(problem)?;
    work_dir.clear().map_err(|error| ReplayError::File { path: work_dir.path().to_owned(), error })?;
    let record = |output| recorded_pass::record(&workers, &task, output, &work_dir, directory);
    let recorded = options.record.as_deref().map(record).transpose()?.flatten();
    let figures = asker.ask(&task).map_err(problem)?;
    let mut outcome = TransactionsOutcome {
        source,
        order: options.order.word().to_owned(),
        journal_mode: mode.word().to_owned(),
        synchronous: options.synchronous.word().to_owned(),
        sqlite: ReplaySqlite {
            file: task.libraries.sqlite,
            version: figures.version.clone(),
            source_id: figures.source_id.clone(),
            waldio: task.libraries.extension,
        },
        databases: databases(found, &figures),
        replayed: row(mode, &figures, &counted),
        lateness: lateness(figures.late_ns),
        cpu_us: figures.cpu_us,
        ..outcome
    };
    if let Some(why) = counted.syncs_refused {
        outcome.notes.push(format!("Calls for durability of the replay were not counted: {why}."));
    }
    if options.keep {
        outcome.kept = Some(work_dir.keep().display().to_string());
    }
    if let Some(file) = recorded {
        file.keep();
    }
    Ok(outcome)
}

fn databases(found: &PageTransactions, figures: &PageTransactionsFigures) -> Vec<DatabaseOutcome> {
    let made = figures.pages_before.iter().zip(&figures.pages_after);
    let outcome = |(database, (before, after)): (&RecordedDatabase, (&u32, &u32))| DatabaseOutcome {
        path: database.path.clone(),
        page_bytes: database.page_bytes,
        pages_before: database.pages_before,
        pages_after: database.pages_after,
        made_pages_before: *before,
        made_pages_after: *after,
    };
    found.databases.iter().zip(made).map(outcome).collect()
}

fn row(
    mode: JournalMode,
    timed: &PageTransactionsFigures,
    counted: &PageTransactionsFigures,
) -> TransactionsRow {
    let commits = timed.times_ns.len() as u64;
    let syncs = counted.syncs.as_ref().map(|syncs| {
        let calls = [
            ("fsync", syncs.fsync),
            ("fdatasync", syncs.fdatasync),
            ("durable_writes", syncs.durable_writes),
            ("other", syncs.other),
        ];
        calls.map(|(call, calls)| (call.to_owned(), calls)).into()
    });
    let row = TransactionsRow {
        journal_modes: [(mode.word().to_owned(), commits)].into(),
        commits,
        elapsed_ns: timed.elapsed_ns,
        commit_times: CommitTimes::of(timed.times_ns.clone()),
        pages: counted.pages,
        syncs,
        written_bytes: counted.written_bytes,
        device: timed.device,
        ..TransactionsRow::default()
    };
    row.with_rates()
}
