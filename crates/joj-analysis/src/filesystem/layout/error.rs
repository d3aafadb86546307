//! Why a filesystem's layout cannot be read, with the place on its device.

use std::io;
use std::num::TryFromIntError;

use thiserror::Error;

use crate::filesystem::region::RegionUse;

/// Why the layout of a filesystem, or the place of one of its files, could not be read.
#[derive(Debug, Error)]
pub enum LayoutError {
    /// The device did not give the bytes.
    #[error("{structure} at byte {at}: {error}")]
    Unreadable {
        /// The structure that lies there.
        structure: &'static str,
        /// Its first byte on the filesystem's device.
        at: u64,
        /// What the reader said.
        #[source]
        error: io::Error,
    },
    /// The device ends within a structure.
    #[error("{structure} at byte {at}: cut off, {found} of {bytes} bytes are there")]
    CutOff {
        /// The structure that lies there.
        structure: &'static str,
        /// Its first byte on the filesystem's device.
        at: u64,
        /// Bytes that the device gave.
        found: usize,
        /// Bytes that the structure has.
        bytes: usize,
    },
    /// A structure holds what its filesystem does not write there: it is damaged, another filesystem's, or just being changed.
    #[error("{structure} at byte {at}: {problem}")]
    Content {
        /// The structure that lies there.
        structure: &'static str,
        /// Its first byte on the filesystem's device.
        at: u64,
        /// What does not fit, in words.
        problem: String,
    },
    /// The regions that the structures name do not fit on the device, or not beside each other.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The tree that leads to a file's blocks leads elsewhere.
    #[error("{file}: {problem}")]
    Tree {
        /// The file, and where its inode was read.
        file: String,
        /// What is wrong with its tree.
        #[source]
        problem: Box<TreeError>,
    },
    /// A number is larger than this machine's memory.
    #[error(transparent)]
    Number(#[from] TryFromIntError),
}

/// Why a region cannot be taken into the list of a device.
#[derive(Debug, Error)]
pub enum RegionError {
    /// It has no bytes.
    #[error("{purpose:?}: no bytes at byte {at}")]
    Empty {
        /// What the region is for.
        purpose: RegionUse,
        /// Its first byte on the device.
        at: u64,
    },
    /// It ends behind its device.
    #[error("{purpose:?}: {bytes} bytes from byte {at} on, but the device has {device_bytes}")]
    OutsideDevice {
        /// What the region is for.
        purpose: RegionUse,
        /// Its first byte on the device.
        at: u64,
        /// Its length.
        bytes: u64,
        /// The device's length.
        device_bytes: u128,
    },
    /// Its sectors have no numbers on a disk.
    #[error("{purpose:?}: byte {at} of the device is on no disk")]
    OutsideDisk {
        /// What the region is for.
        purpose: RegionUse,
        /// Its first byte on the device.
        at: u64,
    },
    /// No filesystem has so many.
    #[error("{purpose:?}: more than {regions_max} regions")]
    TooMany {
        /// What the region is for.
        purpose: RegionUse,
        /// How many may be.
        regions_max: usize,
    },
    /// Two uses want the same sector.
    #[error("sector {sector} of the disk would be {first:?} and {second:?}")]
    Overlap {
        /// The sector on the whole disk.
        sector: u64,
        /// The use of the region that begins earlier.
        first: RegionUse,
        /// The other use.
        second: RegionUse,
    },
}

/// What is wrong with the tree, or the list of block numbers, that an inode has of its blocks.
#[derive(Debug, Error)]
pub enum TreeError {
    /// A log cannot have this length.
    #[error("{0} bytes")]
    Length(u64),
    /// Blocks lie outside the file or the device.
    #[error("{blocks} blocks at block {block} of the device")]
    Place {
        /// How many blocks.
        blocks: u64,
        /// The first of them on the device.
        block: u64,
    },
    /// A node lies outside the device, or the tree has more nodes than the file can need.
    #[error("{node}: block {block} of the device")]
    Node {
        /// The kind of node.
        node: &'static str,
        /// Its block on the device.
        block: u64,
    },
    /// The file has more pieces than joj keeps.
    #[error("more than {0} pieces")]
    TooManyPieces(usize),
    /// Blocks of a log are missing or stand there twice.
    #[error("block {expected} of the log follows block {found}")]
    Order {
        /// The block that should have come.
        expected: u64,
        /// The block that came.
        found: u64,
    },
    /// A log has fewer blocks than its length says.
    #[error("only {found} of {blocks} blocks have a place")]
    Missing {
        /// Blocks with a place.
        found: u64,
        /// Blocks by the length.
        blocks: u64,
    },
    /// A node cannot be read, or is none.
    #[error(transparent)]
    Structure(#[from] LayoutError),
}

impl TreeError {
    /// The same, with the file to which the tree belongs.
    pub fn of(self, file: String) -> LayoutError {
        LayoutError::Tree { file, problem: Box::new(self) }
    }
}
