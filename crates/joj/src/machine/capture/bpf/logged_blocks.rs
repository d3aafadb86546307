//! What a journal was given of each metadata block last, to say how much of it really changed when it comes again.

use std::collections::{HashMap, VecDeque};

/// Blocks that are remembered: 64 MiB of 4 KiB each, the metadata that commits of a busy phone touch in an hour.
const BLOCKS_MAX: usize = 16_384;

/// A block's home: the device that it is metadata of, and the byte there.
type Home = (u32, u64);

/// The last copy of each block, the oldest forgotten first.
#[derive(Debug, Default)]
pub struct LoggedBlocks {
    copies: HashMap<Home, Box<[u8]>>,
    order: VecDeque<Home>,
}

impl LoggedBlocks {
    /// How many bytes differ from the copy before, plus 1; 0 where there was none of the same length.
    pub fn changed(&mut self, home: Home, bytes: &[u8]) -> i64 {
        let before = self.copies.insert(home, bytes.into());
        let Some(before) = before else {
            self.order.push_back(home);
            if self.order.len() > BLOCKS_MAX {
                self.order.pop_front().map(|oldest| self.copies.remove(&oldest));
            }
            return 0;
        };
        if before.len() != bytes.len() {
            return 0;
        }
        let differing = before.iter().zip(bytes).filter(|(before, now)| before != now).count();
        i64::try_from(differing).unwrap_or(i64::MAX - 1) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_bytes_are_counted_against_the_copy_before() {
        let mut blocks = LoggedBlocks::default();
        assert_eq!(blocks.changed((8, 4096), &[0; 16]), 0, "the first copy");
        assert_eq!(blocks.changed((8, 4096), &[0; 16]), 1, "nothing changed");
        assert_eq!(blocks.changed((9, 4096), &[1; 16]), 0, "another device");
        let mut next = [0; 16];
        next[3..6].fill(7);
        assert_eq!((blocks.changed((8, 4096), &next), blocks.changed((8, 4096), &next)), (4, 1));
        assert_eq!(blocks.changed((8, 4096), &[0; 8]), 0, "another length");
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes() {
        let mut blocks = LoggedBlocks::default();
        for block in 0..=BLOCKS_MAX as u64 {
            blocks.changed((8, block), &[0; 1]);
        }
        assert_eq!((blocks.copies.len(), blocks.order.len()), (BLOCKS_MAX, BLOCKS_MAX));
        assert_eq!((blocks.changed((8, 0), &[0; 1]), blocks.changed((8, 2), &[0; 1])), (0, 1));
    }
}
