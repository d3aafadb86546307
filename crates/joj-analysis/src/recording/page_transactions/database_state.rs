//! What is known of a database while the calls pass by.

use std::collections::{HashMap, HashSet};

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::page_transactions::database_files::FileRole;
use crate::recording::page_transactions::last_in_log::LastInLog;
use crate::recording::page_transactions::log_frames::{
    CommittedFrames, EMBEDDED_BLOCK_BYTES, FRAME_BYTES_MIN, RepeatedFrames,
};
use crate::recording::page_transactions::rollback::{HowMany, JournalRead, NotTold};
use crate::recording::page_transactions::under_way::CommitUnderWay;
use crate::recording::page_transactions::{CommitSyncs, RecordedCommit, RecordedMode};

/// The state.
#[derive(Debug, Default)]
pub struct DatabaseState {
    pub under_way: Option<CommitUnderWay>,
    /// Pages, where something told them.
    pub pages: Option<u32>,
    /// So many are known to be there.
    pub at_least: u32,
    /// Of its free list.
    pub free_pages: Option<i64>,
    /// Descriptions of its files that are open.
    open: HashMap<u32, FileRole>,
    /// Those of a log, or its index, that has no name any more: what has it now is another.
    removed: HashMap<u32, FileRole>,
    /// Its own file has no name any more, unless it was opened since.
    has_no_name: bool,
    /// The thread that read a page from the journal, and writes it back next.
    pub writes_back: Option<u32>,
    /// Each thread's last commit, by its place in `Deriver::commits`.
    pub last: HashMap<u32, usize>,
    /// What commits left in the log.
    pub log: CommittedFrames,
    /// The last of those commits, until the next transaction tells whether it was one.
    pub last_in_log: Option<LastInLog>,
    /// The process that has the lock of a recovery. What it writes to the log is there already.
    pub recovers: Option<u32>,
    /// The thread that has the lock of a checkpoint.
    pub checkpointer: Option<u32>,
    /// Processes and their threads that had the log's write lock.
    pub log_lockers: HashSet<(u32, u32)>,
    /// Processes outside of the recording that write to it.
    pub outsiders: Outsiders,
    /// There is the file on which waldio's connections have a lock while its log is in the embedded layout.
    pub has_embedded_lock: bool,
    /// Commits in it that may be repeated frames.
    pub repeated: RepeatedFrames,
    /// Journals of its commits have ends in the recording.
    has_journal_ends: bool,
    /// Descriptions of the database that had one of SQLite's locks.
    lockers: HashSet<u32>,
    /// Those from before the recording that have ended no transaction in it.
    from_before: HashSet<u32>,
    /// Descriptions of the database that a commit synced.
    pub synced: HashSet<u32>,
    /// One that may be a commit's which was over before.
    pub late_sync: Option<LateSync>,
    /// Frames were written, some of them by commits that something bounds.
    pub has_frames: bool,
    pub has_bounds: bool,
}

/// What processes outside of the recording do to a log, as far as its transactions show it.
#[derive(Debug, Default)]
pub struct Outsiders {
    /// They wrote to it.
    pub has_any: bool,
    /// Transactions that the next one shows to be none, if there are no such processes.
    pub may_be_commits: u64,
}

impl Outsiders {
    /// Transactions that are not counted, and may be commits.
    pub fn more_commits(&self) -> u64 {
        if self.has_any { self.may_be_commits } else { 0 }
    }
}

/// A sync of the log by a thread whose commit has given back its lock. With group commit it is that commit's; or it is a checkpoint's, which
/// takes its lock before, and writes the database behind it.
#[derive(Debug, Clone, Copy)]
pub struct LateSync {
    pub thread: u32,
    commit: usize,
    end_ns: u64,
}

impl LateSync {
    /// Gives it to the thread's last commit, at `place` of all of them, if that has no sync.
    pub fn of(call: &RecordedCall, place: Option<&usize>, commits: &mut [RecordedCommit]) -> Option<Self> {
        let place = *place?;
        let commit = commits.get_mut(place).filter(|commit| commit.syncs.all() == 0)?;
        let late = Self { thread: call.thread, commit: place, end_ns: commit.end_ns };
        commit.syncs.count(call.kind);
        commit.end_ns = commit.end_ns.max(call.end_ns());
        Some(late)
    }

