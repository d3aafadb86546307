//! What written bytes are for.

use crate::words::words;

words! {
    /// What bytes are for. Bytes that nobody could place are [`Class::Unattributed`] and in no other class.
    Class {
        /// What programs wrote into files.
        Data = 0 "data",
        /// The filesystem's log: its jbd2, XFS's log, Btrfs's log trees.
        Journal = 1 "journal",
        /// The filesystem's own tables, in their places.
        Metadata = 2 "metadata",
        /// F2FS: node blocks.
        Node = 3 "node",
        /// The filesystem's description of itself.
        Superblock = 4 "superblock",
        /// Nobody knows.
        #[default]
        Unattributed = 5 "unattributed",
    }
}

words! {
    /// Which journal block or metadata it is.
    Part {
        /// Nothing more is known, or nothing more is to be said (data).
        #[default]
        Plain = 0 "",
        /// Journal: which blocks follow.
        Descriptor = 1 "descriptor",
        /// Journal: the transaction is whole.
        Commit = 2 "commit",
        /// Journal: blocks that must not be replayed.
        Revoke = 3 "revoke",
        /// Journal: its own superblock.
        JournalSuperblock = 4 "journal superblock",
        /// Journal: a fast commit (ext4).
        FastCommit = 5 "fast commit",
        /// Journal: a copy of a metadata block of which nobody knows which (escaped or frozen copies; tracefs).
        LogOfCopy = 6 "log of a copy",
        /// Journal: a copy of an inode table block.
        LogOfInodeTable = 7 "log of inode table",
        /// Journal: a copy of a block bitmap.
        LogOfBlockBitmap = 8 "log of block bitmap",
        /// Journal: a copy of an inode bitmap.
        LogOfInodeBitmap = 9 "log of inode bitmap",
        /// Journal: a copy of group descriptors.
        LogOfGroupDescriptors = 10 "log of group descriptors",
        /// Journal: a copy of the superblock.
        LogOfSuperblock = 11 "log of superblock",
        /// Journal: a copy of a directory, extent tree or attribute block.
        LogOfDirectory = 12 "log of directory or extents",
        /// Journal: a copy of a file's data (data=journal).
        LogOfData = 13 "log of data",
        /// Journal: a record of XFS's log.
        LogRecord = 14 "log record",
        /// Journal: a block of Btrfs's log trees.
        LogTree = 15 "log tree",
        /// Metadata: inode table (ext4), inode chunk (XFS).
        InodeTable = 16 "inode table",
        /// Metadata: block bitmap.
        BlockBitmap = 17 "block bitmap",
        /// Metadata: inode bitmap.
        InodeBitmap = 18 "inode bitmap",
        /// Metadata: group descriptors.
        GroupDescriptors = 19 "group descriptors",
        /// Metadata: directory, extent tree or attribute block.
        Directory = 20 "directory or extents",
        /// Metadata: headers of an XFS allocation group.
        GroupHeader = 21 "allocation group header",
        /// Metadata: a B+tree block of XFS, or of a tree of Btrfs without a part of its own (quota, UUID, a balance's).
        Tree = 22 "tree",
        /// Metadata: Btrfs's root tree.
        RootTree = 23 "root tree",
        /// Metadata: Btrfs's extent, chunk, device, free space and block group trees.
        ExtentTree = 24 "extent tree",
        /// Metadata: a Btrfs tree of files.
        FileTree = 25 "file tree",
        /// Metadata: checksums (Btrfs).
        ChecksumTree = 26 "checksum tree",
        /// Metadata: F2FS's checkpoint packs.
        Checkpoint = 27 "checkpoint",
        /// Metadata: F2FS's segment information table.
        SegmentInformation = 28 "segment information",
        /// Metadata: F2FS's node address table.
        NodeAddress = 29 "node address table",
        /// Metadata: F2FS's or NILFS2's segment summary.
        SegmentSummary = 30 "segment summary",
        /// Metadata: NILFS2's DAT, checkpoint, segment usage and inode files.
        InnerFile = 31 "inner file",
    }
}
