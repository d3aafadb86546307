//! The blocks of a file that were written to or reserved: all others are holes, which take no room on a disk.

use std::collections::BTreeMap;

/// The unit in which filesystems take room.
const BLOCK_BYTES: u64 = 4096;

/// Blocks that hold something: by the first of each range, the one behind its last. Ranges neither meet nor overlap.
#[derive(Debug, Default)]
pub(super) struct StoredBlocks(BTreeMap<u64, u64>);

impl StoredBlocks {
    /// Blocks with any of these bytes hold something from now on.
    pub fn put(&mut self, at: u64, bytes: u64) {
        let (mut begin, mut end) = (at / BLOCK_BYTES, at.saturating_add(bytes).div_ceil(BLOCK_BYTES));
        if bytes == 0 {
            return;
        }
        match self.0.range(..=begin).next_back() {
            Some((_, known_end)) if *known_end >= end => return,
            Some((known, known_end)) if *known_end >= begin => begin = *known,
            _ => {}
        }
        while let Some((known, known_end)) = self.0.range(begin..=end).next().map(|(from, to)| (*from, *to)) {
            end = end.max(known_end);
            self.0.remove(&known);
        }
        self.0.insert(begin, end);
    }

    /// The file ends here: what was behind is gone.
    pub fn cut(&mut self, bytes: u64) {
        let end = bytes.div_ceil(BLOCK_BYTES);
        drop(self.0.split_off(&end));
        if let Some(mut last) = self.0.last_entry() {
            *last.get_mut() = end.min(*last.get());
        }
    }

    /// The bytes that they take in a file of this size: its last block may hold fewer.
    pub fn bytes(&self, size: u64) -> u64 {
        let blocks: u64 = self.0.iter().map(|(begin, end)| end - begin).sum();
        let last = size / BLOCK_BYTES;
        let has_last = self.0.range(..=last).next_back().is_some_and(|(_, end)| *end > last);
        let behind = if has_last { (BLOCK_BYTES - size % BLOCK_BYTES) % BLOCK_BYTES } else { 0 };
        blocks.saturating_mul(BLOCK_BYTES) - behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_once_and_holes_do_not_count() {
        let mut blocks = StoredBlocks::default();
        for (at, bytes, all) in [(0, 10, 1), (10, 0, 1), (8191, 1, 2), (40960, 8192, 4), (45000, 1, 4)] {
            blocks.put(at, bytes);
            assert_eq!(blocks.bytes(1 << 30), all * BLOCK_BYTES, "{at}");
        }
        blocks.put(4095, 40000);
        assert_eq!(blocks.0, BTreeMap::from([(0, 12)]), "one range covers those that it meets");
        blocks.put(12 * BLOCK_BYTES, 1);
        assert_eq!(blocks.0, BTreeMap::from([(0, 13)]));
        blocks.put(u64::MAX - 1, u64::MAX);
        assert!(blocks.bytes(u64::MAX) < 15 * BLOCK_BYTES);
    }

    #[test]
    fn what_is_behind_the_end_is_gone_and_the_last_block_may_be_short() {
        let mut blocks = StoredBlocks::default();
        blocks.put(0, 10);
        assert_eq!(blocks.bytes(10), 10);
        blocks.put(0, 100_000);
        assert_eq!((blocks.bytes(100_000), blocks.bytes(1 << 20)), (100_000, 25 * BLOCK_BYTES));
        blocks.cut(5000);
        assert_eq!((blocks.bytes(5000), blocks.bytes(1 << 20)), (5000, 2 * BLOCK_BYTES));
        blocks.cut(0);
        assert_eq!((blocks.bytes(0), blocks.bytes(1 << 20)), (0, 0));
    }
}
