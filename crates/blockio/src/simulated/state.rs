//! What a simulated disk is at this moment: names, contents, plan of faults, and the log so far.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Facts, Filesystem, OpenOptions};
use crate::simulated::fault::{Counted, Fault, FaultKind, Kept};
use crate::simulated::image::{BLOCK_BYTES, Content, Image};
use crate::simulated::log::{Inode, Op, Record, Tick};

/// What kind of disk to play.
#[derive(Debug, Clone, Copy)]
pub struct SimOptions {
    /// Alignment that direct writes need in memory, offset and length; 0: the disk takes none.
    pub direct_align_bytes: u32,
    /// What `facts` reports.
    pub filesystem: Filesystem,
    /// Bytes that all files together may take, in whole blocks.
    pub capacity_bytes: u64,
    /// What `free_bytes` reports, whatever the files take.
    pub free_bytes: u64,
}

impl Default for SimOptions {
    fn default() -> Self {
        SimOptions {
            direct_align_bytes: 512,
            filesystem: Filesystem::Ext4,
            capacity_bytes: u64::MAX,
            free_bytes: u64::MAX,
        }
    }
}

/// Called while an operation is under way, before it ends: another process may write, another thread may fail.
pub type SimHook = Arc<dyn Fn() + Send + Sync>;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub content: Content,
    pub mode: u32,
    pub owner: (u32, u32),
    /// How many syncs failed.
    pub failures: u64,
}

#[derive(Default)]
pub(crate) struct State {
    pub options: SimOptions,
    pub generation: u64,
    pub names: BTreeMap<PathBuf, Inode>,
    pub nodes: BTreeMap<Inode, Node>,
    pub base: Image,
    pub log: Vec<Record>,
    clock: Tick,
    last_inode: Inode,
    pub counts: [u64; 3],
    pub fault: Option<Fault>,
    pub extend_hook: Option<SimHook>,
    pub sync_hook: Option<SimHook>,
}

impl State {
    /// Holds `image`, all of it durable, and nothing else; keeps the options.
    pub(crate) fn restart_from(&mut self, image: &Image) {
        let mut fresh = State {
            options: self.options,
            generation: self.generation + 1,
            base: image.clone(),
            ..State::default()
        };
        for (path, content) in &image.files {
            fresh.last_inode += 1;
            fresh.names.insert(path.clone(), fresh.last_inode);
            let node = Node { content: content.clone(), mode: 0o644, owner: (0, 0), failures: 0 };
            fresh.nodes.insert(fresh.last_inode, node);
        }
        *self = fresh;
    }

    pub(crate) fn tick(&mut self) -> Tick {
        self.clock += 1;
        self.clock
    }

    pub(crate) fn note(&mut self, op: Op) {
        let begin = self.tick();
        self.finish(begin, op, false);
    }

    pub(crate) fn finish(&mut self, begin: Tick, op: Op, failed: bool) {
        let end = self.tick();
        self.log.push(Record { begin, end, op, failed });
    }

    /// Counts one operation and says whether the plan makes it fail.
    pub(crate) fn count_one(&mut self, counted: Counted) -> Option<Fault> {
        let number = self.counts[counted as usize];
        self.counts[counted as usize] += 1;
        self.fault.filter(|fault| fault.hits(counted, number))
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        let block = BLOCK_BYTES as u64;
        self.names.values().map(|inode| self.nodes[inode].content.size_bytes().div_ceil(block) * block).sum()
    }

    /// The largest size that `inode` may have without overfilling the disk.
    pub(crate) fn size_bytes_max(&self, inode: Inode) -> u64 {
        let block = BLOCK_BYTES as u64;
        let own_bytes = self.nodes[&inode].content.size_bytes().div_ceil(block) * block;
        let free_bytes = self.options.capacity_bytes.saturating_sub(self.used_bytes());
        own_bytes.saturating_add(free_bytes / block * block)
    }

    /// A full disk fails as a planned fault would.
    pub(crate) fn full_disk(&self, inode: Inode, end: u64) -> Option<Fault> {
        let current = self.nodes[&inode].content.size_bytes();
        let grows_too_far = end > current && end > self.size_bytes_max(inode);
        grows_too_far.then_some(Fault {
            counted: Counted::Changes,
            number: 0,
            kind: FaultKind::Full,
            kept: Kept::Half,
            lasting: false,
        })
    }

    pub(crate) fn create(&mut self, path: &Path, options: OpenOptions) -> io::Result<Inode> {
        let begin = self.tick();
        if let Some(fault) = self.count_one(Counted::Changes) {
            return Err(fault.error());
        }
        self.last_inode += 1;
        let inode = self.last_inode;
        let owner = options.owner.unwrap_or((0, 0));
        let node = Node { content: Content::default(), mode: options.mode, owner, failures: 0 };
        self.nodes.insert(inode, node);
        self.names.insert(path.to_owned(), inode);
        self.finish(begin, Op::Create { path: path.to_owned(), inode }, false);
        Ok(inode)
    }

    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let begin = self.tick();
        if let Some(fault) = self.count_one(Counted::Changes) {
            return Err(fault.error());
        }
        let inode = self.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        self.names.insert(to.to_owned(), inode);
        self.finish(begin, Op::Rename { from: from.to_owned(), to: to.to_owned(), inode }, false);
        Ok(())
    }
}

/// The state that all clones and open files of one disk share.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<State>>);

impl Shared {
    /// Waits for the state. A thread that panicked inside left at worst an operation out of the log.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `DiskFile::facts` says of a simulated disk.
pub(crate) fn facts_of(options: &SimOptions) -> Facts {
    Facts { filesystem: options.filesystem, direct_align_bytes: options.direct_align_bytes }
}
