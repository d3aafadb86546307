//! A disk that tells a hook of some operations on its files, so that a test can act at an exact point inside them.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use blockio::disk::{Disk, DiskFile, Facts, FileId, Fill, OpenOptions};

/// What the hook hears of.
#[derive(Debug, Clone, Copy)]
pub enum Call<'data> {
    /// A buffered write of these bytes comes next.
    Write(&'data [u8]),
    /// An extension comes next.
    Extend,
    /// A sync, of its file alone, is done but has not returned.
    Synced,
}

/// Called from the thread that does the operation.
pub type Hook = Arc<dyn Fn(Call<'_>) + Send + Sync>;

/// See the file's head.
pub struct HookedDisk {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// What hears of its files.
    pub hook: Hook,
}

struct HookedFile {
    file: Box<dyn DiskFile>,
    hook: Hook,
}

impl fmt::Debug for HookedDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "hooked {:?}", self.disk)
    }
}

impl fmt::Debug for HookedFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "hooked {:?}", self.file)
    }
}

impl Disk for HookedDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(path, options)?;
        Ok(Box::new(HookedFile { file, hook: Arc::clone(&self.hook) }))
    }
    fn mode_and_owner(&self, path: &Path) -> io::Result<(u32, (u32, u32))> {
        self.disk.mode_and_owner(path)
    }
    fn identity_of(&self, path: &Path) -> io::Result<FileId> {
        self.disk.identity_of(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn sync_dir_of(&self, path: &Path) -> io::Result<bool> {
        self.disk.sync_dir_of(path)
    }
}

impl DiskFile for HookedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        (self.hook)(Call::Write(data));
        self.file.write_at(data, offset)
    }
    fn write_direct(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_direct(data, offset)
    }
    fn write_durable(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_durable(data, offset)
    }
    fn extend(&self, end: u64, fill: Fill) -> io::Result<u64> {
        (self.hook)(Call::Extend);
        self.file.extend(end, fill)
    }
    fn sync_data(&self) -> io::Result<()> {
        let result = self.file.sync_data();
        (self.hook)(Call::Synced);
        result
    }
    fn sync_filesystem(&self) -> io::Result<()> {
        let result = self.file.sync_filesystem();
        (self.hook)(Call::Synced);
        result
    }
    fn identity(&self) -> io::Result<FileId> {
        self.file.identity()
    }
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        self.file.truncate(size_bytes)
    }
    fn read_ahead(&self, offset: u64, len_bytes: u64) {
        self.file.read_ahead(offset, len_bytes);
    }
    fn free_bytes(&self) -> u64 {
        self.file.free_bytes()
    }
    fn facts(&self) -> Facts {
        self.file.facts()
    }
}
