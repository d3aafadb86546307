//! One run of one row, in the worker: prepare, measure, verify.
//!
//!   open, tables, rows | log fresh, steady or full | clock: transactions | integrity_check, count | close, count

use std::fs::File;

use joj_analysis::bench::key::{JournalMode, LogState, RowKey, Synchronous, Word, Workload};
use joj_analysis::bench::run::{Run, StatusLine};
use serde::{Deserialize, Serialize};

use crate::bench::worker::libraries::{Libraries, load};
use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Measured, Refusal, Reply, Task};
use crate::bench::worker::workload::{self, LARGE_ROWS};
use crate::machine::files::counters::Sources;
use crate::machine::proc::clock::now_ns;
use crate::machine::sqlite::connection::{Connection, SqliteError, Statement};
use crate::machine::sqlite::sqlite_api::Api;
use crate::machine::sqlite::sync_count::SyncCounter;

/// Page size of every database, in bytes.
pub const PAGE_BYTES: u32 = 4096;

/// Pages that bring the log past SQLite's 1,000-page checkpoint.
const STEADY_PAGES: u32 = 1_200;

/// Pages in the cache while reading: nearly every read goes to the log.
const READ_CACHE_PAGES: u32 = 10;

/// Commits that fill the log before reading.
const READ_COMMITS: u64 = 30;

/// Run the transactions of a row, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RowTask {
    /// What to load.
    pub libraries: Libraries,
    /// An empty directory.
    pub directory: String,
    /// What to run.
    pub key: RowKey,
    /// How many transactions.
    pub transactions: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
    /// Count calls for durability instead of time.
    pub count_syncs: bool,
    /// Options of waldio that the environment does not set: names without `waldio_`, and values.
    pub waldio_options: Vec<(String, String)>,
    /// Run no checkpoint beside the transactions, but one behind them with a clock of its own.
    pub checkpoint_apart: bool,
}

impl Task for RowTask {
    const NAME: &'static str = "row";
    type Answer = Measured;
    fn run(&self) -> Reply<Self> {
        run(&load(&self.libraries)?, self)
    }
}

fn open<'api>(api: &'api Api, task: &RowTask) -> Result<Connection<'api>, SqliteError> {
    let key = &task.key;
    let connection = open_as(api, &database(task), key.mode, key.synchronous, &task.waldio_options)?;
    if task.checkpoint_apart {
        connection.run("PRAGMA wal_autocheckpoint=0")?;
    }
    Ok(connection)
}

/// What of waldio's options a mode means, and those of the command line.
pub fn options_of(mode: JournalMode, options: &[(String, String)]) -> Vec<(String, String)> {
    let bound = (mode == JournalMode::Bounded).then(|| ("durability".to_owned(), "bounded".to_owned()));
    bound.into_iter().chain(options.iter().cloned()).collect()
}

/// A connection to `database` in the journal mode `mode`, with options of waldio: names without `waldio_`, and values.
/// # Errors
/// What SQLite said; another journal mode than the wanted one is an error too, and another layout of the log.
pub fn open_as<'api>(
    api: &'api Api,
    database: &str,
    mode: JournalMode,
    synchronous: Synchronous,
    options: &[(String, String)],
) -> Result<Connection<'api>, SqliteError> {
    let connection = Connection::open_with(api, database, &options_of(mode, options))?;
    configure(&connection, mode, synchronous)?;
    if let Some((_, wanted)) = options.iter().find(|(name, _)| name == "layout") {
        // waldio falls back to SQLite's own where a database cannot have it, and a row must not bear the wrong name.
        connection.value("SELECT count(*) FROM sqlite_master")?;
        let found =
            connection.value("SELECT value || ': ' || source FROM waldio_status WHERE name='layout'")?;
        if !found.starts_with(&format!("{wanted}: ")) {
            let message = format!("the log should have the {wanted} layout, and has {found}");
            return Err(SqliteError { code: libsqlite3_sys::SQLITE_ERROR, message });
        }
    }
    Ok(connection)
}

fn database(task: &RowTask) -> String {
    format!("{}/bench.db", task.directory)
}

fn configure(
    connection: &Connection<'_>,
    mode: JournalMode,
    synchronous: Synchronous,
) -> Result<(), SqliteError> {
    let value = mode.pragma_value();
    connection.run(&format!("PRAGMA page_size={PAGE_BYTES}"))?;
    let accepted = connection.value(&format!("PRAGMA journal_mode={value}"))?;
    if accepted != value {
        let message = format!("PRAGMA journal_mode={value} gave {accepted}");
        return Err(SqliteError { code: libsqlite3_sys::SQLITE_ERROR, message });
    }
    let level = synchronous.word();
    connection.run(&format!("PRAGMA synchronous={level}"))
}

