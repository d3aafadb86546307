//! What a power cut may leave: from a log with data, images of the device at any moment.
//!
//! ```text
//! plan      the states that are worth to be looked at: all of a short log, a sample of a long one
//! moments   the times of the cuts, by chance: uniform over requests
//! history   the log in memory -> which writes a cut at a moment may take -> here: states, and picks of what survives
//! missing   which writes are gone
//! image     the device after a cut, as what differs from the image that its log began with
//! ```
//!
//! Invariants: 1. what a completed flush covers, and a completed FUA write, is in every image. 2. of every other write
//! each block (or each sector, torn) is there or not, on its own, but a newer one without an older one only as a whole.
//! 3. the same seed gives the same images.

pub mod plan;
pub mod moments;
mod history;
mod missing;
mod image;

use std::collections::BTreeMap;

pub use history::{Cut, History};
pub use image::Image;
pub use missing::{Missing, NotMissing};

use crate::chance::Chance;
use crate::log_writes::LogEntry;
use crate::number::{index, size};
use crate::store::Store;
use history::BlockPieces;
use image::{Patch, SECTORS_PER_BLOCK};

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

impl Pick {
    fn chance(self) -> Chance {
        match self {
            Pick::Blocks(seed) | Pick::Sectors(seed) => Chance::new(seed),
            _ => Chance::new(0),
        }
    }
}

/// Torn choices among the systematic ones of a moment.
const TORN_PICKS: usize = 3;

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
        let mut chance = pick.chance();
        let mut image = Image::default();
        for (number, pieces) in &self.blocks {
            let kept: [usize; SECTORS_PER_BLOCK] = self.kept(*number, pieces, pick, &mut chance);
            image.add(*number, pieces.materialise(*number, self.entries, &kept));
        }
        image
    }

    /// Nothing and all, each first part of the writes, each block alone, and all but it; three times torn, by this seed, if there is one.
    pub fn systematic_picks(&self, torn: Option<u64>) -> Vec<Pick> {
        if self.volatile.is_empty() {
            return vec![Pick::All];
        }
        let blocks = 0..self.volatile.len();
        let mut chance = torn.map(Chance::new);
        let torn = (0..TORN_PICKS).filter_map(|_| Some(Pick::Sectors(chance.as_mut()?.next())));
        [Pick::None, Pick::All]
            .into_iter()
            .chain((1..self.writes).map(Pick::Prefix))
            .chain(blocks.clone().map(Pick::Without))
            .chain(blocks.map(Pick::Only))
            .chain(torn)
            .collect()
    }

    /// What `pick` takes.
    pub fn missing(&self, pick: Pick) -> Missing {
        let mut missing = Missing::default();
        let mut chance = pick.chance();
        for (number, pieces) in &self.blocks {
            let all = pieces.volatile();
            let kept = self.kept(*number, pieces, pick, &mut chance);
            missing.add(*number, kept.map(|kept| all - kept));
        }
        missing
    }

    /// Puts what `pick` leaves on `store`, which has what the log began with: an image of a full device would be a second device.
    pub fn put_on(&self, store: &mut Store, pick: Pick) {
        let mut chance = pick.chance();
        for (number, pieces) in &self.blocks {
            let kept: [usize; SECTORS_PER_BLOCK] = self.kept(*number, pieces, pick, &mut chance);
            pieces.materialise(*number, self.entries, &kept).put_on(*number, store);
        }
    }

    /// Puts all but `missing` on `store`, which has what the log began with. Where more of a block is missing than can be lost, all that can be
    /// lost is gone.
    pub fn put_without(&self, store: &mut Store, missing: &Missing) {
        for (number, pieces) in &self.blocks {
            self.patch(*number, pieces, missing).put_on(*number, store);
        }
    }

    /// True where a cut at this moment can take `missing`: of each of its blocks there are so many writes that no flush covers.
    pub fn can_lack(&self, missing: &Missing) -> bool {
        missing.blocks().all(|number| {
            let volatile = self.blocks.get(&number).map_or(0, BlockPieces::volatile);
            missing.of(number).iter().all(|gone| *gone <= volatile)
        })
    }

    /// Of the blocks that no cut at this moment changes: what [`fingerprint`](CrashStates::fingerprint) asks for.
    pub fn settled_fingerprint(&self) -> u64 {
        let settled = self.blocks.iter().filter(|(_, pieces)| pieces.volatile() == 0);
        let nothing = Missing::default();
        settled
            .fold(0, |sum, (number, pieces)| sum.wrapping_add(self.fingerprint_of(*number, pieces, &nothing)))
    }

    /// A number that is the same for images whose sectors were all written by the same entries, at whatever moment of the history.
    pub fn fingerprint(&self, missing: &Missing, settled: u64) -> u64 {
        self.volatile.iter().fold(settled, |sum, number| {
            sum.wrapping_add(self.fingerprint_of(*number, &self.blocks[number], missing))
        })
    }

    fn fingerprint_of(&self, number: u64, pieces: &BlockPieces, missing: &Missing) -> u64 {
        let all = pieces.volatile();
        let kept = missing.of(number).map(|gone| all.saturating_sub(gone));
        pieces.fingerprint(number, self.entries, &kept)
    }

    fn patch(&self, number: u64, pieces: &BlockPieces, missing: &Missing) -> Patch {
        let all = pieces.volatile();
        pieces.materialise(number, self.entries, &missing.of(number).map(|gone| all.saturating_sub(gone)))
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