    /// It was a checkpoint's.
    pub fn take_back(self, commits: &mut [RecordedCommit]) {
        (commits[self.commit].syncs, commits[self.commit].end_ns) = (CommitSyncs::default(), self.end_ns);
    }
}

impl DatabaseState {
    /// While a description of its log is open, writes to the database are a checkpoint's.
    pub fn has_open_log(&self) -> bool {
        self.open.values().any(|role| *role == FileRole::Log)
    }

    /// A call opens or closes one of its files.
    pub fn opens_or_closes(&mut self, call: &RecordedCall, role: FileRole) {
        match call.kind {
            CallKind::Open | CallKind::Held => {
                self.has_no_name &= role != FileRole::Database;
                self.open.insert(call.description, role);
                if call.kind == CallKind::Held {
                    self.from_before.insert(call.description);
                }
            }
            CallKind::Close | CallKind::Released if !call.stays_open() => {
                self.open.remove(&call.description);
            }
            _ => {}
        }
    }

    /// Its file loses its name. Who has it open goes on, also with a log whose name went right before.
    pub fn loses_name(&mut self) {
        self.has_no_name = true;
        if self.is_open() && !self.has_open_log() {
            self.open.extend(self.removed.drain());
        }
    }

    /// Another file took its place, and nobody has the old one open.
    pub fn begins_anew(&mut self) {
        (self.pages, self.at_least) = (Some(0), 0);
    }

    fn is_open(&self) -> bool {
        self.open.values().any(|role| *role == FileRole::Database)
    }

    /// Whether connections go on with it that no later one can meet: its log is theirs, whatever its name.
    pub fn goes_on_without_name(&self) -> bool {
        self.has_no_name && self.is_open()
    }

    /// Its log, or the log's index, loses its name.
    pub fn log_loses_name(&mut self, role: FileRole) {
        if self.has_open_log() || !self.removed.is_empty() {
            self.removed.extend(self.open.extract_if(|_, opened| *opened == role));
        }
    }

    /// Whether a call is about a log that has no name any more.
    pub fn is_removed(&mut self, call: &RecordedCall) -> bool {
        let is_over = matches!(call.kind, CallKind::Close | CallKind::Released) && !call.stays_open();
        if is_over {
            self.removed.remove(&call.description).is_some()
        } else {
            self.removed.contains_key(&call.description)
        }
    }

    /// A call on one of its files failed: a commit whose log was not written or not synced is none, if nothing follows it, and neither is one
    /// whose journal could not be ended.
    pub fn failed(&mut self, call: &RecordedCall, role: FileRole) {
        let under_way = self.under_way.as_mut().filter(|commit| commit.thread == call.thread);
        let Some(commit) = under_way else { return };
        commit.has_failed |= match (role, call.kind) {
            (FileRole::Log, kind) => kind.is_write() || kind.is_sync(),
            // In exclusive locking mode a journal that has ended is unlinked once more at the close.
            (FileRole::Journal, CallKind::Unlink | CallKind::Ftruncate) => {
                commit.journal_extent.is_some() && commit.journal_end.is_none()
            }
            _ => false,
        };
    }

    /// A call says how long the database is.
    pub fn size(&mut self, call: &RecordedCall, page_bytes: u64) {
        // A commit under way has its own size, and scripts have none; with a log the file lags behind.
        let has_written = self.under_way.as_ref().is_some_and(CommitUnderWay::has_pages);
        if call.bytes == 0 || has_written {
            return;
        }
        let pages = u32::try_from(call.bytes / page_bytes).unwrap_or(u32::MAX);
        self.at_least = self.at_least.max(pages);
        if self.has_open_log() {
            return;
        }
        self.pages = Some(pages);
        if let Some(commit) = &mut self.under_way {
            commit.pages_before = self.pages;
        }
    }

    /// A call sets how long it is.
    pub fn cut(&mut self, call: &RecordedCall, pages: Option<u32>) {
        match &mut self.under_way {
            Some(commit) if commit.is_of(call) => {
                commit.pages_after = pages;
                let written = commit.pages.len();
                commit.pages.retain(|page| pages.is_none_or(|pages| *page <= pages));
                commit.is_redone |= commit.pages.len() < written;
                commit.reach(call);
                // A rollback looks at the size before it cuts the file to the one that the transaction found.
                if !commit.has_pages() {
                    (self.pages, commit.pages_before, commit.pages_after) = (pages, pages, None);
                }
            }
            _ => self.pages = pages,
        }
    }

