//! ext4 (ext3, ext2). Superblocks, group descriptors, bitmaps, inode tables and the journal have places of their own.
//!
//! ```text
//! group  | superblock | descriptors | reserved descriptors |  .. bitmaps, inode tables, files ..
//!          \_______ not in every group: sparse_super ____/    descriptors say where, with flex_bg in another group
//! ```
//! Source: Documentation/filesystems/ext4 of the kernel. Little endian.

use crate::block_device::SECTOR_BYTES;
use crate::filesystem::class::{Class, Part};
use crate::filesystem::facts::{Blocks, Facts, Log};
use crate::filesystem::layout::checksum::{CASTAGNOLI, crc32};
use crate::filesystem::layout::jbd2;
use crate::filesystem::layout::piece::Piece;
use crate::filesystem::layout::regions::Regions;
use crate::filesystem::layout::{Extent, JournalElsewhere, Layout, LayoutError, ReadAt};
use crate::filesystem::region::{Region, RegionUse};

/// What joj knows of it.
pub static FACTS: Facts = Facts {
    name: "ext4",
    older_names: &["ext2", "ext3"],
    layout,
    blocks: Blocks {
        log: Log::Copies,
        flags_metadata: true,
        private_is_metadata: false,
        node_file: None,
        inner_files: None,
        device_pages: |_| Some((Class::Metadata, Part::Plain)),
    },
    threads: &["jbd2/", "ext4-"],
};

/// Byte of the first superblock, whatever the block size.
const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const MAGIC: u16 = 0xef53;

/// 512 TiB of groups of 128 MiB. Their descriptors are read block by block.
const GROUPS_MAX: u64 = 1 << 22;

/// EXT4_EXTENTS_FL and EXT4_INLINE_DATA_FL of an inode's i_flags.
const EXTENTS: u32 = 0x8_0000;
const INLINE_DATA: u32 = 0x1000_0000;
/// EXT4_EA_INODE_FL: its blocks are the value of an attribute (`ea_inode`).
const ATTRIBUTE_VALUE: u32 = 0x20_0000;

/// Bits of s_feature_compat, s_feature_incompat and s_feature_ro_compat.
mod feature {
    pub const HAS_JOURNAL: u32 = 0x4;
    pub const RESIZE_INODE: u32 = 0x10;
    pub const SPARSE_SUPER2: u32 = 0x200;
    pub const FAST_COMMIT: u32 = 0x400;
    pub const INCOMPAT_JOURNAL_DEVICE: u32 = 0x8;
    pub const INCOMPAT_META_BG: u32 = 0x10;
    pub const INCOMPAT_64BIT: u32 = 0x80;
    pub const RO_SPARSE_SUPER: u32 = 0x1;
    pub const RO_METADATA_CSUM: u32 = 0x400;
}

/// What of the superblock says where things are.
#[derive(Debug)]
struct Superblock {
    piece: Piece,
    block_bytes: u64,
    blocks: u64,
    first_data_block: u64,
    blocks_per_group: u64,
    groups: u64,
    inodes_per_group: u64,
    inode_bytes: u64,
    descriptor_bytes: u64,
    reserved_descriptor_blocks: u64,
    /// Metablock groups from this block of descriptors on.
    first_meta_bg: u64,
    compat: u32,
    incompat: u32,
    ro_compat: u32,
}

/// A device that holds nothing but a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalDevice {
    /// Its name in the superblock of the filesystem that uses it.
    pub uuid: [u8; 16],
    /// Its log and its superblock.
    pub regions: Vec<Region>,
}

