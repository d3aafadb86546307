//! A device after a power cut, as what differs from the image that its log began with.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use crate::number::{index, size};
use crate::request::{BLOCK_BYTES, SECTOR_BYTES};
use crate::store::{Block, Store, ZEROS};

/// Sectors of 512 bytes in a block.
pub(super) const SECTORS_PER_BLOCK: usize = 8;
const SECTOR: usize = 512;

/// Some sectors of a block.
#[derive(Debug, Clone, Default)]
pub(super) struct Patch {
    /// Bit per sector: it is part of the patch.
    known: u8,
    /// Nothing while all of them are zeros: a file system begins by discarding the whole device.
    bytes: Option<Box<Block>>,
}

impl Patch {
    pub fn set(&mut self, sector: usize, contents: Option<&[u8]>) {
        self.known |= 1 << sector;
        let place = sector * SECTOR..(sector + 1) * SECTOR;
        match (contents, &mut self.bytes) {
            (Some(contents), bytes) => {
                bytes.get_or_insert_with(|| Box::new(ZEROS))[place].copy_from_slice(contents);
            }
            (None, Some(bytes)) => bytes[place].fill(0),
            (None, None) => {}
        }
    }

    /// Puts block `number` on `store`. A whole block is moved there: of a full device there is no second copy.
    pub fn put_on(self, number: u64, store: &mut Store) {
        const WHOLE: u8 = u8::MAX;
        match self.bytes {
            Some(bytes) if self.known == WHOLE => store.put_block(number, bytes),
            bytes => {
                let bytes = bytes.as_deref().unwrap_or(&ZEROS);
                for sectors in runs(self.known) {
                    store.write(offset_of(number, sectors.start), &bytes[bytes_of(sectors)], true);
                }
            }
        }
    }

    fn bytes(&self) -> &Block {
        self.bytes.as_deref().unwrap_or(&ZEROS)
    }
}

/// The sectors whose bits are set, one behind the other in a range each.
fn runs(known: u8) -> impl Iterator<Item = Range<usize>> {
    let is_known = move |sector: &usize| known & 1 << sector != 0;
    let mut from = 0;
    std::iter::from_fn(move || {
        let begin = (from..SECTORS_PER_BLOCK).find(is_known)?;
        from = (begin..SECTORS_PER_BLOCK).find(|sector| !is_known(sector)).unwrap_or(SECTORS_PER_BLOCK);
        Some(begin..from)
    })
}

/// Where a sector of block `number` is on the device.
fn offset_of(number: u64, sector: usize) -> u64 {
    number * BLOCK_BYTES + size(sector) * SECTOR_BYTES
}

/// Where sectors are in their block.
fn bytes_of(sectors: Range<usize>) -> Range<usize> {
    sectors.start * SECTOR..sectors.end * SECTOR
}

/// A state of the device. Blocks that it does not have are those of the image that the log began with.
#[derive(Debug, Clone, Default)]
pub struct Image {
    patches: BTreeMap<u64, Patch>,
}

impl Image {
    pub(super) fn add(&mut self, number: u64, patch: Patch) {
        if patch.known != 0 {
            self.patches.insert(number, patch);
        }
    }

    /// Block `number`, where the log began with `base` in its place.
    pub fn block(&self, number: u64, base: &Block) -> Block {
        let mut block = *base;
        if let Some(patch) = self.patches.get(&number) {
            for sector in (0..SECTORS_PER_BLOCK).filter(|sector| patch.known & 1 << sector != 0) {
                let place = sector * SECTOR..(sector + 1) * SECTOR;
                block[place.clone()].copy_from_slice(&patch.bytes()[place]);
            }
        }
        block
    }

    /// Hands over everything that differs from the beginning, as (offset in bytes, bytes), ascending, in pieces of at most a block:
    /// with `write_all_at` it makes an image file of a copy of the first one.
    ///
    /// # Errors
    /// Those of `write`, which is not called again then.
    pub fn apply(&self, mut write: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
        for (number, patch) in &self.patches {
            for sectors in runs(patch.known) {
                write(offset_of(*number, sectors.start), &patch.bytes()[bytes_of(sectors)])?;
            }
        }
        Ok(())
    }

    /// Writes the first `len_bytes` of the device, where the log began with zeros. Streams; memory for a block.
    ///
    /// # Errors
    /// The file's.
    pub fn write_to(&self, out: &mut impl io::Write, len_bytes: u64) -> io::Result<()> {
        for number in 0..len_bytes.div_ceil(BLOCK_BYTES) {
            let count = BLOCK_BYTES.min(len_bytes - number * BLOCK_BYTES);
            out.write_all(&self.block(number, &ZEROS)[..index(count)])?;
        }
        Ok(())
    }
}
