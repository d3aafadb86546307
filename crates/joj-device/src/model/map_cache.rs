//! Parts of the map in memory: levels of LRU lists (DFTL, Gupta et al. 2009).

use std::collections::{BTreeMap, HashMap};

use crate::description::MapLevel;
use crate::number::size;

#[derive(Debug)]
struct Level {
    entries_max: u64,
    units_per_piece: u64,
    miss_ns: u64,
    /// Piece to the time of its last use, and back.
    used: HashMap<u64, u64>,
    order: BTreeMap<u64, u64>,
}

#[derive(Debug)]
pub(super) struct MapCache {
    levels: Vec<Level>,
    uses: u64,
}

impl MapCache {
    pub fn new(levels: &BTreeMap<String, MapLevel>, unit_bytes: u64) -> Self {
        let level = |level: &MapLevel| Level {
            entries_max: level.entries,
            units_per_piece: (level.covers_bytes / unit_bytes).max(1),
            miss_ns: level.miss_ns,
            used: HashMap::new(),
            order: BTreeMap::new(),
        };
        MapCache { levels: levels.values().map(level).collect(), uses: 0 }
    }

    /// What finding `units` costs, nanoseconds.
    pub fn touch(&mut self, units: &[u64]) -> u64 {
        let mut miss_ns = 0;
        for unit in units {
            self.uses += 1;
            for level in &mut self.levels {
                miss_ns += level.touch(*unit, self.uses);
            }
        }
        miss_ns
    }
}

impl Level {
    fn touch(&mut self, unit: u64, now: u64) -> u64 {
        let piece = unit / self.units_per_piece;
        let last = self.used.insert(piece, now);
        if let Some(last) = last {
            self.order.remove(&last);
        }
        self.order.insert(now, piece);
        if last.is_some() {
            return 0;
        }
        if size(self.used.len()) > self.entries_max
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
        self.miss_ns
    }
}
