//! One run of `joj bench --io`, in the worker: the file made ready and cold, then its records, then a sync.

use std::fs;
use std::io;
use std::path::Path;

use joj_analysis::bench::io::job::{IoJob, IoKey};
use joj_analysis::bench::io::way::SyncWay;
use joj_analysis::bench::run::SyncCount;
use serde::{Deserialize, Serialize};

use crate::bench::worker::order::Generator;
use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Measured, Refusal, Reply, Task};
use crate::machine::files::counters::Sources;
use crate::machine::files::measured::polled_ring::check_polling;
use crate::machine::files::measured::record_file::{RecordFile, fill};
use crate::machine::proc::clock::now_ns;

/// The file's name.
pub const FILE: &str = "records";

/// Write or read the records of a file. A file that is there already stays, but for appends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IoTask {
    /// Where the file is, or will be.
    pub directory: String,
    /// What to do.
    pub key: IoKey,
    /// No more than these.
    pub records_max: u64,
    /// No record begins later, in nanoseconds from the start.
    pub time_max_ns: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

/// The figures, or why the place does not take such records.
pub type IoFigures = Result<Measured, String>;

impl Task for IoTask {
    const NAME: &'static str = "io";
    type Answer = IoFigures;
    fn run(&self) -> Reply<Self> {
        let directory = Path::new(&self.directory);
        if self.key.way == SyncWay::Polled
            && let Err(reason) = check_polling(self.sources.disk.as_deref())
        {
            return Ok(Err(reason));
        }
        match measure(directory, self) {
            Err(error) if is_refusal(self.key.way, &error) => Ok(Err(refusal(&self.key, &error))),
            figures => figures.map(Ok).map_err(|error| Refusal::of_write(directory, &error)),
        }
    }
}

/// True where the file system or the device does not know the way, or not with such records.
fn is_refusal(way: SyncWay, error: &io::Error) -> bool {
    match error.raw_os_error() {
        // io_uring may be forbidden (/proc/sys/kernel/io_uring_disabled, seccomp).
        Some(libc::EPERM) => way == SyncWay::Polled,
        number => matches!(number, Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS)),
    }
}

fn refusal(key: &IoKey, error: &io::Error) -> String {
    let hint = match key.record_bytes.is_multiple_of(4096) {
        false if key.way.is_direct() || key.way.is_mapped() => {
            "; take records of whole pages (--record 4KiB)"
        }
        _ => "",
    };
    format!("kernel, file system or device refuse it: {error}{hint}")
}

fn measure(directory: &Path, task: &IoTask) -> io::Result<Measured> {
    let (path, key) = (directory.join(FILE), &task.key);
    if key.job == IoJob::Append {
        fs::remove_file(&path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    } else {
        fill(&path, key.file_bytes)?;
    }
    let record_bytes = usize::try_from(key.record_bytes).map_err(io::Error::other)?;
    let mut file = RecordFile::open(&path, key.way, key.file_bytes, record_bytes)?;
    let count = key.records().min(task.records_max);
    let order = match key.job.is_random() {
        true => Generator::new(0, 0).sample(count, key.records()),
        false => (0..count).collect(),
    };
    let start = Stopwatch::now(&task.sources);
    let latencies_ns = use_records(&mut file, key, &order, task.time_max_ns)?;
    if !key.job.is_read() {
        file.sync_all()?;
    }
    let mut measured = start.finish(&task.sources, latencies_ns);
    let records = measured.run.transactions;
    measured.syncs = Some(match key.job.is_read() {
        true => SyncCount { transactions: records, ..SyncCount::default() },
        false => key.way.calls(records),
    });
    Ok(measured)
}

/// What each record took, in nanoseconds.
fn use_records(file: &mut RecordFile, key: &IoKey, order: &[u64], time_max_ns: u64) -> io::Result<Vec<u64>> {
    let mut latencies_ns = Vec::with_capacity(order.len());
    let (is_read, begin_ns) = (key.job.is_read(), now_ns());
    for (number, record) in (1_u64..).zip(order) {
        let began_ns = now_ns();
        if began_ns - begin_ns > time_max_ns && number > 1 {
            break;
        }
        if is_read {
            file.read(*record)?;
        } else {
            // A device may notice that nothing changed.
            file.stamp(number);
            file.write(*record)?;
        }
        latencies_ns.push(now_ns() - began_ns);
    }
    Ok(latencies_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::files::measured::record_file::RECORD_BYTE;

    /// A task in a directory of its own; what came of it, and the bytes of the file behind it.
    fn run(job: IoJob, way: SyncWay, change: impl FnOnce(&mut IoTask)) -> (IoFigures, Vec<u8>) {
        let name = format!("joj-io-run-{}-{job:?}-{way:?}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let mut task = IoTask {
            directory: directory.display().to_string(),
            key: IoKey { job, way, record_bytes: 4096, file_bytes: 65_536 },
            records_max: u64::MAX,
            time_max_ns: u64::MAX,
            sources: Sources::default(),
        };
        change(&mut task);
        let figures = task.run().unwrap();
        let bytes = fs::read(directory.join(FILE)).unwrap_or_default();
        fs::remove_dir_all(&directory).unwrap();
        (figures, bytes)
    }

    #[test]
    fn each_job_uses_each_record_once() {
        for job in [IoJob::Write, IoJob::RandWrite, IoJob::Append, IoJob::Read, IoJob::RandRead] {
            let (figures, bytes) = run(job, SyncWay::Fdatasync, |_| {});
            let measured = figures.unwrap();
            assert_eq!((measured.run.transactions, measured.latencies_ns.len()), (16, 16), "{job:?}");
            let syncs = measured.syncs.unwrap();
            assert_eq!((syncs.fdatasync, syncs.fsync), if job.is_read() { (0, 0) } else { (16, 1) });
            let mut stamps: Vec<u64> = bytes
                .chunks(4096)
                .map(|record| u64::from_le_bytes(record[..8].try_into().unwrap()))
                .collect();
            let in_order: Vec<u64> = (1..=16).collect();
            assert_eq!(
                stamps == in_order,
                matches!(job, IoJob::Write | IoJob::Append),
                "{job:?}: {stamps:?}"
            );
            stamps.sort_unstable();
            assert_eq!(stamps == in_order, !job.is_read(), "{job:?}: {stamps:?}");
        }
    }

    #[test]
    fn a_run_finds_a_file_that_was_written_as_a_whole() {
        for job in [IoJob::Write, IoJob::RandWrite, IoJob::Read, IoJob::RandRead] {
            let (figures, bytes) = run(job, SyncWay::None, |task| task.records_max = 1);
            assert_eq!(figures.unwrap().run.transactions, 1, "{job:?}");
            let written = bytes.iter().filter(|byte| **byte == RECORD_BYTE).count();
            assert!(written >= 65_536 - 8, "{job:?}: {written} bytes, but for the number of the record");
        }
    }

    #[test]
    fn time_and_number_end_a_run() {
        let number = |change: fn(&mut IoTask)| {
            run(IoJob::RandWrite, SyncWay::None, change).0.unwrap().run.transactions
        };
        assert_eq!(number(|task| task.records_max = 5), 5);
        assert_eq!(number(|task| task.time_max_ns = 0), 1, "one record tells something, none nothing");
    }

    #[test]
    fn records_that_a_way_does_not_take_are_refused_with_the_cure() {
        let (figures, _) = run(IoJob::Write, SyncWay::MmapSync, |task| task.key.record_bytes = 1000);
        assert!(figures.unwrap_err().contains("--record 4KiB"));
    }
}
