//! A disk in memory that remembers everything done to it, so that a test can cut the power at any moment.
//!
//!   operations -> page cache view (what every read sees)
//!              -> log of records  -> `replay` -> `crash_states` -> images -> new disks
//!
//! Clones share one disk. There is no randomness in here: the same calls give the same log. Rules of what survives
//! stand in `replay`, not here. Operations are timed at entry and at return, so a write that another thread is
//! still inside of when a sync begins is not covered by it.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::MutexGuard;

use crate::disk::{Disk, DiskFile, FileId, OpenOptions};
use crate::simulated::fault::{Counted, Fault, FaultKind, Kept};
use crate::simulated::file::SimFile;
use crate::simulated::image::Image;
use crate::simulated::log::{Inode, Op, Record};
use crate::simulated::replay::Replay;
use crate::simulated::state::{Shared, SimHook, SimOptions, State};

/// A simulated disk.
#[derive(Clone, Default)]
pub struct SimDisk {
    shared: Shared,
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(formatter, "SimDisk({} names, {} records)", state.names.len(), state.log.len())
    }
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        SimDisk::default()
    }

    /// A disk that holds `image`, all of it durable, with an empty log.
    pub fn from_image(image: &Image, options: SimOptions) -> Self {
        let disk = SimDisk::new();
        disk.lock().options = options;
        disk.restart_from(image);
        disk
    }

    /// Turns this disk, for everyone who shares it, into one that holds `image`: the machine starts again. Files that
    /// are open fail from now on; the log is empty; faults are forgotten.
    pub fn restart_from(&self, image: &Image) {
        self.lock().restart_from(image);
    }

    /// Opens a file as its own type, which tells its inode.
    /// # Errors
    /// As [`Disk::open`].
    pub fn open_file(&self, path: &Path, options: OpenOptions) -> io::Result<SimFile> {
        let mut state = self.lock();
        let inode = match state.names.get(path) {
            Some(_) if options.create && options.exclusive => return Err(io::ErrorKind::AlreadyExists.into()),
            Some(inode) => *inode,
            None if options.create => state.create(path, options)?,
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let failures = state.nodes[&inode].failures;
        Ok(SimFile::new(self.shared.clone(), inode, state.generation, options.read_only, failures))
    }

    /// Renames `from` to `to` and drops a `to` that exists, as somebody else may beside us.
    /// # Errors
    /// As rename(2); both names are as before.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.lock().rename(from, to)
    }

    /// Notes something in the log, for messages.
    pub fn mark(&self, note: &str) {
        self.lock().note(Op::Mark(note.to_owned()));
    }

    /// Notes that the caller was promised everything up to `number`.
    pub fn ack(&self, number: u64) {
        self.lock().note(Op::Ack(number));
    }

    /// Everything done so far.
    pub fn records(&self) -> Vec<Record> {
        self.lock().log.clone()
    }

    /// How many records there are.
    pub fn record_count(&self) -> usize {
        self.lock().log.len()
    }

    /// A walk through the log from the beginning, to enumerate crash states on the way.
    pub fn replay(&self) -> Replay {
        Replay::new(&self.lock().base)
    }

    /// What every read sees now: the files as they are after a crash of processes only.
    pub fn image(&self) -> Image {
        let state = self.lock();
        let content = |inode: &Inode| state.nodes[inode].content.clone();
        Image { files: state.names.iter().map(|(path, inode)| (path.clone(), content(inode))).collect() }
    }

    /// Plans a failure, or none. Counting goes on from where it is.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.lock().fault = fault;
    }

    /// From now on flush `number`, counted from 0, fails once; `None`: none does. How many there were before.
    pub fn fail_flush(&self, number: Option<u64>, kept: Kept) -> u64 {
        let before = self.count(Counted::Flushes);
        let (counted, kind, lasting) = (Counted::Flushes, FaultKind::Io, false);
        let fault = |number| Fault { counted, number: before + number, kind, kept, lasting };
        self.set_fault(number.map(fault));
        before
    }

    /// How many operations of a kind there have been, failed ones too.
    pub fn count(&self, counted: Counted) -> u64 {
        self.lock().counts[counted as usize]
    }

    /// Limits the disk to `bytes`.
    pub fn set_capacity(&self, bytes: u64) {
        self.lock().options.capacity_bytes = bytes;
    }

    /// What `free_bytes` reports from now on, whatever the files take.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.lock().options.free_bytes = bytes;
    }

    /// Bytes of the disk that are taken, in whole blocks.
    pub fn used_bytes(&self) -> u64 {
        self.lock().used_bytes()
    }

    /// Runs `hook` inside every extension, before its bytes change, as another process might.
    pub fn set_extend_hook(&self, hook: Option<SimHook>) {
        self.lock().extend_hook = hook;
    }

    /// Runs `hook` inside every sync of a file, before it ends, as another thread might.
    pub fn set_sync_hook(&self, hook: Option<SimHook>) {
        self.lock().sync_hook = hook;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.open_file(path, options)?))
    }

    fn mode_and_owner(&self, path: &Path) -> io::Result<(u32, (u32, u32))> {
        let state = self.lock();
        let inode = state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let node = &state.nodes[inode];
        Ok((node.mode, node.owner))
    }

    fn identity_of(&self, path: &Path) -> io::Result<FileId> {
        let state = self.lock();
        let inode = state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(FileId { device: state.generation, inode: *inode })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let begin = state.tick();
        if let Some(fault) = state.count_one(Counted::Changes) {
            return Err(fault.error());
        }
        let inode = state.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        state.finish(begin, Op::Remove { path: path.to_owned(), inode }, false);
        Ok(())
    }

    fn sync_dir_of(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.lock();
        let begin = state.tick();
        let dir = path.parent().unwrap_or(Path::new("/")).to_owned();
        let fault = state.count_one(Counted::Changes);
        let fault = state.count_one(Counted::Flushes).or(fault);
        state.finish(begin, Op::SyncDir { dir }, fault.is_some());
        fault.map_or(Ok(true), |fault| Err(fault.error()))
    }
}
