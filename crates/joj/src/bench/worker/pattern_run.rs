//! One run of one log pattern, in the worker: log writes without SQLite.
//!
//!   settle | log made, its header written, synced | clock: commits | clock: last flush | read back
//!
//! A cell of the lab (`FramesTask`) has no last flush: each of its commits flushes.

use std::io;
use std::path::Path;

use blockio::aligned::AlignedBuffer;
use joj_analysis::bench::run::Run;
use joj_analysis::bench::study::durability::Durability;
use joj_analysis::bench::study::initialisation::Approach;
use joj_analysis::bench::study::pattern::{Pattern, PatternKey};
use serde::{Deserialize, Serialize};

use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Measured, Refusal, Reply, Task};
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

/// Write frames to a log and flush each, as a WAL or WALDIO would with frames laid so.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FramesTask {
    /// An empty directory.
    pub directory: String,
    /// Where frames lie.
    pub pattern: Pattern,
    /// True: the log is prepared with zeros and written past the page cache, whole blocks or sectors around a frame in one write. False: it
    /// grows, and is written through the page cache.
    pub is_prepared: bool,
    /// How many commits of one frame; each ends with fdatasync.
    pub commits: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

impl Task for FramesTask {
    const NAME: &'static str = "frames";
    type Answer = Measured;
    fn run(&self) -> Reply<Self> {
        let directory = Path::new(&self.directory);
        write_frames(directory, self).map_err(|error| Refusal::of_write(directory, &error))
    }
}

fn write_frames(directory: &Path, task: &FramesTask) -> io::Result<Measured> {
    let pattern = task.pattern;
    settle(directory)?;
    let log = PreparedLog::create(directory, approach(task.is_prepared))?;
    let (mut measured, image) = commits(&log, pattern, task.commits, &task.sources, |index, image| {
        if task.is_prepared {
            let (from, to) = pattern.direct_range(index);
            log.write_direct(&image[index_of(from)..index_of(to)], from)?;
        } else {
            write_pieces(&log, pattern, index, image)?;
        }
        log.sync()
    })?;
    measured.run.failure = wrong(&log, image.bytes())?;
    Ok(measured)
}

fn run(directory: &Path, task: &PatternTask) -> io::Result<Result<PatternRuns, String>> {
    settle(directory)?;
    let log = PreparedLog::create(directory, approach(task.key.prepared))?;
    match measure(&log, task) {
        Ok(runs) => Ok(Ok(runs)),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let reason = log.refusal(&error, task.sources.disk.as_deref());
            Ok(Err(reason))
        }
        Err(error) => Err(error),
    }
}

fn approach(is_prepared: bool) -> Approach {
    if is_prepared { Approach::Zeroes } else { Approach::Appended }
}

fn index_of(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn measure(log: &PreparedLog, task: &PatternTask) -> io::Result<PatternRuns> {
    let (measured, image) = commits(log, task.key.pattern, task.commits, &task.sources, |index, image| {
        commit(log, task, index, image)
    })?;
    let start = Stopwatch::now(&task.sources);
    let began_ns = now_ns();
    log.sync()?;
    let last_flush = start.finish(&task.sources, vec![now_ns() - began_ns]).run;
    let failure = wrong(log, image.bytes())?;
    Ok(PatternRuns { commits: measured.run, last_flush, failure })
}

/// Makes the log, and so many commits under the clock: `commit` writes the frame of its number, which is in the bytes that it is given. Gives
/// what the log holds then, too.
fn commits(
    log: &PreparedLog,
    pattern: Pattern,
    count: u64,
    sources: &Sources,
    commit: impl Fn(u64, &[u8]) -> io::Result<()>,
) -> io::Result<(Measured, AlignedBuffer)> {
    let mut image = with_header(log, pattern, count)?;
    let mut latencies_ns = Vec::new();
    let start = Stopwatch::now(sources);
    for index in 0..count {
        fill_frame(pattern, index, &mut image);
        let began_ns = now_ns();
        commit(index, image.bytes())?;
        latencies_ns.push(now_ns() - began_ns);
    }
    Ok((start.finish(sources, latencies_ns), image))
}

/// Prepares the log for so many commits and writes its header. What the log shall be at last, without the frames: writes are parts of it, so
/// whole blocks around a frame are at hand.
fn with_header(log: &PreparedLog, pattern: Pattern, commits: u64) -> io::Result<AlignedBuffer> {
    let end = pattern.direct_range(commits.saturating_sub(1)).1;
    log.extend(end.next_multiple_of(PREPARED_MULTIPLE_BYTES))?;
    let mut image = AlignedBuffer::zeroed(index_of(end));
    let header_bytes = index_of(pattern.place(0).0);
    image.bytes_mut()[..header_bytes].fill(b'h');
    log.write(&image.bytes()[..header_bytes], 0, Durability::Fs)?;
    Ok(image)
}

/// What is wrong with the log, if anything.
fn wrong(log: &PreparedLog, image: &[u8]) -> io::Result<Option<String>> {
    Ok((!log.begins_with(image)?).then(|| "the log does not hold what was written".to_owned()))
}

/// Frame `index` in `image`: bytes that no other frame has.
fn fill_frame(pattern: Pattern, index: u64, image: &mut AlignedBuffer) {
    let (begin, bytes) = pattern.place(index);
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
    write_pieces(log, pattern, index, image)?;
    if task.key.durability == Durability::Fs { log.sync() } else { Ok(()) }
}

/// Writes frame `index` through the page cache.
fn write_pieces(log: &PreparedLog, pattern: Pattern, index: u64, image: &[u8]) -> io::Result<()> {
    let mut offset = pattern.place(index).0;
    for bytes in pattern.pieces() {
        log.write(&image[index_of(offset)..index_of(offset + bytes)], offset, Durability::Ns)?;
        offset += bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use joj_analysis::bench::key::Word;

    use super::*;

    #[test]
    fn a_log_of_frames_holds_what_was_committed_whether_it_grew_or_was_prepared() {
        let directory = std::env::temp_dir().join(format!("joj-frames-{}", std::process::id()));
        for pattern in Pattern::ALL {
            for is_prepared in [false, true] {
                fs::create_dir_all(&directory).unwrap();
                let task = FramesTask {
                    directory: directory.display().to_string(),
                    pattern: *pattern,
                    is_prepared,
                    commits: 20,
                    sources: Sources::default(),
                };
                let told = format!("{pattern:?}, prepared: {is_prepared}");
                let measured = task.run().unwrap();
                assert_eq!(measured.run.failure, None, "{told}");
                assert_eq!((measured.run.transactions, measured.latencies_ns.len()), (20, 20), "{told}");
                let file = fs::read(directory.join("log")).unwrap();
                for index in 0..20 {
                    let begin = index_of(pattern.place(index).0);
                    assert_eq!(file[begin..begin + 8], (index + 1).to_le_bytes(), "{told}, frame {index}");
                }
                let prepared = pattern.direct_range(19).1.next_multiple_of(PREPARED_MULTIPLE_BYTES);
                let (begin, bytes) = pattern.place(19);
                assert_eq!(file.len() as u64, if is_prepared { prepared } else { begin + bytes }, "{told}");
                fs::remove_dir_all(&directory).unwrap();
            }
        }
    }
}
