//! One run of one log pattern, in the worker: log writes without SQLite.
//!
//!   settle | log made, its header written, synced | clock: commits | clock: last flush | read back

use std::io;
use std::path::Path;

use blockio::aligned::AlignedBuffer;
use joj_analysis::bench::run::Run;
use joj_analysis::bench::study::durability::Durability;
use joj_analysis::bench::study::initialisation::Approach;
use joj_analysis::bench::study::pattern::PatternKey;
use serde::{Deserialize, Serialize};

use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Refusal, Reply, Task};
use crate::machine::files::counters::Sources;
use crate::machine::proc::clock::now_ns;
use crate::machine::sqlite::prepared_log::{PreparedLog, settle};

/// Most commits of a run: what the paper made.
pub const COMMITS_MAX: u64 = 1_000;

/// A prepared log's size is a multiple of this, in bytes, as waldio's.
const PREPARED_MULTIPLE_BYTES: u64 = 64 << 10;

/// Bytes of a frame and its header: behind them a pattern has padding.
const FRAME_BYTES: usize = 4120;

/// Write frames to a log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PatternTask {
    /// An empty directory.
    pub directory: String,
    /// What to run.
    pub key: PatternKey,
    /// How many commits of one frame.
    pub commits: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

/// Its steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PatternRuns {
    /// The commits.
    pub commits: Run,
    /// One fdatasync behind them.
    pub last_flush: Run,
    /// What was wrong with the file afterwards.
    pub failure: Option<String>,
}

impl Task for PatternTask {
    const NAME: &'static str = "pattern";
    /// Measured, or the reason why the place does not take it.
    type Answer = Result<PatternRuns, String>;
    fn run(&self) -> Reply<Self> {
        let directory = Path::new(&self.directory);
        run(directory, self).map_err(|error| Refusal::of_write(directory, &error))
    }
}

fn run(directory: &Path, task: &PatternTask) -> io::Result<Result<PatternRuns, String>> {
    settle(directory)?;
    let approach = if task.key.prepared { Approach::Zeroes } else { Approach::Appended };
    let log = PreparedLog::create(directory, approach)?;
    match measure(&log, task) {
        Ok(runs) => Ok(Ok(runs)),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let reason = log.refusal(&error, task.sources.disk.as_deref());
            Ok(Err(reason))
        }
        Err(error) => Err(error),
    }
}

fn index_of(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn measure(log: &PreparedLog, task: &PatternTask) -> io::Result<PatternRuns> {
    let pattern = task.key.pattern;
    let end = pattern.direct_range(task.commits.saturating_sub(1)).1;
    log.extend(end.next_multiple_of(PREPARED_MULTIPLE_BYTES))?;
    // What the log shall be at last; writes are parts of it, so whole blocks around a frame are at hand.
    let mut image = AlignedBuffer::zeroed(index_of(end));
    let header_bytes = index_of(pattern.place(0).0);
    image.bytes_mut()[..header_bytes].fill(b'h');
    log.write(&image.bytes()[..header_bytes], 0, Durability::Fs)?;
    let mut latencies_ns = Vec::new();
    let start = Stopwatch::now(&task.sources);
    for index in 0..task.commits {
        fill_frame(task, index, &mut image);
        let began_ns = now_ns();
        commit(log, task, index, image.bytes())?;
        latencies_ns.push(now_ns() - began_ns);
    }
    let commits = start.finish(&task.sources, latencies_ns).run;
    let start = Stopwatch::now(&task.sources);
    let began_ns = now_ns();
    log.sync()?;
    let last_flush = start.finish(&task.sources, vec![now_ns() - began_ns]).run;
    let failure =
        (!log.begins_with(image.bytes())?).then(|| "the log does not hold what was written".to_owned());
    Ok(PatternRuns { commits, last_flush, failure })
}

/// Frame `index` in `image`: bytes that no other frame has.
fn fill_frame(task: &PatternTask, index: u64, image: &mut AlignedBuffer) {
    let (begin, bytes) = task.key.pattern.place(index);
    let frame = &mut image.bytes_mut()[index_of(begin)..index_of(begin + bytes)];
    let filled_bytes = frame.len().min(FRAME_BYTES);
    frame[..filled_bytes].fill(u8::try_from(index % 251).unwrap_or(0));
    frame[..8].copy_from_slice(&(index + 1).to_le_bytes());
}

fn commit(log: &PreparedLog, task: &PatternTask, index: u64, image: &[u8]) -> io::Result<()> {
    let pattern = task.key.pattern;
    if task.key.durability == Durability::Pd {
        let (from, to) = pattern.direct_range(index);
        return log.write(&image[index_of(from)..index_of(to)], from, Durability::Pd);
    }
    let mut offset = pattern.place(index).0;
    for bytes in pattern.pieces() {
        let piece = &image[index_of(offset)..index_of(offset + bytes)];
        log.write(piece, offset, Durability::Ns)?;
        offset += bytes;
    }
    if task.key.durability == Durability::Fs { log.sync() } else { Ok(()) }
}
