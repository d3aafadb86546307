//! The writers of one process: threads, each with its own connection, that commit one INSERT after another.
//!
//!   open, read | Ready -> Window | warm-up ... | clock ............ | last commits | report, ask waldio, close

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use joj_analysis::bench::key::{Schema, Synchronous, Word};
use joj_analysis::bench::run::{StatusLine, SyncCount};
use serde::{Deserialize, Serialize};

use crate::bench::worker::database_run::waldio_status;
use crate::bench::worker::libraries::{Libraries, load};
use crate::bench::worker::task::{Refusal, Reply, Task, say};
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

/// Be one or more of the writers, all in one process. Before the answer come signs: all connections are open; where commits are
/// counted, the last of them has returned.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteTask {
    /// What to load.
    pub libraries: Libraries,
    /// The database file, prepared.
    pub database: String,
    /// The table to insert into.
    pub schema: Schema,
    /// Number of the process's first writer; the first of all is 0.
    pub writer_first: u32,
    /// How many threads, each a writer.
    pub writers: u32,
    /// Commits after which they stop, counted in all of them; none where the window's end does it.
    pub commits: Option<u64>,
    /// Options of waldio: names without `waldio_`, and values.
    pub waldio_options: Vec<(String, String)>,
    /// `PRAGMA synchronous`.
    pub synchronous: Synchronous,
    /// Count calls for durability.
    pub count_syncs: bool,
    /// Ask waldio afterwards.
    pub ask_waldio: bool,
    /// The slow device: its path and how long a flush takes there, in nanoseconds.
    pub slow_device: Option<(String, u64)>,
}

/// When to write, by the clock that all processes share. The second line that a writing process reads.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Window {
    /// Writing begins: the warm-up.
    pub begin_ns: u64,
    /// The clock starts.
    pub start_ns: u64,
    /// The clock stops, and no INSERT begins any more.
    pub end_ns: u64,
}

/// What one writer did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct WriterReport {
    /// Commits that returned while the clock ran.
    pub commits: u64,
    /// Commits that ever returned.
    pub acknowledged: u64,
    /// How long each commit took that returned after the clock had started, all waiting included.
    pub latencies_ns: Vec<u64>,
    /// How often an INSERT ended in which error.
    pub errors: BTreeMap<String, u64>,
    /// When the last of these commits returned, by the clock that all processes share.
    pub last_commit_ns: u64,
    /// The longest wait that ended in an error.
    pub longest_failed_ns: Option<u64>,
    /// The error after which it could not go on.
    pub fatal: Option<Refusal>,
}

/// What the writers of one process did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Each of them.
    pub writers: Vec<WriterReport>,
    /// What the process used while the clock ran.
    pub usage: Usage,
    /// Calls for durability while the clock ran, where they were counted.
    pub syncs: Option<SyncCount>,
    /// What waldio said.
    pub waldio_status: Vec<StatusLine>,
}

impl Task for WriteTask {
    const NAME: &'static str = "write";
    type Answer = ProcessReport;
    /// Opens the connections, says so, reads when to write, writes.
    fn run(&self) -> Reply<Self> {
        // Before SQLite and its extensions start threads: the filter holds for threads started later.
        let counter = counter(self)?;
        let api = load(&self.libraries)?;
        let when_ready = || {
            say(&Ok(())).map_err(|error| error.to_string())?;
            let mut text = String::new();
            io::stdin().read_line(&mut text).map_err(|error| error.to_string())?;
            serde_json::from_str(&text).map_err(|error| format!("no time to write was given: {error}"))
        };
        let told = Told {
            when_ready: || when_ready().map_err(Refusal::new),
            when_enough: || say(&Ok(())).map_err(|error| Refusal::new(error.to_string())),
        };
        run(&api, self, counter.as_ref(), told)
    }
}

/// Counts calls for durability, or slows them down, where `task` wants that. A kernel that refuses is an error: a device that
/// is not slow would be a wrong figure.
fn counter(task: &WriteTask) -> Result<Option<SyncCounter>, Refusal> {
    let refuse = |error: io::Error| {
        Refusal::new(format!(
            "cannot watch calls for durability: seccomp: {error}; take a kernel of 5.5 or newer, outside a container \
             that forbids seccomp's notices, or leave out `--flush-delay`"
        ))
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
struct Told<Ready, Enough> {
    /// All connections are open; it says when to write.
    when_ready: Ready,
    /// The last commit of those that are counted has returned.
    when_enough: Enough,
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

/// What SQLite said on opening is an error, and what those said who are told.
fn run(
    api: &Api,
    task: &WriteTask,
    counter: Option<&SyncCounter>,
    told: Told<impl FnOnce() -> Result<Window, Refusal>, impl FnOnce() -> Result<(), Refusal>>,
) -> Result<ProcessReport, Refusal> {
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
                let channels = Channels {
                    opened: opened_sender,
                    window: window_receiver,
                    report: report_sender,
                    close: close_receiver,
                };
                write(api, task, goal, number, &channels)
            }));
        }
        let mut answer = conduct(&writers, counter, reached, told)?;
        // From here on every writer may close.
        drop(writers);
        let status = threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect();
        answer.waldio_status = status;
        Ok(answer)
    })
}

fn lost() -> Refusal {
    Refusal::new("a writing thread ended without a report".to_owned())
}

/// The main thread's part: the counters while the writers write.
fn conduct(
    writers: &[Writer],
    counter: Option<&SyncCounter>,
    reached: Option<Receiver<()>>,
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

/// The other ends of what [`Writer`] has.
struct Channels {
    opened: Sender<Result<(), Refusal>>,
    window: Receiver<Window>,
    report: Sender<WriterReport>,
    close: Receiver<()>,
}

/// One writer's thread. Every channel's other end goes away only when the process gives up.
fn write(
    api: &Api,
    task: &WriteTask,
    goal: Option<&Goal>,
    number: u32,
    channels: &Channels,
) -> Vec<StatusLine> {
    let connection = match open(api, task) {
        Ok(connection) => connection,
        Err(error) => {
            let _ = channels.opened.send(Err(error.into()));
            return Vec::new();
        }
    };
    let _ = channels.opened.send(Ok(()));
    let Ok(window) = channels.window.recv() else { return Vec::new() };
    let mut report = WriterReport::default();
    if let Err(error) = insert_in_window(&connection, task, goal, number, &window, &mut report) {
        report.fatal = Some(error.into());
        // Where all fail nobody else would.
        if let Some(goal) = goal {
            goal.tell();
        }
    }
    let _ = channels.report.send(report);
    let _ = channels.close.recv();
    if task.ask_waldio && number == 0 { waldio_status(&connection) } else { Vec::new() }
}

/// Opens the log too, which SQLite does at the first read. The database is in WAL mode already.
fn open<'api>(api: &'api Api, task: &WriteTask) -> Result<Connection<'api>, SqliteError> {
    let connection = Connection::open_with(api, &task.database, &task.waldio_options)?;
    connection.run(&format!("PRAGMA busy_timeout={BUSY_TIMEOUT_MS}"))?;
    connection.run(&format!("PRAGMA synchronous={}", task.synchronous.word()))?;
    let table = workload::tables(task.schema)[0];
    connection.value(&format!("SELECT count(*) FROM {table}"))?;
    Ok(connection)
}

/// Inserts until the window ends or, where commits are counted, until enough have returned.
/// # Errors
/// What no later INSERT would mend. A busy database is counted and tried again.
fn insert_in_window(
    connection: &Connection<'_>,
    task: &WriteTask,
    goal: Option<&Goal>,
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
