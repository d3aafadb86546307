//! NILFS2. Superblocks have places of their own: everything else is one log, whose segments say what they hold.
//!
//! Source: Documentation/filesystems/nilfs2.rst of the kernel. Little endian.

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
    name: "nilfs2",
    older_names: &[],
    layout,
    blocks: Blocks {
        log: Log::NoPlace,
        flags_metadata: false,
        // Of them the summaries of its segments.
        private_is_metadata: true,
        node_file: None,
        inner_files: Some(3..=6),
        device_pages: |_| Some((Class::Metadata, Part::SegmentSummary)),
    },
    threads: &["segctord"],
};

const MAGIC: u16 = 0x3434;
const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;

/// Reads the layout.
/// # Errors
/// The bytes cannot be read, or they are not those of a NILFS2 filesystem on such a device.
fn layout(device: Extent, read: &mut ReadAt<'_>) -> Result<Layout, LayoutError> {
    let piece = Piece::read_checked(read, SUPERBLOCK_AT, SUPERBLOCK_BYTES, "NILFS2 superblock", check_sum)?;
    let shift = piece.le32(20)?;
    piece.need(shift <= 6, format_args!("blocks of 2^{shift} KiB"))?;
    let (block_bytes, bytes) = (1024_u64 << shift, piece.le64(32)?);
    piece.need(
        bytes >= 1 << 16 && bytes / SECTOR_BYTES <= device.sectors,
        format_args!("{bytes} bytes on a device of {} sectors", device.sectors),
    )?;
    let mut regions = Regions::new(device);
    regions.add(RegionUse::Superblock, SUPERBLOCK_AT / block_bytes * block_bytes, block_bytes)?;
    // The copy is in the last whole 4 KiB of the device.
    let copy = ((bytes >> 12) - 1) << 12;
    regions.add(RegionUse::Superblock, copy / block_bytes * block_bytes, block_bytes)?;
    let block_bytes = u32::try_from(block_bytes)?;
    Ok(Layout { block_bytes, regions: regions.finish()?, journal_elsewhere: None })
}

fn check_sum(piece: &Piece) -> Result<(), LayoutError> {
    piece.need(piece.le16(6)? == MAGIC, "no NILFS2 magic number")?;
    let length = usize::from(piece.le16(8)?);
    let Some(checked) = piece.bytes().get(..length).filter(|checked| checked.len() >= 20) else {
        return piece.wrong(format_args!("{length} bytes long"));
    };
    let mut bytes = checked.to_vec();
    if let Some(sum) = bytes.get_mut(16..20) {
        sum.fill(0);
    }
    piece.need(crc32(ETHERNET, piece.le32(12)?, &bytes) == piece.le32(16)?, "its checksum does not fit")
}
