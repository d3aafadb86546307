//! One commit of one database while its calls pass by.

use std::collections::BTreeSet;

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::page_transactions::attached::CommitBounds;
use crate::recording::page_transactions::log_frames::{
    EMBEDDED_BLOCK_BYTES, FRAME_HEADER_BYTES, LOG_HEADER_BYTES, RecordedFrame, TransactionFrames,
    WrittenBytes,
};
use crate::recording::page_transactions::{CommitPart, CommitSyncs, PageOne, RecordedCommit, RecordedMode};

/// Bytes that SQLite overwrites a journal's header with in PERSIST mode (pager.c, zeroJournalHdr).
pub const ZEROED_HEADER_BYTES: u64 = 28;
/// A page's record in a journal has its number before it and a checksum behind it.
const RECORD_BYTES: u64 = 8;

impl CommitSyncs {
    /// Counts a call that makes something durable.
    pub fn count(&mut self, kind: CallKind) {
        match kind {
            CallKind::Fsync => self.fsync += 1,
            CallKind::Fdatasync => self.fdatasync += 1,
            _ => self.other += 1,
        }
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        self.fsync += other.fsync;
        self.fdatasync += other.fdatasync;
        self.other += other.other;
    }
}

/// What is known of it so far.
#[derive(Debug, Default)]
pub struct CommitUnderWay {
    pub process: u32,
    pub thread: u32,
    /// Of the database, or of the log.
    pub description: u32,
    pub begin_ns: u64,
    /// When it made its journal, or first wrote.
    pub write_ns: Option<u64>,
    pub end_ns: u64,
    pub pages: BTreeSet<u32>,
    /// It wrote one of them, but page 1, more than once, or cut it off again.
    pub is_redone: bool,
    /// Writes of pages to the database.
    pub page_writes: u64,
    /// Frames of the log whose heads are known.
    pub frames: TransactionFrames,
    pub log_bytes: WrittenBytes,
    /// Its log is in waldio's embedded layout: a frame is as long as its page.
    pub is_embedded: bool,
    /// One past the last byte of the journal that was written.
    pub journal_extent: Option<u64>,
    /// The description that wrote it.
    pub journal: Option<u32>,
    pub journal_end: Option<RecordedMode>,
    /// A frame had a commit mark, or the journal came to its end: what is written next belongs to the next commit.
    pub is_over: bool,
    /// A write or a sync of the log failed after its first write, or the end of its journal did.
    pub has_failed: bool,
    /// The database or the log was synced after its last write.
    pub is_synced: bool,
    /// Syncs of the log by its thread behind its last write, up to the first call that only a checkpoint makes.
    pub log_syncs: u32,
    /// A checkpoint synced or wrote the database behind its last write.
    pub has_checkpoint: bool,
    /// A checkpoint wrote the database behind one of its writes.
    pub is_checkpointed: bool,
    /// A checkpoint followed, and the only sync of the log before it may have been its own.
    pub is_unclear: bool,
    /// A lock bounds it.
    pub is_locked: bool,
    /// That is the log's. Locks of the database say nothing of it then: another connection of the process may close while it lasts.
    pub has_log_lock: bool,
    /// Where it begins and ends.
    pub bounds: CommitBounds,
    /// That lock was given back.
    pub is_unlocked: bool,
    /// Pages of the database before, where a size told them.
    pub pages_before: Option<u32>,
    /// Pages of the database afterwards, where page 1, a frame or a cut told them.
    pub pages_after: Option<u32>,
    pub free_before: Option<i64>,
    pub free_after: Option<i64>,
    pub syncs: CommitSyncs,
    pub written_bytes: u64,
}

impl CommitUnderWay {
    /// One that begins with a call.
    pub fn begin(call: &RecordedCall) -> Self {
        let begin_ns = if call.kind == CallKind::Lock { call.end_ns() } else { call.begin_ns };
        Self { process: call.process, thread: call.thread, begin_ns, ..Self::default() }
    }

    /// Whether a call may be a part of it. A transaction may go on in another thread of its process (Go, executors). With a log only its lock
    /// tells that: without one, another thread's frames are another commit's.
    pub fn is_of(&self, call: &RecordedCall) -> bool {
        let is_one_writer = self.is_locked || !self.is_of_log();
        self.thread == call.thread || (self.process == call.process && is_one_writer)
    }

    /// A call of it wrote something.
    pub fn wrote(&mut self, call: &RecordedCall) {
        (self.log_syncs, self.has_checkpoint) = (0, false);
        self.write_ns.get_or_insert(call.begin_ns);
        self.written_bytes += call.moved_bytes();
        self.reach(call);
    }

