//! A thread's file and its records: the file filled where it has to be there, then written or read record by record.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use joj_analysis::bench::run::SyncCount;
use joj_analysis::mobibench::document::DurableCalls;
use joj_analysis::mobibench::setup::{FileAccess, FileWork};

use crate::bench::worker::mobibench::progress::TestProgress;
use crate::bench::worker::mobibench::threads::ThreadTest;
use crate::bench::worker::order::Generator;
use crate::bench::worker::task::Refusal;
use crate::machine::files::measured::record_file::{Filling, RecordFile};
use crate::machine::proc::clock::now_ns;

/// The test of one thread.
#[derive(Debug)]
pub struct FileTest<'a> {
    path: PathBuf,
    file: RecordFile,
    work: &'a FileWork,
    order: Vec<u64>,
}

impl<'a> FileTest<'a> {
    /// Makes the file of a thread ready: none for appends, all its bytes for the others.
    /// # Errors
    /// What the system said, with the file and how to mend it.
    pub fn new(
        path: &Path,
        work: &'a FileWork,
        thread: u32,
        progress: &TestProgress,
    ) -> Result<Self, Refusal> {
        let refuse = |error: io::Error| refusal(path, work, &error);
        if fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
            let path = path.display();
            return Err(Refusal::new(format!(
                "{path} is no file, and a device would be overwritten; remove it"
            )));
        }
        if work.access == FileAccess::Append {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refuse(error)),
                _ => {}
            }
        } else {
            fill(path, work, progress)?;
        }
        let record_bytes = usize::try_from(work.record_bytes()).unwrap_or(usize::MAX);
        let file =
            RecordFile::open(path, work.sync.way(), work.file_bytes(), record_bytes).map_err(refuse)?;
        let order = match work.access.is_random() {
            true => Generator::new(thread, 0).records(work.records(), work.repeat_percent),
            false => (0..work.records()).collect(),
        };
        Ok(FileTest { path: path.to_owned(), file, work, order })
    }
}

impl ThreadTest for FileTest<'_> {
    fn measure(&mut self, progress: &TestProgress) -> Result<Vec<u64>, Refusal> {
        progress.expect(self.work.records());
        let mut latencies_ns = Vec::with_capacity(self.order.len());
        let is_read = self.work.access.is_read();
        let refuse = |error: io::Error| refusal(&self.path, self.work, &error);
        for record in &self.order {
            let began_ns = now_ns();
            if is_read { self.file.read(*record) } else { self.file.write(*record) }.map_err(refuse)?;
            latencies_ns.push(now_ns() - began_ns);
            progress.advance(1)?;
        }
        if !is_read {
            self.file.sync_all().map_err(refuse)?;
        }
        Ok(latencies_ns)
    }

    fn finish(self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Makes the file as long as the test needs it; what is there stays.
fn fill(path: &Path, work: &FileWork, progress: &TestProgress) -> Result<(), Refusal> {
    let refuse = |error: io::Error| refusal(path, work, &error);
    let mut filling = Filling::begin(path, work.file_bytes()).map_err(refuse)?;
    progress.expect(filling.missing_bytes());
    while filling.missing_bytes() > 0 {
        progress.advance(filling.step().map_err(refuse)?)?;
    }
    Ok(())
}

/// The calls that the test makes between its first record and its end.
pub fn sync_calls(work: &FileWork, threads: u32) -> DurableCalls {
    let of_thread = match work.access.is_read() {
        true => SyncCount { transactions: work.records(), ..SyncCount::default() },
        false => work.sync.way().calls(work.records()),
    };
    let mut all = SyncCount::default();
    (0..threads).for_each(|_| all.add(&of_thread));
    DurableCalls::from(all)
}

fn refusal(path: &Path, work: &FileWork, error: &io::Error) -> Refusal {
    let disk_full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
    let remedy = match error.raw_os_error() {
        _ if disk_full => {
            format!("the disk or the quota is full: make room for {} KB a thread, or take a smaller -f", work.file_kb)
        }
        Some(libc::EINVAL) if work.sync.is_direct() => {
            "O_DIRECT (-y 3 and 4) needs records of whole blocks of the device and a file system that has it: take \
             -r 4, or another -y"
                .to_owned()
        }
        Some(libc::EROFS) => "it is mounted read-only: take another directory with -p".to_owned(),
        Some(libc::EACCES | libc::EPERM) => {
            "you may not do that there: take a directory of yours with -p".to_owned()
        }
        _ => "take another directory with -p, and look into `dmesg` for the disk's errors".to_owned(),
    };
    Refusal { message: format!("cannot use {}: {error}; {remedy}", path.display()), disk_full }
}
