//! Where filesystems keep what is not data: the bytes of their superblocks in, [`Region`]s out. What readers share:
//!
//! ```text
//! jbd2       where the blocks of a jbd2 log are, in a file of ext4 or on a device of its own
//! regions    regions as they are found, and the list that they become: in order, without overlap
//! piece      a piece of a disk whose content is not trusted
//! checksum   cyclic redundancy checks as filesystems use them
//! error      why a layout cannot be read, and where on the device
//! ```
//!
//! Bytes are read through a closure, so that a device, an image and a test serve alike. They are not trusted: what
//! does not fit together is an error that says what and where, and no number in them decides how much memory is taken.

pub(in crate::filesystem) mod jbd2;
pub(in crate::filesystem) mod regions;
pub(in crate::filesystem) mod piece;
pub(in crate::filesystem) mod checksum;
mod error;

use std::io;

use crate::block_device::DeviceNumber;
use crate::filesystem::region::Region;

pub use error::{LayoutError, RegionError, TreeError};
pub use regions::in_order;

/// Reads so many bytes from this byte of the filesystem's device on; fewer are an error.
pub type ReadAt<'reader> = dyn FnMut(u64, usize) -> io::Result<Vec<u8>> + 'reader;

/// Where a filesystem's device lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The whole disk on which the device lies, even where the device is a partition.
    pub disk: DeviceNumber,
    /// First sector of the partition on it; 0 where the whole disk is the device.
    pub start_sector: u64,
    /// Sectors of the device.
    pub sectors: u64,
}

/// What a filesystem's own description says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// In order of sectors, without overlap, neighbours of one use joined.
    pub regions: Vec<Region>,
    /// A journal on another device, which the caller has to find.
    pub journal_elsewhere: Option<JournalElsewhere>,
}

/// What is known of a journal on another device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalElsewhere {
    /// ext4: the device whose superblock has this UUID; `ext4::journal_device` reads it.
    Ext4 {
        /// The journal device's UUID.
        uuid: [u8; 16],
    },
    /// XFS: the first bytes of the device in the mount option `logdev`; `xfs::log_device` makes regions of it.
    Xfs {
        /// Length of the log.
        bytes: u64,
    },
}
