//! What a log holds: its valid frames, and how many of them belong to finished transactions.
//!
//! SQLite recovers the log itself; this reads the same bytes by the same rules, to take back what failed, for tests
//! and for tools. Source: SQLite file format, section 4.4 ("Reader Algorithm" and recovery).

use std::io;

use crate::log::frame::{FrameHeader, LOG_HEADER_BYTES, LogHeader, Prefix, Salts};
use crate::log::layout::{FrameIndex, frame_bytes, frame_offset};

/// What one pass over a log found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogSummary {
    /// Size of a page in bytes; 0 for an empty log.
    pub page_bytes: u32,
    /// This generation's salts.
    pub salts: Salts,
    /// Frames whose salts and checksum are right, up to the first that is not.
    pub frames_valid: u64,
    /// Of those, the ones up to and including the last commit frame: what a recovery brings back.
    pub frames_committed: u64,
    /// Transactions among them.
    pub commits: u64,
    /// Pages of the database after the last commit.
    pub database_pages: u32,
}

/// Reads a log through `read_at` (buffer, offset → bytes read; fewer only at the end).
/// # Errors
/// Those of `read_at`.
pub fn scan(read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>) -> io::Result<LogSummary> {
    scan_commits(read_at, |_| {})
}

/// The same; `commit` is told the name that the log has with each commit.
/// # Errors
/// Those of `read_at`.
pub fn scan_commits(
    mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    mut commit: impl FnMut(Prefix),
) -> io::Result<LogSummary> {
    let mut header = [0; 32];
    if read_at(&mut header, 0)? < header.len() {
        return Ok(LogSummary::default());
    }
    let Some(header) = LogHeader::parse(&header) else { return Ok(LogSummary::default()) };
    let mut summary =
        LogSummary { page_bytes: header.page_bytes, salts: header.salts, ..LogSummary::default() };
    let len_bytes = usize::try_from(frame_bytes(header.page_bytes)).map_err(io::Error::other)?;
    let mut frame = vec![0; len_bytes];
    let mut checksum = header.checksum;
    loop {
        let offset = frame_offset(FrameIndex(summary.frames_valid), header.page_bytes);
        if read_at(&mut frame, offset)? < len_bytes {
            return Ok(summary);
        }
        let (head, page) = frame.split_at(24);
        let head: &[u8; 24] = head.try_into().map_err(io::Error::other)?;
        let parsed = FrameHeader::parse(head);
        checksum =
            checksum.over(&head[..8], header.big_endian_checksum).over(page, header.big_endian_checksum);
        if parsed.page_number == 0 || parsed.salts != header.salts || parsed.checksum != checksum {
            return Ok(summary);
        }
        summary.frames_valid += 1;
        if parsed.commit_pages != 0 {
            summary.commits += 1;
            summary.frames_committed = summary.frames_valid;
            summary.database_pages = parsed.commit_pages;
            let frames = u32::try_from(summary.frames_valid).map_err(io::Error::other)?;
            commit(Prefix { salts: header.salts, frames, checksum });
        }
    }
}

/// Reads a log that is in memory.
pub fn scan_bytes(log: &[u8]) -> LogSummary {
    let summary = scan(|into, offset| {
        let from = log.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let len_bytes = into.len().min(log.len() - from);
        into[..len_bytes].copy_from_slice(&log[from..from + len_bytes]);
        Ok(len_bytes)
    });
    summary.unwrap_or_default()
}

/// A whole log of the given transactions (each a list of page numbers; page content is the number's low byte), as
/// SQLite would have written it: for tests and fuzzing.
pub fn synthetic_log(page_bytes: u32, salts: Salts, transactions: &[&[u32]]) -> Vec<u8> {
    let header = LogHeader::encode(false, page_bytes, 0, salts);
    let mut log = header.to_vec();
    let mut checksum = LogHeader::parse(&header).map(|header| header.checksum).unwrap_or_default();
    for transaction in transactions {
        for (index, page_number) in transaction.iter().enumerate() {
            let commit_pages = if index + 1 == transaction.len() { 100 } else { 0 };
            let mut frame = FrameHeader { page_number: *page_number, commit_pages, salts, checksum };
            let page = vec![page_number.to_be_bytes()[3]; page_bytes as usize];
            checksum = checksum.over(&frame.encode()[..8], false).over(&page, false);
            frame.checksum = checksum;
            log.extend_from_slice(&frame.encode());
            log.extend_from_slice(&page);
        }
    }
    assert!(log.len() as u64 >= LOG_HEADER_BYTES);
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_and_short_files_are_empty_logs() {
        for len_bytes in [0, 31, 32, 100_000] {
            assert_eq!(scan_bytes(&vec![0; len_bytes]), LogSummary::default());
        }
    }

    #[test]
    fn an_unfinished_transaction_is_valid_but_not_committed() {
        let mut log = synthetic_log(512, Salts([1; 8]), &[&[1, 2], &[3]]);
        // The last frame loses its commit mark; its own checksum then fails too.
        log.truncate(log.len() - 1);
        let summary = scan_bytes(&log);
        assert_eq!((summary.frames_valid, summary.frames_committed, summary.commits), (2, 2, 1));
    }

    #[test]
    fn frames_of_an_older_generation_end_the_log() {
        let old = synthetic_log(512, Salts([1; 8]), &[&[1], &[2], &[3]]);
        let mut log = synthetic_log(512, Salts([2; 8]), &[&[9]]);
        log.extend_from_slice(&old[log.len()..]);
        assert_eq!(scan_bytes(&log).frames_valid, 1);
    }

    #[test]
    fn preallocated_zeros_end_the_log() {
        let mut log = synthetic_log(1024, Salts([7; 8]), &[&[1], &[2, 3]]);
        log.resize(1 << 20, 0);
        let summary = scan_bytes(&log);
        assert_eq!((summary.frames_valid, summary.commits, summary.database_pages), (3, 2, 100));
    }

    #[test]
    fn a_flipped_bit_anywhere_in_a_frame_ends_the_log_there() {
        let good = synthetic_log(512, Salts([3; 8]), &[&[1], &[2]]);
        for at in (32 + 536..good.len()).step_by(7) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            assert_eq!(scan_bytes(&bad).frames_valid, 1, "byte {at}");
        }
    }
}
