//! Block-associative sector translation: each data block that is overwritten gets a log block of its own.
//!
//! A log block filled in order takes its data block's place (switch: one erasure); filled in order up to a point, the rest is
//! copied behind it (partial: the rest and one erasure); otherwise both become a new block (full: all and two erasures).
//! Source: Kim et al., "A space-efficient flash translation layer for CompactFlash systems", 2002.

use std::collections::{BTreeMap, HashMap};

use super::Work;
use crate::number::size;

#[derive(Debug, Clone, Copy)]
struct LogBlock {
    used: u64,
    in_order: bool,
    last_use: u64,
}

#[derive(Debug)]
pub(super) struct Bast {
    pages_per_block: u64,
    log_blocks: u64,
    logs: HashMap<u64, LogBlock>,
    /// Last use to data block.
    order: BTreeMap<u64, u64>,
    uses: u64,
}

impl Bast {
    pub fn new(pages_per_block: u64, log_blocks: u64) -> Self {
        Bast { pages_per_block, log_blocks, logs: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    pub fn write(&mut self, page: u64) -> Work {
        let (block, offset) = (page / self.pages_per_block, page % self.pages_per_block);
        let mut work = Work::default();
        if self.logs.get(&block).is_some_and(|log| log.used == self.pages_per_block) {
            work = work.plus(self.merge(block));
        }
        if !self.logs.contains_key(&block)
            && size(self.logs.len()) == self.log_blocks
            && let Some((_, &oldest)) = self.order.first_key_value()
        {
            work = work.plus(self.merge(oldest));
        }
        self.append(block, offset);
        // Complete and in order: the switch waits for nothing.
        if self.logs.get(&block).is_some_and(|log| log.in_order && log.used == self.pages_per_block) {
            work = work.plus(self.merge(block));
        }
        work
    }

    fn append(&mut self, block: u64, offset: u64) {
        self.uses += 1;
        let fresh = LogBlock { used: 0, in_order: true, last_use: self.uses };
        let log = self.logs.entry(block).or_insert(fresh);
        log.in_order &= offset == log.used;
        log.used += 1;
        self.order.remove(&log.last_use);
        log.last_use = self.uses;
        self.order.insert(self.uses, block);
    }

    fn merge(&mut self, block: u64) -> Work {
        let Some(log) = self.logs.remove(&block) else { return Work::default() };
        self.order.remove(&log.last_use);
        if log.in_order {
            return Work { copies: self.pages_per_block - log.used, erasures: 1 };
        }
        Work { copies: self.pages_per_block, erasures: 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(bast: &mut Bast, pages: impl IntoIterator<Item = u64>) -> Work {
        pages.into_iter().fold(Work::default(), |work, page| work.plus(bast.write(page)))
    }

    #[test]
    fn a_block_written_in_order_is_switched() {
        let mut bast = Bast::new(8, 2);
        assert_eq!(total(&mut bast, 0..80), Work { copies: 0, erasures: 10 });
    }

    #[test]
    fn a_block_begun_in_order_is_merged_in_part() {
        let mut bast = Bast::new(8, 1);
        assert_eq!(total(&mut bast, [0, 1, 2]), Work::default());
        assert_eq!(bast.write(8), Work { copies: 5, erasures: 1 });
    }

    #[test]
    fn a_block_written_out_of_order_is_merged_whole() {
        let mut bast = Bast::new(8, 1);
        assert_eq!(total(&mut bast, [3]), Work::default());
        assert_eq!(bast.write(8), Work { copies: 8, erasures: 2 });
    }

    #[test]
    fn a_full_log_block_is_merged_before_it_takes_another_page() {
        let mut bast = Bast::new(8, 1);
        assert_eq!(total(&mut bast, [5; 8]), Work::default());
        assert_eq!(bast.write(5), Work { copies: 8, erasures: 2 });
    }

    #[test]
    fn the_log_block_used_least_recently_goes() {
        let mut bast = Bast::new(8, 2);
        assert_eq!(total(&mut bast, [0, 8, 9, 1]), Work::default()); // blocks 0, 1, 1, 0
        assert_eq!(bast.write(16), Work { copies: 6, erasures: 1 }); // block 1 goes: two pages in order
        assert_eq!(bast.write(2), Work::default()); // block 0 has its log still
    }
}
