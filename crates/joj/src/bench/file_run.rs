//! One run of block writes, in the worker: what the papers call write() + fsync().

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::bench::stopwatch::Stopwatch;
use crate::bench::task::{Answer, FilePattern, FileTask, Refusal, Reply};
use crate::bench::workload::next_random;
use crate::machine::clock::now_ns;
use crate::machine::work_dir::cannot_write;

/// Bytes of a write.
const BLOCK_BYTES: usize = 4096;
/// Blocks of the file that is overwritten: 10 MiB, as Mobibench has it.
const FILE_BLOCKS: u64 = 2_560;

/// Does `task`.
/// # Errors
/// As write(2) and fsync(2), with the remedy.
pub fn run(task: &FileTask) -> Reply {
    let directory = Path::new(&task.directory);
    match measure(directory, task) {
        Ok(answer) => Ok(answer),
        Err(error) => Err(Refusal {
            message: cannot_write(directory, &error),
            disk_full: matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)),
        }),
    }
}

fn measure(directory: &Path, task: &FileTask) -> io::Result<Answer> {
    let path = directory.join("blocks");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    if task.pattern != FilePattern::Append {
        file.write_all_at(&vec![b'-'; BLOCK_BYTES * usize::try_from(FILE_BLOCKS).unwrap_or(0)], 0)?;
    }
    file.sync_all()?;
    File::open(directory)?.sync_all()?;
    let mut latencies_ns = Vec::new();
    let mut random = 1;
    let start = Stopwatch::now(&task.sources);
    for index in 0..task.writes {
        random = next_random(random);
        let block = match task.pattern {
            FilePattern::Append => index,
            FilePattern::Sequential => index % FILE_BLOCKS,
            FilePattern::Random => random % FILE_BLOCKS,
        };
        let mut bytes = [0; BLOCK_BYTES];
        // A device may notice that nothing changed.
        bytes.as_chunks_mut::<8>().0.fill((index + 1).to_le_bytes());
        let began_ns = now_ns();
        file.write_all_at(&bytes, block * BLOCK_BYTES as u64)?;
        if task.full_sync { file.sync_all() } else { file.sync_data() }?;
        latencies_ns.push(now_ns() - began_ns);
    }
    Ok(Answer::Measured(Box::new(start.finish(&task.sources, latencies_ns))))
}
