//! Goal: superblocks are read right, and damaged ones never end in a panic, in endless work or in regions that overlap.
//! Method: samples; each bit of each flipped, with checksums made right again; fields set to extremes; every cut.

use super::ext4;
use crate::block_device::DeviceNumber;
use crate::filesystem::layout::{Extent, Layout, LayoutError};
use crate::filesystem::region::RegionUse;
use crate::filesystem::samples::{self, SECTORS, Sample};

fn all() -> Vec<Sample> {
    let mut samples = vec![
        samples::ext4(),
        samples::ext3(),
        samples::xfs(),
        samples::btrfs(),
        samples::f2fs(),
        samples::nilfs2(),
    ];
    for sample in &mut samples {
        (sample.seal)(sample);
    }
    // Recorded from a device of 160 MiB.
    samples.retain(|sample| sample.kind != "nilfs2");
    samples
}

/// Regions lie on the device, in order.
fn check(layout: &Layout, what: &str) {
    let mut end = 0;
    for region in &layout.regions {
        assert!(region.sector >= end && region.sectors > 0, "{what}: {region:?} before {end}");
        end = region.sector + region.sectors;
    }
    assert!(end <= SECTORS, "{what}: beyond the device");
}

fn regions(sample: &Sample) -> Vec<(RegionUse, u64, u64, u64)> {
    let layout = sample.layout().unwrap();
    let parts = |region: &crate::filesystem::region::Region| {
        (region.purpose, region.sector, region.sectors, region.journal_offset)
    };
    layout.regions.iter().map(parts).collect()
}

fn file_pieces(sample: &Sample, inode: u64) -> Result<Vec<[u64; 3]>, LayoutError> {
    let device = Extent { disk: DeviceNumber(1), start_sector: 0, sectors: SECTORS };
    let read = &mut |at: u64, bytes: usize| Ok(sample.bytes(at, bytes));
    let found = ext4::file(device, inode, read)?;
    Ok(found.iter().map(|piece| [piece.offset, piece.at, piece.bytes].map(|bytes| bytes >> 10)).collect())
}

#[test]
fn a_file_of_ext4_lies_where_its_inode_says_and_holes_lie_nowhere() {
    let samples = all();
    let (mut ext4, mut ext3) = (samples[0].clone(), samples[1].clone());
    assert_eq!(file_pieces(&ext4, 8).unwrap(), [[0, 4000, 512], [512, 5000, 512]]);
    assert!(
        file_pieces(&ext4, 0).is_err()
            && file_pieces(&ext4, 1 << 40).is_err()
            && file_pieces(&ext4, 9).is_err()
    );
    // The second of the first two blocks of the list, and the whole node below it.
    ext3.pieces[2].1[0x28 + 4..0x28 + 8].fill(0);
    ext3.pieces[2].1[0x28 + 48..0x28 + 52].fill(0);
    assert_eq!(file_pieces(&ext3, 8).unwrap(), [[0, 4000, 1], [2, 4002, 10]]);
    // A hole between the extents, and a tree that leads into itself.
    ext4.pieces[3].1[24..28].copy_from_slice(&1024_u32.to_le_bytes());
    assert_eq!(file_pieces(&ext4, 8).unwrap(), [[0, 4000, 512], [1024, 5000, 512]]);
    ext4.pieces[3].1[6] = 3;
    assert!(file_pieces(&ext4, 8).is_err(), "another depth than its parent says");
}

#[test]
fn the_samples_are_read_as_they_were_made() {
    let samples = all();
    let ext4 = regions(&samples[0]);
    assert_eq!(ext4[0], (RegionUse::Superblock, 2, 2, 0));
    assert_eq!(ext4[1], (RegionUse::GroupDescriptors, 4, 34, 0), "one block and 16 reserved ones");
    let journal: Vec<_> = ext4.iter().filter(|region| region.0 == RegionUse::Journal).collect();
    assert_eq!(
        journal,
        [&(RegionUse::Journal, 8000, 1024, 0), &(RegionUse::Journal, 10000, 1024, 512 << 10)]
    );
    assert!(regions(&samples[1]).contains(&(RegionUse::Journal, 8000, 528, 0)), "one run in the end");
    let xfs = regions(&samples[2]);
    assert_eq!(
        xfs,
        [
            (RegionUse::Superblock, 0, 1, 0),
            (RegionUse::GroupHeader, 1, 3, 0),
            (RegionUse::GroupHeader, 65536, 4, 0),
            (RegionUse::Journal, 66336, 8000, 0)
        ]
    );
    assert_eq!(regions(&samples[3]), [(RegionUse::Superblock, 128, 8, 0)], "no room for a copy");
    let f2fs = regions(&samples[4]);
    assert_eq!(f2fs.last(), Some(&(RegionUse::SegmentSummary, 28672, 4096, 0)));
}

#[test]
fn a_recorded_superblock_of_nilfs2_passes_its_checksum() {
    let error = samples::nilfs2().layout().unwrap_err().to_string();
    assert!(
        error.contains("167772160 bytes on a device of"),
        "the checksum is right, the device not: {error}"
    );
    let mut damaged = samples::nilfs2();
    damaged.pieces[0].1[30] ^= 1;
    assert!(damaged.layout().unwrap_err().to_string().contains("checksum"));
}

#[test]
fn a_flipped_bit_is_found_by_the_checksum_or_harmless_without() {
    for sample in all() {
        for piece in 0..sample.pieces.len() {
            // One bit of each byte and sometimes two, another one from byte to byte: all of them take a minute.
            for bit in (0..sample.pieces[piece].1.len() * 8).step_by(7) {
                let what = format!("{} piece {piece} bit {bit}", sample.kind);
                let mut damaged = sample.clone();
                damaged.pieces[piece].1[bit / 8] ^= 1 << (bit % 8);
                if bit % 29 == 0
                    && let Ok(layout) = damaged.layout()
                {
                    check(&layout, &what);
                }
                // Only the heads have fields that we read: further bits change nothing but a checksum.
                if bit < 2400 {
                    (damaged.seal)(&mut damaged);
                    if let Ok(layout) = damaged.layout() {
                        check(&layout, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn extreme_fields_are_errors_or_harmless() {
    for sample in all() {
        for piece in 0..sample.pieces.len() {
            for at in (0..sample.pieces[piece].1.len().min(0x260) - 8).step_by(2) {
                // Two of these for each place, the other two for the next: all of them take half a minute.
                for value in [u64::MAX, 0, u64::MAX >> 1, 1].into_iter().skip(at / 2 % 2).step_by(2) {
                    for width in [2, 4] {
                        let mut damaged = sample.clone();
                        damaged.pieces[piece].1[at..at + width]
                            .copy_from_slice(&value.to_le_bytes()[..width]);
                        (damaged.seal)(&mut damaged);
                        if let Ok(layout) = damaged.layout() {
                            check(&layout, &format!("{} piece {piece} byte {at}", sample.kind));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_device_that_ends_early_is_an_error_with_a_place() {
    for sample in all() {
        let end = sample.pieces.iter().map(|(at, bytes)| at + bytes.len() as u64).max().unwrap();
        for cut in (0..end).step_by(509) {
            match sample.cut_at(cut) {
                Ok(layout) => check(&layout, sample.kind),
                Err(error) => {
                    assert!(error.to_string().contains("at byte"), "{} cut at {cut}: {error}", sample.kind)
                }
            }
        }
    }
}
