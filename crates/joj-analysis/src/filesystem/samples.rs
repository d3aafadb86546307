//! Superblocks for tests, and what must hold for every damaged one.

use std::io;

use crate::block_device::DeviceNumber;
use crate::filesystem::layout::checksum::{CASTAGNOLI, ETHERNET, crc32};
use crate::filesystem::layout::{Extent, Layout, LayoutError};

/// Sectors of the device that the samples describe: 64 MiB.
pub const SECTORS: u64 = 64 << 11;

/// A device of [`SECTORS`] with these bytes at these places, and zeros elsewhere.
#[derive(Debug, Clone)]
pub struct Sample {
    pub kind: &'static str,
    pub pieces: Vec<(u64, Vec<u8>)>,
    /// Makes the checksums right again.
    pub seal: fn(&mut Sample),
}

impl Sample {
    pub fn layout(&self) -> Result<Layout, LayoutError> {
        self.cut_at(SECTORS * 512)
    }

    /// As if the device ended after `end` bytes, while its size is told as it was.
    pub fn cut_at(&self, end: u64) -> Result<Layout, LayoutError> {
        let mut asked = 0;
        let read = &mut |at: u64, bytes: usize| {
            asked += bytes;
            assert!(bytes <= 1 << 20 && asked <= 64 << 20, "{bytes} bytes of {asked} for a few kilobytes");
            let until = at.checked_add(bytes as u64).filter(|until| *until <= end);
            until.ok_or_else(|| io::Error::other("the device ends before"))?;
            Ok(self.bytes(at, bytes))
        };
        let device = Extent { disk: DeviceNumber(1), start_sector: 0, sectors: SECTORS };
        super::layout_of(self.kind, device, read).map(|layout| layout.expect("a known kind"))
    }

    pub fn bytes(&self, at: u64, bytes: usize) -> Vec<u8> {
        let (mut found, end) = (vec![0; bytes], at + bytes as u64);
        for (start, piece) in &self.pieces {
            let (from, to) = (at.max(*start), end.min(start + piece.len() as u64));
            if from < to {
                let within = |byte: u64, first: u64| usize::try_from(byte - first).unwrap();
                let part = &piece[within(from, *start)..within(to, *start)];
                found[within(from, at)..within(to, at)].copy_from_slice(part);
            }
        }
        found
    }
}

fn piece(bytes: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut piece = vec![0; bytes];
    for (at, field) in fields {
        piece[*at..at + field.len()].copy_from_slice(field);
    }
    piece
}

