//! Where a filesystem's own addresses lie on disks.

use crate::trace::event::{DeviceNumber, FileKey, SECTOR_BYTES};
use crate::trace::ftrace::inode_number;
use crate::trace::ftrace::record::{Holder, Inode};

/// How a filesystem's block numbers become sectors of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// What its files have as their device (`s_dev`).
    pub device: DeviceNumber,
    /// Its own number, where events name it by that (Btrfs); zeros otherwise.
    pub id: [u8; 16],
    /// Inodes with lower numbers are the filesystem's own, but the root directory.
    pub first_inode: u64,
    /// How its addresses become places.
    pub addressing: Addressing,
}

/// How addresses become places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addressing {
    /// Blocks counted from the beginning (ext4, F2FS).
    Blocks {
        /// The disk, and where the filesystem begins on it.
        base: Base,
        block_bytes: u64,
    },
    /// Groups of blocks: the upper bits of an address are the group's number (XFS).
    Groups {
        /// The disk, and where the filesystem begins on it.
        base: Base,
        block_bytes: u64,
        /// Blocks of a group.
        group_blocks: u64,
        /// Where in an address the group's number begins.
        group_shift: u32,
    },
    /// Bytes of an address space that chunks place (Btrfs), in order of `start`.
    Chunks(Vec<Chunk>),
}

/// Where a filesystem begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// The whole disk.
    pub disk: DeviceNumber,
    /// First sector of its partition on the whole disk.
    pub start_sector: u64,
}

/// Bytes of an address space that lie together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub start: u64,
    pub bytes: u64,
    /// Nothing but blocks of trees is in it.
    pub trees: bool,
    /// Each copy: on which disk, and at which byte of its partition.
    pub copies: Vec<(Base, u64)>,
}

/// Bytes of a file that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The whole disk.
    pub disk: DeviceNumber,
    /// First sector on it.
    pub sector: u64,
    /// How far into the bytes that were asked for it begins.
    pub skipped_bytes: u64,
    pub bytes: u64,
}

/// The file that an event names, if it is of one of these filesystems or of one that it names by its device. Its generation is 0.
pub fn file(volumes: &[Volume], file: Inode) -> FileKey {
    let volume = volumes.iter().find(|volume| volume.is(file.holder));
    let (device, inode) = match (file.holder, volume) {
        // An event of Btrfs's own says the tree.
        (Holder::Id(_), Some(volume)) => (volume.device, file.number),
        (Holder::Id(_), None) => return FileKey::NONE,
        (Holder::Device(device), Some(Volume { id, .. })) if *id != [0; 16] => {
            (device, inode_number::of_some_tree(file.number))
        }
        (Holder::Device(device), _) => (device, file.number),
    };
    FileKey { device, inode, generation: 0 }
}

impl Volume {
    /// True where events that say `holder` speak of this filesystem.
    pub fn is(&self, holder: Holder) -> bool {
        match holder {
            Holder::Device(device) => device == self.device,
            Holder::Id(id) => id == self.id && id != [0; 16],
        }
    }

    /// Bytes of a block: the unit of its files' offsets in events.
    pub fn block_bytes(&self) -> u64 {
        match &self.addressing {
            Addressing::Blocks { block_bytes, .. } | Addressing::Groups { block_bytes, .. } => *block_bytes,
            Addressing::Chunks(_) => 1,
        }
    }

    /// Where nothing but blocks of trees lies (Btrfs), every copy.
    pub fn tree_places(&self) -> Vec<Place> {
        let Addressing::Chunks(chunks) = &self.addressing else { return Vec::new() };
        let trees = chunks.iter().filter(|chunk| chunk.trees);
        trees.flat_map(|chunk| self.places(chunk.start, chunk.bytes)).collect()
    }

