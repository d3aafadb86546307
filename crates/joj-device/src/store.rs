//! The device's bytes, in memory: what is on the medium, and what only the volatile cache has.
//!
//! Kept in blocks of 4096 bytes, only where something else than zeros was written. Invariant: a block in the cache is newer
//! than the medium's; reading sees it, a power cut may not.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::number::{index, keys_within, size};
use crate::request::BLOCK_BYTES;

/// Bytes of a block.
pub type Block = [u8; 4096];

/// What a block that was never written reads as.
pub const ZEROS: Block = [0; 4096];

/// Sparse data.
#[derive(Debug, Default, Clone)]
pub struct Store {
    medium: HashMap<u64, Box<Block>>,
    cached: BTreeMap<u64, Box<Block>>,
}

impl Store {
    /// All zeros.
    pub fn new() -> Self {
        Store::default()
    }

    /// Fills `data` with the newest bytes from `offset_bytes` on.
    pub fn read(&self, offset_bytes: u64, data: &mut [u8]) {
        each_block(offset_bytes, size(data.len()), |number, in_block, in_data| {
            data[in_data].copy_from_slice(&self.newest(number)[in_block]);
        });
    }

    /// Writes `data`; on the medium at once if it is `durable`, else in the volatile cache.
    pub fn write(&mut self, offset_bytes: u64, data: &[u8], durable: bool) {
        each_block(offset_bytes, size(data.len()), |number, in_block, in_data| {
            self.change(number, durable, |block| block[in_block].copy_from_slice(&data[in_data]));
        });
    }

    /// Writes `len_bytes` zeros; on the medium at once if they are `durable`, else in the volatile cache.
    pub fn zero(&mut self, offset_bytes: u64, len_bytes: u64, durable: bool) {
        if len_bytes == 0 {
            return;
        }
        let end = offset_bytes + len_bytes;
        let blocks = offset_bytes / BLOCK_BYTES..=(end - 1) / BLOCK_BYTES;
        let medium =
            keys_within(self.medium.keys(), |number| self.medium.contains_key(&number), blocks.clone());
        let cached = self.cached.range(blocks).map(|(number, _)| *number);
        let stored: BTreeSet<u64> = cached.chain(medium).collect();
        for number in stored {
            let begin = number * BLOCK_BYTES;
            let in_block = offset_bytes.saturating_sub(begin)..(end - begin).min(BLOCK_BYTES);
            self.change(number, durable, |block| block[index(in_block.start)..index(in_block.end)].fill(0));
        }
    }

    /// Everything in the volatile cache is on the medium from now on.
    pub fn flush(&mut self) {
        for (number, block) in std::mem::take(&mut self.cached) {
            self.put(number, block);
        }
    }

    /// The blocks of these bytes left the volatile cache for the medium.
    pub fn destage(&mut self, offset_bytes: u64, len_bytes: u64) {
        each_block(offset_bytes, len_bytes, |number, _, _| {
            if let Some(block) = self.cached.remove(&number) {
                self.put(number, block);
            }
        });
    }

    /// A power cut that takes the whole cache.
    pub fn lose_cache(&mut self) {
        self.cached.clear();
    }

    /// Numbers of the blocks in the volatile cache, ascending.
    pub fn cached_blocks(&self) -> impl Iterator<Item = u64> {
        self.cached.keys().copied()
    }

    /// Block `number` as the medium has it.
    pub fn on_medium(&self, number: u64) -> &Block {
        self.medium.get(&number).map_or(&ZEROS, Box::as_ref)
    }

    /// Takes out what lies from `at_bytes` on, a multiple of 4096, and gives it, from 0 on.
    ///
    /// # Panics
    /// When `at_bytes` lies within a block.
    pub fn split_off(&mut self, at_bytes: u64) -> Store {
        assert_eq!(at_bytes % BLOCK_BYTES, 0, "{at_bytes} lies within a block");
        let at = at_bytes / BLOCK_BYTES;
        let (own, other) = std::mem::take(&mut self.medium).into_iter().partition(|(number, _)| *number < at);
        let other: HashMap<u64, Box<Block>> = other;
        let cached = self.cached.split_off(&at);
        self.medium = own;
        let moved = |(number, block)| (number - at, block);
        Store {
            medium: other.into_iter().map(moved).collect(),
            cached: cached.into_iter().map(moved).collect(),
        }
    }

