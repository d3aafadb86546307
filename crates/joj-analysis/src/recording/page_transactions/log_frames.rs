//! Frames of a write-ahead log: those of one transaction, and those that commits left in the log.
//!
//! ```text
//! log of a transaction that outgrew its cache      head of page 7 | page | head of page 9 | page | head of page 7, mark | page
//!   before its end, page 9 is written again                                               | page |
//!   after its mark, with other checksums                           head of page 9 |               head of page 7, mark |
//! its frames: three; its pages: 7 and 9
//! ```
//!
//! - *Written again.* SQLite gives a page that is in the log already its old frame, and computes the checksums behind it anew when it
//!   commits. A rollback to a savepoint gives frames to other pages. So of each offset the last head counts, up to the mark.
//! - *A mark twice.* Without powersafe overwrite SQLite repeats the last frame up to the end of a sector. That is told apart from the
//!   next commit where a lock bounds the transaction. Else the result says how many commits may be such frames.
//! - *Whole blocks.* waldio's direct writes begin at a block's begin, and so bring heads that are in the log already.
//! - *Begun anew.* A write of the log's header takes all frames away. Not so one that writes the log over itself, as waldio does when it opens
//!   one whose index is lost.
//! - *The embedded layout* of waldio has one block for the header and one for each frame, whose heads are not in the recording. The
//!   header's block is also written before any frame, and by a last close, without a lock (docs/log_format.md).
//! - *Zeros ahead of need.* waldio appends them (RWF_APPEND), and nobody appends frames.
//!
//! Source: wal.c of SQLite 3.40 to 3.50 (walFrames, walRewriteChecksums).

use std::collections::BTreeMap;

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::RWF_APPEND;

/// The header in front of a log's first frame, and of each frame (wal.c).
pub const LOG_HEADER_BYTES: u64 = 32;
pub const FRAME_HEADER_BYTES: u64 = 24;
/// A frame of the smallest page.
pub const FRAME_BYTES_MIN: u64 = FRAME_HEADER_BYTES + 512;

/// What SQLite takes for a sector on Linux (os_unix.c, SQLITE_DEFAULT_SECTOR_SIZE).
const SECTOR_BYTES: u64 = 4096;

/// A block of a log in waldio's embedded layout, and the size of pages that it needs.
pub const EMBEDDED_BLOCK_BYTES: u64 = 4096;

/// The bytes of a write to a log that may be frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameBytes {
    pub begin: u64,
    pub end: u64,
}

impl FrameBytes {
    /// Those of a write; `None` where it appends zeros.
    pub fn of(write: &RecordedCall, offset: u64, is_embedded: bool) -> Option<Self> {
        let appends = write.kind == CallKind::Pwritev && write.flags & RWF_APPEND != 0;
        let header_bytes = if is_embedded { EMBEDDED_BLOCK_BYTES } else { LOG_HEADER_BYTES };
        let begin = offset.max(header_bytes);
        (!appends).then(|| Self { begin, end: offset.saturating_add(write.moved_bytes()).max(begin) })
    }

    /// Whether there are none: it is a header.
    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedFrame {
    /// Where it is in the log.
    pub offset: u64,
    /// The page's number.
    pub page: u32,
    /// Pages of the database after the commit that it ends; 0 where it ends none.
    pub commit_pages: u32,
}

/// The heads that a write brought: its rows follow it.
pub fn heads_of(write: &RecordedCall, following: &[RecordedCall]) -> Vec<RecordedFrame> {
    let of_write = |row: &&RecordedCall| {
        row.kind == CallKind::LogFrame && row.thread == write.thread && row.description == write.description
    };
    let rows = following.iter().take_while(of_write);
    let heads = rows.map(|row| RecordedFrame {
        offset: row.offset,
        page: u32::try_from(row.bytes).unwrap_or(0),
        commit_pages: row.flags,
    });
    heads.filter(|head| head.page > 0).collect()
}

/// The frames of one transaction.
#[derive(Debug, Default)]
pub struct TransactionFrames {
    /// By offset the head that was written last.
    heads: BTreeMap<u64, RecordedFrame>,
    /// The last one with a commit mark.
    mark: Option<RecordedFrame>,
}

impl TransactionFrames {
    /// Takes a head.
    pub fn take(&mut self, head: RecordedFrame) {
        self.heads.insert(head.offset, head);
        if head.commit_pages > 0 && self.mark.is_none_or(|mark| mark.offset <= head.offset) {
            self.mark = Some(head);
        }
    }

    /// Where the first one is.
    pub fn first(&self) -> Option<u64> {
        self.heads.first_key_value().map(|(offset, _)| *offset)
    }

    /// True where no head is known.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// True where a mark ended it.
    pub fn is_committed(&self) -> bool {
        self.mark.is_some()
    }