    /// Where `bytes` from an address on lie, every copy. Empty where the address is none of this filesystem.
    pub fn places(&self, start: u64, bytes: u64) -> Vec<Place> {
        match &self.addressing {
            Addressing::Blocks { base, block_bytes } => {
                start.checked_mul(*block_bytes).and_then(|at| place(base, at, 0, bytes)).into_iter().collect()
            }
            Addressing::Groups { base, block_bytes, group_blocks, group_shift } => {
                let group = start.checked_shr(*group_shift).unwrap_or(0);
                let block = start - group.checked_shl(*group_shift).unwrap_or(0);
                let block = group.checked_mul(*group_blocks).and_then(|first| first.checked_add(block));
                let at = block.and_then(|block| block.checked_mul(*block_bytes));
                at.and_then(|at| place(base, at, 0, bytes)).into_iter().collect()
            }
            Addressing::Chunks(chunks) => in_chunks(chunks, start, bytes),
        }
    }
}

fn in_chunks(chunks: &[Chunk], start: u64, bytes: u64) -> Vec<Place> {
    let end = start.saturating_add(bytes);
    let mut places = Vec::new();
    for chunk in chunks {
        let (from, to) = (start.max(chunk.start), end.min(chunk.start.saturating_add(chunk.bytes)));
        if from >= to {
            continue;
        }
        for (base, at) in &chunk.copies {
            let at = at.checked_add(from - chunk.start);
            places.extend(at.and_then(|at| place(base, at, from - start, to - from)));
        }
    }
    places
}

/// Byte `at` of a partition as a sector of its disk.
fn place(base: &Base, at: u64, skipped_bytes: u64, bytes: u64) -> Option<Place> {
    let sector = base.start_sector.checked_add(at / SECTOR_BYTES)?;
    Some(Place { disk: base.disk, sector, skipped_bytes, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Base = Base { disk: DeviceNumber(1), start_sector: 2048 };

    fn volume(addressing: Addressing) -> Volume {
        Volume { device: DeviceNumber(2), id: [0; 16], first_inode: 0, addressing }
    }

    fn sectors(volume: &Volume, start: u64, bytes: u64) -> Vec<(u64, u64, u64)> {
        let places = volume.places(start, bytes);
        places.iter().map(|place| (place.sector, place.skipped_bytes, place.bytes)).collect()
    }

    #[test]
    fn blocks_and_groups_are_counted_from_the_partition() {
        let ext4 = volume(Addressing::Blocks { base: BASE, block_bytes: 4096 });
        assert_eq!(sectors(&ext4, 3, 8192), [(2048 + 24, 0, 8192)]);
        let xfs = Addressing::Groups { base: BASE, block_bytes: 4096, group_blocks: 1000, group_shift: 10 };
        assert_eq!(sectors(&volume(xfs), 2 << 10 | 5, 4096), [(2048 + 2005 * 8, 0, 4096)]);
    }

    #[test]
    fn every_copy_of_every_chunk_is_found() {
        let chunk = |start, copies: &[u64]| Chunk {
            start,
            bytes: 1 << 20,
            trees: false,
            copies: copies.iter().map(|at| (BASE, *at)).collect(),
        };
        let btrfs = volume(Addressing::Chunks(vec![chunk(0, &[1 << 20, 4 << 20]), chunk(1 << 20, &[0])]));
        let (mib, half) = (2048, 1 << 19);
        assert_eq!(
            sectors(&btrfs, half, 1 << 20),
            [(2048 + mib + mib / 2, 0, half), (2048 + 4 * mib + mib / 2, 0, half), (2048, half, half)]
        );
        assert_eq!(sectors(&btrfs, 5 << 20, 4096), []);
    }

    #[test]
    fn addresses_beyond_all_numbers_have_no_place() {
        let ext4 = volume(Addressing::Blocks { base: BASE, block_bytes: 4096 });
        assert_eq!(ext4.places(u64::MAX, u64::MAX), []);
        let xfs =
            Addressing::Groups { base: BASE, block_bytes: 4096, group_blocks: u64::MAX, group_shift: 99 };
        assert_eq!(volume(xfs).places(u64::MAX, 1), []);
    }
}
