//! What joj has to know of a filesystem: the columns of the table whose rows are the files beside it.

use std::ops::RangeInclusive;

use crate::filesystem::class::{Class, Part};
use crate::filesystem::layout::{Extent, Layout, LayoutError, ReadAt};

/// What joj knows of one filesystem: a row of the table.
#[derive(Debug)]
pub struct Facts {
    /// Its name in /proc/filesystems and in plans; `mkfs.NAME` makes it.
    pub name: &'static str,
    /// Older ones under its driver, as a mount names them.
    pub older_names: &'static [&'static str],
    /// Reads the layout of one of its devices.
    /// # Errors
    /// The bytes cannot be read, or are not those of such a filesystem on such a device.
    pub layout: fn(Extent, &mut ReadAt<'_>) -> Result<Layout, LayoutError>,
    /// What its blocks are for.
    pub blocks: Blocks,
    /// How the names of its kernel threads begin, which write for others.
    pub threads: &'static [&'static str],
}

/// What a filesystem's blocks are for, where neither their content nor a region says it alone.
#[derive(Debug)]
pub struct Blocks {
    /// What is in its log.
    pub log: Log,
    /// True where its requests say of metadata, and of nothing else, that they are (REQ_META).
    pub flags_metadata: bool,
    /// True where it writes metadata, and nothing else, from memory that belongs to no file and no device.
    pub private_is_metadata: bool,
    /// Inode whose pages are its nodes.
    pub node_file: Option<u64>,
    /// Inodes of files that it keeps for itself.
    pub inner_files: Option<RangeInclusive<u64>>,
    /// What comes out of its device's page cache at this byte, outside of every region. `None`: the filesystem keeps nothing there, so
    /// that it is a program's.
    pub device_pages: fn(u64) -> Option<(Class, Part)>,
}

impl Blocks {
    /// What a page of a file that it keeps for itself is.
    pub fn inner_file(&self, inode: u64) -> (Class, Part) {
        if self.node_file == Some(inode) {
            return (Class::Node, Part::Plain);
        }
        let is_named = self.inner_files.as_ref().is_some_and(|inodes| inodes.contains(&inode));
        (Class::Metadata, if is_named { Part::InnerFile } else { Part::Plain })
    }

    /// What lies in an extent that it named: extents are of files only, but for those of its nodes.
    pub fn extent(&self, inode: u64) -> (Class, Part) {
        let class = if self.node_file == Some(inode) { Class::Node } else { Class::Data };
        (class, Part::Plain)
    }
}

/// What is in a filesystem's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// Copies of blocks from its device's page cache, which go to their own places later: jbd2.
    Copies,
    /// Records, from its first block on.
    Records,
    /// It has none in a place of its own.
    NoPlace,
}