/// Reads the layout.
/// # Errors
/// The bytes cannot be read, or they are not those of an ext4 filesystem on such a device.
fn layout(device: Extent, read: &mut ReadAt<'_>) -> Result<Layout, LayoutError> {
    let superblock = Superblock::read(device, read)?;
    let mut regions = Regions::new(device);
    superblock.add_tables(&mut regions)?;
    superblock.add_groups(read, &mut regions)?;
    let mut journal_elsewhere = None;
    if superblock.compat & feature::HAS_JOURNAL != 0 {
        let inode = superblock.piece.le32(0xe0)?;
        if inode == 0 {
            journal_elsewhere = Some(JournalElsewhere::Ext4 { uuid: superblock.piece.array(0xd0)? });
        } else {
            superblock.add_journal(inode, read, &mut regions)?;
        }
    }
    let block_bytes = u32::try_from(superblock.block_bytes)?;
    Ok(Layout { block_bytes, regions: regions.finish()?, journal_elsewhere })
}

/// Reads a device that holds nothing but an ext4 journal. `None` for any other device.
/// # Errors
/// It is such a device, but its content does not fit together or cannot be read.
pub fn journal_device(device: Extent, read: &mut ReadAt<'_>) -> Result<Option<JournalDevice>, LayoutError> {
    let piece = Piece::read(read, SUPERBLOCK_AT, SUPERBLOCK_BYTES, "ext4 superblock")?;
    if piece.le16(0x38)? != MAGIC || piece.le32(0x60)? & feature::INCOMPAT_JOURNAL_DEVICE == 0 {
        return Ok(None);
    }
    let block_bytes = block_bytes(&piece)?;
    let blocks = u64::from(piece.le32(0x4)?);
    let first = SUPERBLOCK_AT / block_bytes + 1;
    piece.need(blocks > first, format_args!("{blocks} blocks are no journal"))?;
    let mut regions = Regions::new(device);
    regions.add(RegionUse::Superblock, (first - 1) * block_bytes, block_bytes)?;
    let runs = vec![jbd2::JournalRun { log_block: 0, block: first, blocks: blocks - first }];
    let log = jbd2::JournalPlace { runs, block_bytes, skipped: first, fast_commit: false };
    jbd2::add(&log, read, &mut regions)?;
    Ok(Some(JournalDevice { uuid: piece.array(0x68)?, regions: regions.finish()? }))
}

/// A file's bytes that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePiece {
    /// First byte in the file.
    pub offset: u64,
    /// First byte on the filesystem's device.
    pub at: u64,
    pub bytes: u64,
}

/// Where the file with this inode number lies, by the inode's own words: nobody has to open the file for it. Closing a file makes ext4
/// write what was put into it after it was cut to nothing (`auto_da_alloc`). What has no place yet is left out.
/// # Errors
/// The bytes cannot be read, or are not those of a file on such a device.
pub fn file(device: Extent, inode: u64, read: &mut ReadAt<'_>) -> Result<Vec<FilePiece>, LayoutError> {
    let superblock = Superblock::read(device, read)?;
    let number = u32::try_from(inode)?;
    // The kernel may be changing it.
    let mut root = superblock.inode(number, read)?;
    for _ in 0..5 {
        let again = superblock.inode(number, read)?;
        if again.root == root.root {
            break;
        }
        root = again;
    }
    if root.is_inline {
        return Ok(Vec::new());
    }
    let block = superblock.block_bytes;
    let runs = jbd2::file_runs(&root, block, superblock.blocks, read)?;
    let piece = |run: jbd2::JournalRun| FilePiece {
        offset: run.log_block * block,
        at: run.block * block,
        bytes: run.blocks * block,
    };
    Ok(runs.into_iter().map(piece).collect())
}

/// True for the inode of an attribute's value, by its own words.
/// # Errors
/// As [`file()`].
pub fn is_value(device: Extent, inode: u64, read: &mut ReadAt<'_>) -> Result<bool, LayoutError> {
    let superblock = Superblock::read(device, read)?;
    let piece = superblock.inode_piece(u32::try_from(inode)?, read)?;
    Ok(piece.le32(0x20)? & ATTRIBUTE_VALUE != 0)
}

fn block_bytes(piece: &Piece) -> Result<u64, LayoutError> {
    let shift = piece.le32(0x18)?;
    piece.need(shift <= 6, format_args!("blocks of 2^{shift} KiB"))?;
    Ok(1024 << shift)
}

