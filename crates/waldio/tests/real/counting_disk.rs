//! A disk that counts the steps which change its files, and acts or kills the process before one of them; and that
//! counts the looks at them.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use blockio::disk::{Disk, DiskFile, Facts, FileId, Fill, OpenOptions};
use blockio::real::disk::RealDisk;

/// Counts the steps of a close, and kills the process before one of them, or acts before each.
#[derive(Default)]
pub struct Steps {
    /// How many are left until the process is killed; none is where it is 0 or less.
    pub left: AtomicI64,
    /// Reads of files, and questions what they lie on.
    pub looks: AtomicU64,
    /// The database was synced after its last write.
    pub synced: AtomicBool,
    /// What is done before each.
    pub act: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl Steps {
    /// One step comes next.
    pub fn next(&self) {
        if self.left.fetch_sub(1, SeqCst) == 1 {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
        let act = self.act.lock().unwrap().take();
        if let Some(mut act) = act {
            act();
            *self.act.lock().unwrap() = Some(act);
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} steps left", self.left)
    }
}

/// See the file's head.
#[derive(Debug)]
pub struct CountingDisk(pub Arc<Steps>);

#[derive(Debug)]
struct CountingFile(Box<dyn DiskFile>, Arc<Steps>);

impl Disk for CountingDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(CountingFile(RealDisk.open(path, options)?, Arc::clone(&self.0))))
    }
    fn mode_and_owner(&self, path: &Path) -> io::Result<(u32, (u32, u32))> {
        RealDisk.mode_and_owner(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.next();
        RealDisk.remove(path)
    }
    fn identity_of(&self, path: &Path) -> io::Result<FileId> {
        RealDisk.identity_of(path)
    }
    fn sync_dir_of(&self, path: &Path) -> io::Result<bool> {
        RealDisk.sync_dir_of(path)
    }
}

impl DiskFile for CountingFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.1.looks.fetch_add(1, SeqCst);
        self.0.read_at(into, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.1.next();
        self.0.write_at(data, offset)
    }
    fn write_direct(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.1.next();
        self.0.write_direct(data, offset)
    }
    fn write_durable(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.1.next();
        self.0.write_durable(data, offset)
    }
    fn extend(&self, end: u64, fill: Fill) -> io::Result<u64> {
        self.0.extend(end, fill)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.1.next();
        self.0.sync_data()
    }
    fn sync_filesystem(&self) -> io::Result<()> {
        self.1.next();
        self.0.sync_filesystem()
    }
    fn identity(&self) -> io::Result<FileId> {
        self.0.identity()
    }
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        self.1.next();
        self.0.truncate(size_bytes)
    }
    fn read_ahead(&self, offset: u64, len_bytes: u64) {
        self.0.read_ahead(offset, len_bytes);
    }
    fn facts(&self) -> Facts {
        self.0.facts()
    }
    fn describe(&self) -> Vec<(&'static str, String, String)> {
        self.1.looks.fetch_add(1, SeqCst);
        self.0.describe()
    }
}
