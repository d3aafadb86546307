//! Btrfs's chunk tree: where its addresses lie on its disks.
//!
//! Source: linux/btrfs.h for the ioctls, linux/btrfs_tree.h for the items, both little-endian.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::ftrace::volume::{Base, Chunk};

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

/// BTRFS_IOC_FS_INFO, BTRFS_IOC_DEV_INFO and BTRFS_IOC_TREE_SEARCH, with the sizes of what they exchange.
const FS_INFO: u64 = 0x8400_941f;
const DEV_INFO: u64 = 0xd000_941e;
const TREE_SEARCH: u64 = 0xd000_9411;
const EXCHANGE_BYTES: usize = 4096;
const SEARCH_KEY_BYTES: usize = 104;
const ITEM_HEAD_BYTES: usize = 32;

const CHUNK_TREE: u64 = 3;
const CHUNK_OBJECT: u64 = 256;
const CHUNK_ITEM: u32 = 228;
/// RAID0, RAID10, RAID5, RAID6: a chunk's bytes are spread over its stripes, which are no copies.
const STRIPED: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8;

/// A chunk that holds data, maybe with metadata (`mixed-bg`).
const DATA: u64 = 1;

/// Memory for one ioctl, aligned as its numbers want it.
#[repr(C, align(8))]
struct Exchange([u8; EXCHANGE_BYTES]);

/// Reads the chunks of the Btrfs mounted there.
/// # Errors
/// As ioctl(2): without CAP_SYS_ADMIN the tree is closed.
pub fn read(point: &Path) -> io::Result<Chunks> {
    let directory = File::open(point)?;
    let mut information = Exchange([0; EXCHANGE_BYTES]);
    exchange(&directory, FS_INFO, &mut information)?;
    let id = information.0[16..32].try_into().map_err(io::Error::other)?;
    let (mut chunks, mut limit, mut from) = (Vec::new(), None, 0);
    loop {
        let found = search(&directory, from)?;
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

/// The chunk items from an address on, as many as one call gives: (address, item).
fn search(directory: &File, from: u64) -> io::Result<Vec<(u64, Vec<u8>)>> {
    let mut area = Exchange([0; EXCHANGE_BYTES]);
    let key = [CHUNK_TREE, CHUNK_OBJECT, CHUNK_OBJECT, from, u64::MAX, 0, u64::MAX];
    for (place, word) in area.0.chunks_exact_mut(8).zip(key) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    for (place, word) in area.0[56..68].chunks_exact_mut(4).zip([CHUNK_ITEM, CHUNK_ITEM, u32::MAX]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    exchange(directory, TREE_SEARCH, &mut area)?;
    let count = number(&area.0, 64, 4).unwrap_or(0);
    let (mut found, mut at) = (Vec::new(), SEARCH_KEY_BYTES);
    for _ in 0..count {
        let offset = number(&area.0, at + 16, 8);
        let length = number(&area.0, at + 28, 4).and_then(|length| usize::try_from(length).ok());
        let (Some(offset), Some(length)) = (offset, length) else { break };
        let Some(item) = area.0.get(at + ITEM_HEAD_BYTES..at + ITEM_HEAD_BYTES + length) else { break };
        found.push((offset, item.to_vec()));
        at += ITEM_HEAD_BYTES + length;
    }
    Ok(found)
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
    let mut area = Exchange([0; EXCHANGE_BYTES]);
    area.0[..8].copy_from_slice(&disk.to_le_bytes());
    exchange(directory, DEV_INFO, &mut area).ok()?;
    let path = area.0[3072..].split(|byte| *byte == 0).next()?;
    let device = fs::metadata(std::str::from_utf8(path).ok()?).ok()?.rdev();
    base(DeviceNumber::new(rustix::fs::major(device), rustix::fs::minor(device))?)
}

fn exchange(directory: &File, request: u64, area: &mut Exchange) -> io::Result<()> {
    // SAFETY: the descriptor is open; each of the three requests exchanges at most 4096 bytes, which `area` has.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), request as _, area.0.as_mut_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn number(bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
    let mut whole = [0; 8];
    whole[..size].copy_from_slice(bytes.get(offset..offset + size)?);
    Some(u64::from_le_bytes(whole))
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
