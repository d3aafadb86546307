//! The disk without SQLite, in the worker: a guess that tells how long a plan takes, and the limit beside rows.

use std::io;
use std::path::Path;
use std::time::Duration;

use joj_analysis::bench::document::LimitKind;
use joj_analysis::statistics::percentile;

use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Answer, Calibration, Refusal, Reply};
use crate::machine::files::counters::Sources;
use crate::machine::files::limit_file::LimitFile;
use crate::machine::proc::clock::pause;

/// Batches of operations that tell how fast the disk is, roughly.
const CALIBRATION_BATCHES: usize = 4;

/// Operations of each kind in a batch.
const CALIBRATION_OPERATIONS: u64 = 12;

/// Between two batches.
const CALIBRATION_PAUSE: Duration = Duration::from_millis(60);

/// Times a few writes in `directory`.
/// # Errors
/// As write(2) and fdatasync(2), with the remedy.
pub fn calibrate(directory: &str) -> Reply {
    let refuse = |error: io::Error| Refusal::of_write(Path::new(directory), &error);
    let mut file = LimitFile::create(Path::new(directory)).map_err(refuse)?;
    let median = |mut latencies_ns: Vec<u64>| {
        latencies_ns.sort_unstable();
        percentile(&latencies_ns, 50_000).unwrap_or(u64::MAX)
    };
    let mut calibration = Calibration { overwrite_ns: u64::MAX, append_ns: u64::MAX };
    // The best of some batches: a neighbour's burst is over in a moment and shall not make a minute look like ten.
    for _ in 0..CALIBRATION_BATCHES {
        let overwrites = file.measure(LimitKind::WriteFdatasync, CALIBRATION_OPERATIONS).map_err(refuse)?;
        let appends = file.measure_appends(CALIBRATION_OPERATIONS).map_err(refuse)?;
        calibration.overwrite_ns = calibration.overwrite_ns.min(median(overwrites));
        calibration.append_ns = calibration.append_ns.min(median(appends));
        pause(CALIBRATION_PAUSE);
    }
    Ok(Answer::Calibrated(calibration))
}

/// Measures each of `kinds` in `directory`.
/// # Errors
/// As [`calibrate`]. A kind that the file system refuses is no error but its answer.
pub fn limits(directory: &str, kinds: &[LimitKind], operations: u64, sources: &Sources) -> Reply {
    let refuse = |error: io::Error| Refusal::of_write(Path::new(directory), &error);
    let mut file = LimitFile::create(Path::new(directory)).map_err(refuse)?;
    let mut answers = Vec::new();
    for kind in kinds {
        // The first operations find the file's metadata cold. They also tell whether the file system takes them.
        if let Err(error) = file.measure(*kind, operations.min(5)) {
            let refused =
                matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS));
            if !refused {
                return Err(refuse(error));
            }
            answers.push((*kind, Err(format!("the file system refuses it: {error}"))));
            continue;
        }
        let start = Stopwatch::now(sources);
        let latencies_ns = file.measure(*kind, operations).map_err(refuse)?;
        answers.push((*kind, Ok(start.finish(sources, latencies_ns))));
    }
    Ok(Answer::Limits(answers))
}
