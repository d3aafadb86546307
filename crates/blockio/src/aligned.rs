//! Memory whose address and length suit O_DIRECT.
//!
//! A plain `Vec` with slack in front keeps this file free of `unsafe`: the aligned part is a slice of it.

/// Alignment that every Linux block device accepts for O_DIRECT memory, in bytes.
pub const ALIGNMENT_BYTES: usize = 4096;

/// Zeroed memory that starts at a multiple of [`ALIGNMENT_BYTES`] and never moves while it keeps its size.
#[derive(Debug)]
pub struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len_bytes: usize,
}

impl AlignedBuffer {
    /// Zeroed memory of `len_bytes`, which need not be a multiple of anything.
    pub fn zeroed(len_bytes: usize) -> Self {
        let memory = vec![0; len_bytes + ALIGNMENT_BYTES];
        // The heap block of a Vec stays where it is for as long as nothing grows it, and nothing here does.
        let start = memory.as_ptr().align_offset(ALIGNMENT_BYTES);
        assert!(start < ALIGNMENT_BYTES, "align_offset gave {start}");
        AlignedBuffer { memory, start, len_bytes }
    }

    /// The aligned bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len_bytes]
    }

    /// The aligned bytes, to fill.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len_bytes]
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.len_bytes
    }

    /// True for a buffer of no bytes.
    pub fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_is_aligned_and_zeroed() {
        for len_bytes in [0, 1, 4096, 1 << 20] {
            let mut buffer = AlignedBuffer::zeroed(len_bytes);
            assert_eq!(buffer.bytes().as_ptr().addr() % ALIGNMENT_BYTES, 0);
            assert_eq!(buffer.bytes(), vec![0; len_bytes]);
            buffer.bytes_mut().fill(7);
            assert_eq!(buffer.len(), len_bytes);
        }
    }
}
