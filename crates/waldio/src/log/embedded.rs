//! The `embedded` layout: each frame is exactly one block of the file, its header in the page's reserved bytes.
//!
//!   SQLite  | hdr 32 |  fh 24 | page 4096 ...........  |  fh 24 | page 4096 ...
//!   file    | hdr 32, zeros  | page 0..4072 | fh 24   | page 0..4072 | fh 24  | ...
//!             block 0          block 1: frame 0          block 2: frame 1
//!
//! For databases with pages of one block whose last 24 bytes SQLite leaves alone (header byte 20). SQLite sees its own
//! offsets and bytes; `embedded_file` stands between. Invariants: 1. what was written reads back byte for byte, page
//! bytes that do not belong there included (`reserved_bytes`). 2. the header in the file has a version that no SQLite knows, and a
//! right checksum: SQLite without us refuses such a log (`SQLITE_CANTOPEN`) and changes no byte. 3. a log without
//! frames has a header that says so (the guard), and is never empty while somebody uses it.
//! Arithmetic only: no system call. Source: the paper's Header Embedding (WALDIO, ATC'15); docs/sqlite_internals.md.

use crate::log::frame::{
    FRAME_HEADER_BYTES, LOG_HEADER_BYTES, LogHeader, Salts, VERSION, header_version, with_version,
};
use crate::log::layout::BLOCK_BYTES;
use crate::testing::planted::{self, Bug};

/// Version in the header of a log in this layout: "WAL" and 2.
pub const VERSION_EMBEDDED: u32 = 0x5741_4c02;
/// Version in the header of one without frames: "WAL" and 1.
pub const VERSION_GUARD: u32 = 0x5741_4c01;
/// The page size of databases that can have this layout, in bytes.
pub const PAGE_BYTES: u32 = 4096;
/// The bytes at the end of each page that SQLite must leave alone.
pub const RESERVED_BYTES: u8 = 24;

/// Bytes of one block.
pub(crate) const BLOCK: usize = 4096;
/// Bytes of a frame as SQLite has it.
pub(crate) const FRAME: usize = HEADER + BLOCK;
/// Bytes of its header.
pub(crate) const HEADER: usize = 24;
/// Where it stands in the block.
const HEADER_AT: usize = BLOCK - HEADER;
const _: () = assert!(BLOCK as u64 == BLOCK_BYTES && BLOCK == PAGE_BYTES as usize);
const _: () = assert!(HEADER as u64 == FRAME_HEADER_BYTES && HEADER == RESERVED_BYTES as usize);

/// Set in the first byte of a frame header, a page number's highest: the page's reserved bytes were not zero, and are
/// elsewhere (`reserved_bytes`).
const HAS_RESERVED: u8 = 0x80;

/// The bytes of a page where its frame's header goes.
pub type PageEnd = [u8; HEADER];

/// What the first bytes of a log tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStart {
    /// No header, or one that SQLite takes for none.
    Nothing,
    /// SQLite's own.
    Stock,
    /// This layout's, with frames or without.
    Embedded,
}

/// Looks at the first bytes of a log (fewer than 32 where the file ends).
pub fn look(start: &[u8]) -> LogStart {
    match <[u8; 32]>::try_from(start).ok().and_then(|start| header_version(&disguised(start))) {
        Some(VERSION_EMBEDDED | VERSION_GUARD) => LogStart::Embedded,
        Some(_) => LogStart::Stock,
        None => LogStart::Nothing,
    }
}

/// The first block of a log without frames.
pub fn guard_block() -> [u8; BLOCK] {
    let header = LogHeader::encode(false, PAGE_BYTES, 0, Salts::default());
    first_block(&with_version(&header, VERSION_GUARD))
}

/// The block of a header as SQLite writes it.
pub fn header_block(header: &[u8; 32]) -> [u8; BLOCK] {
    first_block(&with_version(header, VERSION_EMBEDDED))
}

fn first_block(header: &[u8; 32]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..32].copy_from_slice(&disguised(*header));
    block
}

/// As it is. With the bug planted a header that SQLite takes for none, and back.
fn disguised(mut header: [u8; 32]) -> [u8; 32] {
    if planted::is(Bug::GuardOff) {
        header[0] ^= 0xff;
    }
    header
}

/// The header as SQLite wrote it, from the first bytes of the file: zeros where there is none.
pub fn header_of(start: &[u8; 32]) -> [u8; 32] {
    let start = disguised(*start);
    match header_version(&start) {
        Some(VERSION_EMBEDDED) => with_version(&start, VERSION),
        _ => [0; 32],
    }
}

/// Size of the file whose log ends at `end` for SQLite.
pub fn file_end(end: u64) -> u64 {
    match end.checked_sub(LOG_HEADER_BYTES) {
        None if end == 0 => 0,
        None => BLOCK_BYTES,
        Some(frames_bytes) => BLOCK_BYTES * (1 + frames_bytes.div_ceil(FRAME as u64)),
    }
}

