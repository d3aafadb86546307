//! Btrfs. Superblocks have places of their own: everything else moves, and says what it is in its header.
//!
//! Source: Btrfs documentation, "On-disk format". Little endian.

use crate::block_device::SECTOR_BYTES;
use crate::filesystem::class::{Class, Part};
use crate::filesystem::facts::{Blocks, Facts, Log};
use crate::filesystem::layout::checksum::{CASTAGNOLI, crc32};
use crate::filesystem::layout::piece::Piece;
use crate::filesystem::layout::regions::Regions;
use crate::filesystem::layout::{Extent, Layout, LayoutError, ReadAt};
use crate::filesystem::region::RegionUse;

/// What joj knows of it.
pub static FACTS: Facts = Facts {
    name: "btrfs",
    older_names: &[],
    layout,
    blocks: Blocks {
        log: Log::NoPlace,
        // Log trees have the flag, too.
        flags_metadata: false,
        private_is_metadata: false,
        node_file: None,
        inner_files: None,
        device_pages: |byte| PLACES.contains(&byte).then_some((Class::Superblock, Part::Plain)),
    },
    threads: &["btrfs-"],
};

/// The tree of what fsync wrote since the last commit (BTRFS_TREE_LOG_OBJECTID).
const LOG_TREE: i64 = -6;
const MAGIC: &[u8; 8] = b"_BHRfS_M";
const SUPERBLOCK_BYTES: usize = 4096;
/// The first and its two copies, where the device is that long.
const PLACES: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];
/// Feature bit of zoned devices: their superblocks wander in zones of their own.
const INCOMPAT_ZONED: u64 = 1 << 12;

/// Reads the layout of one of the filesystem's devices.
/// # Errors
/// The bytes cannot be read, or they are not those of a Btrfs filesystem; zoned devices.
fn layout(device: Extent, read: &mut ReadAt<'_>) -> Result<Layout, LayoutError> {
    let piece = Piece::read_checked(read, PLACES[0], SUPERBLOCK_BYTES, "Btrfs superblock", check_sum)?;
    piece.need(
        piece.le64(0xbc)? & INCOMPAT_ZONED == 0,
        "a zoned device, whose superblocks have no fixed place",
    )?;
    let block_bytes = piece.le32(0x90)?;
    piece.need(
        block_bytes.is_power_of_two() && (512..=65536).contains(&block_bytes),
        format_args!("blocks of {block_bytes} bytes"),
    )?;
    // What this device holds: its own entry, devid and then its length.
    let bytes = piece.le64(0xc9 + 8)?;
    piece.need(
        bytes / SECTOR_BYTES <= device.sectors,
        format_args!("{bytes} bytes on a device of {} sectors", device.sectors),
    )?;
    let mut regions = Regions::new(device);
    for at in PLACES {
        if at + SUPERBLOCK_BYTES as u64 <= bytes {
            regions.add(RegionUse::Superblock, at, SUPERBLOCK_BYTES as u64)?;
        }
    }
    Ok(Layout { block_bytes, regions: regions.finish()?, journal_elsewhere: None })
}

fn check_sum(piece: &Piece) -> Result<(), LayoutError> {
    piece.need(piece.array(0x40)? == *MAGIC, "no Btrfs magic number")?;
    let here = piece.le64(0x30)?;
    piece.need(here == PLACES[0], format_args!("it says that it lies at byte {here}"))?;
    // 1 to 3: xxhash, sha256, blake2, of which we check none.
    if piece.le16(0xc4)? != 0 {
        return Ok(());
    }
    let sum = !crc32(CASTAGNOLI, !0, piece.bytes().get(0x20..).unwrap_or(&[]));
    piece.need(sum == piece.le32(0)?, "its checksum does not fit")
}

/// What a block of a tree is for: trees by their numbers (btrfs_tree.h of Linux's user interface).
pub fn tree(owner: i64) -> (Class, Part) {
    let part = match owner {
        LOG_TREE => return (Class::Journal, Part::LogTree),
        1 => Part::RootTree,
        2 | 3 | 4 | 10 | 11 => Part::ExtentTree,
        7 => Part::ChecksumTree,
        5 | 256.. => Part::FileTree,
        // Made before the capture began, which saw only that it lies among trees.
        0 => Part::Plain,
        _ => Part::Tree,
    };
    (Class::Metadata, part)
}
