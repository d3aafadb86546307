//! One run of a contended row: prepare the database, start the writing processes, watch, verify.
//!
//!   tables, steady log | processes start, open | we close | warm-up | clock: counters, log size | reports | verify
//!
//! Where commits are counted instead of time there is no warm-up, and nobody looks at the log: the clock stops when the last
//! of them returns.
//!
//! This process has no connection while the others write: it is none of the writers, and waldio asks whether other
//! processes have the database open.

use std::collections::BTreeMap;
use std::path::Path;

use joj_analysis::bench::key::Synchronous;
use joj_analysis::bench::many_writers::{ContendedKey, ContendedRun, WriterKind};
use joj_analysis::bench::run::{Run, StatusLine, SyncCount};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bench::worker::database_run::{PAGE_BYTES, make_steady, open_as, options_of};
use crate::bench::worker::libraries::{Libraries, load};
use crate::bench::worker::many_writers::writers::{ProcessReport, Window, WriteTask, WriterReport};
use crate::bench::worker::stopwatch::{Readings, run_of};
use crate::bench::worker::task::{Refusal, Reply, Task};
use crate::bench::worker::workload;
use crate::machine::files::counters::Sources;
use crate::machine::proc::clock::{pause_until, shared_ns};
use crate::machine::proc::usage::Usage;
use crate::machine::proc::worker_process::{Conversation, WorkerError, Workers};
use crate::machine::sqlite::log_size::{self, LogSize};
use crate::machine::sqlite::slow_device::SlowDevice;
use crate::machine::sqlite::sqlite_api::Api;

/// Prepare a database, have writers commit to it, verify it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContendedTask {
    /// What to load.
    pub libraries: Libraries,
    /// An empty directory.
    pub directory: String,
    /// What to run.
    pub key: ContendedKey,
    /// How long the clock runs.
    pub length: RunLength,
    /// Counters to read meanwhile.
    pub sources: Sources,
    /// Count calls for durability instead of time.
    pub count_syncs: bool,
    /// Options of waldio that the environment does not set: names without `waldio_`, and values.
    pub waldio_options: Vec<(String, String)>,
}

/// When the clock of many writers stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunLength {
    /// Behind a warm-up, after so many nanoseconds.
    Time(u64),
    /// When so many commits have returned to all writers together, which are threads of one process then and go on until that
    /// moment. Without a warm-up and without watching the log: what is beside them on an emulated processor takes their time.
    Commits(u64),
}

/// What all writers of a run did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Contended {
    /// The run; its round is joj's to fill in.
    pub run: ContendedRun,
    /// Latencies in nanoseconds, in no order.
    pub latencies_ns: Vec<u64>,
    /// What waldio said to the first writer.
    pub waldio_status: Vec<StatusLine>,
}

impl Task for ContendedTask {
    const NAME: &'static str = "contend";
    type Answer = Contended;
    fn run(&self) -> Reply<Self> {
        run(&load(&self.libraries)?, self)
    }
}

/// From the signal to the first INSERT: time for the signal to reach every process.
const NOTICE_NS: u64 = 20_000_000;

/// Longest warm-up, in nanoseconds; a shorter run has a quarter of its time.
const WARM_UP_NS_MAX: u64 = 500_000_000;

/// How long writers write before the clock starts.
pub fn warm_up_ns(run_ns: u64) -> u64 {
    (run_ns / 4).min(WARM_UP_NS_MAX)
}

/// When to write, if told now.
fn window(length: RunLength) -> Window {
    let begin_ns = shared_ns() + NOTICE_NS;
    match length {
        RunLength::Time(run_ns) => {
            let start_ns = begin_ns + warm_up_ns(run_ns);
            Window { begin_ns, start_ns, end_ns: start_ns + run_ns }
        }
        RunLength::Commits(_) => Window { begin_ns, start_ns: begin_ns, end_ns: u64::MAX },
    }
}