fn check_sum(piece: &Piece) -> Result<(), LayoutError> {
    piece.need(piece.le16(0x38)? == MAGIC, "no ext4 magic number")?;
    if piece.le32(0x64)? & feature::RO_METADATA_CSUM == 0 {
        return Ok(());
    }
    let sum = crc32(CASTAGNOLI, !0, piece.bytes().get(..0x3fc).unwrap_or(&[]));
    piece.need(sum == piece.le32(0x3fc)?, "its checksum does not fit")
}

impl Superblock {
    fn read(device: Extent, read: &mut ReadAt<'_>) -> Result<Self, LayoutError> {
        let piece = Piece::read_checked(read, SUPERBLOCK_AT, SUPERBLOCK_BYTES, "ext4 superblock", check_sum)?;
        let (compat, incompat, ro_compat) = (piece.le32(0x5c)?, piece.le32(0x60)?, piece.le32(0x64)?);
        piece.need(incompat & feature::INCOMPAT_JOURNAL_DEVICE == 0, "an external journal, no filesystem")?;
        let is_64bit = incompat & feature::INCOMPAT_64BIT != 0;
        let high = if is_64bit { piece.le32(0x150)? } else { 0 };
        let blocks = u64::from(high) << 32 | u64::from(piece.le32(0x4)?);
        let first_data_block = u64::from(piece.le32(0x14)?);
        let blocks_per_group = u64::from(piece.le32(0x20)?);
        let block_bytes = block_bytes(&piece)?;
        let device_blocks = device.sectors / (block_bytes / SECTOR_BYTES);
        piece.need(
            first_data_block <= 1 && first_data_block < blocks && blocks <= device_blocks,
            format_args!("{blocks} blocks of {block_bytes} bytes do not fit on {} sectors", device.sectors),
        )?;
        // Bigalloc: 64 Ki clusters of 64 KiB blocks at most, each of up to 2^20 blocks.
        let groups = (blocks - first_data_block).div_ceil(blocks_per_group.max(1));
        piece.need(
            blocks_per_group >= 8 && groups <= GROUPS_MAX,
            format_args!("{blocks_per_group} blocks in a group"),
        )?;
        let meta_bg = incompat & feature::INCOMPAT_META_BG != 0;
        let resize = compat & feature::RESIZE_INODE != 0;
        let first_meta_bg = if meta_bg { u64::from(piece.le32(0x104)?) } else { u64::MAX };
        let this = Self {
            block_bytes,
            blocks,
            first_data_block,
            blocks_per_group,
            groups,
            inodes_per_group: u64::from(piece.le32(0x28)?),
            inode_bytes: if piece.le32(0x4c)? == 0 { 128 } else { u64::from(piece.le16(0x58)?) },
            descriptor_bytes: if is_64bit { u64::from(piece.le16(0xfe)?) } else { 32 },
            reserved_descriptor_blocks: if resize { u64::from(piece.le16(0xce)?) } else { 0 },
            first_meta_bg,
            compat,
            incompat,
            ro_compat,
            piece,
        };
        this.check_limits()?;
        Ok(this)
    }

    fn check_limits(&self) -> Result<(), LayoutError> {
        let (inodes, inode) = (self.inodes_per_group, self.inode_bytes);
        self.piece
            .need((1..=8 * self.block_bytes).contains(&inodes), format_args!("{inodes} inodes in a group"))?;
        self.piece.need(
            inode.is_power_of_two() && (128..=self.block_bytes).contains(&inode),
            format_args!("inodes of {inode} bytes"),
        )?;
        let descriptor = self.descriptor_bytes;
        let least = if self.incompat & feature::INCOMPAT_64BIT != 0 { 64 } else { 32 };
        self.piece.need(
            descriptor.is_power_of_two() && (least..=1024).contains(&descriptor),
            format_args!("group descriptors of {descriptor} bytes"),
        )?;
        let reserved = self.reserved_descriptor_blocks;
        self.piece.need(
            reserved <= self.block_bytes / 4,
            format_args!("{reserved} blocks reserved for group descriptors"),
        )
    }

