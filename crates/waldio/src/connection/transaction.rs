//! One transaction as its writes to the log show it, from the first frame to whatever ends it.
//!
//! ```text
//! idle -> writing -> committing (the commit frame's header came) -> committed (its page, too) -> idle
//! ```
//!
//! SQLite tells the end of a transaction in no call of its own. These are taken for it: the sync of a commit, the write lock
//! given back, the write lock or a read lock taken, the second phase of COMMIT, a truncation, the close. A rollback in
//! exclusive locking mode is none of them; so nothing that is kept here may be wrong after one. Arithmetic only.
//! Source: wal.c (`walFrames`, `walRewriteChecksums`).

use crate::log::frame::{FRAME_HEADER_BYTES, FrameHeader, Prefix};
use crate::log::layout::frame_at;

/// How far a transaction has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransactionState {
    /// No frame yet.
    #[default]
    Idle,
    /// Frames, but no commit frame.
    Writing,
    /// The commit frame's header was written, its page is on its way.
    Committing,
    /// The commit frame is complete; no sync came since.
    Committed,
}

/// The transaction that one connection writes.
#[derive(Debug, Default)]
pub struct Transaction {
    /// Where it stands.
    pub state: TransactionState,
    /// How much SQLite wrote, in bytes.
    pub bytes: u64,
    /// How far its frames reach in the log.
    pub end: u64,
    /// Where the commit frame ends, and the name that the log has with it.
    commit: Option<(u64, Option<Prefix>)>,
    /// The log's header waits for the first commit's sync, because the log is fresh (`log_file`).
    pub header_waits: bool,
    /// The commit is on the medium: it went there with the log's header.
    pub is_durable: bool,
}

impl Transaction {
    /// SQLite writes a frame header at `offset`: true where nothing counts that stood from there on. Until the commit frame is
    /// written, frame headers come one behind the other; where one comes further in front, what it replaces and all behind
    /// it was undone, by ROLLBACK TO or by a rollback that no call told of. Later headers only get new checksums.
    pub fn goes_back(&mut self, offset: u64) -> bool {
        let appends = matches!(self.state, TransactionState::Idle | TransactionState::Writing);
        if appends {
            self.end = self.end.min(offset);
        }
        appends
    }

    /// SQLite writes `header` at `offset`, where a frame's stands. `page_bytes` is unknown in exclusive mode on a log of
    /// another process: then the first piece of the page ends the commit.
    pub fn header_written(&mut self, header: FrameHeader, offset: u64, page_bytes: Option<u32>) {
        if header.commit_pages == 0 {
            return;
        }
        let frames = page_bytes.and_then(|page_bytes| frame_at(offset, page_bytes));
        let frames = frames.and_then(|index| u32::try_from(index.0 + 1).ok());
        let name = frames.map(|frames| Prefix { salts: header.salts, frames, checksum: header.checksum });
        let end = offset + FRAME_HEADER_BYTES + u64::from(page_bytes.unwrap_or(1));
        let again = self.state == TransactionState::Committed && self.commit.is_some_and(|(at, _)| at == end);
        self.commit = Some((end, name));
        // A header that is written again gets the checksums of a transaction that had spilled. Its page is there.
        if !again {
            self.state = TransactionState::Committing;
        }
    }

    /// SQLite wrote up to `end`. True where that completes the commit frame.
    pub fn written(&mut self, end: u64, bytes: usize) -> bool {
        self.bytes += bytes as u64;
        self.end = self.end.max(end);
        if self.state == TransactionState::Idle {
            self.state = TransactionState::Writing;
        }
        let completes = self.state == TransactionState::Committing
            && self.commit.is_some_and(|(commit_end, _)| end >= commit_end);
        if completes {
            self.state = TransactionState::Committed;
        }
        completes
    }

    /// True where the commit frame is complete and no sync came since.
    pub fn is_committed(&self) -> bool {
        self.state == TransactionState::Committed
    }

    /// The name that the log has with this commit, where it is complete and the page size is known.
    pub fn commit_name(&self) -> Option<Prefix> {
        self.commit.filter(|_| self.is_committed()).and_then(|(_, name)| name)
    }

    /// It is over, or what was written of it does not count. Returns what it was.
    pub fn end(&mut self) -> Transaction {
        std::mem::take(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::{Checksum, Salts};

    const SALTS: Salts = Salts([7; 8]);

    fn header(commit_pages: u32, checksum: u32) -> FrameHeader {
        FrameHeader { page_number: 1, commit_pages, salts: SALTS, checksum: Checksum(checksum, 0) }
    }

    /// Writes a frame with a page of 4096 bytes; true where it completed a commit.
    fn write(transaction: &mut Transaction, frame: u64, header: FrameHeader) -> bool {
        let offset = 32 + 4120 * frame;
        transaction.header_written(header, offset, Some(4096));
        assert!(!transaction.written(offset + 24, 24));
        transaction.written(offset + 4120, 4096)
    }

    #[test]
    fn a_commit_is_complete_with_the_page_of_its_last_frame() {
        let mut transaction = Transaction::default();
        assert!(!write(&mut transaction, 3, header(0, 4)));
        assert_eq!((transaction.state, transaction.commit_name()), (TransactionState::Writing, None));
        assert!(!transaction.is_committed());
        assert!(write(&mut transaction, 4, header(9, 5)));
        let name = Prefix { salts: SALTS, frames: 5, checksum: Checksum(5, 0) };
        assert_eq!((transaction.is_committed(), transaction.commit_name()), (true, Some(name)));
        assert_eq!((transaction.bytes, transaction.end), (2 * 4120, 32 + 5 * 4120));
        assert!(transaction.end().is_committed());
        assert_eq!(transaction.state, TransactionState::Idle);
    }

    #[test]
    fn checksums_that_are_written_later_change_the_name() {
        let mut transaction = Transaction::default();
        write(&mut transaction, 0, header(0, 0));
        assert!(write(&mut transaction, 1, header(2, 0)));
        for (frame, commit_pages) in [(0, 0), (1, 2)] {
            let offset = 32 + 4120 * frame;
            transaction.header_written(header(commit_pages, 77), offset, Some(4096));
            assert!(!transaction.written(offset + 24, 24), "complete already");
        }
        assert_eq!(transaction.commit_name().map(|name| name.checksum), Some(Checksum(77, 0)));
    }

    #[test]
    fn a_commit_frame_elsewhere_is_complete_only_with_its_own_page() {
        let mut transaction = Transaction::default();
        assert!(write(&mut transaction, 1, header(2, 1)));
        transaction.header_written(header(2, 2), 32 + 4120 * 2, Some(4096));
        assert_eq!((transaction.state, transaction.commit_name()), (TransactionState::Committing, None));
        assert!(transaction.written(32 + 4120 * 3, 4096));
    }

    #[test]
    fn without_a_page_size_the_commit_has_no_name_and_ends_with_the_first_piece_of_its_page() {
        let mut transaction = Transaction::default();
        transaction.header_written(header(2, 1), 32, None);
        assert!(transaction.written(56 + 1024, 1024));
        assert_eq!((transaction.is_committed(), transaction.commit_name()), (true, None));
    }
}