fn refuse_worker(error: WorkerError) -> Refusal {
    Refusal::new(match error {
        WorkerError::Stopped => "stopped".to_owned(),
        WorkerError::Broken(reason) => reason,
    })
}

/// What SQLite or a writing process said is an error; a database that is wrong afterwards is none, but the run's `failure`.
fn run(api: &Api, task: &ContendedTask) -> Result<Contended, Refusal> {
    let database = format!("{}/bench.db", task.directory);
    let keeper = open_as(api, &database, task.key.mode, task.key.synchronous, &task.waldio_options)?;
    for table in workload::tables(task.key.schema) {
        keeper.run(&workload::create_table(task.key.schema, table))?;
    }
    make_steady(&keeper)?;
    let device = match task.key.flush_delay_ns {
        0 => None,
        flush_ns => Some(SlowDevice::create(flush_ns).map_err(|error| {
            Refusal::new(format!(
                "cannot make the memory of a slow device: {error}; leave out `--flush-delay`"
            ))
        })?),
    };
    let mut processes = start(task, &database, device.as_ref())?;
    for process in &mut processes {
        hear::<()>(process)?;
    }
    // Not the last connection, so the log stays as it is.
    keeper.close()?;
    let window = window(task.length);
    let text = serde_json::to_string(&window).map_err(|error| Refusal::new(error.to_string()))?;
    for process in &mut processes {
        process.tell(&text).map_err(refuse_worker)?;
    }
    pause_until(window.start_ns);
    let before = task.sources.read();
    let log = watch(task.length, &window, &database, &mut processes)?;
    let after = task.sources.read();
    let reports = written(processes)?;
    let last_ns = reports.iter().flat_map(|report| &report.writers).map(|writer| writer.last_commit_ns).max();
    let elapsed_ns = match task.length {
        RunLength::Time(run_ns) => run_ns,
        RunLength::Commits(_) => last_ns.unwrap_or(0).saturating_sub(window.start_ns),
    };
    let mut contended = sum_up(reports, log, Readings { before: &before, after: &after, elapsed_ns })?;
    let failure = verify(api, task, &database, contended.run.acknowledged)?;
    contended.run.run.failure = contended.run.run.failure.or(failure);
    Ok(contended)
}

/// Waits until the clock stops; what the log was like meanwhile.
fn watch(
    length: RunLength,
    window: &Window,
    database: &str,
    processes: &mut [Conversation],
) -> Result<LogSize, Refusal> {
    if let RunLength::Time(_) = length {
        return Ok(log_size::watch(Path::new(database), PAGE_BYTES, window.end_ns));
    }
    for process in processes {
        hear::<()>(process)?;
    }
    Ok(LogSize::default())
}

/// All writing processes, each with its task: one with all threads, or many with one thread.
fn start(
    task: &ContendedTask,
    database: &str,
    device: Option<&SlowDevice>,
) -> Result<Vec<Conversation>, Refusal> {
    // What the environment sets for waldio they have from this process.
    let workers = Workers::new(Vec::new()).map_err(|error| Refusal::new(error.to_string()))?;
    let (processes, threads) = match task.key.kind {
        WriterKind::Threads => (1, task.key.writers),
        WriterKind::Processes => (task.key.writers, 1),
    };
    let one = |number: u32| {
        let write = WriteTask {
            libraries: task.libraries.clone(),
            database: database.to_owned(),
            schema: task.key.schema,
            writer_first: number * threads,
            writers: threads,
            commits: match task.length {
                RunLength::Time(_) => None,
                RunLength::Commits(commits) => Some(commits),
            },
            waldio_options: options_of(task.key.mode, &task.waldio_options),
            synchronous: task.key.synchronous,
            count_syncs: task.count_syncs,
            ask_waldio: task.key.mode.uses_waldio(),
            slow_device: device.map(|device| (device.path().to_owned(), task.key.flush_delay_ns)),
        };
        let line = write.line().map_err(|error| Refusal::new(error.to_string()))?;
        let mut process = workers.converse().map_err(refuse_worker)?;
        process.tell(&line).map_err(refuse_worker)?;
        Ok(process)
    };
    (0..processes).map(one).collect()
}