/// Size of the file whose log is cut to `end`: of a frame that ends behind that nothing stays. SQLite cuts behind frames alone.
pub fn cut_end(end: u64) -> u64 {
    BLOCK_BYTES * (1 + end.saturating_sub(LOG_HEADER_BYTES) / FRAME as u64)
}

/// What SQLite takes for the size of a log whose file has `bytes`: 0 for the first block alone.
pub fn log_end(bytes: u64) -> u64 {
    match bytes / BLOCK_BYTES {
        0 | 1 => 0,
        blocks => LOG_HEADER_BYTES + (blocks - 1) * FRAME as u64,
    }
}

/// Offset of a frame's block in the file.
pub fn block_offset(frame: u64) -> u64 {
    (1 + frame) * BLOCK_BYTES
}

/// A frame as SQLite has it, as a block; the page's last bytes where they are not zero. `None` for a page number
/// whose highest bit is taken.
pub fn encode(frame: &[u8; FRAME], block: &mut [u8]) -> Option<Option<PageEnd>> {
    if frame[0] & HAS_RESERVED != 0 {
        return None;
    }
    let (header, page) = frame.split_at(HEADER);
    let mut reserved = [0; HEADER];
    reserved.copy_from_slice(&page[HEADER_AT..]);
    block[..HEADER_AT].copy_from_slice(&page[..HEADER_AT]);
    block[HEADER_AT..BLOCK].copy_from_slice(header);
    if reserved == [0; HEADER] {
        return Some(None);
    }
    block[HEADER_AT] |= HAS_RESERVED;
    Some(Some(reserved))
}

/// Takes the header out of a block, which is its page then but for bytes that are elsewhere; whether there are such.
pub fn split(block: &mut [u8]) -> ([u8; HEADER], bool) {
    let mut header = [0; HEADER];
    header.copy_from_slice(&block[HEADER_AT..BLOCK]);
    block[HEADER_AT..BLOCK].fill(0);
    let has_reserved = header[0] & HAS_RESERVED != 0;
    header[0] &= !HAS_RESERVED;
    (header, has_reserved)
}

/// Puts a page's last bytes back.
pub fn put_reserved(page: &mut [u8], reserved: PageEnd) {
    page[HEADER_AT..BLOCK].copy_from_slice(&reserved);
}

/// The salts in a frame header.
pub fn salts_of(header: &[u8]) -> Salts {
    let mut salts = Salts::default();
    salts.0.copy_from_slice(&header[8..16]);
    salts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_agree_in_both_directions() {
        assert_eq!((file_end(0), file_end(1), file_end(32), file_end(33)), (0, 4096, 4096, 8192));
        assert_eq!((log_end(0), log_end(4095), log_end(4096), log_end(8191)), (0, 0, 0, 0));
        assert_eq!((cut_end(1), cut_end(8000), cut_end(32 + 4120)), (4096, 8192, 8192));
        for frames in 1..5 {
            let end = LOG_HEADER_BYTES + frames * FRAME as u64;
            assert_eq!(file_end(end), (1 + frames) * BLOCK_BYTES);
            assert_eq!((log_end(file_end(end)), cut_end(end)), (end, file_end(end)));
        }
    }

    #[test]
    fn a_header_is_known_by_its_version_and_comes_back_as_sqlite_wrote_it() {
        for big_endian in [false, true] {
            let header = LogHeader::encode(big_endian, PAGE_BYTES, 7, Salts([9; 8]));
            let block = header_block(&header);
            let start: [u8; 32] = block[..32].try_into().unwrap();
            assert_eq!((look(&header), look(&start)), (LogStart::Stock, LogStart::Embedded));
            assert_eq!(LogHeader::parse(&start), None, "SQLite would refuse it");
            assert_eq!(header_of(&start), header);
            assert_eq!(header_of(&header), [0; 32], "not in this layout");
        }
        let guard: [u8; 32] = guard_block()[..32].try_into().unwrap();
        assert_eq!((look(&guard), header_of(&guard)), (LogStart::Embedded, [0; 32]));
        let mut torn = guard;
        torn[30] ^= 1;
        assert_eq!(
            (look(&[0; 32]), look(&[]), look(&torn)),
            (LogStart::Nothing, LogStart::Nothing, LogStart::Nothing)
        );
    }

    #[test]
    fn a_frame_comes_back_whatever_its_page_ends_with() {
        for reserved in [[0; HEADER], [7; HEADER]] {
            let mut frame = [5; FRAME];
            frame[FRAME - HEADER..].copy_from_slice(&reserved);
            let mut block = [0; BLOCK];
            let kept = encode(&frame, &mut block).unwrap();
            assert_eq!(kept, (reserved != [0; HEADER]).then_some(reserved));
            let (header, has_reserved) = split(&mut block);
            assert_eq!(has_reserved, kept.is_some());
            put_reserved(&mut block, kept.unwrap_or_default());
            assert_eq!((&header[..], &block[..]), frame.split_at(HEADER));
            assert_eq!(salts_of(&header), Salts([5; 8]));
        }
        let mut frame = [0; FRAME];
        frame[0] = HAS_RESERVED;
        assert_eq!(encode(&frame, &mut [0; BLOCK]), None);
    }
}
