//! Which file's bytes lie on which sectors, for captures that do not see the memory of a request.

use std::collections::{BTreeMap, HashMap};

use crate::trace::event::{DeviceNumber, FileKey, SECTOR_BYTES};

/// A stretch of sectors that hold a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OwnedExtent {
    end: u64,
    file: FileKey,
    offset: u64,
    /// The tree of Btrfs of which it is a block, instead of a file.
    tree: Option<i64>,
}

/// The newest owner of each sector that an extent event named.
#[derive(Debug, Default)]
pub struct Extents {
    by_sector: BTreeMap<(DeviceNumber, u64), OwnedExtent>,
    of_file: HashMap<FileKey, Vec<(DeviceNumber, u64)>>,
}

/// Where a sector belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The file that the extent belongs to.
    pub file: FileKey,
    /// Byte of the file at that sector.
    pub offset: u64,
    /// The tree of Btrfs of which it is a block; then there is no file.
    pub tree: Option<i64>,
    /// First sector for which this says nothing more.
    pub end_sector: u64,
}

impl Extents {
    /// `bytes` of `file` from `offset` on lie at `sector` now, whoever had those sectors before.
    pub fn set(&mut self, disk: DeviceNumber, sector: u64, bytes: u64, file: FileKey, offset: u64) {
        if self.put(disk, sector, bytes, OwnedExtent { end: 0, file, offset, tree: None }) {
            self.of_file.entry(file).or_default().push((disk, sector));
        }
    }

    /// A block of a tree lies at `sector` now, whoever had those sectors before.
    pub fn set_tree(&mut self, disk: DeviceNumber, sector: u64, bytes: u64, tree: i64) {
        self.put(
            disk,
            sector,
            bytes,
            OwnedExtent { end: 0, file: FileKey::NONE, offset: 0, tree: Some(tree) },
        );
    }

    /// False where it is there already.
    fn put(&mut self, disk: DeviceNumber, sector: u64, bytes: u64, extent: OwnedExtent) -> bool {
        let end = sector.saturating_add(bytes.div_ceil(SECTOR_BYTES));
        let extent = OwnedExtent { end, ..extent };
        if end <= sector || self.by_sector.get(&(disk, sector)) == Some(&extent) {
            return false;
        }
        self.clear(disk, sector, end);
        self.by_sector.insert((disk, sector), extent);
        true
    }

    /// What lies at `sector` is no file's any more.
    pub fn free(&mut self, disk: DeviceNumber, sector: u64, bytes: u64) {
        self.clear(disk, sector, sector.saturating_add(bytes.div_ceil(SECTOR_BYTES)));
    }

    /// A file has no blocks any more.
    pub fn forget(&mut self, file: FileKey) {
        for at in self.of_file.remove(&file).unwrap_or_default() {
            // The sectors may belong to another file by now.
            if self.by_sector.get(&at).is_some_and(|extent| extent.file == file) {
                self.by_sector.remove(&at);
            }
        }
    }

    /// A file has no blocks beyond its first `bytes` any more.
    pub fn cut(&mut self, file: FileKey, bytes: u64) {
        let Some(places) = self.of_file.remove(&file) else { return };
        let mut kept = Vec::with_capacity(places.len());
        for at in places {
            // The sectors may belong to another file by now.
            let Some(extent) = self.by_sector.get_mut(&at).filter(|extent| extent.file == file) else {
                continue;
            };
            let left = bytes.saturating_sub(extent.offset).div_ceil(SECTOR_BYTES);
            if left == 0 {
                self.by_sector.remove(&at);
                continue;
            }
            extent.end = extent.end.min(at.1.saturating_add(left));
            kept.push(at);
        }
        if !kept.is_empty() {
            self.of_file.insert(file, kept);
        }
    }