/// The next line of a writing process: a sign or its answer.
fn hear<A: DeserializeOwned>(process: &mut Conversation) -> Result<A, Refusal> {
    let line = process.hear().map_err(refuse_worker)?;
    let reply: Result<A, Refusal> = serde_json::from_str(&line)
        .map_err(|error| Refusal::new(format!("a writing process's answer is no answer: {error}")))?;
    reply
}

/// What each of them reports once it has written, all before the first of them ends.
fn written(mut processes: Vec<Conversation>) -> Result<Vec<ProcessReport>, Refusal> {
    let reports = processes.iter_mut().map(hear).collect::<Result<Vec<ProcessReport>, Refusal>>()?;
    for process in processes {
        process.finish().map_err(refuse_worker)?;
    }
    Ok(reports)
}

/// The run out of what each process reported.
fn sum_up(reports: Vec<ProcessReport>, log: LogSize, readings: Readings<'_>) -> Result<Contended, Refusal> {
    let usages: Vec<Usage> = reports.iter().map(|report| report.usage).collect();
    let usage = usages.into_iter().reduce(|sum, usage| sum.plus(&usage)).unwrap_or_default();
    let mut syncs = Some(SyncCount::default());
    for report in &reports {
        syncs = syncs.zip(report.syncs.as_ref()).map(|(mut sum, of_process)| {
            sum.add(of_process);
            sum
        });
    }
    let waldio_status = reports.iter().flat_map(|report| report.waldio_status.clone()).collect();
    let writers: Vec<WriterReport> = reports.into_iter().flat_map(|report| report.writers).collect();
    if let Some(full) =
        writers.iter().filter_map(|writer| writer.fatal.as_ref()).find(|fatal| fatal.disk_full)
    {
        return Err(full.clone());
    }
    let fatal = writers.iter().find_map(|writer| writer.fatal.as_ref());
    let writer_commits: Vec<u64> = writers.iter().map(|writer| writer.commits).collect();
    let acknowledged = writers.iter().map(|writer| writer.acknowledged).sum();
    let longest_failed_ns = writers.iter().filter_map(|writer| writer.longest_failed_ns).max();
    let mut errors = BTreeMap::new();
    for (name, count) in writers.iter().flat_map(|writer| &writer.errors) {
        *errors.entry(name.clone()).or_default() += count;
    }
    let failure = fatal.map(|fatal| format!("a writer gave up: {}", fatal.message));
    let mut latencies_ns: Vec<u64> = writers.into_iter().flat_map(|writer| writer.latencies_ns).collect();
    latencies_ns.sort_unstable();
    let run = Run { failure, ..run_of(writer_commits.iter().sum(), &latencies_ns, &usage, readings) };
    let run = ContendedRun {
        run,
        writer_commits,
        acknowledged,
        errors,
        longest_failed_ns,
        log_bytes_max: log.file_bytes,
        log_used_bytes_max: log.used_bytes,
        syncs,
    };
    Ok(Contended { run, latencies_ns, waldio_status })
}

/// What is wrong with the database that all writers have closed, if anything.
fn verify(
    api: &Api,
    task: &ContendedTask,
    database: &str,
    acknowledged: u64,
) -> Result<Option<String>, Refusal> {
    let connection = open_as(api, database, task.key.mode, Synchronous::Full, &task.waldio_options)?;
    let verdict = connection.value("PRAGMA integrity_check")?;
    if verdict != "ok" {
        return Ok(Some(format!("integrity_check said: {verdict}")));
    }
    for table in workload::tables(task.key.schema) {
        let found = connection.value(&format!("SELECT count(*) FROM {table}"))?;
        if found != acknowledged.to_string() {
            return Ok(Some(format!("{table} has {found} rows, and {acknowledged} were acknowledged")));
        }
    }
    connection.close()?;
    Ok(None)
}