    /// How many group descriptors are in a block.
    fn descriptors_per_block(&self) -> u64 {
        self.block_bytes / self.descriptor_bytes
    }

    /// Blocks with descriptors of every group.
    fn descriptor_blocks(&self) -> u64 {
        self.groups.div_ceil(self.descriptors_per_block())
    }

    /// True where a group begins with a copy of the superblock.
    fn has_superblock(&self, group: u64) -> Result<bool, LayoutError> {
        if group == 0 {
            return Ok(true);
        }
        if self.compat & feature::SPARSE_SUPER2 != 0 {
            return Ok([self.piece.le32(0x24c)?, self.piece.le32(0x250)?].map(u64::from).contains(&group));
        }
        let sparse = self.ro_compat & feature::RO_SPARSE_SUPER != 0;
        Ok(!sparse || group == 1 || [3, 5, 7].iter().any(|&base| is_power_of(base, group)))
    }

    /// First block of a group, where its superblock is if it has one: in the first group byte 1024 may lie in the second block.
    fn group_start(&self, group: u64) -> u64 {
        let start = self.first_data_block + group * self.blocks_per_group;
        if group == 0 { SUPERBLOCK_AT / self.block_bytes } else { start }
    }

    /// Superblocks and tables of descriptors, with their copies.
    fn add_tables(&self, regions: &mut Regions) -> Result<(), LayoutError> {
        let block = self.block_bytes;
        let old = self.descriptor_blocks().min(self.first_meta_bg);
        let per_block = self.descriptors_per_block();
        for group in 0..self.groups {
            let mut next = self.group_start(group);
            let has_superblock = self.has_superblock(group)?;
            if has_superblock {
                regions.add(RegionUse::Superblock, next * block, block)?;
                next += 1;
            }
            // A metablock group is as many groups as a block has descriptors; its first two and its last have the block.
            let in_meta_bg = group / per_block >= self.first_meta_bg;
            if in_meta_bg && [0, 1, per_block - 1].contains(&(group % per_block)) {
                regions.add(RegionUse::GroupDescriptors, next * block, block)?;
            } else if has_superblock && !in_meta_bg {
                let blocks = old + self.reserved_descriptor_blocks;
                regions.add(RegionUse::GroupDescriptors, next * block, blocks * block)?;
            }
        }
        Ok(())
    }

    /// Where block `index` of the descriptors is.
    fn descriptor_block(&self, index: u64) -> Result<u64, LayoutError> {
        if index < self.first_meta_bg {
            return Ok(self.group_start(0) + 1 + index);
        }
        let group = index * self.descriptors_per_block();
        Ok(self.group_start(group) + u64::from(self.has_superblock(group)?))
    }

    /// Bitmaps and inode tables. The descriptors' checksums are not looked at: the kernel changes free counts under our
    /// hands, while the three places never change.
    fn add_groups(&self, read: &mut ReadAt<'_>, regions: &mut Regions) -> Result<(), LayoutError> {
        let (block, per_block) = (self.block_bytes, self.descriptors_per_block());
        let table_bytes = (self.inodes_per_group * self.inode_bytes).div_ceil(block) * block;
        // One pass for each use: with flex_bg the pieces of neighbouring groups follow each other and are joined at once.
        let uses = [
            (RegionUse::BlockBitmap, 0, block),
            (RegionUse::InodeBitmap, 4, block),
            (RegionUse::InodeTable, 8, table_bytes),
        ];
        for index in 0..self.descriptor_blocks() {
            let at = self.descriptor_block(index)? * block;
            let piece = Piece::read(read, at, usize::try_from(block)?, "ext4 group descriptors")?;
            let groups = per_block.min(self.groups - index * per_block);
            for (purpose, field, bytes) in uses {
                for group in 0..groups {
                    let start = usize::try_from(group * self.descriptor_bytes)? + field;
                    let place = self.place(&piece, start)?;
                    piece.need(
                        place >= self.first_data_block && place < self.blocks,
                        format_args!("{purpose:?} of group {} at block {place}", index * per_block + group),
                    )?;
                    regions.add(purpose, place * block, bytes)?;
                }
            }
        }
        Ok(())
    }