    /// Nobody knows where `bytes` of a file from `offset` on lie.
    pub fn forget_range(&mut self, file: FileKey, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes);
        let places = self.of_file.get(&file).map_or(&[][..], Vec::as_slice);
        let mut gone = Vec::new();
        for &(disk, first) in places {
            // The sectors may belong to another file by now.
            let extent = self.by_sector.get(&(disk, first)).filter(|extent| extent.file == file);
            let Some(extent) = extent else { continue };
            let until = |byte: u64| {
                let sectors = byte.saturating_sub(extent.offset).div_ceil(SECTOR_BYTES);
                first.saturating_add(sectors).min(extent.end)
            };
            if until(offset) < until(end) {
                gone.push((disk, until(offset), until(end)));
            }
        }
        gone.into_iter().for_each(|(disk, first, end)| self.clear(disk, first, end));
        if let Some(places) = self.of_file.get_mut(&file) {
            let by_sector = &self.by_sector;
            places.retain(|at| by_sector.get(at).is_some_and(|extent| extent.file == file));
            if places.is_empty() {
                self.of_file.remove(&file);
            }
        }
    }

    /// Whose a sector is, and how far that goes on: to the end of its extents, or beyond `until`.
    pub fn owner(&self, disk: DeviceNumber, sector: u64, until: u64) -> Option<Owner> {
        let (&(_, first), extent) = self.by_sector.range((disk, 0)..=(disk, sector)).next_back()?;
        (sector < extent.end).then(|| Owner {
            file: extent.file,
            offset: extent.offset + (sector - first) * SECTOR_BYTES,
            tree: extent.tree,
            end_sector: self.goes_on_until(disk, first, extent, until),
        })
    }

    /// Where an extent ends, with those behind it that go on with the same file; nobody asks beyond `until`.
    fn goes_on_until(&self, disk: DeviceNumber, first: u64, extent: &OwnedExtent, until: u64) -> u64 {
        let mut end = extent.end;
        while extent.tree.is_none() && end < until {
            let offset = extent.offset + (end - first) * SECTOR_BYTES;
            match self.by_sector.get(&(disk, end)) {
                Some(next) if (next.file, next.offset, next.tree) == (extent.file, offset, None) => {
                    end = next.end;
                }
                _ => break,
            }
        }
        end
    }

    /// First sector after `sector` that has an owner, as far as `end`.
    pub fn next_owned(&self, disk: DeviceNumber, sector: u64, end: u64) -> u64 {
        let next = self.by_sector.range((disk, sector.saturating_add(1))..).next();
        next.filter(|((on, first), _)| *on == disk && *first < end).map_or(end, |((_, first), _)| *first)
    }

    /// Cuts what there is between two sectors out of its extents.
    fn clear(&mut self, disk: DeviceNumber, first: u64, end: u64) {
        let mut touched: Vec<(u64, OwnedExtent)> = Vec::new();
        if let Some((&(_, at), extent)) = self.by_sector.range((disk, 0)..(disk, first)).next_back()
            && extent.end > first
        {
            touched.push((at, *extent));
        }
        touched
            .extend(self.by_sector.range((disk, first)..(disk, end)).map(|((_, at), extent)| (*at, *extent)));
        for (at, extent) in touched {
            self.by_sector.remove(&(disk, at));
            if at < first {
                self.by_sector.insert((disk, at), OwnedExtent { end: first, ..extent });
            }
            if extent.end > end {
                let offset = extent.offset + (end - at) * SECTOR_BYTES;
                self.by_sector.insert((disk, end), OwnedExtent { offset, ..extent });
                if extent.tree.is_none() {
                    self.of_file.entry(extent.file).or_default().push((disk, end));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber(5);

    fn file(inode: u64) -> FileKey {
        FileKey { device: DISK, inode, generation: 0 }
    }

    fn owner(extents: &Extents, sector: u64) -> Option<(u64, u64)> {
        extents.owner(DISK, sector, sector).map(|owner| (owner.file.inode, owner.offset))
    }

    #[test]
    fn the_newest_owner_counts_and_cuts_the_others() {
        let mut extents = Extents::default();
        extents.set(DISK, 100, 10 * 512, file(1), 0);
        extents.set(DISK, 104, 2 * 512, file(2), 4096);
        let found: Vec<_> =
            [99, 100, 103, 104, 105, 106, 109, 110].map(|sector| owner(&extents, sector)).into();
        let first = |sector: u64| Some((1, (sector - 100) * 512));
        assert_eq!(
            found,
            [None, first(100), first(103), Some((2, 4096)), Some((2, 4608)), first(106), first(109), None]
        );
        assert_eq!((extents.next_owned(DISK, 103, 200), extents.next_owned(DISK, 106, 200)), (104, 200));
    }

    #[test]
    fn a_file_that_is_freed_leaves_what_others_took_over() {
        let mut extents = Extents::default();
        extents.set(DISK, 100, 8 * 512, file(1), 0);
        extents.set(DISK, 102, 512, file(2), 0);
        extents.forget(file(1));
        assert_eq!([101, 102, 103].map(|sector| owner(&extents, sector)), [None, Some((2, 0)), None]);
    }

    #[test]
    fn sectors_that_are_freed_leave_what_lies_around_them() {
        let mut extents = Extents::default();
        extents.set(DISK, 100, 8 * 512, file(1), 0);
        extents.free(DISK, 102, 2 * 512);
        let found = [101, 102, 103, 104].map(|sector| owner(&extents, sector));
        assert_eq!(found, [Some((1, 512)), None, None, Some((1, 4 * 512))]);
        extents.forget(file(1));
        assert_eq!([101, 104].map(|sector| owner(&extents, sector)), [None; 2]);
    }

    #[test]
    fn extents_in_a_row_are_one_stretch_of_their_file() {
        let mut extents = Extents::default();
        for (block, owner, at) in [(0, 1, 0), (1, 1, 1), (2, 1, 2), (3, 1, 7), (4, 2, 8)] {
            extents.set(DISK, 100 + 8 * block, 4096, file(owner), at * 4096);
        }
        extents.set_tree(DISK, 200, 4096, 5);
        extents.set_tree(DISK, 208, 4096, 5);
        let end = |sector, until| extents.owner(DISK, sector, until).map(|owner| owner.end_sector);
        assert_eq!([end(100, 200), end(103, 105), end(103, 109)], [Some(124), Some(108), Some(116)]);
        assert_eq!(
            [end(120, 200), end(124, 200), end(132, 200), end(140, 200)],
            [Some(124), Some(132), Some(140), None]
        );
        assert_eq!(end(200, 300), Some(208), "each block of a tree is one of its own");
    }

    #[test]
    fn a_trees_block_takes_the_place_of_a_file_and_gives_it_back() {
        let mut extents = Extents::default();
        extents.set(DISK, 100, 64 * 512, file(1), 0);
        extents.set_tree(DISK, 132, 32 * 512, 5);
        let trees =
            [131, 132, 163].map(|sector| extents.owner(DISK, sector, 200).and_then(|owner| owner.tree));
        assert_eq!((trees, owner(&extents, 131)), ([None, Some(5), Some(5)], Some((1, 31 * 512))));
        extents.set(DISK, 132, 32 * 512, file(2), 0);
        assert_eq!(owner(&extents, 132), Some((2, 0)));
    }

    #[test]
    fn bytes_that_may_lie_elsewhere_have_no_place() {
        let mut extents = Extents::default();
        extents.set(DISK, 100, 8 * 512, file(1), 0);
        extents.set(DISK, 200, 8 * 512, file(1), 8 * 512);
        extents.set(DISK, 300, 8 * 512, file(2), 0);
        extents.forget_range(file(1), 6 * 512, 4 * 512);
        let found = [100, 105, 106, 201, 202, 300].map(|sector| owner(&extents, sector));
        let kept = [(1, 0), (1, 5 * 512), (1, 10 * 512), (2, 0)].map(Some);
        assert_eq!(found, [kept[0], kept[1], None, None, kept[2], kept[3]]);
        extents.forget_range(file(1), 0, u64::MAX);
        assert_eq!((owner(&extents, 100), owner(&extents, 205), extents.of_file.len()), (None, None, 1));
    }

    #[test]
    fn a_file_that_is_cut_keeps_what_is_in_front() {
        let mut extents = Extents::default();
        extents.set(DISK, 100, 8 * 512, file(1), 0);
        extents.set(DISK, 200, 8 * 512, file(1), 8 * 512);
        extents.cut(file(1), 5 * 512 - 1);
        let found = [100, 104, 105, 200].map(|sector| owner(&extents, sector));
        assert_eq!(found, [Some((1, 0)), Some((1, 4 * 512)), None, None]);
        extents.cut(file(1), 0);
        assert_eq!((owner(&extents, 100), extents.of_file.len()), (None, 0));
    }
}