    /// Page 1 was written or read.
    pub fn first_page(&mut self, call: &RecordedCall) {
        let pages = u32::try_from(call.bytes).ok().filter(|pages| *pages > 0);
        let free = Some(call.result);
        let may_be_older = self.has_open_log() && self.has_frames;
        match &mut self.under_way {
            Some(commit) if commit.is_of(call) && commit.pages.contains(&1) => {
                commit.pages_after = pages.or(commit.pages_after);
                commit.free_after = free;
            }
            // What a checkpoint writes may be older than the log's last commit.
            _ if may_be_older => {}
            _ => {
                self.pages = pages.or(self.pages);
                self.free_pages = free;
                if let Some(commit) = &mut self.under_way {
                    (commit.pages_before, commit.free_before) = (self.pages, self.free_pages);
                }
            }
        }
    }

    /// Whether a transaction that wrote something counts.
    pub fn counts(&mut self, commit: &CommitUnderWay, page_bytes: u64, not_told: &mut NotTold) -> bool {
        // Where locks bound it, all of it is in the recording, the journal's end too: what has none did not end itself.
        // So it is where other journals' ends are, or SQLite's locks, in exclusive locking mode.
        let shows_ends =
            commit.is_locked || self.has_journal_ends || self.lockers.contains(&commit.description);
        let has_no_end = shows_ends && commit.journal_extent.is_some() && commit.journal_end.is_none();
        let has_failed = commit.has_failed && !commit.is_of_log();
        let is_redone = commit.is_redone && commit.has_no_journal();
        // Others of its process take the lock for that: waldio's thread that fills a log ahead of need does not.
        let is_known = commit.is_locked || !commit.frames.is_empty() || !commit.is_of_log();
        let takes_locks = self.log_lockers.iter().any(|(process, _)| *process == commit.process);
        let is_outside =
            !is_known && takes_locks && !self.log_lockers.contains(&(commit.process, commit.thread));
        // Where heads of others are known, these bytes are no frames.
        let is_short = !commit.is_embedded && commit.log_bytes.count() < FRAME_BYTES_MIN;
        let is_no_frame = commit.is_of_log() && commit.frames.is_empty() && (self.log.has_heads || is_short);
        let is_unsynced = commit.has_no_journal() && !commit.is_synced;
        // The connection has synced each commit before.
        let is_cut_off = is_unsynced && !commit.is_unlocked && self.synced.contains(&commit.description);
        let commits_max = commit.commits_max(page_bytes);
        let has_no_begin = self.from_before.remove(&commit.description) && !commit.is_locked;
        let is_counted = !(has_no_end || has_failed || is_redone || is_outside || is_cut_off);
        let may_be_none = commit.has_no_journal() && (has_no_begin || (is_unsynced && !commit.is_unlocked));
        if is_no_frame {
            return false;
        }
        not_told.may_be_none += u64::from(is_counted && may_be_none);
        not_told.repeated += u64::from(is_counted && commit.begins_in_a_frame(page_bytes));
        if has_no_end || has_failed || (is_cut_off && commit.is_locked) {
            not_told.ends += 1;
        } else if is_unsynced {
            // Without the lock it may also be that synchronous=off was set.
            not_told.not_shown += commits_max - u64::from(!(is_redone || is_cut_off));
        } else if is_redone {
            not_told.without_journal += commits_max;
        } else if is_outside {
            not_told.outside_locks += commits_max.max(1 + commit.may_be_more(page_bytes));
        } else if commits_max == 1 {
            not_told.before_sync += commit.may_be_more(page_bytes);
        }
        is_counted
    }

    /// Whether a sync of the log is that of a checkpoint by another connection, while a transaction of the same thread lasts.
    pub fn is_checkpoints_sync(&self, call: &RecordedCall) -> bool {
        let is_others =
            |commit: &CommitUnderWay| commit.has_log_lock && commit.description != call.description;
        self.checkpointer == Some(call.thread) && self.under_way.as_ref().is_some_and(is_others)
    }

    /// A checkpoint syncs the database, or writes it.
    pub fn checkpoints(&mut self, is_write: bool) {
        if let Some(commit) = self.under_way.as_mut().filter(|commit| !commit.is_locked && commit.is_of_log())
        {
            match is_write {
                true => commit.checkpoint_writes(),
                false => commit.has_checkpoint = true,
            }
        }
        if let Some(last) = self.last_in_log.as_mut().filter(|_| is_write) {
            last.is_checkpointed = true;
        }
    }

