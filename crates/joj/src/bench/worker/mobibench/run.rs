//! One test of `joj mobibench`, from its task to its figures.

use std::fs;
use std::path::{Path, PathBuf};

use joj_analysis::mobibench::document::{ContextSwitches, CpuShares, DurableCalls, SqliteFacts};
use joj_analysis::mobibench::setup::{FileWork, MobibenchSetup, MobibenchWork};
use serde::{Deserialize, Serialize};

use crate::bench::worker::mobibench::file_test::{self, FileTest};
use crate::bench::worker::mobibench::progress::TestProgress;
use crate::bench::worker::mobibench::threads::{self, Timed};
use crate::bench::worker::task::{Refusal, Reply, Task};

/// Run a test, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MobibenchTask {
    /// What to run; the directory is there.
    pub setup: MobibenchSetup,
    /// Show no progress.
    pub is_quiet: bool,
}

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
            MobibenchWork::Databases(_) => Err(Refusal::new("there is no database test".to_owned())),
        }
    }
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
    let forgotten: Result<Vec<()>, _> =
        paths.iter().map(|path: &PathBuf| FileTest::forget_pages(Path::new(path))).collect();
    let files = match forgotten {
        Ok(_) => "those of the test's files alone were".to_owned(),
        Err(error) => format!("nor were those of the test's files ({error}): reads may come from memory"),
    };
    format!("the kernel's caches were not dropped ({why}), which root may; {files}")
}
