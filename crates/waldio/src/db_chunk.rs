//! How long a checkpoint makes the database file (`waldio_db_chunk`): in chunks, zeroed once, so that most checkpoints write into
//! blocks that are there, and the file system has no metadata to journal with them. Arithmetic only.

/// Files below so many chunks grow page by page, as ever.
const CHUNKS_MIN: u64 = 4;

/// What a checkpoint is about to need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunked {
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes of the database after it.
    pub needed_bytes: u64,
}

impl Chunked {
    /// Whether a file of `size_bytes` is long enough to have chunks.
    pub fn applies(self, size_bytes: u64) -> bool {
        size_bytes >= CHUNKS_MIN * self.chunk_bytes
    }

    /// Where a file of `size_bytes` is to end; `None` where it is long enough.
    pub fn end(self, size_bytes: u64) -> Option<u64> {
        let end = self.needed_bytes.div_ceil(self.chunk_bytes) * self.chunk_bytes;
        (self.applies(size_bytes) && self.needed_bytes > size_bytes).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_grow_by_chunks_and_only_when_they_must() {
        let of = |needed_bytes| Chunked { chunk_bytes: 1 << 20, needed_bytes };
        assert_eq!(of(5 << 20).end(3 << 20), None, "small");
        assert_eq!(of((5 << 20) - 1).end(5 << 20), None, "long enough");
        assert_eq!(of((5 << 20) + 1).end(5 << 20), Some(6 << 20));
        assert_eq!(of(6 << 20).end(4 << 20), Some(6 << 20));
    }
}
