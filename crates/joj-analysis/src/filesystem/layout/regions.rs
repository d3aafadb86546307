//! Regions as they are found, and the list that they become: in order, joined, without overlap.

use super::Extent;
use super::error::RegionError;
use crate::block_device::SECTOR_BYTES;
use crate::filesystem::region::{Region, RegionUse};

/// More pieces than any filesystem has that could be mounted: 4 TiB of ext4 without flex_bg has 100,000.
const REGIONS_MAX: usize = 1 << 22;

/// Collects the regions of one device.
#[derive(Debug)]
pub struct Regions {
    device: Extent,
    found: Vec<Region>,
}

impl Regions {
    /// An empty list for this device.
    pub fn new(device: Extent) -> Self {
        Self { device, found: Vec::new() }
    }

    /// Bytes from byte `at` of the device on have this use.
    /// # Errors
    /// They do not lie on the device, there is none, or there are too many regions.
    pub fn add(&mut self, purpose: RegionUse, at: u64, bytes: u64) -> Result<(), RegionError> {
        self.add_piece(purpose, at, bytes, 0)
    }

    /// As [`Regions::add`], for a piece of a journal that begins at byte `journal_offset` of it.
    /// # Errors
    /// As [`Regions::add`].
    pub fn add_piece(
        &mut self,
        purpose: RegionUse,
        at: u64,
        bytes: u64,
        journal_offset: u64,
    ) -> Result<(), RegionError> {
        if bytes == 0 {
            return Err(RegionError::Empty { purpose, at });
        }
        let end = at.checked_add(bytes).filter(|end| end.div_ceil(SECTOR_BYTES) <= self.device.sectors);
        if end.is_none() {
            let device_bytes = u128::from(self.device.sectors) * u128::from(SECTOR_BYTES);
            return Err(RegionError::OutsideDevice { purpose, at, bytes, device_bytes });
        }
        let (first, sectors) = (at / SECTOR_BYTES, bytes.div_ceil(SECTOR_BYTES));
        if self.device.start_sector.checked_add(first + sectors).is_none() {
            return Err(RegionError::OutsideDisk { purpose, at });
        }
        let sector = self.device.start_sector + first;
        let next = Region { disk: self.device.disk, sector, sectors, purpose, journal_offset };
        if self.found.last_mut().is_some_and(|last| join(last, &next)) {
            return Ok(());
        }
        if self.found.len() == REGIONS_MAX {
            return Err(RegionError::TooMany { purpose, regions_max: REGIONS_MAX });
        }
        self.found.push(next);
        Ok(())
    }

    /// The list.
    /// # Errors
    /// Two uses want the same sectors.
    pub fn finish(self) -> Result<Vec<Region>, RegionError> {
        in_order(self.found)
    }
}

/// Sorts and joins regions, also those of several devices.
/// # Errors
/// Two uses want the same sectors.
pub fn in_order(mut regions: Vec<Region>) -> Result<Vec<Region>, RegionError> {
    regions.sort_unstable_by_key(|region| (region.disk, region.sector));
    let mut joined: Vec<Region> = Vec::new();
    for region in regions {
        let Some(last) = joined.last_mut() else {
            joined.push(region);
            continue;
        };
        if last.disk == region.disk && last.sector + last.sectors > region.sector {
            let (first, second) = (last.purpose, region.purpose);
            return Err(RegionError::Overlap { sector: region.sector, first, second });
        }
        if !join(last, &region) {
            joined.push(region);
        }
    }
    Ok(joined)
}

/// Makes `last` longer where `next` continues it.
fn join(last: &mut Region, next: &Region) -> bool {
    let in_journal = matches!(last.purpose, RegionUse::Journal | RegionUse::FastCommit);
    let continues = last.disk == next.disk
        && last.purpose == next.purpose
        && last.sector + last.sectors == next.sector
        && (!in_journal || last.journal_offset + last.sectors * SECTOR_BYTES == next.journal_offset);
    if continues {
        last.sectors += next.sectors;
    }
    continues
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_device::DeviceNumber;

    fn regions() -> Regions {
        Regions::new(Extent { disk: DeviceNumber(8), start_sector: 100, sectors: 1000 })
    }

    #[test]
    fn neighbours_of_one_use_become_one_region_on_the_whole_disk() {
        let mut found = regions();
        for at in [4096, 0, 1024, 512] {
            found.add(RegionUse::InodeTable, at, 512).unwrap();
        }
        found.add_piece(RegionUse::Journal, 8192, 512, 0).unwrap();
        found.add_piece(RegionUse::Journal, 8704, 512, 4096).unwrap();
        let list: Vec<_> =
            found.finish().unwrap().iter().map(|region| (region.sector, region.sectors)).collect();
        assert_eq!(
            list,
            [(100, 3), (108, 1), (116, 1), (117, 1)],
            "the journal's pieces do not follow in it"
        );
    }

    #[test]
    fn what_lies_outside_or_twice_is_an_error() {
        let mut found = regions();
        let outside = found.add(RegionUse::Journal, 512_000, 1).unwrap_err();
        assert!(outside.to_string().contains("512000"), "{outside}");
        assert!(found.add(RegionUse::Journal, u64::MAX, u64::MAX).is_err());
        found.add(RegionUse::InodeTable, 0, 1024).unwrap();
        found.add(RegionUse::BlockBitmap, 512, 512).unwrap();
        let twice = found.finish().unwrap_err();
        let expected = "sector 101 of the disk would be InodeTable and BlockBitmap";
        assert_eq!(twice.to_string(), expected);
    }
}
