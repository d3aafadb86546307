//! What a power cut may leave: from a log with data, images of the device at any moment.
//!
//! ```text
//! moments   the times of the cuts, by chance: uniform over requests
//! history   the log in memory -> which writes a cut at a moment may take -> here: states, and picks of what survives
//! image     the device after a cut, as what differs from the image that its log began with
//! ```
//!
//! Invariants: 1. what a completed flush covers, and a completed FUA write, is in every image. 2. of every other write
//! each block (or each sector, torn) is there or not, on its own, but a newer one without an older one only as a whole.
//! 3. the same seed gives the same images.

pub mod moments;
mod history;
mod image;

use std::collections::BTreeMap;

pub use history::{Cut, History};
pub use image::Image;

use crate::chance::Chance;
use crate::log_writes::LogEntry;
use crate::number::{index, size};
use history::BlockPieces;
use image::SECTORS_PER_BLOCK;

/// What survives of the writes that no flush covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// Nothing.
    None,
    /// Everything.
    All,
    /// The first so many, in order of submission.
    Prefix(u64),
    /// All but those of this volatile block (counted from 0 in order of the device).
    Without(usize),
    /// Those of this volatile block alone.
    Only(usize),
    /// For each block a random number of its writes, by this seed.
    Blocks(u64),
    /// For each sector of each block a random number of its writes, by this seed: torn.
    Sectors(u64),
}

/// The states in which a cut at one moment can leave the device.
#[derive(Debug)]
pub struct CrashStates<'history> {
    entries: &'history [LogEntry],
    blocks: BTreeMap<u64, BlockPieces>,
    /// Numbers of blocks with something volatile.
    volatile: Vec<u64>,
    writes: u64,
}

impl<'history> CrashStates<'history> {
    /// The states at `cut` of `history`.
    ///
    /// # Panics
    /// When the cut lies behind the end of the history.
    pub fn new(history: &'history History, cut: Cut) -> Self {
        let blocks = history.pieces_at(cut);
        let volatile: Vec<u64> =
            blocks.iter().filter(|(_, pieces)| pieces.volatile() > 0).map(|(number, _)| *number).collect();
        let writes = volatile.iter().map(|number| blocks[number].volatile_end()).max().unwrap_or(0);
        CrashStates { entries: history.entries(), blocks, volatile, writes }
    }

    /// Blocks of which the cut may take something.
    pub const fn volatile_blocks(&self) -> usize {
        self.volatile.len()
    }

    /// Writes to blocks since the last flush: what [`Pick::Prefix`] counts.
    pub const fn volatile_writes(&self) -> u64 {
        self.writes
    }

    /// At most `count` different choices: none and all, then prefixes, single blocks and random ones in turn, the half of
    /// those torn if `torn`. One, if nothing is volatile.
    pub fn picks(&self, count: usize, seed: u64, torn: bool) -> Vec<Pick> {
        if self.volatile.is_empty() {
            return vec![Pick::All].into_iter().take(count).collect();
        }
        let (mut picks, mut chance) = (vec![Pick::None, Pick::All], Chance::new(seed));
        let blocks = size(self.volatile.len());
        let mut round = 0;
        while picks.len() < count && round < 4 * count {
            let pick = match round % 6 {
                0 => Pick::Prefix(chance.below(self.writes + 1)),
                1 => Pick::Without(index(chance.below(blocks))),
                2 => Pick::Only(index(chance.below(blocks))),
                3 | 5 if torn => Pick::Sectors(chance.next()),
                _ => Pick::Blocks(chance.next()),
            };
            if !picks.contains(&pick) {
                picks.push(pick);
            }
            round += 1;
        }
        picks.truncate(count);
        picks
    }

    /// The image that `pick` leaves.
    pub fn image(&self, pick: Pick) -> Image {
        let mut chance = match pick {
            Pick::Blocks(seed) | Pick::Sectors(seed) => Chance::new(seed),
            _ => Chance::new(0),
        };
        let mut image = Image::default();
        for (number, pieces) in &self.blocks {
            let kept: [usize; SECTORS_PER_BLOCK] = self.kept(*number, pieces, pick, &mut chance);
            image.add(*number, pieces.materialise(*number, self.entries, &kept));
        }
        image
    }

    /// An image for each of [`picks`](CrashStates::picks).
    pub fn images(&self, count: usize, seed: u64, torn: bool) -> impl Iterator<Item = (Pick, Image)> {
        self.picks(count, seed, torn).into_iter().map(|pick| (pick, self.image(pick)))
    }

    /// How many of a block's volatile writes survive in each of its sectors.
    fn kept(
        &self,
        number: u64,
        pieces: &BlockPieces,
        pick: Pick,
        chance: &mut Chance,
    ) -> [usize; SECTORS_PER_BLOCK] {
        let all = pieces.volatile();
        if all == 0 {
            return [0; SECTORS_PER_BLOCK];
        }
        let this = |place: usize| self.volatile.get(place) == Some(&number);
        let mut any = || index(chance.below(size(all) + 1));
        match pick {
            Pick::None => [0; SECTORS_PER_BLOCK],
            Pick::All => [all; SECTORS_PER_BLOCK],
            Pick::Prefix(writes) => [pieces.volatile_before(writes); SECTORS_PER_BLOCK],
            Pick::Without(place) => [if this(place) { 0 } else { all }; SECTORS_PER_BLOCK],
            Pick::Only(place) => [if this(place) { all } else { 0 }; SECTORS_PER_BLOCK],
            Pick::Blocks(_) => [any(); SECTORS_PER_BLOCK],
            Pick::Sectors(_) => std::array::from_fn(|_| any()),
        }
    }
}

#[cfg(test)]
mod tests;