fn create_rows(connection: &Connection<'_>, key: &RowKey, transactions: u64) -> Result<(), SqliteError> {
    let rows = key.workload.rows_before(transactions);
    let commits = if key.workload == Workload::Read { READ_COMMITS } else { 1 };
    if key.workload == Workload::Read {
        connection.run("PRAGMA wal_autocheckpoint=0")?;
    }
    for table in workload::tables(key.schema) {
        connection.run(&workload::create_table(key.schema, table))?;
    }
    for commit in 0..commits {
        connection.run("BEGIN")?;
        for table in workload::tables(key.schema) {
            let mut insert = connection.prepare(&workload::insert(table))?;
            for serial in (commit * rows / commits)..((commit + 1) * rows / commits) {
                insert.bind_text(1, &workload::value("initial", serial))?;
                insert.run()?;
            }
        }
        connection.run("COMMIT")?;
    }
    Ok(())
}

/// Lets the log grow past the size at which SQLite checkpoints, and lets one more commit start it over.
/// # Errors
/// What SQLite said.
pub fn make_steady(connection: &Connection<'_>) -> Result<(), SqliteError> {
    connection.run("CREATE TABLE Warm (id INTEGER PRIMARY KEY, Filler BLOB)")?;
    connection.run(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {STEADY_PAGES}) \
         INSERT INTO Warm(Filler) SELECT randomblob(4000) FROM n"
    ))?;
    connection.run("INSERT INTO Warm(Filler) VALUES(NULL)")
}

/// The database as the clock shall find it.
fn prepare<'api>(api: &'api Api, task: &RowTask) -> Result<Connection<'api>, SqliteError> {
    let connection = open(api, task)?;
    create_rows(&connection, &task.key, task.transactions)?;
    if task.key.log == LogState::Steady {
        connection.run("PRAGMA wal_autocheckpoint=1000")?;
        make_steady(&connection)?;
        if task.checkpoint_apart {
            connection.run("PRAGMA wal_autocheckpoint=0")?;
        }
    }
    let has_rows = task.key.workload.rows_before(task.transactions) > 0;
    if task.key.log == LogState::Fresh && has_rows {
        // The rows went through the log: close, so that the next connection begins a new one.
        connection.close()?;
        return open(api, task);
    }
    if task.key.workload == Workload::Read {
        connection.run(&format!("PRAGMA cache_size={READ_CACHE_PAGES}"))?;
    }
    Ok(connection)
}

/// The statements of a transaction, compiled once.
struct Transaction<'connection> {
    workload: Workload,
    bounds: Option<(Statement<'connection>, Statement<'connection>)>,
    statements: Vec<Statement<'connection>>,
}

impl<'connection> Transaction<'connection> {
    fn new(connection: &'connection Connection<'connection>, key: &RowKey) -> Result<Self, SqliteError> {
        let tables = workload::tables(key.schema);
        let explicit = tables.len() > 1 || key.workload == Workload::Large;
        let bounds =
            if explicit { Some((connection.prepare("BEGIN")?, connection.prepare("COMMIT")?)) } else { None };
        let compile = |table: &&str| connection.prepare(&workload::statement(key.workload, table));
        let statements = tables.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        Ok(Transaction { workload: key.workload, bounds, statements })
    }

    /// Runs transaction `serial`, which touches row `id`.
    fn run(&mut self, serial: u64, id: u64) -> Result<(), SqliteError> {
        if let Some((begin, _)) = &mut self.bounds {
            begin.run()?;
        }
        let repeats = if self.workload == Workload::Large { LARGE_ROWS } else { 1 };
        for statement in &mut self.statements {
            for repeat in 0..repeats {
                run_statement(statement, self.workload, serial * repeats + repeat, id)?;
            }
        }
        if let Some((_, commit)) = &mut self.bounds {
            commit.run()?;
        }
        Ok(())
    }
}

fn run_statement(
    statement: &mut Statement<'_>,
    workload: Workload,
    serial: u64,
    id: u64,
) -> Result<(), SqliteError> {
    let id = i64::try_from(id).unwrap_or(i64::MAX);
    match workload {
        Workload::Insert | Workload::Large | Workload::Open => {
            statement.bind_text(1, &workload::value("insert", serial))?;
        }
        Workload::Update => {
            statement.bind_text(1, &workload::value("update", serial))?;
            statement.bind_number(2, id)?;
        }
        Workload::Delete | Workload::Read => statement.bind_number(1, id)?,
    }
    if workload != Workload::Read {
        return statement.run();
    }
    let found = statement.step()? && statement.column_bytes(0) == 100;
    statement.run()?;
    let lost =
        || SqliteError { code: libsqlite3_sys::SQLITE_CORRUPT, message: format!("row {id} is not there") };
    if found { Ok(()) } else { Err(lost()) }
}

