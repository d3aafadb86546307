//! A log of fast pages in front of a page map: consumer flash with an SLC cache.
//!
//! When the log is full its oldest block is folded: units that are current move to the page map, the block is erased.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::Work;
use super::page_mapped::PageMapped;
use super::placement::Placement;
use crate::number::size;

#[derive(Debug)]
pub(super) struct Hybrid {
    main: PageMapped,
    units_per_block: u64,
    log_blocks: u64,
    /// The oldest first: number, and the units written to it.
    log: VecDeque<(u32, Vec<u64>)>,
    opened: u32,
    /// Unit to the log block with its current contents.
    current: Placement,
}

impl Hybrid {
    pub fn new(main: PageMapped, units_per_block: u64, log_blocks: u64) -> Self {
        let (log, current) = (VecDeque::new(), Placement::default());
        Hybrid { main, units_per_block, log_blocks, log, opened: 0, current }
    }

    pub fn write(&mut self, unit: u64) -> Work {
        let mut work = Work::default();
        if self.log.back().is_none_or(|(_, units)| size(units.len()) == self.units_per_block) {
            if size(self.log.len()) == self.log_blocks {
                work = self.fold_oldest();
            }
            self.opened = (self.opened + 1) % u32::MAX;
            self.log.push_back((self.opened, Vec::new()));
        }
        if let Some((number, units)) = self.log.back_mut() {
            units.push(unit);
            self.current.set(unit, Some(*number));
        }
        work
    }

    pub fn trim(&mut self, range: RangeInclusive<u64>) {
        for unit in self.current.placed(range.clone()) {
            self.current.set(unit, None);
        }
        self.main.trim(range);
    }

    fn fold_oldest(&mut self) -> Work {
        let Some((number, units)) = self.log.pop_front() else { return Work::default() };
        let mut work = Work { copies: 0, erasures: 1 };
        for unit in units {
            if self.current.get(unit) == Some(number) {
                self.current.set(unit, None);
                work = work.plus(self.main.write(unit)).plus(Work { copies: 1, erasures: 0 });
            }
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hybrid() -> Hybrid {
        Hybrid::new(PageMapped::new(4, 100), 4, 2)
    }

    #[test]
    fn the_log_takes_its_size_without_further_work() {
        let mut log = hybrid();
        assert!((0..8).all(|unit| log.write(unit) == Work::default()));
        assert_eq!(log.write(8), Work { copies: 4, erasures: 1 });
    }

    #[test]
    fn what_was_overwritten_or_trimmed_in_the_log_is_not_folded() {
        let mut log = hybrid();
        for unit in [0, 1, 2, 3, 0, 1, 4, 5] {
            assert_eq!(log.write(unit), Work::default());
        }
        log.trim(2..=2);
        assert_eq!(log.write(6), Work { copies: 1, erasures: 1 });
    }
}
