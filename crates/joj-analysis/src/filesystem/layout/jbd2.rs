//! Where the blocks of a jbd2 log are, in a file of ext4 or on a device of its own.
//!
//! ```text
//! block of the log  0 its superblock | 1 .. ring of transactions .. | fast commits, if the feature is on
//! ```
//! Source: Documentation/filesystems/ext4/{journal,ifork}.rst of the kernel. The log is big endian, ext4 is not.

use super::ReadAt;
use super::error::{LayoutError, TreeError};
use crate::filesystem::layout::checksum::{CASTAGNOLI, crc32};
use crate::filesystem::layout::piece::Piece;
use crate::filesystem::layout::regions::Regions;
use crate::filesystem::region::RegionUse;

/// First two bytes of a node of an extent tree.
pub const EXTENT_MAGIC: u16 = 0xf30a;
const JOURNAL_MAGIC: u32 = 0xc03b_3998;

/// 64 GiB of blocks of 4 KiB; mke2fs makes logs of at most 10,240,000 blocks.
const LOG_BLOCKS_MAX: u64 = 1 << 24;
/// ext4 numbers a file's blocks with 32 bits.
const FILE_BLOCKS_MAX: u64 = 1 << 32;
/// A tree that names a node twice would be walked for ever.
const FILE_NODES_MAX: u64 = 1 << 16;
const RUNS_MAX: usize = 1 << 20;

/// Neighbouring blocks of the log, or of a file, that are neighbours on the device too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalRun {
    /// First block in the log, or in the file.
    pub log_block: u64,
    /// First block on the device.
    pub block: u64,
    pub blocks: u64,
}

/// What an inode says of where its blocks are.
#[derive(Debug)]
pub struct Root {
    /// The inode's field i_block: an extent tree's root, or block numbers.
    pub root: [u8; 60],
    /// The file's length (i_size).
    pub bytes: u64,
    /// True where `root` is an extent tree, false where it is ext3's list of blocks.
    pub extents: bool,
    /// True where the file's bytes are in the inode: it has no blocks.
    pub is_inline: bool,
    /// Where it was read, for errors.
    pub whence: String,
}

/// Walks the tree below `root`.
struct Walk<'walk, 'reader> {
    block_bytes: u64,
    device_blocks: u64,
    log_blocks: u64,
    log_blocks_max: u64,
    /// A log has none.
    may_have_holes: bool,
    read: &'walk mut ReadAt<'reader>,
    runs: Vec<JournalRun>,
    nodes_left: u64,
}

/// The blocks of a log on a device of `device_blocks`, in the order of the log.
/// # Errors
/// The tree is damaged, has a hole, or cannot be read.
pub fn runs(
    root: &Root,
    block_bytes: u64,
    device_blocks: u64,
    read: &mut ReadAt<'_>,
) -> Result<Vec<JournalRun>, LayoutError> {
    let wrong = |problem: TreeError| problem.of(format!("ext4 journal, {}", root.whence));
    let log_blocks = root.bytes / block_bytes;
    if !(1..=LOG_BLOCKS_MAX).contains(&log_blocks) {
        return Err(wrong(TreeError::Length(root.bytes)));
    }
    let walk = Walk {
        block_bytes,
        device_blocks,
        log_blocks,
        log_blocks_max: LOG_BLOCKS_MAX,
        may_have_holes: false,
        read,
        runs: Vec::new(),
        nodes_left: log_blocks / 16 + 64,
    };
    let runs = walk.below(root).map_err(wrong)?;
    let mut expected = 0;
    for run in &runs {
        if run.log_block != expected {
            return Err(wrong(TreeError::Order { expected, found: run.log_block }));
        }
        expected += run.blocks;
    }
    if expected < log_blocks {
        return Err(wrong(TreeError::Missing { found: expected, blocks: log_blocks }));
    }
    Ok(runs)
}