    /// A description of its log is closed: how many commits that took away.
    pub fn log_closed(&mut self, call: &RecordedCall, page_bytes: u64) -> HowMany {
        let cut_off = if call.kind == CallKind::Released { self.cut_off(call) } else { None };
        cut_off
            .map_or(HowMany::NONE, |commit| HowMany { most: commit.commits_max(page_bytes), ..HowMany::NONE })
    }

    /// The process of this row is over: takes away a transaction in the log of which only a sync would tell that it is a commit.
    fn cut_off(&mut self, call: &RecordedCall) -> Option<CommitUnderWay> {
        let is_it = |commit: &mut CommitUnderWay| {
            let is_told = commit.is_locked || commit.is_synced || !commit.frames.is_empty();
            commit.process == call.process && commit.is_of_log() && !is_told
        };
        self.under_way.take_if(is_it)
    }

    /// The last commit in the log was none: the database is as it was before it.
    pub fn withdraw(&mut self, last: &LastInLog) {
        (self.pages, self.at_least) = last.pages_before;
        self.log.cut(last.begin);
        if let Some(commit) = &mut self.under_way {
            commit.pages_before = self.pages;
        }
    }

    /// A call on one of its files. What is written back follows the read of its record: one that stayed in the cache is written by none
    /// (pager.c, pager_playback_one_page), and the next write is the next commit's.
    pub fn passes(&mut self, call: &RecordedCall, role: FileRole) {
        let may_write_back = match role {
            FileRole::Journal => call.kind.is_read(),
            FileRole::Database => call.kind.is_write(),
            _ => false,
        };
        if !may_write_back {
            self.writes_back.take_if(|thread| *thread == call.thread);
        }
        if role == FileRole::Database && call.kind == CallKind::Lock {
            self.lockers.insert(call.description);
        }
        if role == FileRole::EmbeddedLock {
            self.has_embedded_lock = call.kind != CallKind::Unlink;
        }
    }

    /// Whether a write without heads at its log's begin makes it one in the embedded layout. Under the write lock that lock tells it.
    /// Else it is one of whole blocks: a frame of SQLite's own layout ends in the second one, where pages are not smaller.
    pub fn begins_embedded(&self, write: &RecordedCall, page_bytes: u64) -> bool {
        // In exclusive locking mode it has the database's lock, and none of the log's.
        if self.under_way.as_ref().is_some_and(|commit| commit.has_log_lock) {
            return self.log.is_embedded;
        }
        let may_be = self.has_embedded_lock || self.log.is_embedded || page_bytes == EMBEDDED_BLOCK_BYTES;
        may_be && write.moved_bytes().is_multiple_of(EMBEDDED_BLOCK_BYTES)
    }

    /// It was read up to so many pages.
    pub fn has_at_least(&mut self, pages: u64) {
        self.at_least = self.at_least.max(u32::try_from(pages).unwrap_or(u32::MAX));
    }

    /// Its journal was read.
    pub fn read_journal(&mut self, call: &RecordedCall, read: JournalRead) {
        match (read, &mut self.under_way) {
            (JournalRead::Header, Some(commit)) if commit.is_of(call) => commit.roll_back(),
            // A hot journal: whose it was is no more.
            (JournalRead::Header, under_way) => {
                under_way.take_if(|commit| commit.journal_end.is_none() && !commit.is_of_log());
            }
            (JournalRead::Record, _) => self.writes_back = Some(call.thread),
            (JournalRead::Other, _) => {}
        }
    }

    /// Whether a write of these pages puts back what its thread just read from the journal. Then no commit wrote them.
    pub fn is_written_back(&mut self, call: &RecordedCall, pages: impl Iterator<Item = u32>) -> bool {
        if self.writes_back.take_if(|thread| *thread == call.thread).is_none() {
            return false;
        }
        if let Some(commit) = self.under_way.as_mut().filter(|commit| commit.is_of(call)) {
            for page in pages {
                commit.pages.remove(&page);
            }
        }
        true
    }

    /// A journal's end is its transaction's. One that has no pages then was rolled back.
    pub fn journal_ended(&mut self, mode: RecordedMode, place: (usize, usize)) {
        match &mut self.under_way {
            Some(commit) if commit.has_pages() => {
                self.has_journal_ends = true;
                commit.end_journal(mode, place);
            }
            under_way => *under_way = None,
        }
    }
}
