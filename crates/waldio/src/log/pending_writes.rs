//! The bytes of one transaction on their way to the log: one contiguous run, kept so that it can be written as
//! whole blocks past the page cache. Memory only.
//!
//!   base (block)        start                 end        block_ceil(end)
//!   | bytes of others.. | what SQLite wrote ... | zeros ... |

use blockio::aligned::AlignedBuffer;

use crate::log::layout::{ZERO_BLOCK, block_ceil, block_floor};

/// A run longer than this is written out in parts, in bytes.
pub const RUN_BYTES_MAX: usize = 256 << 10;
/// The memory a connection starts with, in bytes: eight one-page transactions.
const FIRST_CAPACITY_BYTES: usize = 32 << 10;

/// What it keeps between transactions, at the most: each open connection has its own.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Bytes of a transaction that are not in the log yet: one contiguous run.
#[derive(Debug)]
pub struct Pending {
    buffer: AlignedBuffer,
    base: u64,
    start: u64,
    end: u64,
}

impl Default for Pending {
    fn default() -> Self {
        Pending { buffer: AlignedBuffer::zeroed(0), base: 0, start: 0, end: 0 }
    }
}

impl Pending {
    /// Takes a write that continues or overlaps the run; false (and nothing taken) where it lies elsewhere or
    /// would make the run too long.
    pub fn put(&mut self, data: &[u8], offset: u64) -> bool {
        if self.is_empty() {
            (self.base, self.start, self.end) = (block_floor(offset), offset, offset);
        }
        let end = offset + data.len() as u64;
        if offset < self.start || offset > self.end || end - self.base > RUN_BYTES_MAX as u64 {
            return false;
        }
        self.reserve(block_ceil(end) - self.base);
        let from = self.index_of(offset);
        self.buffer.bytes_mut()[from..from + data.len()].copy_from_slice(data);
        self.end = self.end.max(end);
        true
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Offset of the first byte that waits.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Offset behind the last byte that waits.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Offset of the block that the run starts in.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// What SQLite wrote, from `start` to `end`.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[self.index_of(self.start)..self.index_of(self.end)]
    }

    /// The room in front of `start` in its block, to be filled with what the log holds there.
    pub fn head_mut(&mut self) -> &mut [u8] {
        let len_bytes = self.index_of(self.start);
        &mut self.buffer.bytes_mut()[..len_bytes]
    }

    /// The whole blocks from `base`, with zeros behind `end`. The head must have been filled.
    pub fn blocks(&mut self) -> &[u8] {
        let (end, whole) = (self.index_of(self.end), self.index_of(block_ceil(self.end)));
        assert!(whole.is_multiple_of(ZERO_BLOCK.len()), "{whole} bytes are not whole blocks");
        self.buffer.bytes_mut()[end..whole].fill(0);
        &self.buffer.bytes()[..whole]
    }

    /// Copies bytes that wait; false where the range is not wholly among them.
    pub fn read(&self, into: &mut [u8], offset: u64) -> bool {
        let end = offset + into.len() as u64;
        if self.is_empty() || offset < self.start || end > self.end {
            return false;
        }
        let from = self.index_of(offset);
        into.copy_from_slice(&self.buffer.bytes()[from..from + into.len()]);
        true
    }

    /// True where any byte of the range waits.
    pub fn overlaps(&self, offset: u64, len_bytes: usize) -> bool {
        !self.is_empty() && offset < self.end && offset + len_bytes as u64 > self.start
    }

    /// Forgets what stands at `from` and behind.
    pub fn cut(&mut self, from: u64) {
        if from <= self.start {
            self.clear();
        } else {
            self.end = self.end.min(from);
        }
    }

    /// Gives the memory of a large transaction back, where nothing waits.
    pub fn give_back(&mut self) {
        if self.is_empty() && self.buffer.len() > KEPT_BYTES_MAX {
            self.buffer = AlignedBuffer::zeroed(0);
        }
    }

    /// Forgets the run; its memory stays for the next.
    pub fn clear(&mut self) {
        (self.base, self.start, self.end) = (0, 0, 0);
    }

    fn index_of(&self, offset: u64) -> usize {
        usize::try_from(offset - self.base).unwrap_or(usize::MAX)
    }

