//! Sectors that a filesystem keeps for something else than data, in their places for good.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::block_device::DeviceNumber;
use crate::filesystem::class::Part;

/// Sectors of a filesystem with a use of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Region {
    /// The whole disk on which the region lies.
    pub disk: DeviceNumber,
    /// First sector, on the whole disk.
    pub sector: u64,
    pub sectors: u64,
    /// What the filesystem keeps there.
    pub purpose: RegionUse,
    /// Byte of the journal at which this piece of it begins; 0 for other uses.
    pub journal_offset: u64,
}

/// What a region is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegionUse {
    /// The filesystem's own description, and its copies.
    Superblock,
    /// ext4: where groups keep what; reserved ones included.
    GroupDescriptors,
    /// ext4: which blocks are in use.
    BlockBitmap,
    /// ext4: which inodes are in use.
    InodeBitmap,
    /// ext4: the inodes.
    InodeTable,
    /// jbd2's log (ext4), XFS's log.
    Journal,
    /// ext4: the end of the log that fast commits use.
    FastCommit,
    /// XFS: superblock copy, free space, inode and free list headers of an allocation group.
    GroupHeader,
    /// F2FS: checkpoint packs.
    Checkpoint,
    /// F2FS: segment information table.
    SegmentInformation,
    /// F2FS: node address table.
    NodeAddress,
    /// F2FS: segment summary area.
    SegmentSummary,
}

impl RegionUse {
    /// Which part of metadata such a region holds.
    pub fn part(self) -> Part {
        match self {
            Self::GroupDescriptors => Part::GroupDescriptors,
            Self::BlockBitmap => Part::BlockBitmap,
            Self::InodeBitmap => Part::InodeBitmap,
            Self::InodeTable => Part::InodeTable,
            Self::GroupHeader => Part::GroupHeader,
            Self::Checkpoint => Part::Checkpoint,
            Self::SegmentInformation => Part::SegmentInformation,
            Self::NodeAddress => Part::NodeAddress,
            Self::SegmentSummary => Part::SegmentSummary,
            Self::Superblock | Self::Journal | Self::FastCommit => Part::Plain,
        }
    }
}