/// The blocks of any file of ext4, in the order of the file; what has no place is left out.
/// # Errors
/// The tree is damaged or cannot be read.
pub fn file_runs(
    root: &Root,
    block_bytes: u64,
    device_blocks: u64,
    read: &mut ReadAt<'_>,
) -> Result<Vec<JournalRun>, LayoutError> {
    let walk = Walk {
        block_bytes,
        device_blocks,
        log_blocks: root.bytes.div_ceil(block_bytes),
        log_blocks_max: FILE_BLOCKS_MAX,
        may_have_holes: true,
        read,
        runs: Vec::new(),
        nodes_left: FILE_NODES_MAX,
    };
    walk.below(root).map_err(|problem| problem.of(root.whence.clone()))
}

impl Walk<'_, '_> {
    fn below(mut self, root: &Root) -> Result<Vec<JournalRun>, TreeError> {
        let mut source = |_: u64, _: usize| Ok(root.root.to_vec());
        let piece = Piece::read(&mut source, 0, root.root.len(), "root of its blocks")?;
        if root.extents { self.extents(&piece, None) } else { self.pointers(&piece) }?;
        self.runs.sort_unstable_by_key(|run| run.log_block);
        Ok(self.runs)
    }

    fn push(&mut self, run: JournalRun) -> Result<(), TreeError> {
        let on_device =
            run.block > 0 && run.block.checked_add(run.blocks).is_some_and(|end| end <= self.device_blocks);
        // Blocks may be reserved behind the end of a file.
        if run.log_block.checked_add(run.blocks).is_none_or(|end| end > self.log_blocks_max) || !on_device {
            return Err(TreeError::Place { blocks: run.blocks, block: run.block });
        }
        if let Some(last) = self.runs.last_mut()
            && last.log_block + last.blocks == run.log_block
            && last.block + last.blocks == run.block
        {
            last.blocks += run.blocks;
            return Ok(());
        }
        if self.runs.len() == RUNS_MAX {
            return Err(TreeError::TooManyPieces(RUNS_MAX));
        }
        self.runs.push(run);
        Ok(())
    }

    fn node(&mut self, block: u64, node: &'static str) -> Result<Piece, TreeError> {
        if self.nodes_left == 0 || block == 0 || block >= self.device_blocks {
            return Err(TreeError::Node { node, block });
        }
        self.nodes_left -= 1;
        let bytes = usize::try_from(self.block_bytes).map_err(LayoutError::from)?;
        Ok(Piece::read(self.read, block * self.block_bytes, bytes, node)?)
    }

    /// A node of an extent tree, which must have this depth if one is given.
    fn extents(&mut self, piece: &Piece, depth: Option<u16>) -> Result<(), TreeError> {
        let (magic, entries, found) = (piece.le16(0)?, piece.le16(2)?, piece.le16(6)?);
        piece.need(
            magic == EXTENT_MAGIC && found <= 5 && depth.is_none_or(|depth| depth == found),
            format_args!("no node of an extent tree (magic {magic:#x}, depth {found})"),
        )?;
        for entry in 0..usize::from(entries) {
            let at = 12 + entry * 12;
            if found > 0 {
                let child = u64::from(piece.le16(at + 8)?) << 32 | u64::from(piece.le32(at + 4)?);
                let child = self.node(child, "extent tree node")?;
                self.extents(&child, Some(found - 1))?;
                continue;
            }
            let length = piece.le16(at + 4)?;
            // Longer than 32768: reserved but not initialised.
            let blocks = u64::from(if length > 32768 { length - 32768 } else { length });
            let block = u64::from(piece.le16(at + 6)?) << 32 | u64::from(piece.le32(at + 8)?);
            self.push(JournalRun { log_block: u64::from(piece.le32(at)?), block, blocks })?;
        }
        Ok(())
    }

    /// ext3: twelve blocks, then a block of block numbers, one of those, and one of those.
    fn pointers(&mut self, piece: &Piece) -> Result<(), TreeError> {
        let mut next = 0;
        for slot in 0..15 {
            self.pointer(piece.le32(slot * 4)?, slot.saturating_sub(11), &mut next)?;
        }
        Ok(())
    }

