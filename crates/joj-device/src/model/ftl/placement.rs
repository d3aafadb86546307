//! Which block holds a unit: a map that costs memory only where something was written.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use crate::number::{index, keys_within};

/// Units in a piece of the map: 4 KiB of memory.
const PIECE_UNITS: u64 = 1024;
/// No block: never written, or trimmed.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Placement {
    pieces: HashMap<u64, Vec<u32>>,
}

impl Placement {
    pub fn get(&self, unit: u64) -> Option<u32> {
        let block = self.pieces.get(&(unit / PIECE_UNITS))?[index(unit % PIECE_UNITS)];
        (block != NOWHERE).then_some(block)
    }

    /// Units of `range` that some block holds, ascending.
    pub fn placed(&self, range: RangeInclusive<u64>) -> Vec<u64> {
        let pieces = range.start() / PIECE_UNITS..=range.end() / PIECE_UNITS;
        let pieces = keys_within(self.pieces.keys(), |piece| self.pieces.contains_key(&piece), pieces);
        let units = pieces.into_iter().flat_map(|piece| piece * PIECE_UNITS..(piece + 1) * PIECE_UNITS);
        units.filter(|unit| range.contains(unit) && self.get(*unit).is_some()).collect()
    }

    /// Moves `unit` to `block`; where it was.
    pub fn set(&mut self, unit: u64, block: Option<u32>) -> Option<u32> {
        let piece =
            self.pieces.entry(unit / PIECE_UNITS).or_insert_with(|| vec![NOWHERE; index(PIECE_UNITS)]);
        let was = std::mem::replace(&mut piece[index(unit % PIECE_UNITS)], block.unwrap_or(NOWHERE));
        (was != NOWHERE).then_some(was)
    }
}