    /// A block number of a descriptor: its upper half is 32 bytes behind the lower one.
    fn place(&self, piece: &Piece, lower: usize) -> Result<u64, LayoutError> {
        let high = if self.descriptor_bytes >= 64 { piece.le32(lower + 32)? } else { 0 };
        Ok(u64::from(high) << 32 | u64::from(piece.le32(lower)?))
    }

    /// The journal in a file of this filesystem.
    fn add_journal(
        &self,
        inode: u32,
        read: &mut ReadAt<'_>,
        regions: &mut Regions,
    ) -> Result<(), LayoutError> {
        let root = match self.inode(inode, read) {
            Ok(root) => root,
            // The superblock keeps a copy of the inode's root, for the day when the inode table is damaged.
            Err(error) if self.piece.byte(0xfd)? == 1 => {
                let (high, low) = (self.piece.le32(0x10c + 60)?, self.piece.le32(0x10c + 64)?);
                let root: [u8; 60] = self.piece.array(0x10c)?;
                let extents = root.starts_with(&jbd2::EXTENT_MAGIC.to_le_bytes());
                let bytes = u64::from(high) << 32 | u64::from(low);
                let whence = format!("{error}; its copy in the superblock");
                jbd2::Root { root, bytes, extents, is_inline: false, whence }
            }
            Err(error) => return Err(error),
        };
        let runs = jbd2::runs(&root, self.block_bytes, self.blocks, read)?;
        let fast_commit = self.compat & feature::FAST_COMMIT != 0;
        let log = jbd2::JournalPlace { runs, block_bytes: self.block_bytes, skipped: 0, fast_commit };
        jbd2::add(&log, read, regions)
    }

    /// Reads an inode from its table.
    fn inode_piece(&self, inode: u32, read: &mut ReadAt<'_>) -> Result<Piece, LayoutError> {
        self.piece.need(inode > 0, "0 is no inode's number")?;
        let index = u64::from(inode) - 1;
        let (group, slot) = (index / self.inodes_per_group, index % self.inodes_per_group);
        self.piece.need(group < self.groups, format_args!("there is no inode {inode}"))?;
        let (table, within) = (group / self.descriptors_per_block(), group % self.descriptors_per_block());
        let at = self.descriptor_block(table)? * self.block_bytes + within * self.descriptor_bytes;
        let descriptor =
            Piece::read(read, at, usize::try_from(self.descriptor_bytes)?, "ext4 group descriptor")?;
        let at = self.place(&descriptor, 8)?.saturating_mul(self.block_bytes) + slot * self.inode_bytes;
        Piece::read(read, at, 128, "ext4 inode")
    }

    /// Where a file lies, by its inode.
    fn inode(&self, inode: u32, read: &mut ReadAt<'_>) -> Result<jbd2::Root, LayoutError> {
        let piece = self.inode_piece(inode, read)?;
        piece.need(piece.le16(0)? >> 12 == 0o10, "it is no file")?;
        let bytes = u64::from(piece.le32(0x6c)?) << 32 | u64::from(piece.le32(0x4)?);
        let flags = piece.le32(0x20)?;
        let (extents, is_inline) = (flags & EXTENTS != 0, flags & INLINE_DATA != 0);
        let whence = format!("inode {inode}");
        Ok(jbd2::Root { root: piece.array(0x28)?, bytes, extents, is_inline, whence })
    }
}

fn is_power_of(base: u64, mut number: u64) -> bool {
    while number > 1 && number.is_multiple_of(base) {
        number /= base;
    }
    number == 1
}