    fn pointer(&mut self, block: u32, depth: usize, next: &mut u64) -> Result<(), TreeError> {
        if *next >= self.log_blocks {
            return Ok(());
        }
        if block == 0 && self.may_have_holes {
            let below = (self.block_bytes / 4).saturating_pow(u32::try_from(depth).unwrap_or(u32::MAX));
            *next = next.saturating_add(below);
            return Ok(());
        }
        if depth == 0 {
            self.push(JournalRun { log_block: *next, block: u64::from(block), blocks: 1 })?;
            *next += 1;
            return Ok(());
        }
        let piece = self.node(u64::from(block), "block of block numbers")?;
        for slot in 0..piece.bytes().len() / 4 {
            self.pointer(piece.le32(slot * 4)?, depth - 1, next)?;
        }
        Ok(())
    }
}

/// A log whose blocks are known.
#[derive(Debug)]
pub struct JournalPlace {
    /// Its blocks, in order, from its superblock on.
    pub runs: Vec<JournalRun>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Blocks that its own count has before its superblock: on a device of its own it counts from the device's start.
    pub skipped: u64,
    /// The filesystem wants fast commits, so that the log has room for them from the next mount on, whether or not its
    /// own superblock says so already.
    pub fast_commit: bool,
}

/// Reads the log's superblock and adds the log's regions.
/// # Errors
/// It is no log, or has another length or block size.
pub fn add(log: &JournalPlace, read: &mut ReadAt<'_>, regions: &mut Regions) -> Result<(), LayoutError> {
    let JournalPlace { runs, block_bytes, skipped, fast_commit } = log;
    let block_bytes = *block_bytes;
    let first = runs.first().map_or(0, |run| run.block);
    let piece = Piece::read_checked(read, first * block_bytes, 1024, "jbd2 superblock", check_sum)?;
    let version = piece.be32(4)?;
    let (own_block_bytes, counted) = (u64::from(piece.be32(0xc)?), u64::from(piece.be32(0x10)?));
    let blocks = counted.saturating_sub(*skipped);
    let there: u64 = runs.iter().map(|run| run.blocks).sum();
    piece.need(
        own_block_bytes == block_bytes && (2..=there).contains(&blocks),
        format_args!("{blocks} blocks of {own_block_bytes} bytes, but {there} of {block_bytes} are there"),
    )?;
    let has_fast_commits = *fast_commit || (version == 4 && piece.be32(0x28)? & 0x20 != 0);
    // 0 stands for 256 there.
    let wanted = match (has_fast_commits, u64::from(piece.be32(0x54)?)) {
        (false, _) => 0,
        (true, 0) => 256,
        (true, wanted) => wanted,
    };
    // The kernel leaves a log of 1024 blocks whole rather than make room.
    let ring = blocks.checked_sub(wanted).filter(|ring| *ring >= 1024).unwrap_or(blocks);
    for run in runs {
        let end = (run.log_block + run.blocks).min(blocks);
        for (purpose, from, to) in [(RegionUse::Journal, 0, ring), (RegionUse::FastCommit, ring, blocks)] {
            let (from, to) = (run.log_block.max(from), end.min(to));
            if from < to {
                let block = run.block + (from - run.log_block);
                let (at, bytes) = (block * block_bytes, (to - from) * block_bytes);
                regions.add_piece(purpose, at, bytes, from * block_bytes)?;
            }
        }
    }
    Ok(())
}

fn check_sum(piece: &Piece) -> Result<(), LayoutError> {
    let (magic, kind) = (piece.be32(0)?, piece.be32(4)?);
    piece.need(
        magic == JOURNAL_MAGIC && (kind == 3 || kind == 4),
        format_args!("no jbd2 superblock (magic {magic:#x}, type {kind})"),
    )?;
    // Only logs with checksums of version 2 or 3 have one of their superblock.
    if kind == 3 || piece.be32(0x28)? & 0x18 == 0 {
        return Ok(());
    }
    let mut bytes = piece.bytes().to_vec();
    if let Some(sum) = bytes.get_mut(0xfc..0x100) {
        sum.fill(0);
    }
    piece.need(crc32(CASTAGNOLI, !0, &bytes) == piece.be32(0xfc)?, "its checksum does not fit")
}
