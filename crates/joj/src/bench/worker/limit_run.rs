//! The disk without SQLite, in the worker: a guess that tells how long a plan takes, and the limit beside rows.

use std::io;
use std::path::Path;
use std::time::Duration;

use joj_analysis::bench::document::LimitKind;
use joj_analysis::statistics::percentile;
use serde::{Deserialize, Serialize};

use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Measured, Refusal, Reply, Task};
use crate::machine::files::counters::Sources;
use crate::machine::files::measured::limit_file::LimitFile;
use crate::machine::proc::clock::pause;

/// Batches of operations that tell how fast the disk is, roughly.
const CALIBRATION_BATCHES: usize = 4;

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

/// What this disk takes, in nanoseconds: medians of a few operations.
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
    let median = |mut latencies_ns: Vec<u64>| {
        latencies_ns.sort_unstable();
        percentile(&latencies_ns, 50_000).unwrap_or(u64::MAX)
    };
    let mut calibration = Calibration { overwrite_ns: u64::MAX, append_ns: u64::MAX };
    // The best of some batches: a neighbour's burst is over in a moment and shall not make a minute look like ten.
    for _ in 0..CALIBRATION_BATCHES {
        let overwrites = file.measure(LimitKind::WriteFdatasync, CALIBRATION_OPERATIONS)?;
        let appends = file.measure_appends(CALIBRATION_OPERATIONS)?;
        calibration.overwrite_ns = calibration.overwrite_ns.min(median(overwrites));
        calibration.append_ns = calibration.append_ns.min(median(appends));
        pause(CALIBRATION_PAUSE);
    }
    Ok(calibration)
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
