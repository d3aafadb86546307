//! Items of Btrfs's trees, as a mounted one tells them.
//!
//! Source: linux/btrfs.h for the ioctls, linux/btrfs_tree.h for the items, both little-endian.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// BTRFS_IOC_TREE_SEARCH, with the sizes of what it exchanges.
const TREE_SEARCH: u64 = 0xd000_9411;
const EXCHANGE_BYTES: usize = 4096;
const SEARCH_KEY_BYTES: usize = 104;
const ITEM_HEAD_BYTES: usize = 32;

/// Memory for one ioctl, aligned as its numbers want it.
#[repr(C, align(8))]
pub struct Exchange(pub [u8; EXCHANGE_BYTES]);

impl Default for Exchange {
    fn default() -> Self {
        Self([0; EXCHANGE_BYTES])
    }
}

/// Which items are wanted: of one tree (0: that of the directory's subvolume), object and kind.
#[derive(Debug, Clone, Copy)]
pub struct WantedItems {
    pub tree: u64,
    pub object: u64,
    pub kind: u32,
}

/// The items from an offset of their keys on, as many as one call gives: (offset, item).
/// # Errors
/// As ioctl(2): without CAP_SYS_ADMIN the trees are closed.
pub fn search(directory: &File, wanted: WantedItems, from: u64) -> io::Result<Vec<(u64, Vec<u8>)>> {
    let mut area = Exchange::default();
    let WantedItems { tree, object, kind } = wanted;
    let key = [tree, object, object, from, u64::MAX, 0, u64::MAX];
    for (place, word) in area.0.chunks_exact_mut(8).zip(key) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    for (place, word) in area.0[56..68].chunks_exact_mut(4).zip([kind, kind, u32::MAX]) {
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

/// One of Btrfs's ioctls that exchange at most 4096 bytes.
/// # Errors
/// As ioctl(2).
pub fn exchange(directory: &File, request: u64, area: &mut Exchange) -> io::Result<()> {
    // SAFETY: the descriptor is open; the requests of this room exchange at most 4096 bytes, which `area` has.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), request as _, area.0.as_mut_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A number of up to 8 bytes.
pub fn number(bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
    let mut whole = [0; 8];
    whole.get_mut(..size)?.copy_from_slice(bytes.get(offset..offset.checked_add(size)?)?);
    Some(u64::from_le_bytes(whole))
}

/// The tree of all trees, the tree of the files outside of subvolumes, and the items that name the subvolumes in one.
const ROOT_TREE: u64 = 1;
const FILE_TREE: u64 = 5;
const ROOT_REF: u32 = 156;

/// True where the filesystem has subvolumes or snapshots.
/// # Errors
/// As [`search`].
pub fn has_subvolumes(directory: &File) -> io::Result<bool> {
    let wanted = WantedItems { tree: ROOT_TREE, object: FILE_TREE, kind: ROOT_REF };
    search(directory, wanted, 0).map(|found| !found.is_empty())
}

/// A file's bytes that lie together: (first byte in the file, first byte of Btrfs's own addresses, length).
pub type FilePiece = (u64, u64, u64);

const EXTENT_DATA: u32 = 108;

/// Where a file of the directory's subvolume lies, by its items: nobody has to open the file for it. What is compressed, is kept in the
/// tree or has no place yet is left out.
/// # Errors
/// As [`search`].
pub fn file(directory: &File, inode: u64) -> io::Result<Vec<FilePiece>> {
    let wanted = WantedItems { tree: 0, object: inode, kind: EXTENT_DATA };
    let (mut pieces, mut from) = (Vec::new(), 0);
    loop {
        let found = search(directory, wanted, from)?;
        let Some((last, _)) = found.last() else { return Ok(pieces) };
        let Some(next) = last.checked_add(1) else { return Ok(pieces) };
        from = next;
        pieces.extend(found.iter().filter_map(|(offset, item)| file_piece(*offset, item)));
    }
}

/// struct btrfs_file_extent_item.
fn file_piece(offset: u64, item: &[u8]) -> Option<FilePiece> {
    let (encoded, inline) = (number(item, 16, 4)?, number(item, 20, 1)? == 0);
    let (start, skipped, bytes) = (number(item, 21, 8)?, number(item, 37, 8)?, number(item, 45, 8)?);
    // A hole has no start.
    (encoded == 0 && !inline && start != 0).then_some((offset, start.checked_add(skipped)?, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_item_is_a_piece_but_for_holes_and_what_is_encoded() {
        let mut item = vec![0; 53];
        item[20] = 1;
        item[21..29].copy_from_slice(&(1_u64 << 30).to_le_bytes());
        item[37..45].copy_from_slice(&4096_u64.to_le_bytes());
        item[45..53].copy_from_slice(&8192_u64.to_le_bytes());
        assert_eq!(file_piece(65536, &item), Some((65536, (1 << 30) + 4096, 8192)));
        assert_eq!(file_piece(0, &item[..50]), None);
        item[16] = 1;
        assert_eq!(file_piece(0, &item), None, "compressed");
        item[16] = 0;
        item[21..29].fill(0);
        assert_eq!(file_piece(0, &item), None, "a hole");
    }
}
