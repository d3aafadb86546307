//! The writers of one process: threads, each with its own connection, that commit one INSERT after another.
//!
//!   open, read | Ready -> Window | warm-up ... | clock ............ | last commits | report, ask waldio, close

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use joj_analysis::bench::run::StatusLine;

use crate::bench::worker::database_run::waldio_status;
use crate::bench::worker::task::{Answer, ProcessReport, Refusal, Reply, Window, WriteTask, WriterReport};
use crate::bench::worker::workload;
use crate::machine::proc::clock::{pause_until, shared_ns};
use crate::machine::proc::usage::Usage;
use crate::machine::sqlite::connection::{Connection, SqliteError};
use crate::machine::sqlite::slow_device::SlowDevice;
use crate::machine::sqlite::sqlite_api::Api;
use crate::machine::sqlite::sync_count::SyncCounter;

/// How long an INSERT waits for the write lock before it fails with SQLITE_BUSY: longer than any run.
const BUSY_TIMEOUT_MS: u32 = 60_000;

/// Serials of one writer's values; no writer reaches the next one's.
const SERIALS_PER_WRITER: u64 = 1 << 40;

/// Counts calls for durability, or slows them down, where `task` wants that.
/// # Errors
/// Where the kernel refuses: a device that is not slow would be a wrong figure.
pub fn counter(task: &WriteTask) -> Result<Option<SyncCounter>, Refusal> {
    let refuse = |error: std::io::Error| {
        let message = format!(
            "cannot watch calls for durability: seccomp: {error}; take a kernel of 5.5 or newer, outside a container \
             that forbids seccomp's notices, or leave out `--flush-delay`"
        );
        Refusal { message, disk_full: false }
    };
    match &task.slow_device {
        None if !task.count_syncs => Ok(None),
        // Counting alone is a figure less, not a wrong one.
        None => Ok(SyncCounter::start(None).ok()),
        Some((path, flush_ns)) => {
            let device = SlowDevice::open(path, *flush_ns).map_err(refuse)?;
            SyncCounter::start(Some(device)).map(Some).map_err(refuse)
        }
    }
}

/// One writer as the process's main thread sees it.
struct Writer {
    opened: Receiver<Result<(), Refusal>>,
    window: Sender<Window>,
    report: Receiver<WriterReport>,
    /// Dropped when every writer has reported: then connections may be closed.
    _close: Sender<()>,
}

/// Whom the writers' main thread tells how far they are.
pub struct Told<Ready, Enough> {
    /// All connections are open; it says when to write.
    pub when_ready: Ready,
    /// The last commit of those that are counted has returned.
    pub when_enough: Enough,
}

/// So many commits, counted in all writers.
struct Goal {
    commits: u64,
    returned: AtomicU64,
    reached: Sender<()>,
}

impl Goal {
    fn new(commits: u64) -> (Goal, Receiver<()>) {
        let (reached, told) = channel();
        (Goal { commits, returned: AtomicU64::new(0), reached }, told)
    }

    fn is_reached(&self) -> bool {
        self.returned.load(Ordering::Relaxed) >= self.commits
    }

    /// A commit has returned; true where it counts.
    fn count(&self) -> bool {
        let number = self.returned.fetch_add(1, Ordering::Relaxed) + 1;
        if number == self.commits {
            self.tell();
        }
        number <= self.commits
    }

    fn tell(&self) {
        // Who listens has gone only where the process gives up.
        let _ = self.reached.send(());
    }
}

/// Runs the writers of `task`.
/// # Errors
/// What SQLite said on opening, or what those said who are told.
pub fn run(
    api: &Api,
    task: &WriteTask,
    counter: Option<&SyncCounter>,
    told: Told<impl FnOnce() -> Result<Window, Refusal>, impl FnOnce() -> Result<(), Refusal>>,
) -> Reply {
    let (goal, reached) = task.commits.map(Goal::new).unzip();
    let goal = goal.as_ref();
    thread::scope(|scope| {
        let mut writers = Vec::new();
        let mut threads = Vec::new();
        for number in task.writer_first..task.writer_first + task.writers {
            let (opened_sender, opened) = channel();
            let (window, window_receiver) = channel();
            let (report_sender, report) = channel();
            let (close, close_receiver) = channel();
            writers.push(Writer { opened, window, report, _close: close });
            threads.push(scope.spawn(move || {
                let channels = (opened_sender, window_receiver, report_sender, close_receiver);
                write(api, (task, goal), number, &channels)
            }));
        }
        let mut answer = conduct(&writers, (counter, reached), told)?;
        // From here on every writer may close.
        drop(writers);
        let status = threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect();
        answer.waldio_status = status;
        Ok(Answer::Written(Box::new(answer)))
    })
}

fn lost() -> Refusal {
    Refusal { message: "a writing thread ended without a report".to_owned(), disk_full: false }
}