    /// It wrote these pages to the database.
    pub fn take_pages(&mut self, pages: impl Iterator<Item = u32>) {
        for page in pages {
            self.is_redone |= !self.pages.insert(page) && page != 1;
        }
    }

    /// All that it wrote is being undone.
    pub fn roll_back(&mut self) {
        self.pages.clear();
        (self.is_redone, self.is_synced) = (false, false);
        (self.pages_after, self.free_after) = (None, None);
    }

    /// Its journal came to its end, in this way.
    pub fn end_journal(&mut self, mode: RecordedMode, place: (usize, usize)) {
        (self.journal_end, self.is_over) = (Some(mode), true);
        self.bounds.end(place.0, place.1, false);
    }

    /// It lasted at least as long as a call.
    pub fn reach(&mut self, call: &RecordedCall) {
        self.end_ns = self.end_ns.max(call.end_ns());
    }

    /// Its thread synced the log. A checkpoint of waldio's does so twice, and the database's sync lies between.
    pub fn log_synced(&mut self) {
        self.log_syncs += u32::from(self.is_of_log() && !self.has_checkpoint);
    }

    /// A checkpoint writes the database. It syncs the log before, and so does a commit: where there was one sync, or none
    /// (synchronous=off), no commit's is known.
    pub fn checkpoint_writes(&mut self) {
        self.is_unclear |= self.log_syncs < 2;
        (self.has_checkpoint, self.is_checkpointed) = (true, true);
    }

    /// Whether it is a stretch of a log in which no call shows where a commit ends: neither a lock, nor marks, nor a sync of its own.
    pub fn is_open_in_log(&self) -> bool {
        let is_shown = self.is_locked || !self.frames.is_empty();
        self.is_of_log() && !is_shown && (self.is_unclear || self.log_syncs == 0)
    }

    /// How many commits it may be: where no call shows their ends, each frame, and each write of a page to a database without a journal.
    pub fn commits_max(&self, page_bytes: u64) -> u64 {
        if self.is_open_in_log() {
            return self.frame_count(page_bytes).max(1);
        }
        // Written twice before its sync, a page may be several commits' without one (synchronous=off), up to one with it.
        let may_be_several = self.has_no_journal() && (self.is_redone || !self.is_synced);
        if may_be_several { self.page_writes.max(1) } else { 1 }
    }

    /// Whether its first byte in the log is within a frame. Without powersafe overwrite SQLite syncs at the end of a sector, in the midst
    /// of a repeated frame, and writes the rest behind the sync (wal.c, walWriteToLog).
    pub fn begins_in_a_frame(&self, page_bytes: u64) -> bool {
        let is_shown = self.is_locked || self.is_embedded || !self.frames.is_empty();
        let begin = self.log_bytes.first().filter(|_| !is_shown);
        begin.is_some_and(|begin| {
            !begin.saturating_sub(LOG_HEADER_BYTES).is_multiple_of(FRAME_HEADER_BYTES + page_bytes)
        })
    }

    /// How many more commits a commit with a sync may be. In exclusive locking mode those before it have no sync where `PRAGMA synchronous`
    /// was OFF, and no call shows where each ends.
    pub fn may_be_more(&self, page_bytes: u64) -> u64 {
        let writes = match self.has_no_journal() {
            true if !self.is_unlocked => self.page_writes,
            false if self.is_of_log() && !self.is_locked && self.frames.is_empty() => {
                self.frame_count(page_bytes)
            }
            _ => 1,
        };
        writes.saturating_sub(1)
    }

    /// Whether it wrote pages or frames.
    pub fn has_pages(&self) -> bool {
        !self.pages.is_empty() || self.is_of_log()
    }

    /// Whether it wrote frames.
    pub fn is_of_log(&self) -> bool {
        !(self.frames.is_empty() && self.log_bytes.is_empty())
    }

    /// Whether what it wrote is a commit: frames without a mark are of a transaction that was rolled back, or had not ended. SQLite
    /// writes page 1 when it commits, and not before; where locks bound the transaction, its cache was filled with the lock.
    pub fn is_commit(&self) -> bool {
        let is_ended = !self.is_locked || self.pages.contains(&1) || !self.has_no_journal();
        self.has_pages() && is_ended && (self.frames.is_empty() || self.frames.is_committed())
    }

    /// Whether it wrote pages without a journal or a log.
    pub fn has_no_journal(&self) -> bool {
        self.journal_extent.is_none() && !self.is_of_log()
    }

    /// Whether a write to the log is a part of it. `first`: the first head that the write brought.
    pub fn takes_log_write(&self, first: Option<&RecordedFrame>, end: u64, page_bytes: u64) -> bool {
        let is_open = match first {
            Some(head) => self.frames.may_have(head, self.is_locked),
            // Behind a head comes its page, also behind the one with the mark.
            None if self.is_over => self.is_locked || self.frames.end(page_bytes) >= Some(end),
            None => true,
        };
        let is_synced = self.is_synced && self.is_of_log() && self.frames.is_empty() && !self.is_locked;
        self.pages.is_empty() && is_open && !is_synced
    }