    fn reserve(&mut self, len_bytes: u64) {
        let wanted = usize::try_from(len_bytes).unwrap_or(usize::MAX);
        if wanted <= self.buffer.len() {
            return;
        }
        let mut larger = AlignedBuffer::zeroed(wanted.next_power_of_two().max(FIRST_CAPACITY_BYTES));
        let used = self.index_of(self.end).min(self.buffer.len());
        larger.bytes_mut()[..used].copy_from_slice(&self.buffer.bytes()[..used]);
        self.buffer = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_becomes_whole_blocks_with_its_head_and_zeros() {
        let mut pending = Pending::default();
        assert!(pending.put(&[1; 24], 4100));
        assert!(pending.put(&[2; 4096], 4124));
        pending.head_mut().fill(9);
        assert_eq!((pending.base(), pending.start(), pending.end()), (4096, 4100, 8220));
        let blocks = pending.blocks();
        assert_eq!(blocks.len(), 8192);
        assert_eq!(blocks[..4], [9; 4]);
        assert_eq!(blocks[4..28], [1; 24]);
        assert_eq!(blocks[28..4124], [2; 4096]);
        assert!(blocks[4124..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn zeros_behind_the_end_even_after_a_longer_run() {
        let mut pending = Pending::default();
        assert!(pending.put(&[7; 8000], 0));
        pending.clear();
        assert!(pending.put(&[1; 10], 0));
        assert!(pending.blocks()[10..4096].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_write_elsewhere_or_too_long_is_refused_and_changes_nothing() {
        let mut pending = Pending::default();
        assert!(pending.put(&[1; 100], 1000));
        assert!(!pending.put(&[2; 10], 2000));
        assert!(!pending.put(&[2; 10], 900));
        assert!(!pending.put(&vec![2; RUN_BYTES_MAX], 1100));
        assert_eq!(pending.bytes(), [1; 100]);
        let mut far = Pending::default();
        assert!(far.put(&[3; 4096], 1 << 30) && far.put(&vec![4; RUN_BYTES_MAX - 4096], (1 << 30) + 4096));
        assert!(!far.put(&[5], (1 << 30) + RUN_BYTES_MAX as u64), "one byte more");
    }

    #[test]
    fn memory_of_small_transactions_is_kept() {
        let mut pending = Pending::default();
        assert!(pending.put(&[1; 4120], 0));
        let whole = pending.buffer.len();
        pending.clear();
        pending.give_back();
        assert!(whole > 0 && pending.buffer.len() == whole);
    }

    #[test]
    fn memory_of_a_large_transaction_is_given_back_once_nothing_waits() {
        let kept = |len_bytes: usize| {
            let mut pending = Pending::default();
            assert!(pending.put(&vec![1; len_bytes], 0));
            let whole = pending.buffer.len();
            pending.give_back();
            assert_eq!(pending.buffer.len(), whole, "its bytes wait");
            pending.clear();
            pending.give_back();
            (whole, pending.buffer.len())
        };
        assert_eq!(kept(KEPT_BYTES_MAX), (KEPT_BYTES_MAX, KEPT_BYTES_MAX));
        let (large, left) = kept(KEPT_BYTES_MAX + 1);
        assert!(large > KEPT_BYTES_MAX && left == 0, "{large} bytes, {left} left");
    }

    #[test]
    fn what_was_undone_is_cut_off() {
        for (from, left) in [(1100, 100), (1060, 60), (1000, 0), (500, 0)] {
            let mut pending = Pending::default();
            assert!(pending.put(&[1; 100], 1000));
            pending.cut(from);
            assert_eq!(pending.bytes().len(), left, "from {from}");
            assert!(pending.put(&[2; 10], from.min(1100)), "SQLite goes on there");
        }
    }

    #[test]
    fn an_overlapping_write_replaces_and_extends() {
        let mut pending = Pending::default();
        assert!(pending.put(&[1; 100], 0));
        assert!(pending.put(&[2; 100], 50));
        assert_eq!(pending.bytes()[..50], [1; 50]);
        assert_eq!(pending.bytes()[50..], [2; 100]);
        let mut seen = [0; 20];
        assert!(pending.read(&mut seen, 40));
        assert_eq!((seen[..10].to_vec(), seen[10..].to_vec()), (vec![1; 10], vec![2; 10]));
        assert!(!pending.read(&mut seen, 140), "its end is not there");
        let mut later = Pending::default();
        assert!(later.put(&[1; 100], 1000));
        assert!(!later.read(&mut seen, 999), "its first byte is not there");
        assert!(later.read(&mut seen, 1080) && !later.read(&mut seen, 1081));
        assert!(pending.overlaps(140, 20) && !pending.overlaps(150, 20));
    }
}
