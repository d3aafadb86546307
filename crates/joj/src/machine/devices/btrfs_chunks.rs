//! Btrfs's chunk tree: where its addresses lie on its disks.
//!
//! Source: linux/btrfs.h for the ioctls, linux/btrfs_tree.h for the items, both little-endian.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::ftrace::volume::{Base, Chunk};

use crate::machine::devices::btrfs_tree::{Exchange, WantedItems, exchange, number, search};
use crate::machine::devices::device_base::base;

/// What a mounted Btrfs says of itself.
#[derive(Debug)]
pub struct Chunks {
    /// Its own number, as its events have it.
    pub id: [u8; 16],
    /// In order of their addresses.
    pub chunks: Vec<Chunk>,
    /// What is not known of it.
    pub limit: Option<String>,
}

/// BTRFS_IOC_FS_INFO and BTRFS_IOC_DEV_INFO, with the sizes of what they exchange.
const FS_INFO: u64 = 0x8400_941f;
const DEV_INFO: u64 = 0xd000_941e;

/// The chunks in the chunk tree.
const CHUNKS: WantedItems = WantedItems { tree: 3, object: 256, kind: 228 };
/// RAID0, RAID10, RAID5, RAID6: a chunk's bytes are spread over its stripes, which are no copies.
const STRIPED: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8;

/// A chunk that holds data, maybe with metadata (`mixed-bg`).
const DATA: u64 = 1;

/// Reads the chunks of the Btrfs mounted there.
/// # Errors
/// As ioctl(2): without CAP_SYS_ADMIN the tree is closed.
pub fn read(point: &Path) -> io::Result<Chunks> {
    let directory = File::open(point)?;
    let mut information = Exchange::default();
    exchange(&directory, FS_INFO, &mut information)?;
    let id = information.0[16..32].try_into().map_err(io::Error::other)?;
    let (mut chunks, mut limit, mut from) = (Vec::new(), None, 0);
    loop {
        let found = search(&directory, CHUNKS, from)?;
        let Some((last, _)) = found.last() else { return Ok(Chunks { id, chunks, limit }) };
        from = last.saturating_add(1);
        for (start, item) in &found {
            let Some((bytes, kind, stripes)) = chunk(item) else { continue };
            if kind & STRIPED != 0 {
                let place = point.display();
                limit = Some(format!(
                    "{place} spreads its files over disks (RAID0, 10, 5, 6): their places are not known"
                ));
                continue;
            }
            let copies = stripes.into_iter();
            let copies = copies.filter_map(|(disk, at)| Some((disk_base(&directory, disk)?, at))).collect();
            chunks.push(Chunk { start: *start, bytes, trees: kind & DATA == 0, copies });
        }
    }
}

/// The filesystem's number of a disk, and a byte on it.
type Stripe = (u64, u64);

/// (bytes, kind, stripes) of a chunk item.
fn chunk(item: &[u8]) -> Option<(u64, u64, Vec<Stripe>)> {
    let (bytes, kind, count) = (number(item, 0, 8)?, number(item, 24, 8)?, number(item, 44, 2)?);
    let stripes = (0..usize::try_from(count).ok()?).map(|index| 48 + index * 32);
    let stripes = stripes.map(|at| Some((number(item, at, 8)?, number(item, at + 8, 8)?)));
    Some((bytes, kind, stripes.collect::<Option<_>>()?))
}

/// Where the filesystem's disk of this number begins.
fn disk_base(directory: &File, disk: u64) -> Option<Base> {
    let mut area = Exchange::default();
    area.0[..8].copy_from_slice(&disk.to_le_bytes());
    exchange(directory, DEV_INFO, &mut area).ok()?;
    let path = area.0[3072..].split(|byte| *byte == 0).next()?;
    let device = fs::metadata(std::str::from_utf8(path).ok()?).ok()?.rdev();
    base(DeviceNumber::new(rustix::fs::major(device), rustix::fs::minor(device))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_item_has_its_copies_and_a_cut_one_is_none() {
        let mut item = vec![0; 112];
        item[..8].copy_from_slice(&(1_u64 << 30).to_le_bytes());
        item[24..32].copy_from_slice(&(1_u64 | 1 << 5).to_le_bytes());
        item[44] = 2;
        item[48] = 1;
        item[56..64].copy_from_slice(&4096_u64.to_le_bytes());
        item[80] = 1;
        item[88..96].copy_from_slice(&8192_u64.to_le_bytes());
        assert_eq!(chunk(&item), Some((1 << 30, 33, vec![(1, 4096), (1, 8192)])));
        assert_eq!(chunk(&item[..90]), None);
    }
}