    /// Frames of the log, from the bytes where no row tells.
    fn frame_count(&self, page_bytes: u64) -> u64 {
        if self.frames.is_empty() {
            let stock_bytes = FRAME_HEADER_BYTES + page_bytes;
            return self.log_bytes.count()
                / if self.is_embedded { EMBEDDED_BLOCK_BYTES } else { stock_bytes };
        }
        self.frames.heads().count() as u64
    }

    /// Numbers of the pages in them.
    fn frame_pages(&self) -> BTreeSet<u32> {
        self.frames.heads().map(|head| head.page).collect()
    }

    /// Pages that the journal has, from its length: its header is a sector of 512 bytes, or of a page's size.
    fn journal_records(&self, page_bytes: u64) -> Option<u64> {
        let extent = self.journal_extent?;
        let record_bytes = page_bytes + RECORD_BYTES;
        let of_header = |header_bytes: u64| {
            extent.checked_sub(header_bytes).filter(|rest| rest.is_multiple_of(record_bytes))
        };
        // A header alone is as long as its sector.
        if extent < record_bytes {
            return Some(0);
        }
        let sectors = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
        let rest = sectors.into_iter().find_map(of_header).unwrap_or(extent.saturating_sub(512));
        Some(rest / record_bytes)
    }

    /// Pages of the database before: what a size told, or else from how many of the pages written the journal has no record. A page
    /// that is new has none, and new pages are the last, behind those that are known to be there. Without a journal nothing is new:
    /// SQLite writes one for each commit that grows a database.
    fn size_before(&self, page_bytes: u64, at_least: u32) -> u32 {
        if let Some(known) = self.pages_before {
            return known;
        }
        let last = self.last_page();
        let written = self.pages.len() as u64;
        let records = self.journal_records(page_bytes).unwrap_or(written);
        let without_record = usize::try_from(written.saturating_sub(records)).unwrap_or(usize::MAX);
        let new = self.pages.iter().rev().take(without_record).take_while(|page| **page > at_least);
        new.last().map_or(at_least.max(last), |first| at_least.max(first - 1))
    }

    /// The last page that it wrote, 0 where none is known.
    fn last_page(&self) -> u32 {
        self.pages.last().copied().max(self.frame_pages().last().copied()).unwrap_or(0)
    }

    fn mode(&self) -> RecordedMode {
        match (self.is_of_log(), self.journal_extent, self.journal_end) {
            (true, ..) => RecordedMode::Wal,
            (false, _, Some(end)) => end,
            (false, Some(_), None) => RecordedMode::Journal,
            (false, None, None) => RecordedMode::None,
        }
    }

    fn page_one(&self, mode: RecordedMode, grew: bool) -> PageOne {
        let is_free_list_changed = match (self.free_before, self.free_after) {
            (Some(before), Some(after)) => Some(before != after),
            _ => None,
        };
        match mode {
            RecordedMode::Wal if !self.frames.is_empty() => match self.frame_pages().contains(&1) {
                true => PageOne::Changed,
                false => PageOne::Unchanged,
            },
            _ if grew || is_free_list_changed == Some(true) => PageOne::Changed,
            _ if is_free_list_changed == Some(false) => PageOne::Unchanged,
            _ => PageOne::Unknown,
        }
    }

    /// The commit, which wrote one database; that had `at_least` so many pages before.
    pub fn finish(self, database: usize, page_bytes: u64, at_least: u32) -> RecordedCommit {
        let mode = self.mode();
        let pages_before = self.size_before(page_bytes, at_least);
        let last = self.last_page();
        let pages_after = self.pages_after.unwrap_or(pages_before.max(last));
        let page_one = self.page_one(mode, pages_after > pages_before);
        let frames = self.frame_count(page_bytes);
        let pages_known = mode != RecordedMode::Wal || !self.frames.is_empty();
        let pages = if mode == RecordedMode::Wal { self.frame_pages() } else { self.pages };
        let part = CommitPart {
            database,
            description: self.description,
            pages: pages.into_iter().collect(),
            pages_known,
            frames,
            page_one,
            pages_before,
            pages_after,
            mode,
        };
        RecordedCommit {
            process: self.process,
            thread: self.thread,
            begin_ns: self.begin_ns,
            write_ns: self.write_ns.unwrap_or(self.begin_ns),
            end_ns: self.end_ns,
            parts: vec![part],
            syncs: self.syncs,
            written_bytes: self.written_bytes,
        }
    }
}
