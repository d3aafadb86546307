//! One run of block writes, in the worker: what the papers call write() + fsync().

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Measured, Refusal, Reply, Task};
use crate::bench::worker::workload::next_random;
use crate::machine::files::counters::Sources;
use crate::machine::proc::clock::now_ns;

/// Bytes of a write.
const BLOCK_BYTES: usize = 4096;
/// The file is filled in pieces of so many blocks.
const FILL_BLOCKS: usize = 256;

/// Where the blocks of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilePattern {
    /// Each behind the last, in a file that grows.
    Append,
    /// In order, in a file that is there; from its begin again behind its end.
    Sequential,
    /// Anywhere in a file that is there.
    Random,
}

/// Write blocks of 4 KiB, each followed by a sync call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileTask {
    /// An empty directory.
    pub directory: String,
    /// Where.
    pub pattern: FilePattern,
    /// fsync instead of fdatasync.
    pub full_sync: bool,
    /// How many, in all threads.
    pub writes: u64,
    /// Threads, each with a file and its part of the writes.
    pub threads: u32,
    /// Bytes that are overwritten, in the files of all threads.
    pub file_bytes: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

impl Task for FileTask {
    const NAME: &'static str = "files";
    type Answer = Measured;
    fn run(&self) -> Reply<Self> {
        let directory = Path::new(&self.directory);
        measure(directory, self).map_err(|error| Refusal::of_write(directory, &error))
    }
}

fn measure(directory: &Path, task: &FileTask) -> io::Result<Measured> {
    let writers: Vec<FileWriter<'_>> = (0..u64::from(task.threads))
        .map(|number| FileWriter::new(directory, task, number))
        .collect::<io::Result<_>>()?;
    File::open(directory)?.sync_all()?;
    let start = Stopwatch::now(&task.sources);
    // One writer is this thread: another would be a thread more than the papers' benchmark had.
    let latencies_ns = match <[FileWriter<'_>; 1]>::try_from(writers) {
        Ok([writer]) => writer.write()?,
        Err(writers) => thread::scope(|scope| {
            let threads: Vec<_> =
                writers.into_iter().map(|writer| scope.spawn(move || writer.write())).collect();
            let panicked = |_| Err(io::Error::other("a writer panicked"));
            let ends: Vec<_> =
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect();
            ends.into_iter().collect::<io::Result<Vec<Vec<u64>>>>().map(|parts| parts.concat())
        })?,
    };
    Ok(start.finish(&task.sources, latencies_ns))
}

/// A file and what is written to it.
struct FileWriter<'a> {
    file: File,
    blocks: u64,
    writes: u64,
    number: u64,
    task: &'a FileTask,
}

impl<'a> FileWriter<'a> {
    /// Makes its file: the threads share the bytes of one writer's, as in Mobibench.
    fn new(directory: &Path, task: &'a FileTask, number: u64) -> io::Result<FileWriter<'a>> {
        let threads = u64::from(task.threads);
        let blocks = (task.file_bytes / BLOCK_BYTES as u64 / threads).max(1);
        let path = directory.join(format!("blocks{number}"));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        if task.pattern != FilePattern::Append {
            let piece = vec![b'-'; BLOCK_BYTES * FILL_BLOCKS];
            for first in (0..blocks).step_by(FILL_BLOCKS) {
                let count = usize::try_from(blocks - first).unwrap_or(FILL_BLOCKS).min(FILL_BLOCKS);
                file.write_all_at(&piece[..count * BLOCK_BYTES], first * BLOCK_BYTES as u64)?;
            }
        }
        file.sync_all()?;
        let writes = task.writes / threads + u64::from(number < task.writes % threads);
        Ok(FileWriter { file, blocks, writes, number, task })
    }

    /// Latencies in nanoseconds.
    fn write(&self) -> io::Result<Vec<u64>> {
        let mut latencies_ns = Vec::new();
        let mut random = 1 + self.number;
        for index in 0..self.writes {
            random = next_random(random);
            let block = match self.task.pattern {
                FilePattern::Append => index,
                FilePattern::Sequential => index % self.blocks,
                FilePattern::Random => random % self.blocks,
            };
            let mut bytes = [0; BLOCK_BYTES];
            // A device may notice that nothing changed.
            bytes.as_chunks_mut::<8>().0.fill((index + 1).to_le_bytes());
            let began_ns = now_ns();
            self.file.write_all_at(&bytes, block * BLOCK_BYTES as u64)?;
            if self.task.full_sync { self.file.sync_all() } else { self.file.sync_data() }?;
            latencies_ns.push(now_ns() - began_ns);
        }
        Ok(latencies_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_bytes_and_writes() {
        let directory = std::env::temp_dir().join(format!("joj-file-run-{}", std::process::id()));
        for (threads, lengths) in [(1, vec![10 << 20]), (3, vec![853 << 12; 3])] {
            std::fs::create_dir_all(&directory).unwrap();
            let task = FileTask {
                directory: directory.display().to_string(),
                pattern: FilePattern::Random,
                full_sync: false,
                writes: 10,
                threads,
                file_bytes: 10 << 20,
                sources: Sources::default(),
            };
            let measured = task.run().unwrap();
            assert_eq!((measured.run.transactions, measured.latencies_ns.len()), (10, 10));
            let files = (0..threads).map(|number| directory.join(format!("blocks{number}")));
            let found: Vec<u64> = files.map(|file| std::fs::metadata(file).unwrap().len()).collect();
            assert_eq!(found, lengths);
            std::fs::remove_dir_all(&directory).unwrap();
        }
    }
}