fn le(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

fn be(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn nothing(_: &mut Sample) {}

/// 1 KiB blocks, 8 groups, a journal of 1024 blocks in two extents below a node of their own.
pub fn ext4() -> Sample {
    let superblock: [(usize, &[u8]); 13] = [
        (0x4, &le(65536)),
        (0x14, &le(1)),
        (0x20, &le(8192)),
        (0x28, &le(1024)),
        (0x38, &[0x53, 0xef]),
        (0x4c, &le(1)),
        (0x58, &[0, 1]),
        (0x5c, &le(0x14)),
        (0x60, &le(0x2c0)),
        (0x64, &le(0x401)),
        (0xce, &[16, 0]),
        (0xe0, &le(8)),
        (0xfe, &[64, 0]),
    ];
    let mut descriptors = Vec::new();
    for group in 0..8 {
        let fields: [(usize, &[u8]); 3] =
            [(0, &le(100 + group)), (4, &le(110 + group)), (8, &le(120 + 256 * group))];
        descriptors.extend(piece(64, &fields));
    }
    let extent = |log: u32, block: u32| [le(log), le(512), le(block)].concat();
    let root = [&[0x0a, 0xf3, 1, 0, 4, 0, 1, 0], &[0; 8][..], &le(3000), &le(0)].concat();
    let inode: [(usize, &[u8]); 4] =
        [(0, &[0x80, 0x81]), (4, &le(1 << 20)), (0x20, &le(0x8_0000)), (0x28, &root)];
    let node: [(usize, &[u8]); 3] =
        [(0, &[0x0a, 0xf3, 2, 0, 84, 0]), (12, &extent(0, 4000)), (24, &extent(512, 5000))];
    let log: [(usize, &[u8]); 5] =
        [(0, &be(0xc03b_3998)), (4, &be(4)), (0xc, &be(1024)), (0x10, &be(1024)), (0x28, &be(0x10))];
    let at = |block: u64| block * 1024;
    Sample {
        kind: "ext4",
        pieces: vec![
            (at(1), piece(1024, &superblock)),
            (at(2), descriptors),
            (at(120) + 7 * 256, piece(256, &inode)),
            (at(3000), piece(1024, &node)),
            (at(4000), piece(1024, &log)),
        ],
        seal: |sample| {
            let sum = crc32(CASTAGNOLI, !0, &sample.pieces[0].1[..0x3fc]);
            sample.pieces[0].1[0x3fc..].copy_from_slice(&le(sum));
            let log = &mut sample.pieces[4].1;
            log[0xfc..0x100].fill(0);
            let sum = crc32(CASTAGNOLI, !0, log);
            log[0xfc..0x100].copy_from_slice(&be(sum));
        },
    }
}

/// ext3's list of blocks: twelve, and a block of the other 252 numbers.
pub fn ext3() -> Sample {
    let mut sample = ext4();
    sample.kind = "ext3";
    let mut root: Vec<u8> = (0..12).flat_map(|block| le(4000 + block)).collect();
    root.extend(le(3000));
    let inode = &mut sample.pieces[2].1;
    inode[4..8].copy_from_slice(&le(264 << 10));
    inode[0x20..0x24].fill(0);
    inode[0x28..0x28 + 52].copy_from_slice(&root);
    sample.pieces[3].1 = (12..268).flat_map(|block| le(4000 + block)).collect();
    sample.pieces[4].1[0x10..0x14].copy_from_slice(&be(264));
    sample
}

/// Two groups of 8192 blocks, the log in the second.
pub fn xfs() -> Sample {
    let fields: [(usize, &[u8]); 11] = [
        (0, b"XFSB"),
        (4, &be(4096)),
        (12, &be(16384)),
        (52, &be(8192 + 100)),
        (84, &be(8192)),
        (88, &be(2)),
        (96, &be(1000)),
        (100, &[0, 5]),
        (102, &[2, 0]),
        (120, &[12, 9]),
        (124, &[13]),
    ];
    Sample {
        kind: "xfs",
        pieces: vec![(0, piece(512, &fields))],
        seal: |sample| {
            let bytes = &mut sample.pieces[0].1;
            bytes[224..228].fill(0);
            let sum = !crc32(CASTAGNOLI, !0, bytes);
            bytes[224..228].copy_from_slice(&le(sum));
        },
    }
}

pub fn btrfs() -> Sample {
    let fields: [(usize, &[u8]); 4] =
        [(0x30, &le(65536)), (0x40, b"_BHRfS_M"), (0x90, &le(4096)), (0xc9 + 8, &le(64 << 20))];
    Sample {
        kind: "btrfs",
        pieces: vec![(65536, piece(4096, &fields))],
        seal: |sample| {
            let sum = !crc32(CASTAGNOLI, !0, &sample.pieces[0].1[0x20..]);
            sample.pieces[0].1[..4].copy_from_slice(&le(sum));
        },
    }
}

/// The numbers of what mkfs.f2fs 1.15 makes of 64 MiB.
pub fn f2fs() -> Sample {
    let head = [0xf2f5_2010, 0x000f_0001, 9, 3, 12, 9, 1, 1, 3068, 16384, 0].map(le).concat();
    let areas = [24, 31, 2, 2, 2, 1, 24, 512, 512, 1536, 2560, 3584, 4096, 3, 1, 2].map(le).concat();
    let fields: [(usize, &[u8]); 3] = [(0, &head), (44, &areas), (2180, &le(0x808))];
    Sample {
        kind: "f2fs",
        pieces: vec![(1024, piece(3072, &fields))],
        seal: |sample| {
            let bytes = &mut sample.pieces[0].1;
            let sum = crc32(ETHERNET, 0xf2f5_2010, &bytes[..3068]);
            bytes[3068..].copy_from_slice(&le(sum));
        },
    }
}

/// As recorded from mkfs.nilfs2 2.2.9, with its checksum.
pub fn nilfs2() -> Sample {
    let fields: [(usize, &[u8]); 4] = [
        (0, b"\x02\0\0\0\0\x0044\x18\x01\0\0dD@{\x96\xdd\xcdl\x02\0\0\0\x13"),
        (35, b"\n\0\0\0\0\x01\0\0\0\0\0\0\0\0\x08\0\0\x05\0\0\0\x01\0\0\0\0\0\0\0\x01"),
        (81, b"\x90\0\0\0\0\0\0\xa8\x12\x02k"),
        (
            104,
            b"\xa8\x12\x02k\0\0\0\0\0\x002\0\x01\0\x01\0\xa8\x12\x02k\0\0\0\0\0N\xed\0\0\0\0\0\0\0\0\0\x0b\0\0\0\x80\0 \0\xc0\0\x10\0\xd4Y`\xe7\xfc\xaaAP\xa0,B\x15\x8ayM\xb2",
        ),
    ];
    Sample { kind: "nilfs2", pieces: vec![(1024, piece(1024, &fields))], seal: nothing }
}
