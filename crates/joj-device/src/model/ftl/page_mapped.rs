//! Any unit anywhere: writes fill one open block after another, greedy garbage collection frees them.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::Work;
use super::placement::Placement;
use crate::number::{index, size};

/// Free blocks kept: one to move a victim's units to while the other is open.
const FREE_BLOCKS_MIN: usize = 2;

#[derive(Debug, Clone, Default)]
struct EraseBlock {
    valid: u64,
    /// Everything programmed since the last erasure; units may have moved on since.
    written: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct PageMapped {
    units_per_block: u64,
    blocks: Vec<EraseBlock>,
    free: VecDeque<u32>,
    open: u32,
    placement: Placement,
}

impl PageMapped {
    /// `blocks` include the spare ones; at least four, because two stay free.
    pub fn new(units_per_block: u64, blocks: u64) -> Self {
        let count = u32::try_from(blocks.max(4)).unwrap_or(u32::MAX - 1);
        PageMapped {
            units_per_block,
            blocks: vec![EraseBlock::default(); index(u64::from(count))],
            free: (1..count).collect(),
            open: 0,
            placement: Placement::default(),
        }
    }

    pub fn write(&mut self, unit: u64) -> Work {
        let work = self.make_room();
        self.append(unit);
        work
    }

    pub fn trim(&mut self, range: RangeInclusive<u64>) {
        for unit in self.placement.placed(range) {
            let was = self.placement.set(unit, None);
            self.leave(was);
        }
    }

    fn append(&mut self, unit: u64) {
        let was = self.placement.set(unit, Some(self.open));
        self.leave(was);
        let open = &mut self.blocks[index(u64::from(self.open))];
        open.valid += 1;
        open.written.push(unit);
    }

    fn leave(&mut self, was: Option<u32>) {
        if let Some(block) = was {
            self.blocks[index(u64::from(block))].valid -= 1;
        }
    }

    fn is_open_full(&self) -> bool {
        size(self.blocks[index(u64::from(self.open))].written.len()) >= self.units_per_block
    }

    /// Opens a free block when the open one is full, after garbage collection where free ones run out.
    fn make_room(&mut self) -> Work {
        let mut work = Work::default();
        while self.is_open_full() {
            if self.free.len() > FREE_BLOCKS_MIN {
                self.open_next();
            } else {
                match self.victim() {
                    Some(victim) => work = work.plus(self.collect(victim)),
                    None => self.open_next(), // everything is valid: the reserve is all there is
                }
            }
        }
        work
    }

    fn open_next(&mut self) {
        self.open = self.free.pop_front().expect("spare blocks outlast the capacity");
    }

    /// The block with the fewest valid units; none where collecting would free nothing.
    fn victim(&self) -> Option<u32> {
        let closed = self.blocks.iter().zip(0u32..).filter(|(block, number)| {
            *number != self.open && !block.written.is_empty() && block.valid < self.units_per_block
        });
        closed.min_by_key(|(block, _)| block.valid).map(|(_, number)| number)
    }

    /// Moves the valid units of `victim` on, and erases it.
    fn collect(&mut self, victim: u32) -> Work {
        let written = std::mem::take(&mut self.blocks[index(u64::from(victim))].written);
        let mut copies = 0;
        for unit in written {
            if self.placement.get(unit) == Some(victim) {
                if self.is_open_full() {
                    self.open_next();
                }
                self.append(unit);
                copies += 1;
            }
        }
        assert!(self.blocks[index(u64::from(victim))].valid == 0, "a collected block has valid units");
        self.free.push_back(victim);
        Work { copies, erasures: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    #[test]
    fn a_device_that_is_not_full_collects_nothing() {
        let mut pages = PageMapped::new(4, 20);
        for unit in 0..64 {
            assert_eq!(pages.write(unit), Work::default(), "unit {unit}");
        }
    }

    #[test]
    fn sequential_overwriting_finds_blocks_without_a_valid_unit() {
        let mut pages = PageMapped::new(4, 20);
        let mut work = Work::default();
        for _ in 0..10 {
            for unit in 0..64 {
                work = work.plus(pages.write(unit));
            }
        }
        assert_eq!(work.copies, 0);
        assert!(work.erasures > 100, "{work:?}");
    }

    #[test]
    fn random_overwriting_costs_more_the_fewer_blocks_are_spare() {
        let copies = |blocks: u64| {
            let (mut pages, mut chance, mut work) =
                (PageMapped::new(64, blocks), Chance::new(1), Work::default());
            for unit in (0..6400).chain((0..50_000).map(|_| chance.below(6400))) {
                work = work.plus(pages.write(unit));
            }
            work.copies
        };
        let (few, many) = (copies(107), copies(140));
        assert!(few > 3 * many && many > 0, "{few} copies with 7 % spare, {many} with 40 %");
    }

    #[test]
    fn trimmed_units_are_not_copied() {
        let mut pages = PageMapped::new(4, 20);
        for unit in 0..64 {
            pages.write(unit);
        }
        pages.trim(0..=63);
        let work = (0..64).fold(Work::default(), |work, unit| work.plus(pages.write(unit * 7 % 64)));
        assert_eq!(work.copies, 0);
    }
}
