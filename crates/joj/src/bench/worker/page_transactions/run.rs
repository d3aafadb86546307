//! A replay of page transactions, from its task to its figures: with a clock, or once more without one to count.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use joj_analysis::bench::key::JournalMode;
use joj_analysis::bench::run::{DeviceDelta, SyncCount};
use joj_analysis::recording::page_transactions::plan::TransactionPlan;
use serde::{Deserialize, Serialize};

use crate::bench::worker::libraries::{self, Libraries};
use crate::bench::worker::mobibench::progress::TestProgress;
use crate::bench::worker::mobibench::threads;
use crate::bench::worker::page_transactions::connection_test::{ConnectionTest, Gathered, SharedReplay};
use crate::bench::worker::page_transactions::made_database::{self, DatabaseSettings, configure, file_of};
use crate::bench::worker::task::{Refusal, Reply, Task};
use crate::command_line::replay::OrderChoice;
use crate::machine::files::counters::Sources;
use crate::machine::proc::clock;
use crate::machine::proc::usage::Usage;
use crate::machine::replayer::turns::Turn;
use crate::machine::sqlite::connection::{self, Connection};
use crate::machine::sqlite::sqlite_api::Api;
use crate::machine::sqlite::sync_count::SyncCounter;

/// Make recorded commits again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PageTransactionsTask {
    /// What to load.
    pub libraries: Libraries,
    /// An empty directory.
    pub directory: String,
    /// The databases and the commits.
    pub plan: TransactionPlan,
    /// The journal mode.
    pub mode: JournalMode,
    /// `full`, `normal` or `off`.
    pub synchronous: String,
    /// `PRAGMA cache_size`, where it is not SQLite's own.
    pub cache_size: Option<i64>,
    /// When each commit begins.
    pub order: OrderChoice,
    /// Counters to read meanwhile.
    pub sources: Sources,
    /// Count calls and bytes instead of time.
    pub counts: bool,
    /// Have the filesystem written to the device before its counters are read at the end.
    #[serde(default)]
    pub settles: bool,
    /// Connections that are closed under the clock, in this order; counters are read at the end of the last. None: they are read before any
    /// is closed.
    #[serde(default)]
    pub closes: Vec<u32>,
}

impl PageTransactionsTask {
    fn settings(&self) -> DatabaseSettings<'_> {
        DatabaseSettings { mode: self.mode, synchronous: &self.synchronous, cache_size: self.cache_size }
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PageTransactionsFigures {
    /// From the start of all threads to the end of the last commit.
    pub elapsed_ns: u64,
    /// How long each commit took.
    pub times_ns: Vec<u64>,
    /// How long each of the closes took.
    #[serde(default)]
    pub closes_ns: Vec<u64>,
    /// How late each began that had a time to begin at.
    pub late_ns: Vec<u64>,
    /// Pages that were written, to the databases or as frames.
    pub pages: Option<u64>,
    /// Calls for durability, where they were counted.
    pub syncs: Option<SyncCount>,
    /// Why they were not.
    pub syncs_refused: Option<String>,
    /// Bytes that write calls took.
    pub written_bytes: Option<u64>,
    /// What the block device did meanwhile.
    pub device: Option<DeviceDelta>,
    /// Processor time, in microseconds.
    pub cpu_us: u64,
    /// Of each database, at the begin and at the end.
    pub pages_before: Vec<u32>,
    pub pages_after: Vec<u32>,
    /// `sqlite3_libversion()` and `sqlite3_sourceid()`.
    pub version: String,
    pub source_id: String,
}

impl Task for PageTransactionsTask {
    const NAME: &'static str = "page transactions";
    type Answer = PageTransactionsFigures;
    fn run(&self) -> Reply<Self> {
        let api = libraries::load(&self.libraries)?;
        run(&api, self)
    }
}

fn run(api: &Api, task: &PageTransactionsTask) -> Result<PageTransactionsFigures, Refusal> {
    let (counter, syncs_refused) = match task.counts.then(|| SyncCounter::start(None)) {
        Some(Ok(counter)) => (Some(counter), None),
        Some(Err(error)) => (None, Some(format!("seccomp: {error}"))),
        None => (None, None),
    };
    let progress = TestProgress::new(task.counts);
    let pages_before = make_databases(api, task, &progress)?;
    let pass = Pass { api, task, progress: &progress, leaves_open: false };
    let figures = pass.commit(counter)?;
    let pages_after = verify(api, task)?;
    let (version, source_id) = connection::version(api);
    Ok(PageTransactionsFigures { syncs_refused, pages_before, pages_after, version, source_id, ..figures })
}

/// The task's databases, made and on the disk; how many pages each has.
pub fn make_databases(
    api: &Api,
    task: &PageTransactionsTask,
    progress: &TestProgress,
) -> Result<Vec<u32>, Refusal> {
    progress.expect(task.plan.databases.len() as u64);
    let mut pages = Vec::new();
    for (number, database) in task.plan.databases.iter().enumerate() {
        let path = file_of(&task.directory, number);
        pages.push(made_database::make(api, &path, database, &task.settings())?);
        progress.count(1);
        progress.show("making the databases");
    }
    Ok(pages)
}

/// The commits of a task, on databases that are there.
pub struct Pass<'a> {
    pub api: &'a Api,
    pub task: &'a PageTransactionsTask,
    pub progress: &'a TestProgress,
    /// Connections stay open until the process ends.
    pub leaves_open: bool,
}

