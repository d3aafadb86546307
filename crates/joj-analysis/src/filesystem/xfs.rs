//! XFS. The headers of its allocation groups and its log have places of their own.
//!
//! ```text
//! allocation group  | superblock | AGF | AGI | AGFL |  ..     one sector each; the group in the middle has the log
//! ```
//! Source: "XFS Algorithms & Data Structures" (xfs-documentation). Big endian.

use crate::block_device::SECTOR_BYTES;
use crate::filesystem::class::{Class, Part};
use crate::filesystem::facts::{Blocks, Facts, Log};
use crate::filesystem::layout::checksum::{CASTAGNOLI, crc32};
use crate::filesystem::layout::piece::Piece;
use crate::filesystem::layout::regions::Regions;
use crate::filesystem::layout::{Extent, JournalElsewhere, Layout, LayoutError, ReadAt};
use crate::filesystem::region::{Region, RegionUse};

/// What joj knows of it.
pub static FACTS: Facts = Facts {
    name: "xfs",
    older_names: &[],
    layout,
    blocks: Blocks {
        log: Log::Records,
        // On all that it keeps in buffers.
        flags_metadata: true,
        private_is_metadata: false,
        node_file: None,
        inner_files: None,
        device_pages: |_| None,
    },
    threads: &["xfsaild/", "xfs-"],
};

const MAGIC: u32 = 0x5846_5342;
const SUPERBLOCK_BYTES: usize = 512;
/// Superblock, free space, inode and free list header.
const HEADER_SECTORS: u64 = 4;
/// A petabyte of groups of a gigabyte.
const GROUPS_MAX: u64 = 1 << 20;

/// Reads the layout.
/// # Errors
/// The bytes cannot be read, or they are not those of an XFS filesystem on such a device.
fn layout(device: Extent, read: &mut ReadAt<'_>) -> Result<Layout, LayoutError> {
    let piece = Piece::read(read, 0, SUPERBLOCK_BYTES, "XFS superblock")?;
    piece.need(piece.be32(0)? == MAGIC, "no XFS magic number")?;
    let sector_bytes = u64::from(piece.be16(102)?);
    piece.need(
        sector_bytes.is_power_of_two() && (512..=32768).contains(&sector_bytes),
        format_args!("sectors of {sector_bytes} bytes"),
    )?;
    let whole = usize::try_from(sector_bytes)?;
    let piece = Piece::read_checked(read, 0, whole, "XFS superblock", check_sum)?;
    let (block_bytes, blocks) = (u64::from(piece.be32(4)?), piece.be64(8)?);
    let (group_blocks, groups) = (u64::from(piece.be32(84)?), u64::from(piece.be32(88)?));
    piece.need(
        block_bytes.is_power_of_two() && (512..=65536).contains(&block_bytes) && block_bytes >= sector_bytes,
        format_args!("blocks of {block_bytes} bytes"),
    )?;
    let device_blocks = device.sectors / (block_bytes / SECTOR_BYTES);
    let fits = blocks <= device_blocks && groups <= GROUPS_MAX && group_blocks * groups >= blocks;
    piece.need(
        fits && groups > 0 && group_blocks * (groups - 1) < blocks && group_blocks * block_bytes >= 1 << 24,
        format_args!(
            "{groups} groups of {group_blocks} blocks of {block_bytes} bytes, {blocks} in all, do not fit on {} sectors",
            device.sectors
        ),
    )?;
    let mut regions = Regions::new(device);
    regions.add(RegionUse::Superblock, 0, sector_bytes)?;
    regions.add(RegionUse::GroupHeader, sector_bytes, (HEADER_SECTORS - 1) * sector_bytes)?;
    for group in 1..groups {
        let at = group * group_blocks * block_bytes;
        regions.add(RegionUse::GroupHeader, at, HEADER_SECTORS * sector_bytes)?;
    }
    let geometry = Geometry { block_bytes, group_blocks, groups };
    let journal_elsewhere = add_log(&piece, geometry, &mut regions)?;
    let block_bytes = u32::try_from(block_bytes)?;
    Ok(Layout { block_bytes, regions: regions.finish()?, journal_elsewhere })
}

/// How the filesystem divides its device.
struct Geometry {
    block_bytes: u64,
    group_blocks: u64,
    groups: u64,
}

/// Adds the log, or says how long it is on the device that has it.
fn add_log(
    piece: &Piece,
    geometry: Geometry,
    regions: &mut Regions,
) -> Result<Option<JournalElsewhere>, LayoutError> {
    let Geometry { block_bytes, group_blocks, groups } = geometry;
    let (start, bytes) = (piece.be64(48)?, u64::from(piece.be32(96)?) * block_bytes);
    if start == 0 {
        return Ok(Some(JournalElsewhere::Xfs { bytes }));
    }
    // A block's number has the group above and the block in it below this many bits.
    let shift = u32::from(piece.byte(124)?);
    piece.need(
        shift <= 32 && group_blocks <= 1 << shift,
        format_args!("2^{shift} numbers for {group_blocks} blocks"),
    )?;
    let (group, block) = (start >> shift, start & ((1 << shift) - 1));
    piece.need(
        group < groups && block < group_blocks,
        format_args!("the log at block {block} of group {group}"),
    )?;
    let at = (group * group_blocks + block) * block_bytes;
    regions.add_piece(RegionUse::Journal, at, bytes, 0)?;
    Ok(None)
}

/// A log of this many bytes that has a device to itself.
/// # Errors
/// The device is shorter.
pub fn log_device(device: Extent, bytes: u64) -> Result<Vec<Region>, LayoutError> {
    let mut regions = Regions::new(device);
    regions.add_piece(RegionUse::Journal, 0, bytes, 0)?;
    Ok(regions.finish()?)
}

/// Version 5 has a checksum, which is little endian, alone in XFS.
fn check_sum(piece: &Piece) -> Result<(), LayoutError> {
    let version = piece.be16(100)? & 0xf;
    piece.need(version == 4 || version == 5, format_args!("version {version}; 4 and 5 are known"))?;
    if version == 4 {
        return Ok(());
    }
    let mut bytes = piece.bytes().to_vec();
    if let Some(sum) = bytes.get_mut(224..228) {
        sum.fill(0);
    }
    piece.need(!crc32(CASTAGNOLI, !0, &bytes) == piece.le32(224)?, "its checksum does not fit")
}

/// What a buffer is for: buffers by their magic numbers (XFS Algorithms and Data Structures).
pub fn buffer(magic: i64) -> (Class, Part) {
    let bytes = u32::try_from(magic).unwrap_or(0).to_be_bytes();
    let part = match &bytes {
        b"XFSB" => return (Class::Superblock, Part::Plain),
        b"XAGF" | b"XAGI" | b"XAFL" => Part::GroupHeader,
        b"XD2B" | b"XD2D" | b"XD2F" | b"XDB3" | b"XDD3" | b"XDF3" | b"XARM" => Part::Directory,
        [b'I', b'N', ..] => Part::InodeTable,
        b"ABTB" | b"ABTC" | b"AB3B" | b"AB3C" | b"IABT" | b"IAB3" | b"FIBT" | b"FIB3" | b"BMAP" | b"BMA3"
        | b"RMB3" | b"R3FC" => Part::Tree,
        _ => Part::Plain,
    };
    (Class::Metadata, part)
}
