//! F2FS. Superblocks, checkpoints and three tables have places of their own.
//!
//! ```text
//! | superblock x2 | checkpoint x2 | segment information | node address | segment summary | main area
//! ```
//! Source: Documentation/filesystems/f2fs.rst of the kernel. Little endian.

use crate::block_device::SECTOR_BYTES;
use crate::filesystem::class::{Class, Part};
use crate::filesystem::facts::{Blocks, Facts, Log};
use crate::filesystem::layout::checksum::{ETHERNET, crc32};
use crate::filesystem::layout::piece::Piece;
use crate::filesystem::layout::regions::Regions;
use crate::filesystem::layout::{Extent, Layout, LayoutError, ReadAt};
use crate::filesystem::region::RegionUse;

/// What joj knows of it.
pub static FACTS: Facts = Facts {
    name: "f2fs",
    older_names: &[],
    layout,
    blocks: Blocks {
        log: Log::NoPlace,
        flags_metadata: false,
        private_is_metadata: false,
        node_file: Some(NODES),
        inner_files: None,
        device_pages: |_| Some((Class::Metadata, Part::Plain)),
    },
    threads: &["f2fs_"],
};

const MAGIC: u32 = 0xf2f5_2010;
/// The inode whose pages are its nodes (`node_ino` of the superblock, which mkfs.f2fs always sets so).
const NODES: u64 = 1;
/// Byte of the superblock in its block.
const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 3072;
const FEATURE_CHECKSUM: u32 = 0x800;

/// Reads the layout of the filesystem's first device, which has all of this.
/// # Errors
/// The bytes cannot be read, or they are not those of an F2FS filesystem on such a device.
fn layout(device: Extent, read: &mut ReadAt<'_>) -> Result<Layout, LayoutError> {
    let piece = Piece::read_checked(read, SUPERBLOCK_AT, SUPERBLOCK_BYTES, "F2FS superblock", check_sum)?;
    let (shift, segment_shift) = (piece.le32(16)?, piece.le32(20)?);
    piece.need(
        (12..=16).contains(&shift) && segment_shift == 9,
        format_args!("blocks of 2^{shift} bytes, segments of 2^{segment_shift} blocks"),
    )?;
    let (block_bytes, segment_bytes) = (1_u64 << shift, 1_u64 << (shift + segment_shift));
    let device_blocks = device.sectors / (block_bytes / SECTOR_BYTES);
    let mut regions = Regions::new(device);
    regions.add(RegionUse::Superblock, 0, 2 * block_bytes)?;
    let mut end = 2;
    let areas = [
        (RegionUse::Checkpoint, 76, 52),
        (RegionUse::SegmentInformation, 80, 56),
        (RegionUse::NodeAddress, 84, 60),
        (RegionUse::SegmentSummary, 88, 64),
    ];
    for (purpose, at, segments) in areas {
        let (block, segments) = (u64::from(piece.le32(at)?), u64::from(piece.le32(segments)?));
        piece.need(
            block >= end && block < device_blocks,
            format_args!("{purpose:?} at block {block}, but it begins at block {end} at the earliest"),
        )?;
        regions.add(purpose, block * block_bytes, segments * segment_bytes)?;
        end = block + segments * (segment_bytes / block_bytes);
    }
    let main = u64::from(piece.le32(92)?);
    piece.need(main >= end, format_args!("files from block {main} on, but the tables end at block {end}"))?;
    let block_bytes = u32::try_from(block_bytes)?;
    Ok(Layout { block_bytes, regions: regions.finish()?, journal_elsewhere: None })
}

fn check_sum(piece: &Piece) -> Result<(), LayoutError> {
    piece.need(piece.le32(0)? == MAGIC, "no F2FS magic number")?;
    if piece.le32(2180)? & FEATURE_CHECKSUM == 0 {
        return Ok(());
    }
    let at = usize::try_from(piece.le32(32)?).unwrap_or(usize::MAX);
    let Some(checked) = piece.bytes().get(..at) else {
        return piece.wrong(format_args!("its checksum at byte {at} of it"));
    };
    piece.need(crc32(ETHERNET, MAGIC, checked) == piece.le32(at)?, "its checksum does not fit")
}