/// The main thread's part: the counters while the writers write.
fn conduct(
    writers: &[Writer],
    (counter, reached): (Option<&SyncCounter>, Option<Receiver<()>>),
    told: Told<impl FnOnce() -> Result<Window, Refusal>, impl FnOnce() -> Result<(), Refusal>>,
) -> Result<ProcessReport, Refusal> {
    for writer in writers {
        writer.opened.recv().map_err(|_| lost())??;
    }
    let window = (told.when_ready)()?;
    if let Some(counter) = counter {
        counter.count_only(window.start_ns..window.end_ns);
    }
    for writer in writers {
        writer.window.send(window).map_err(|_| lost())?;
    }
    pause_until(window.start_ns);
    let before = Usage::now();
    match &reached {
        None => pause_until(window.end_ns),
        Some(reached) => reached.recv().map_err(|_| lost())?,
    }
    let usage = Usage::now().since(&before);
    if reached.is_some() {
        (told.when_enough)()?;
    }
    let reports: Result<Vec<WriterReport>, Refusal> =
        writers.iter().map(|writer| writer.report.recv().map_err(|_| lost())).collect();
    let writers = reports?;
    let commits = writers.iter().map(|report| report.commits).sum();
    let syncs = counter.map(|counter| counter.counted(commits));
    Ok(ProcessReport { writers, usage, syncs, waldio_status: Vec::new() })
}

type Channels = (Sender<Result<(), Refusal>>, Receiver<Window>, Sender<WriterReport>, Receiver<()>);

/// One writer's thread. Every channel's other end goes away only when the process gives up.
fn write(
    api: &Api,
    (task, goal): (&WriteTask, Option<&Goal>),
    number: u32,
    (opened, window, reports, close): &Channels,
) -> Vec<StatusLine> {
    let connection = match open(api, task) {
        Ok(connection) => connection,
        Err(error) => {
            let _ = opened.send(Err(error.into()));
            return Vec::new();
        }
    };
    let _ = opened.send(Ok(()));
    let Ok(window) = window.recv() else { return Vec::new() };
    let mut report = WriterReport::default();
    if let Err(error) = insert_in_window(&connection, (task, goal), number, &window, &mut report) {
        report.fatal = Some(error.into());
        // Where all fail nobody else would.
        if let Some(goal) = goal {
            goal.tell();
        }
    }
    let _ = reports.send(report);
    let _ = close.recv();
    if task.ask_waldio && number == 0 { waldio_status(&connection) } else { Vec::new() }
}

/// Opens the log too, which SQLite does at the first read. The database is in WAL mode already.
fn open<'api>(api: &'api Api, task: &WriteTask) -> Result<Connection<'api>, SqliteError> {
    let connection = Connection::open_with(api, &task.database, &task.waldio_options)?;
    connection.run(&format!("PRAGMA busy_timeout={BUSY_TIMEOUT_MS}"))?;
    connection.run("PRAGMA synchronous=full")?;
    let table = workload::tables(task.schema)[0];
    connection.value(&format!("SELECT count(*) FROM {table}"))?;
    Ok(connection)
}

/// Inserts until the window ends or, where commits are counted, until enough have returned.
/// # Errors
/// What no later INSERT would mend. A busy database is counted and tried again.
fn insert_in_window(
    connection: &Connection<'_>,
    (task, goal): (&WriteTask, Option<&Goal>),
    number: u32,
    window: &Window,
    report: &mut WriterReport,
) -> Result<(), SqliteError> {
    let table = workload::tables(task.schema)[0];
    let mut insert = connection.prepare(&workload::insert(table))?;
    let mut serial = u64::from(number) * SERIALS_PER_WRITER;
    pause_until(window.begin_ns);
    loop {
        insert.bind_text(1, &workload::value("insert", serial))?;
        serial += 1;
        let began_ns = shared_ns();
        if began_ns >= window.end_ns || goal.is_some_and(Goal::is_reached) {
            return Ok(());
        }
        let result = insert.run();
        let returned_ns = shared_ns();
        let waited_ns = returned_ns - began_ns;
        match result {
            Ok(()) => {
                report.acknowledged += 1;
                if returned_ns >= window.start_ns {
                    report.latencies_ns.push(waited_ns);
                    let counts = returned_ns < window.end_ns && goal.is_none_or(Goal::count);
                    if counts {
                        report.commits += 1;
                        report.last_commit_ns = returned_ns;
                    }
                }
            }
            Err(error) => {
                *report.errors.entry(name_of(error.code)).or_default() += 1;
                report.longest_failed_ns = report.longest_failed_ns.max(Some(waited_ns));
                if !matches!(error.code, libsqlite3_sys::SQLITE_BUSY | libsqlite3_sys::SQLITE_LOCKED) {
                    return Err(error);
                }
            }
        }
    }
}

fn name_of(code: i32) -> String {
    match code {
        libsqlite3_sys::SQLITE_BUSY => "SQLITE_BUSY".to_owned(),
        libsqlite3_sys::SQLITE_LOCKED => "SQLITE_LOCKED".to_owned(),
        libsqlite3_sys::SQLITE_IOERR => "SQLITE_IOERR".to_owned(),
        libsqlite3_sys::SQLITE_FULL => "SQLITE_FULL".to_owned(),
        other => format!("SQLite code {other}"),
    }
}
