//! The disk without SQLite, in the worker: a guess that tells how long a plan takes, and the limit beside rows.

use std::io;
use std::path::Path;
use std::time::Duration;

use joj_analysis::bench::document::LimitKind;
use serde::{Deserialize, Serialize};

use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Measured, Refusal, Reply, Task};
use crate::machine::files::counters::Sources;
use crate::machine::files::measured::limit_file::LimitFile;
use crate::machine::proc::clock::{now_ns, pause};

/// Batches of operations that tell how fast the disk is, roughly: so many at least, and as many as this time takes.
const CALIBRATION_BATCHES_MIN: usize = 2;
const CALIBRATION_NS: u64 = 1_000_000_000;

/// Operations of each kind in a batch.
const CALIBRATION_OPERATIONS: u64 = 12;

/// Between two batches.
const CALIBRATION_PAUSE: Duration = Duration::from_millis(60);

/// Time a few writes, to tell beforehand how long a plan takes.
#[derive(Debug, Serialize, Deserialize)]
pub struct CalibrationTask {
    /// Where the file goes.
    pub directory: String,
}

/// What this disk takes, in nanoseconds: means of a few operations, as a plan is as long as the sum of its own.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Calibration {
    /// Overwriting 4 KiB, fdatasync.
    pub overwrite_ns: u64,
    /// Appending 4 KiB, fsync: the file system has to note the new size.
    pub append_ns: u64,
}

impl Task for CalibrationTask {
    const NAME: &'static str = "calibrate";
    type Answer = Calibration;
    fn run(&self) -> Reply<Self> {
        let directory = Path::new(&self.directory);
        calibrate(directory).map_err(|error| Refusal::of_write(directory, &error))
    }
}

/// Measure the disk's limit.
#[derive(Debug, Serialize, Deserialize)]
pub struct LimitTask {
    /// Where the file goes.
    pub directory: String,
    /// Which ones.
    pub kinds: Vec<LimitKind>,
    /// How often.
    pub operations: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

/// Each kind, measured or the reason why the file system refuses it.
pub type Limits = Vec<(LimitKind, Result<Measured, String>)>;

impl Task for LimitTask {
    const NAME: &'static str = "limit";
    type Answer = Limits;
    fn run(&self) -> Reply<Self> {
        let directory = Path::new(&self.directory);
        limits(directory, self).map_err(|error| Refusal::of_write(directory, &error))
    }
}

fn calibrate(directory: &Path) -> io::Result<Calibration> {
    let mut file = LimitFile::create(directory)?;
    let (mut overwrites_ns, mut appends_ns) = (Vec::new(), Vec::new());
    let began_ns = now_ns();
    let mut batches = 0;
    // Not the best of some batches: on a busy machine a flush waits for a core, in a plan as it does here.
    while batches < CALIBRATION_BATCHES_MIN || now_ns() - began_ns < CALIBRATION_NS {
        overwrites_ns.extend(file.measure(LimitKind::WriteFdatasync, CALIBRATION_OPERATIONS)?);
        appends_ns.extend(file.measure_appends(CALIBRATION_OPERATIONS)?);
        pause(CALIBRATION_PAUSE);
        batches += 1;
    }
    Ok(Calibration { overwrite_ns: mean(&overwrites_ns), append_ns: mean(&appends_ns) })
}

fn mean(latencies_ns: &[u64]) -> u64 {
    latencies_ns.iter().sum::<u64>() / (latencies_ns.len().max(1) as u64)
}

fn limits(directory: &Path, task: &LimitTask) -> io::Result<Limits> {
    let mut file = LimitFile::create(directory)?;
    let mut answers = Vec::new();
    for kind in &task.kinds {
        // The first operations find the file's metadata cold. They also tell whether the file system takes them.
        if let Err(error) = file.measure(*kind, task.operations.min(5)) {
            let refused =
                matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS));
            if !refused {
                return Err(error);
            }
            answers.push((*kind, Err(format!("the file system refuses it: {error}"))));
            continue;
        }
        let start = Stopwatch::now(&task.sources);
        let latencies_ns = file.measure(*kind, task.operations)?;
        answers.push((*kind, Ok(start.finish(&task.sources, latencies_ns))));
    }
    Ok(answers)
}
