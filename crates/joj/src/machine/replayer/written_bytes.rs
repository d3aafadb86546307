//! What writes of a replay write: never a zero, and other bytes each time, so that nothing below can leave a write out.

/// O_DIRECT needs memory that begins at a block.
const ALIGNMENT: usize = 4096;
const LOWEST_BITS: u64 = 0x0101_0101_0101_0101;

/// Memory for reads and writes of one thread.
#[derive(Debug, Default)]
pub struct IoMemory {
    bytes: Vec<u8>,
    state: u64,
}

impl IoMemory {
    /// Each thread has a `seed` of its own.
    pub fn new(seed: u64) -> Self {
        Self { bytes: Vec::new(), state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// Room for so many bytes.
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        let needed = bytes + ALIGNMENT;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
        let begin = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        &mut self.bytes[begin..begin + bytes]
    }

    /// So many new bytes.
    pub fn fresh(&mut self, bytes: usize) -> &[u8] {
        let mut state = self.state;
        let room = self.room(bytes);
        // xorshift64 (Marsaglia 2003): 8 bytes in a nanosecond.
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state | LOWEST_BITS).to_le_bytes()
        };
        let (words, rest) = room.as_chunks_mut::<8>();
        words.iter_mut().for_each(|word| *word = next());
        let last = next();
        rest.copy_from_slice(&last[..rest.len()]);
        self.state = state;
        self.room(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_never_zero_and_never_the_same() {
        let mut memory = IoMemory::new(1);
        let mut before = Vec::new();
        for length in [4096, 4096, 1, 13, 4096] {
            let fresh = memory.fresh(length).to_vec();
            assert_eq!((fresh.len(), fresh.contains(&0)), (length, false));
            assert!(fresh != before, "{length}");
            before = fresh;
        }
        assert_eq!(memory.room(10).as_ptr().addr() % ALIGNMENT, 0);
        assert_ne!(IoMemory::new(2).fresh(8), IoMemory::new(3).fresh(8));
    }
}