/// Runs all transactions; their latencies in nanoseconds.
fn measure(
    connection: &Connection<'_>,
    task: &RowTask,
    api: &Api,
    ids: &[u64],
) -> Result<Vec<u64>, SqliteError> {
    let mut latencies_ns = Vec::with_capacity(ids.len());
    if task.key.workload == Workload::Open {
        for serial in 0..task.transactions {
            let began_ns = now_ns();
            let small = open(api, task)?;
            Transaction::new(&small, &task.key)?.run(serial, 0)?;
            small.close()?;
            latencies_ns.push(now_ns() - began_ns);
        }
        return Ok(latencies_ns);
    }
    let mut transaction = Transaction::new(connection, &task.key)?;
    for (serial, id) in (0..).zip(ids) {
        let began_ns = now_ns();
        transaction.run(serial, *id)?;
        latencies_ns.push(now_ns() - began_ns);
    }
    Ok(latencies_ns)
}

/// Brings what is left of the log to the medium, then copies it to the database: each with a clock of its own.
fn checkpoint(connection: &Connection<'_>, task: &RowTask) -> Result<(Run, Run), Refusal> {
    let log = format!("{}-wal", database(task));
    let refuse = |reason: String| Refusal { message: reason, disk_full: false };
    let start = Stopwatch::now(&task.sources);
    let began_ns = now_ns();
    // SQLite has no locks on the log's file that closing it here would drop.
    let flushed = File::open(&log).and_then(|file| file.sync_data());
    flushed.map_err(|error| refuse(format!("cannot flush {log}: {error}; look into `dmesg`")))?;
    let log_flush = start.finish(&task.sources, vec![now_ns() - began_ns]).run;
    let start = Stopwatch::now(&task.sources);
    let began_ns = now_ns();
    let rows = connection.rows("PRAGMA wal_checkpoint", 3)?;
    let run = start.finish(&task.sources, vec![now_ns() - began_ns]).run;
    match rows.first().map(Vec::as_slice) {
        Some([busy, frames, copied]) if busy == "0" && frames == copied => Ok((log_flush, run)),
        found => Err(refuse(format!("the checkpoint of {log} did not copy all of it: {found:?}"))),
    }
}

/// What is wrong with the database, if anything.
fn verify(connection: &Connection<'_>, task: &RowTask, ids: &[u64]) -> Result<Option<String>, SqliteError> {
    let verdict = connection.value("PRAGMA integrity_check")?;
    if verdict != "ok" {
        return Ok(Some(format!("integrity_check said: {verdict}")));
    }
    let expected = workload::rows_after(task.key.workload, task.transactions);
    for table in workload::tables(task.key.schema) {
        let found = connection.value(&format!("SELECT count(*) FROM {table}"))?;
        if found != expected.to_string() {
            return Ok(Some(format!("{table} has {found} rows, and {expected} were acknowledged")));
        }
        if task.key.workload == Workload::Update {
            let touched = ids.iter().collect::<std::collections::HashSet<_>>().len();
            let changed =
                connection.value(&format!("SELECT count(*) FROM {table} WHERE Value LIKE 'update%'"))?;
            if changed != touched.to_string() {
                return Ok(Some(format!(
                    "{table} has {changed} new values, and {touched} were acknowledged"
                )));
            }
        }
    }
    Ok(None)
}

/// What waldio says about the measured database; empty where it says nothing.
pub fn waldio_status(connection: &Connection<'_>) -> Vec<StatusLine> {
    let rows = connection.rows("SELECT name, value, unit, source FROM waldio_status", 4).unwrap_or_default();
    let line = |row: Vec<String>| {
        let mut columns = row.into_iter();
        let mut next = || columns.next().unwrap_or_default();
        StatusLine { name: next(), value: next(), unit: next(), source: next() }
    };
    rows.into_iter().map(line).collect()
}

/// What SQLite said is an error; a database that is wrong afterwards is none, but the run's `failure`.
fn run(api: &Api, task: &RowTask) -> Result<Measured, Refusal> {
    let counter = task.count_syncs.then(|| SyncCounter::start(None));
    let mut connection = prepare(api, task)?;
    let rows = task.key.workload.rows_before(task.transactions);
    let ids = workload::ids(task.key.workload, rows, task.transactions);
    if task.key.workload == Workload::Open {
        connection.close()?;
        connection = Connection::open(api, ":memory:")?;
    }
    if let Some(Ok(counter)) = &counter {
        counter.reset();
    }
    let start = Stopwatch::now(&task.sources);
    let latencies_ns = measure(&connection, task, api, &ids)?;
    let mut measured = start.finish(&task.sources, latencies_ns);
    match &counter {
        Some(Ok(counter)) => measured.syncs = Some(counter.counted(task.transactions)),
        Some(Err(error)) => measured.syncs_refused = Some(format!("seccomp: {error}")),
        None => {}
    }
    if task.checkpoint_apart {
        measured.apart = Some(checkpoint(&connection, task)?);
    }
    if task.key.workload == Workload::Open {
        connection = open(api, task)?;
    }
    measured.run.failure = verify(&connection, task, &ids)?;
    if task.key.mode.uses_waldio() {
        measured.waldio_status = waldio_status(&connection);
    }
    connection.close()?;
    if measured.run.failure.is_none() {
        let reopened = verify(&open(api, task)?, task, &ids)?;
        measured.run.failure = reopened.map(|reason| format!("opened again: {reason}"));
    }
    Ok(measured)
}