impl Pass<'_> {
    /// Makes them. What came of it, without what the databases say.
    /// # Errors
    /// What SQLite said, and where.
    pub fn commit(&self, counter: Option<SyncCounter>) -> Result<PageTransactionsFigures, Refusal> {
        let (task, progress) = (self.task, self.progress);
        let connections = task.plan.connections.len();
        let shared = SharedReplay {
            api: self.api,
            plan: &task.plan,
            directory: &task.directory,
            settings: task.settings(),
            order: task.order,
            turns: (0..connections).map(|_| Turn::default()).collect(),
            read: Turn::default(),
            stop: AtomicBool::new(false),
            begin_ns: Mutex::new(0),
            opening: Mutex::new(()),
            leaves_open: self.leaves_open,
            closes: &task.closes,
            closed: Turn::default(),
            counter,
            sources: &task.sources,
            settles: task.settles,
            gathered: Mutex::new(Gathered { pages: Some(0), ..Gathered::default() }),
        };
        // A sleep ends when it should, not 50 us later; threads that begin later have this from us.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut before = None;
        let at_start = || {
            if let Some(counter) = &shared.counter {
                counter.reset();
            }
            progress.expect(task.plan.commits.len() as u64);
            before = Some((task.sources.read(), Usage::now()));
            *shared.begin_ns.lock().unwrap_or_else(PoisonError::into_inner) = clock::shared_ns();
        };
        let make = |number| ConnectionTest::new(&shared, number);
        let threads = u32::try_from(connections).unwrap_or(u32::MAX);
        let timed = threads::run(threads, progress, make, at_start)?;
        let gathered = shared.gathered.into_inner().unwrap_or_else(PoisonError::into_inner);
        let now = || (task.sources.read(), Usage::now());
        let ((counters, used), (before, usage)) =
            (gathered.end.unwrap_or_else(now), before.unwrap_or_else(now));
        let used = used.since(&usage);
        Ok(PageTransactionsFigures {
            elapsed_ns: timed.elapsed_ns,
            times_ns: timed.latencies_ns.concat(),
            closes_ns: gathered.closes_ns,
            late_ns: gathered.late_ns,
            pages: gathered.pages,
            syncs: gathered.syncs,
            written_bytes: used.wchar_bytes,
            device: counters.device_since(&before),
            cpu_us: used.cpu_user_us + used.cpu_system_us,
            ..PageTransactionsFigures::default()
        })
    }
}

/// Opens each database again and has SQLite look at all of it; how many pages each has.
pub fn verify(api: &Api, task: &PageTransactionsTask) -> Result<Vec<u32>, Refusal> {
    let mut pages = Vec::new();
    for number in 0..task.plan.databases.len() {
        let path = file_of(&task.directory, number);
        let connection = Connection::open(api, &path)?;
        configure(&connection, "main", &task.settings())?;
        let verdict = connection.value("PRAGMA integrity_check")?;
        if verdict != "ok" {
            let name = Path::new(&path).display().to_string();
            return Err(Refusal::new(format!(
                "{name} is damaged after the replay, integrity_check says: {verdict}"
            )));
        }
        pages.push(connection.value("PRAGMA page_count")?.parse().unwrap_or(0));
        connection.close()?;
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use joj_analysis::recording::page_transactions::plan::{PlannedCommit, PlannedDatabase, PlannedPart};

    use super::*;

    /// Two connections of one database, a commit each.
    fn plan() -> TransactionPlan {
        let commit = |connection| PlannedCommit {
            connection,
            waits: Vec::new(),
            begin_ns: 0,
            ready_ns: 0,
            hold_ns: 0,
            parts: vec![PlannedPart { database: 0, updates: vec![1], inserts: 0, sets_page_one: false }],
        };
        TransactionPlan {
            databases: vec![PlannedDatabase { page_bytes: 4096, rows: 3 }],
            connections: vec![vec![0], vec![0]],
            commits: vec![commit(0), commit(1)],
            ..TransactionPlan::default()
        }
    }

    #[test]
    fn connections_that_are_to_be_closed_are_timed_and_the_others_closed_behind_them() {
        let directory = std::env::temp_dir().join(format!("joj-closes-{}", std::process::id()));
        for closes in [vec![], vec![1], vec![1, 0]] {
            fs::create_dir_all(&directory).unwrap();
            let task = PageTransactionsTask {
                libraries: Libraries::default(),
                directory: directory.display().to_string(),
                plan: plan(),
                mode: JournalMode::Wal,
                synchronous: "full".to_owned(),
                cache_size: None,
                order: OrderChoice::Fast,
                sources: Sources::default(),
                counts: false,
                settles: false,
                closes: closes.clone(),
            };
            let figures = task.run().unwrap();
            assert_eq!((figures.times_ns.len(), figures.closes_ns.len()), (2, closes.len()));
            assert!(figures.closes_ns.iter().all(|time_ns| *time_ns > 0), "{:?}", figures.closes_ns);
            assert!(!Path::new(&format!("{}-wal", file_of(&task.directory, 0))).exists(), "{closes:?}");
            fs::remove_dir_all(&directory).unwrap();
        }
    }
}
