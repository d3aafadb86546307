//! Fully associative sector translation: data blocks share the log blocks, one of which takes sequential writes.
//!
//! When the shared ones are full the oldest goes: every data block with a page in it that is current is merged whole.
//! Source: Lee et al., "A log buffer-based flash translation layer using fully-associative sector translation", 2007.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::Work;
use crate::number::size;

/// The block that takes a data block's pages in order.
#[derive(Debug, Clone, Copy)]
struct Sequential {
    block: u64,
    used: u64,
}

#[derive(Debug)]
pub(super) struct Fast {
    pages_per_block: u64,
    shared_max: u64,
    sequential: Option<Sequential>,
    /// Shared log blocks, the oldest first: number, and the pages written to it.
    shared: VecDeque<(u64, Vec<u64>)>,
    opened: u64,
    /// Page to the shared log block with its current contents.
    current: HashMap<u64, u64>,
}

impl Fast {
    /// `log_blocks` is at least two, which the description is checked for.
    pub fn new(pages_per_block: u64, log_blocks: u64) -> Self {
        assert!(log_blocks >= 2, "one log block for sequential writes, and none for others");
        Fast {
            pages_per_block,
            shared_max: log_blocks - 1,
            sequential: None,
            shared: VecDeque::new(),
            opened: 0,
            current: HashMap::new(),
        }
    }

    pub fn write(&mut self, page: u64) -> Work {
        let (block, offset) = (page / self.pages_per_block, page % self.pages_per_block);
        if offset == 0 {
            let work = self.end_sequential();
            self.current.remove(&page);
            self.sequential = Some(Sequential { block, used: 1 });
            return work;
        }
        match &mut self.sequential {
            Some(sequential) if sequential.block == block && sequential.used == offset => {
                sequential.used += 1;
                let full = sequential.used == self.pages_per_block;
                self.current.remove(&page);
                if full { self.end_sequential() } else { Work::default() }
            }
            _ => self.write_shared(page),
        }
    }

    /// Switch merge of a complete block, partial merge of another.
    fn end_sequential(&mut self) -> Work {
        let Some(sequential) = self.sequential.take() else { return Work::default() };
        Work { copies: self.pages_per_block - sequential.used, erasures: 1 }
    }

    fn write_shared(&mut self, page: u64) -> Work {
        let mut work = Work::default();
        let full = self.shared.back().is_none_or(|(_, pages)| size(pages.len()) == self.pages_per_block);
        if full {
            if size(self.shared.len()) == self.shared_max {
                work = self.merge_oldest();
            }
            self.opened += 1;
            self.shared.push_back((self.opened, Vec::new()));
        }
        if let Some((number, pages)) = self.shared.back_mut() {
            pages.push(page);
            self.current.insert(page, *number);
        }
        work
    }

    fn merge_oldest(&mut self) -> Work {
        let Some((number, pages)) = self.shared.pop_front() else { return Work::default() };
        let current = pages.iter().filter(|page| self.current.get(page) == Some(&number));
        let blocks: BTreeSet<u64> = current.map(|page| page / self.pages_per_block).collect();
        for block in &blocks {
            // The merge takes the current page of every log block.
            for page in block * self.pages_per_block..(block + 1) * self.pages_per_block {
                self.current.remove(&page);
            }
        }
        let merged = size(blocks.len());
        Work { copies: merged * self.pages_per_block, erasures: merged + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(fast: &mut Fast, pages: impl IntoIterator<Item = u64>) -> Work {
        pages.into_iter().fold(Work::default(), |work, page| work.plus(fast.write(page)))
    }

    #[test]
    fn a_block_written_in_order_is_switched() {
        assert_eq!(total(&mut Fast::new(8, 2), 0..80), Work { copies: 0, erasures: 10 });
    }

    #[test]
    fn a_block_begun_in_order_is_merged_in_part_when_the_next_begins() {
        let mut fast = Fast::new(8, 2);
        assert_eq!(total(&mut fast, [0, 1, 2]), Work::default());
        assert_eq!(fast.write(8), Work { copies: 5, erasures: 1 });
    }

    #[test]
    fn the_oldest_shared_block_merges_every_block_with_a_current_page_in_it() {
        let mut fast = Fast::new(4, 2);
        assert_eq!(total(&mut fast, [1, 5, 9, 13]), Work::default());
        assert_eq!(fast.write(17), Work { copies: 16, erasures: 5 });
    }

    #[test]
    fn pages_written_again_since_are_not_merged() {
        let mut fast = Fast::new(4, 3);
        assert_eq!(total(&mut fast, [1, 1, 1, 1, 1, 2, 3, 1]), Work::default());
        assert_eq!(fast.write(1), Work { copies: 0, erasures: 1 });
    }
}
