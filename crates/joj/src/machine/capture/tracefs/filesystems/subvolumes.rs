//! Which subvolume of Btrfs a file is of where a record does not say: locks, and durable writes past the page cache. Who made the call has
//! the file open.

use std::collections::BTreeSet;

use joj_analysis::trace::event::{DeviceNumber, FileKey};
use joj_analysis::trace::ftrace::inode_number::{numbered, tree};
use rustc_hash::FxHashMap;

/// The files of a process with one inode's own number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// It has none open, or is gone.
    None,
    /// Through whichever descriptor it is this one.
    One(u64),
    /// Files of several subvolumes.
    Several,
}

/// The subvolumes of whose files something was seen.
#[derive(Debug, Default)]
pub struct Subvolumes {
    /// Of each filesystem that has subvolumes.
    trees: FxHashMap<DeviceNumber, BTreeSet<u64>>,
    /// What processes had open since the last look: filesystem, inode, process.
    open: FxHashMap<(DeviceNumber, u64, u32), Open>,
    /// Some file could not be told from another.
    has_confused: bool,
}

impl Subvolumes {
    /// A filesystem has subvolumes.
    pub fn of(&mut self, device: DeviceNumber) {
        self.trees.entry(device).or_default();
    }

    /// A file was seen.
    pub fn note(&mut self, file: FileKey) {
        let tree = tree(file.inode);
        if tree != 0 {
            self.trees.entry(file.device).or_default().insert(tree);
        }
    }

    /// What processes have open may be something else now.
    pub fn forget_open(&mut self) {
        self.open.clear();
    }

    /// True where the filesystem has subvolumes.
    pub fn has(&self, device: DeviceNumber) -> bool {
        self.trees.contains_key(&device)
    }

    /// What a process has open, if that was asked since the last look.
    pub fn open(&self, (device, inode): (DeviceNumber, u64), process: u32) -> Option<Open> {
        self.open.get(&(device, inode, process)).copied()
    }

    /// It is not asked again until the next look.
    pub fn keep_open(&mut self, (device, inode): (DeviceNumber, u64), process: u32, open: Open) {
        self.open.insert((device, inode, process), open);
    }

    /// The numbers that an inode has in each of the trees.
    pub fn numbers(&self, (device, inode): (DeviceNumber, u64)) -> Vec<u64> {
        let trees = self.trees.get(&device).into_iter().flatten();
        std::iter::once(inode).chain(trees.filter_map(|tree| numbered(*tree, inode))).collect()
    }

    /// It may be any of several files.
    pub fn confused(&mut self) -> FileKey {
        self.has_confused = true;
        FileKey::NONE
    }

    /// True once that was so.
    pub fn has_confused(&self) -> bool {
        self.has_confused
    }
}
