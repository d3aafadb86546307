//! One test of `joj mobibench`, from its task to its figures; and its calls for durability, counted in a run without a clock.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use joj_analysis::mobibench::document::{ContextSwitches, CpuShares, DurableCalls, SqliteFacts};
use joj_analysis::mobibench::setup::{
    DatabaseOperation, DatabaseWork, FileWork, MobibenchSetup, MobibenchWork,
};
use serde::{Deserialize, Serialize};

use crate::bench::worker::libraries::{self, Libraries};
use crate::bench::worker::mobibench::database_test::DatabaseTest;
use crate::bench::worker::mobibench::file_test::{self, FileTest};
use crate::bench::worker::mobibench::progress::TestProgress;
use crate::bench::worker::mobibench::threads::{self, ThreadTest, Timed};
use crate::bench::worker::task::{Refusal, Reply, Task};
use crate::machine::files::measured::record_file::forget_pages;
use crate::machine::sqlite::connection;
use crate::machine::sqlite::sync_count::SyncCounter;

/// Run a test, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MobibenchTask {
    /// What to run; the directory is there.
    pub setup: MobibenchSetup,
    /// For databases.
    pub libraries: Libraries,
    /// Show no progress.
    pub is_quiet: bool,
}

/// Run the transactions of one thread, and count what they ask for durability instead of time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MobibenchSyncTask {
    /// As in [`MobibenchTask`]; one thread.
    pub setup: MobibenchSetup,
    pub libraries: Libraries,
}

/// What it counted, or why nothing.
pub type Counted = Result<DurableCalls, String>;

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MobibenchFigures {
    /// From the start of all threads to the end of the last.
    pub elapsed_ns: u64,
    /// Of each thread, in the order they occurred.
    pub latencies_ns: Vec<Vec<u64>>,
    pub cpu_percent: Option<CpuShares>,
    /// Of the one thread.
    pub context_switches: Option<ContextSwitches>,
    /// Those that are known without counting.
    pub syncs: Option<DurableCalls>,
    /// The SQLite of a database test.
    pub sqlite: Option<SqliteFacts>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Task for MobibenchTask {
    const NAME: &'static str = "mobibench";
    type Answer = MobibenchFigures;
    fn run(&self) -> Reply<Self> {
        let progress = TestProgress::new(self.is_quiet);
        let paths: Vec<PathBuf> = self.setup.files().iter().map(PathBuf::from).collect();
        match &self.setup.work {
            MobibenchWork::Files(work) => run_files(work, &paths, &progress),
            MobibenchWork::Databases(work) => run_databases(&self.setup, work, &self.libraries, &progress),
        }
    }
}

impl Task for MobibenchSyncTask {
    const NAME: &'static str = "mobibench's syncs";
    type Answer = Counted;
    fn run(&self) -> Reply<Self> {
        let MobibenchWork::Databases(work) = &self.setup.work else {
            return Err(Refusal::new("files need no counting: a fault of joj's".to_owned()));
        };
        let api = libraries::load(&self.libraries)?;
        let counter = match SyncCounter::start(None) {
            Ok(counter) => counter,
            Err(error) => return Ok(Err(format!("seccomp: {error}"))),
        };
        let progress = TestProgress::new(true);
        let mut test = DatabaseTest::new(&api, &self.setup.files(), work, 0, &progress)?;
        counter.reset();
        test.measure(&progress)?;
        let counted = counter.counted(work.transactions);
        test.finish()?;
        Ok(Ok(DurableCalls::from(counted)))
    }
}

fn run_databases(
    setup: &MobibenchSetup,
    work: &DatabaseWork,
    libraries: &Libraries,
    progress: &TestProgress,
) -> Result<MobibenchFigures, Refusal> {
    let api = libraries::load(libraries)?;
    let (version, source_id) = connection::version(&api);
    let (files, facts) = (setup.files(), Mutex::new(Vec::new()));
    let of_thread: Vec<&[String]> = files.chunks(work.databases as usize).collect();
    let make = |number: u32| {
        let test = DatabaseTest::new(&api, of_thread[number as usize], work, number, progress)?;
        if number == 0 {
            *facts.lock().unwrap_or_else(PoisonError::into_inner) = test.facts()?;
        }
        Ok(test)
    };
    // They concern what is written first after a pause alone: without root nothing is said.
    let timed = threads::run(setup.threads, progress, make, || drop(drop_caches()))?;
    let mut figures = figures(timed, Vec::new());
    if work.operation == DatabaseOperation::Update {
        figures.notes.push(
            "each update writes a value that was never there: SQLite writes nothing where a value stays the same, as \
             Mobibench's does"
                .to_owned(),
        );
    }
    figures.sqlite = Some(SqliteFacts {
        file: libraries.sqlite.clone(),
        waldio: libraries.extension.clone(),
        version,
        source_id,
        databases: facts.into_inner().unwrap_or_else(PoisonError::into_inner),
    });
    Ok(figures)
}

fn run_files(
    work: &FileWork,
    paths: &[PathBuf],
    progress: &TestProgress,
) -> Result<MobibenchFigures, Refusal> {
    let mut notes = Vec::new();
    let threads = u32::try_from(paths.len()).unwrap_or(u32::MAX);
    let make = |number: u32| FileTest::new(&paths[number as usize], work, number, progress);
    let timed = threads::run(threads, progress, make, || {
        let is_cached_read = work.access.is_read() && !work.sync.is_direct();
        notes.extend(drop_caches().err().filter(|_| is_cached_read).map(|why| forget_files(paths, &why)));
    })?;
    let mut figures = figures(timed, notes);
    figures.syncs = Some(file_test::sync_calls(work, threads));
    Ok(figures)
}

fn figures(timed: Timed, notes: Vec<String>) -> MobibenchFigures {
    MobibenchFigures {
        elapsed_ns: timed.elapsed_ns,
        latencies_ns: timed.latencies_ns,
        cpu_percent: timed.cpu_ticks.and_then(|(before, after)| CpuShares::between(before, after)),
        context_switches: timed.context_switches,
        syncs: None,
        sqlite: None,
        notes,
    }
}

/// Drops what the kernel keeps of all files, as Mobibench does.
fn drop_caches() -> Result<(), String> {
    fs::write("/proc/sys/vm/drop_caches", "3").map_err(|error| error.to_string())
}

/// Drops what it keeps of the test's files alone, which anybody may; what is to be said of it.
fn forget_files(paths: &[PathBuf], why: &str) -> String {
    let forgotten: Result<Vec<()>, _> = paths.iter().map(|path| forget_pages(path)).collect();
    let files = match forgotten {
        Ok(_) => "those of the test's files alone were".to_owned(),
        Err(error) => format!("nor were those of the test's files ({error}): reads may come from memory"),
    };
    format!("the kernel's caches were not dropped ({why}), which root may; {files}")
}
