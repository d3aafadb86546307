//! Where SQLite's bytes stand in the log, and which device blocks hold them (`stock` layout: the same offsets).
//!
//!   SQLite  | hdr 32 | fh 24 | page 1 ........ | fh 24 | page 2 ........ |
//!   blocks  |      block 0       |      block 1       |      block 2  ...
//!
//! Invariants: 1. offsets are SQLite's own, so a stock process reads the same log. 2. a write that goes past the
//! page cache covers whole blocks: the bytes in front of ours in the first block are read back, those behind ours
//! in the last are zeros, which no valid frame can hold, because only the end of the log is ever appended to.
//! Arithmetic only: no system call.

use crate::log::frame::{FRAME_HEADER_BYTES, LOG_HEADER_BYTES};

/// Where frames stand in the log's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Where SQLite puts them: it reads and writes the same log.
    Stock,
    /// One block each (`embedded`).
    Embedded,
}

impl Layout {
    /// How much of the log a transaction takes for which SQLite wrote so many bytes, frame headers and pages; no less.
    pub fn log_bytes(self, written_bytes: u64) -> u64 {
        match self {
            Layout::Stock => written_bytes,
            // The headers stand in the pages.
            Layout::Embedded => (written_bytes * BLOCK_BYTES).div_ceil(FRAME_HEADER_BYTES + BLOCK_BYTES),
        }
    }
}

/// Device blocks are taken as this large: what every Linux file system's direct I/O accepts, in bytes.
pub const BLOCK_BYTES: u64 = 4096;
/// One block of zeros.
pub const ZERO_BLOCK: [u8; 4096] = [0; 4096];
const _: () = assert!(ZERO_BLOCK.len() as u64 == BLOCK_BYTES);

/// Number of a frame in the log, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameIndex(pub u64);

/// Bytes of one frame: header and page.
pub fn frame_bytes(page_bytes: u32) -> u64 {
    FRAME_HEADER_BYTES + u64::from(page_bytes)
}

/// Offset of a frame's header.
pub fn frame_offset(index: FrameIndex, page_bytes: u32) -> u64 {
    LOG_HEADER_BYTES + index.0 * frame_bytes(page_bytes)
}

/// The frame whose header starts exactly at `offset`.
pub fn frame_at(offset: u64, page_bytes: u32) -> Option<FrameIndex> {
    let behind_header = offset.checked_sub(LOG_HEADER_BYTES)?;
    (behind_header % frame_bytes(page_bytes) == 0)
        .then(|| FrameIndex(behind_header / frame_bytes(page_bytes)))
}

/// Start of the block that holds byte `offset`.
pub fn block_floor(offset: u64) -> u64 {
    offset - offset % BLOCK_BYTES
}

/// End of the last block that a range ending before `end` touches.
pub fn block_ceil(end: u64) -> u64 {
    end.div_ceil(BLOCK_BYTES) * BLOCK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_stand_where_sqlite_puts_them() {
        assert_eq!(frame_offset(FrameIndex(0), 4096), 32);
        assert_eq!(frame_offset(FrameIndex(2), 4096), 32 + 2 * 4120);
        for index in [0, 1, 999] {
            assert_eq!(frame_at(frame_offset(FrameIndex(index), 1024), 1024), Some(FrameIndex(index)));
        }
        assert_eq!(frame_at(0, 4096), None);
        assert_eq!(frame_at(33, 4096), None);
    }

    #[test]
    fn a_frame_takes_one_block_of_an_embedded_log_and_its_header_more_of_another() {
        for frames in [0, 1, 2, 1000] {
            assert_eq!(Layout::Stock.log_bytes(frames * 4120), frames * 4120);
            assert_eq!(Layout::Embedded.log_bytes(frames * 4120), frames * 4096);
        }
        // Headers were written again: it takes no less for that.
        assert!((2 * 4096..=2 * 4120).contains(&Layout::Embedded.log_bytes(2 * 4120 + 24)));
    }

    #[test]
    fn blocks_cover_their_range() {
        assert_eq!((block_floor(0), block_ceil(0)), (0, 0));
        assert_eq!((block_floor(4095), block_ceil(4097)), (0, 8192));
        assert_eq!((block_floor(4096), block_ceil(8192)), (4096, 8192));
    }
}