    /// Whether a head may be one of its frames. `is_locked`: a lock says that no other transaction began.
    pub fn may_have(&self, head: &RecordedFrame, is_locked: bool) -> bool {
        self.mark.is_none_or(|mark| {
            let is_repeated = (head.page, head.commit_pages) == (mark.page, mark.commit_pages);
            head.offset <= mark.offset || (is_locked && is_repeated)
        })
    }

    /// One past the last byte of the frame with the mark.
    pub fn end(&self, page_bytes: u64) -> Option<u64> {
        self.mark.map(|mark| mark.offset.saturating_add(FRAME_HEADER_BYTES + page_bytes))
    }

    /// Those that count: up to the mark. What lies behind it was rolled back.
    pub fn heads(&self) -> impl Iterator<Item = &RecordedFrame> {
        let last = self.mark.map_or(u64::MAX, |mark| mark.offset);
        self.heads.range(..=last).map(|(_, head)| head)
    }
}

/// A log since it was begun anew.
#[derive(Debug, Default)]
pub struct CommittedFrames {
    /// The frames that commits left in it.
    heads: BTreeMap<u64, RecordedFrame>,
    /// Frames were written whose heads are in the recording: then those of all are.
    pub has_heads: bool,
    /// It is in the embedded layout.
    pub is_embedded: bool,
}

impl CommittedFrames {
    /// Of a log that is begun anew.
    pub fn none(is_embedded: bool) -> Self {
        Self { is_embedded, ..Self::default() }
    }

    /// Takes those of a commit.
    pub fn take(&mut self, commit: &TransactionFrames) {
        self.heads.extend(commit.heads().map(|head| (head.offset, *head)));
    }

    /// Takes away those from `begin` on.
    pub fn cut(&mut self, begin: u64) {
        self.heads.split_off(&begin);
    }

    /// Of the heads that a write brought those that were not in the log yet.
    pub fn new_ones<'a>(&self, heads: &'a [RecordedFrame]) -> &'a [RecordedFrame] {
        let again = heads.iter().take_while(|head| self.heads.get(&head.offset) == Some(*head)).count();
        let last = self.heads.last_key_value().map_or(0, |(offset, _)| *offset);
        // A log that is begun anew may get the same pages at the same places. Then nothing follows behind the last.
        let is_block = heads.get(again).is_some_and(|next| next.offset > last);
        if is_block { &heads[again..] } else { heads }
    }
}

/// Commits that may be repeated frames of the commit before, in exclusive locking mode: they have its page at the next place, and no sync
/// lies between. What fills a sector is written right before a sync.
#[derive(Debug, Default)]
pub struct RepeatedFrames {
    last: Option<RecordedFrame>,
    count: u64,
    /// So many frames fill a sector: it ends at most a byte less than a sector behind the commit's last frame.
    fill_max: u64,
}

impl RepeatedFrames {
    /// A commit came to its mark.
    pub fn marked(&mut self, mark: RecordedFrame, is_locked: bool, is_alone: bool, page_bytes: u64) {
        let frame_bytes = FRAME_HEADER_BYTES + page_bytes;
        self.fill_max = (SECTOR_BYTES - 1).div_ceil(frame_bytes);
        let is_repeated = self.last.is_some_and(|last| {
            let next = last.offset.saturating_add(frame_bytes);
            (last.page, last.commit_pages, next) == (mark.page, mark.commit_pages, mark.offset)
        });
        self.count = if is_repeated && is_alone && !is_locked { self.count + 1 } else { 0 };
        self.last = Some(mark);
    }

    /// The log is synced: how many they are.
    pub fn synced(&mut self) -> u64 {
        let synced = std::mem::take(self);
        synced.count.min(synced.fill_max)
    }
}

/// Bytes of a file, each counted once however often it is written.
#[derive(Debug, Default)]
pub struct WrittenBytes {
    /// Begin and end of ranges that do not touch.
    ranges: BTreeMap<u64, u64>,
}

impl WrittenBytes {
    /// Takes a write.
    pub fn take(&mut self, mut begin: u64, mut end: u64) {
        if begin >= end {
            return;
        }
        while let Some((from, to)) = self.ranges.range(..=end).next_back().map(|(from, to)| (*from, *to)) {
            if to < begin {
                break;
            }
            self.ranges.remove(&from);
            (begin, end) = (begin.min(from), end.max(to));
        }
        self.ranges.insert(begin, end);
    }

    /// The first one.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first_key_value().map(|(begin, _)| *begin)
    }

    /// One past the last one.
    pub fn end(&self) -> Option<u64> {
        self.ranges.last_key_value().map(|(_, end)| *end)
    }

    /// True where nothing was written.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(begin, end)| end - begin).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_once() {
        let mut written = WrittenBytes::default();
        for (begin, end, count) in
            [(10, 20, 10), (30, 40, 20), (35, 36, 20), (20, 22, 22), (5, 35, 35), (50, 50, 35), (0, 99, 99)]
        {
            written.take(begin, end);
            assert_eq!(written.count(), count, "{begin} to {end}");
        }
    }
}