    /// Memory of the data in bytes, without that of the maps.
    pub fn memory_bytes(&self) -> u64 {
        size(self.medium.len() + self.cached.len()) * BLOCK_BYTES
    }

    fn newest(&self, number: u64) -> &Block {
        match self.cached.get(&number) {
            Some(block) => block,
            None => self.on_medium(number),
        }
    }

    fn change(&mut self, number: u64, durable: bool, edit: impl FnOnce(&mut Block)) {
        let mut block = match self.cached.remove(&number) {
            Some(block) => block,
            None => Box::new(*self.on_medium(number)),
        };
        edit(&mut block);
        if durable {
            self.put(number, block);
        } else {
            self.cached.insert(number, block);
        }
    }

    /// Puts block `number` on the medium, without a copy of it; what the cache has of it is gone.
    pub fn put_block(&mut self, number: u64, block: Box<Block>) {
        self.cached.remove(&number);
        self.put(number, block);
    }

    fn put(&mut self, number: u64, block: Box<Block>) {
        if *block == ZEROS {
            self.medium.remove(&number);
        } else {
            self.medium.insert(number, block);
        }
    }
}

/// For each block of a byte range: its number, the range inside it, the range inside the data.
pub(crate) fn each_block(
    offset_bytes: u64,
    len_bytes: u64,
    mut visit: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>),
) {
    let mut done = 0;
    while done < len_bytes {
        let at = offset_bytes + done;
        let begin = at % BLOCK_BYTES;
        let count = (BLOCK_BYTES - begin).min(len_bytes - done);
        visit(at / BLOCK_BYTES, index(begin)..index(begin + count), index(done)..index(done + count));
        done += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    #[test]
    fn what_was_written_is_read_across_blocks() {
        let (mut store, mut chance) = (Store::new(), Chance::new(3));
        let mut plain = vec![0; 64 * 1024];
        for step in 0..500u64 {
            let at = chance.below(100) * 512;
            let len = (1 + chance.below(20)) * 512;
            let byte = step.to_le_bytes()[0];
            match chance.below(6) {
                0 => store.flush(),
                1 => {
                    store.zero(at, len, step % 2 == 0);
                    plain[index(at)..index(at + len)].fill(0);
                }
                _ => {
                    store.write(at, &vec![byte; index(len)], step % 3 == 0);
                    plain[index(at)..index(at + len)].fill(byte);
                }
            }
            let mut read = vec![1; plain.len()];
            store.read(0, &mut read);
            assert!(read == plain, "different after step {step}");
        }
    }

    #[test]
    fn a_power_cut_takes_what_was_neither_flushed_nor_destaged_nor_durable() {
        let mut store = Store::new();
        for number in 0..4 {
            store.write(number * 4096, &[7; 4096], number == 3);
        }
        store.destage(4096, 4096);
        assert_eq!(store.cached_blocks().collect::<Vec<_>>(), [0, 2]);
        store.lose_cache();
        let left: Vec<u8> = (0..4).map(|number| store.on_medium(number)[0]).collect();
        assert_eq!(left, [0, 7, 0, 7]);
        store.write(0, &[8; 512], false);
        store.flush();
        assert_eq!((store.on_medium(0)[511], store.on_medium(0)[512]), (8, 0));
    }

    #[test]
    fn what_is_split_off_begins_at_zero_and_is_gone_here() {
        let mut store = Store::new();
        for (number, byte) in [(0, 1), (1, 2), (2, 3)] {
            store.write(number * 4096, &[byte; 4096], number != 1);
        }
        let other = store.split_off(4096);
        let first = |store: &Store| {
            [0, 1, 2].map(|number| {
                let mut byte = [0];
                store.read(number * 4096, &mut byte);
                byte[0]
            })
        };
        assert_eq!((first(&store), first(&other)), ([1, 0, 0], [2, 3, 0]));
        assert_eq!(other.cached_blocks().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn trimming_a_whole_large_device_takes_the_time_of_what_it_holds() {
        let mut store = Store::new();
        store.write(1 << 40, &[1; 4096], true);
        store.write(1 << 41, &[1; 4096], false);
        store.zero(0, 1 << 44, true);
        assert_eq!(store.memory_bytes(), 0);
    }

    #[test]
    fn zeros_take_no_memory() {
        let mut store = Store::new();
        store.zero(0, 1 << 30, true);
        store.write(0, &ZEROS, true);
        assert_eq!(store.memory_bytes(), 0);
    }
}
