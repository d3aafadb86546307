//! What this process knows of the log's newest frames: their bytes, and up to where they are durable. Memory only.
//!
//! A direct write leaves nothing in the page cache, so a read of a fresh frame would go to the device; and the next
//! direct write must repeat the bytes in front of it in its first block. Both come from here.
//!
//! Invariants: 1. within one generation (salts) of the log no published byte ever changes, so bytes that were
//! written under the write lock stay right for as long as the generation lasts. 2. what was written but not
//! published is cut off when the write lock is given back. 3. a run is contiguous; a gap (another process wrote)
//! starts it anew. 4. whoever reads says which generation is current, and gets nothing from another one.

use crate::frame::Salts;
use crate::layout::block_floor;

/// See the file's head.
#[derive(Debug, Default)]
pub struct Tail {
    salts: Option<Salts>,
    start: u64,
    bytes: Vec<u8>,
    /// Where the newest write ended, whether its bytes are kept or not.
    written_end: u64,
    durable_end: Option<u64>,
    cuts: u64,
}

impl Tail {
    /// Takes what was just written at `offset` in generation `salts`. `start_run` says whether to begin keeping
    /// bytes when nothing precedes them; `bytes_max` bounds the memory.
    pub fn written(&mut self, salts: Salts, offset: u64, data: &[u8], start_run: bool, bytes_max: usize) {
        if self.salts != Some(salts) || offset == 0 {
            // A new generation, or another process's: what we knew is of no use.
            *self = Tail {
                bytes: std::mem::take(&mut self.bytes),
                salts: Some(salts),
                cuts: self.cuts,
                ..Tail::default()
            };
            self.bytes.clear();
            self.start = offset;
        }
        self.written_end = offset + data.len() as u64;
        if offset < self.start || offset > self.end() {
            self.bytes.clear();
            self.start = offset;
        }
        if self.bytes.is_empty() && !start_run {
            return;
        }
        let at = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        if at + data.len() > bytes_max {
            // Keep the last block alone: the next write needs its head.
            let keep_from = block_floor(offset + data.len() as u64).max(offset);
            let skip = usize::try_from(keep_from - offset).unwrap_or(0);
            self.bytes = data[skip..].to_vec();
            self.start = keep_from;
            return;
        }
        if self.bytes.capacity() == 0 {
            // Address space only: the kernel gives memory as it is touched.
            self.bytes.reserve_exact(bytes_max);
        }
        let overlap = (self.bytes.len() - at).min(data.len());
        self.bytes[at..at + overlap].copy_from_slice(&data[..overlap]);
        self.bytes.extend_from_slice(&data[overlap..]);
    }

    /// Copies bytes of generation `salts` (`None`: no other process can have begun a new one); false where the
    /// range is not wholly known.
    pub fn read(&self, salts: Option<Salts>, into: &mut [u8], offset: u64) -> bool {
        let current = salts.is_none() || salts == self.salts;
        if !current || offset < self.start || offset + into.len() as u64 > self.end() {
            return false;
        }
        let at = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
        true
    }

    /// Forgets everything from `end` on: it was never published, and another writer may put other bytes there.
    pub fn cut(&mut self, end: u64) {
        let keep = usize::try_from(end.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.cuts += u64::from(end < self.written_end);
        self.written_end = self.written_end.min(end);
        self.bytes.truncate(keep);
        if self.durable_end.is_some_and(|durable_end| durable_end > end) {
            self.durable_end = None;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.cut(0);
        self.salts = None;
        self.durable_end = None;
    }

    /// How often what was written was cut off: what a flush covered beyond a cut that came while it ran is not there any more.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Everything of generation `salts` in front of `end` is on the medium.
    pub fn set_durable(&mut self, salts: Salts, end: u64) {
        if self.salts == Some(salts) {
            self.durable_end = Some(end);
        }
    }

    /// True where everything in front of `offset` is known to be on the medium, so that one durable write of what
    /// follows makes a durable log.
    pub fn is_durable_up_to(&self, salts: Salts, offset: u64) -> bool {
        self.salts == Some(salts) && self.durable_end == Some(offset)
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1 << 16;
    const ONE: Salts = Salts([1; 8]);
    const TWO: Salts = Salts([2; 8]);

    fn read(tail: &Tail, salts: Salts, offset: u64, len_bytes: usize) -> Option<Vec<u8>> {
        let mut into = vec![0; len_bytes];
        tail.read(Some(salts), &mut into, offset).then_some(into)
    }

    #[test]
    fn contiguous_writes_read_back_and_another_generation_does_not() {
        let mut tail = Tail::default();
        tail.written(ONE, 0, &[1; 32], true, MAX);
        tail.written(ONE, 32, &[2; 100], false, MAX);
        assert_eq!(read(&tail, ONE, 30, 4), Some(vec![1, 1, 2, 2]));
        assert_eq!(read(&tail, TWO, 30, 4), None);
        assert_eq!(read(&tail, ONE, 130, 4), None);
    }

    #[test]
    fn a_gap_starts_anew() {
        let mut tail = Tail::default();
        tail.written(ONE, 0, &[1; 32], true, MAX);
        tail.written(ONE, 100, &[2; 10], true, MAX);
        assert_eq!(read(&tail, ONE, 0, 4), None);
        assert_eq!(read(&tail, ONE, 100, 10), Some(vec![2; 10]));
    }

    #[test]
    fn a_new_header_forgets_the_old_generation() {
        let mut tail = Tail::default();
        tail.written(ONE, 0, &[1; 64], true, MAX);
        tail.set_durable(ONE, 64);
        tail.written(TWO, 0, &[2; 32], true, MAX);
        assert_eq!(read(&tail, ONE, 0, 4), None);
        assert!(!tail.is_durable_up_to(TWO, 64));
        assert_eq!(read(&tail, TWO, 32, 1), None);
    }

    #[test]
    fn what_was_not_published_is_cut_off() {
        let mut tail = Tail::default();
        tail.written(ONE, 0, &[1; 64], true, MAX);
        tail.set_durable(ONE, 64);
        tail.cut(40);
        assert_eq!(read(&tail, ONE, 0, 40), Some(vec![1; 40]));
        assert_eq!(read(&tail, ONE, 39, 2), None);
        assert!(!tail.is_durable_up_to(ONE, 64));
    }

    #[test]
    fn memory_stays_within_its_bound_and_the_last_block_is_kept() {
        let mut tail = Tail::default();
        for index in 0..200_u64 {
            tail.written(ONE, index * 1000, &[3; 1000], true, MAX);
            assert!(tail.bytes.len() <= MAX);
        }
        let end = 200_000;
        let head_bytes = usize::try_from(end - block_floor(end)).unwrap();
        assert_eq!(read(&tail, ONE, block_floor(end), head_bytes), Some(vec![3; head_bytes]));
    }
}
