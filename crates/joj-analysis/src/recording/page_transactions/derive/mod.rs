//! From calls to commits: each call is told to the commit of its database that is under way, begins one, or ends it.
//!
//! ```text
//! logs   calls on a log and its index
//! ```

mod logs;

use std::collections::HashMap;

use thiserror::Error;

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::O_CREAT;
use crate::recording::page_transactions::attached::{CommitBounds, join};
use crate::recording::page_transactions::database_files::{DatabaseFiles, FileRole};
use crate::recording::page_transactions::database_state::{DatabaseState, LateSync};
use crate::recording::page_transactions::last_in_log::LastInLog;
use crate::recording::page_transactions::locks::{LockSense, by_effect};
use crate::recording::page_transactions::log_frames::heads_of;
use crate::recording::page_transactions::positions::Positions;
use crate::recording::page_transactions::rollback::{JournalRead, NotTold};
use crate::recording::page_transactions::under_way::{CommitUnderWay, ZEROED_HEADER_BYTES};
use crate::recording::page_transactions::{CommitSyncs, PageTransactions, RecordedCommit, RecordedMode};

/// Why a recording's commits are not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeriveError {
    /// Nothing of SQLite's is in it.
    #[error("no commit of a SQLite database is in it: no call writes a database that has a journal or a log")]
    NoCommit,
    /// Writes to databases that may be commits, and no commit.
    #[error(
        "no commit of a SQLite database can be told in it, and there may be up to {0}: with locking_mode=EXCLUSIVE, without a journal \
         and syncs, no call shows where a commit ends; record the program with another journal_mode or with synchronous=FULL"
    )]
    NotShown(u64),
    /// A log whose commits nothing tells apart.
    #[error(
        "the commits in the log of {0} cannot be told apart: no sync ends them, and neither locks nor frame heads are in the \
         recording; record the program with `joj record -- PROGRAM` (waldio in its layout `stock`), or with synchronous=FULL"
    )]
    NoBounds(String),
}

struct Deriver<'a> {
    recording: &'a Recording,
    files: DatabaseFiles,
    databases: Vec<DatabaseState>,
    positions: Positions,
    /// By thread the database of its last commit.
    last_database: HashMap<u32, usize>,
    commits: Vec<RecordedCommit>,
    /// Of each of them.
    bounds: Vec<CommitBounds>,
    /// The place of this call in the order.
    at: usize,
    /// By thread the place of its last call that none makes in a COMMIT.
    outside: HashMap<u32, usize>,
    not_told: NotTold,
    syncs: CommitSyncs,
    written_bytes: u64,
}

/// Finds the commits of a recording.
/// # Errors
/// There is none, or a log does not tell them.
pub fn derive(recording: &Recording) -> Result<PageTransactions, DeriveError> {
    let files = DatabaseFiles::find(recording);
    let databases = files.databases.iter().map(|_| DatabaseState::default()).collect();
    let mut deriver = Deriver {
        recording,
        files,
        databases,
        positions: Positions::default(),
        last_database: HashMap::new(),
        commits: Vec::new(),
        bounds: Vec::new(),
        at: 0,
        outside: HashMap::new(),
        not_told: NotTold::default(),
        syncs: CommitSyncs::default(),
        written_bytes: 0,
    };
    for place in by_effect(&recording.calls) {
        deriver.take(place);
    }
    deriver.finish()
}

impl Deriver<'_> {
    /// The call at a place of the recording.
    fn take(&mut self, place: usize) {
        let recording = self.recording;
        let (call, following) = (&recording.calls[place], &recording.calls[place + 1..]);
        let offset = self.positions.place(call);
        self.at += 1;
        for loser in self.files.successors.losers(place) {
            self.databases[*loser].loses_name();
        }
        let found = self.files.of_call(place, call);
        let Some((role, database)) = found else { return self.is_outside(call) };
        if self.files.successors.begins_anew(place) {
            self.log_gone(database);
            self.databases[database].begins_anew();
        }
        if call.result < 0 && call.kind != CallKind::FirstPage {
            return self.databases[database].failed(call, role);
        }
        if self.is_of_others(call, following, role, database) {
            return;
        }
        self.databases[database].passes(call, role);
        if call.kind.is_sync() {
            return self.sync(call, role, database);
        }
        self.databases[database].opens_or_closes(call, role);
        if matches!(call.kind, CallKind::Unlink | CallKind::Rename)
            && !matches!(role, FileRole::Database | FileRole::Journal)
        {
            self.log_loses_name(role, database);
        }
        match (role, call.kind) {
            (_, CallKind::FirstPage) => self.databases[database].first_page(call),
            (FileRole::Database, CallKind::Lock) => {
                self.database_lock(call, database);
            }
            (FileRole::WalIndex | FileRole::EmbeddedIndex, CallKind::Lock) => {
                self.log_lock(call, role, database);
            }
            (FileRole::Database, CallKind::Fstat | CallKind::Stat | CallKind::Present) => {
                let page_bytes = self.page_bytes(database);
                self.databases[database].size(call, page_bytes);
            }
            (FileRole::Database, CallKind::Ftruncate | CallKind::Truncate) => {
                // A VACUUM that changed the size of pages leaves a size that is none of theirs.
                let page_bytes = self.page_bytes(database);
                let pages = u32::try_from(call.bytes / page_bytes).ok();
                let pages = pages.filter(|_| call.bytes.is_multiple_of(page_bytes));
                let state = &mut self.databases[database];
                match state.has_open_log() {
                    false => state.cut(call, pages),
                    true => state.checkpoints(true),
                }
            }
            (FileRole::Database, CallKind::Close) => self.is_outside(call),
            (FileRole::Log, CallKind::Ftruncate | CallKind::Truncate) if call.bytes == 0 => {
                self.log_gone(database);
            }
            (FileRole::Log, CallKind::Close | CallKind::Released) if !call.stays_open() => {
                let page_bytes = self.page_bytes(database);
                self.not_told.take(self.databases[database].log_closed(call, page_bytes));
            }
            (FileRole::Journal, _) if offset.is_none() => self.journal(place, call, database),
            _ => {}
        }
        if let Some(offset) = offset {
            self.writes_or_reads(call, offset, following, role, database);
        }
    }

    fn writes_or_reads(
        &mut self,
        call: &RecordedCall,
        offset: u64,
        following: &[RecordedCall],
        role: FileRole,
        database: usize,
    ) {
        match (role, call.kind.is_write()) {
            (FileRole::Database, true) => self.write_database(call, offset, database),
            (FileRole::Database, false) => {
                let pages = offset.saturating_add(call.moved_bytes()) / self.page_bytes(database);
                self.databases[database].has_at_least(pages);
            }
            (FileRole::Journal, false) => {
                let read = JournalRead::of(offset, call.moved_bytes());
                self.databases[database].read_journal(call, read);
            }
            (FileRole::Journal, true) => self.write_journal(call, offset, database),
            (FileRole::Log, true) => self.write_log(call, offset, database, &heads_of(call, following)),
            (FileRole::SuperJournal, true) => self.written_bytes += call.moved_bytes(),
            _ => {}
        }
    }

    /// A log or its index has its name no more: what has it next is another, of the same database.
    fn log_loses_name(&mut self, role: FileRole, database: usize) {
        if self.databases[database].goes_on_without_name() {
            return;
        }
        if role == FileRole::Log {
            self.log_gone(database);
        }
        self.databases[database].log_loses_name(role);
    }

    /// Whether a call is none of a connection's that uses the files of these names now. What may be commits all the same is told.
    fn is_of_others(
        &mut self,
        call: &RecordedCall,
        following: &[RecordedCall],
        role: FileRole,
        database: usize,
    ) -> bool {
        let is_write = call.kind.is_write();
        let page_bytes = self.page_bytes(database);
        let frames = || match heads_of(call, following).len() as u64 {
            0 => call.moved_bytes().div_ceil(page_bytes),
            heads => heads,
        };
        if self.databases[database].is_removed(call) {
            self.not_told.in_removed_log += if role == FileRole::Log && is_write { frames() } else { 0 };
            return true;
        }
        // What the next connection finds is of use: page 1, how long it is.
        let is_of_use = matches!(call.kind, CallKind::FirstPage | CallKind::Fstat) || call.kind.is_sync();
        if is_of_use || !self.files.is_stranger(call.description) {
            return false;
        }
        self.not_told.by_strangers += match role {
            FileRole::Database if is_write => 1,
            FileRole::Log if is_write => frames(),
            _ => 0,
        };
        self.is_outside(call);
        true
    }

    /// The place of this call, and that of the thread's last one outside a COMMIT.
    fn place(&self, thread: u32) -> (usize, usize) {
        (self.at, self.outside.get(&thread).copied().unwrap_or(0))
    }

    fn page_bytes(&self, database: usize) -> u64 {
        self.files.databases[database].page_bytes
    }

    /// Ends the commit under way, and begins one with this call.
    fn begin(&mut self, call: &RecordedCall, database: usize) -> &mut CommitUnderWay {
        self.end(database);
        let state = &mut self.databases[database];
        let mut begun = CommitUnderWay::begin(call);
        begun.pages_before = state.pages;
        begun.free_before = state.free_pages;
        state.under_way.insert(begun)
    }

    /// The commit under way if it is this thread's and `goes_on` says so; else a new one.
    fn going_on(
        &mut self,
        call: &RecordedCall,
        database: usize,
        goes_on: impl Fn(&CommitUnderWay) -> bool,
    ) -> &mut CommitUnderWay {
        let under_way = self.databases[database].under_way.as_ref();
        if !under_way.is_some_and(|commit| commit.is_of(call) && goes_on(commit)) {
            self.begin(call, database);
        }
        self.databases[database].under_way.get_or_insert_with(|| CommitUnderWay::begin(call))
    }

    /// Ends the commit under way, if it wrote anything.
    fn end(&mut self, database: usize) {
        let page_bytes = self.page_bytes(database);
        let state = &mut self.databases[database];
        let Some(commit) = state.under_way.take().filter(CommitUnderWay::is_commit) else { return };
        state.has_bounds |= commit.is_of_log() && !commit.is_open_in_log();
        if !state.counts(&commit, page_bytes, &mut self.not_told) {
            return;
        }
        state.free_pages = commit.free_after.or(state.free_pages);
        state.last.insert(commit.thread, self.commits.len());
        self.last_database.insert(commit.thread, database);
        let before = (commit.pages_before.or(state.pages), state.at_least);
        let last = LastInLog::of(&commit, self.commits.len(), before, page_bytes);
        state.last_in_log = last.or(state.last_in_log.take());
        let is_told = commit.pages_before.is_some() || commit.pages_after.is_some();
        self.bounds.push(commit.bounds);
        let commit = commit.finish(database, page_bytes, state.at_least);
        let after = commit.parts[0].pages_after;
        state.pages = is_told.then_some(after);
        state.at_least = if is_told { after } else { after.max(state.at_least) };
        self.commits.push(commit);
    }

    fn lock(&mut self, call: &RecordedCall, sense: LockSense, database: usize) {
        let (at, outside) = self.place(call.thread);
        let state = &mut self.databases[database];
        match sense {
            LockSense::Begins => {
                let commit = self.begin(call, database);
                (commit.is_locked, commit.bounds.opened) = (true, Some(at));
            }
            LockSense::IsOver => {
                let commit = state.under_way.as_mut().filter(|commit| commit.process == call.process);
                if let Some(commit) = commit.filter(|commit| commit.is_locked && commit.has_pages()) {
                    commit.bounds.end(at, outside, true);
                }
            }
            LockSense::Ends => self.unlock(call, database),
            LockSense::Checkpoints => state.late_sync = None,
            LockSense::Nothing => {}
        }
    }

    /// A call that is about no file of a database: none does that in a COMMIT.
    fn is_outside(&mut self, call: &RecordedCall) {
        // waldio may start a thread there.
        use CallKind::{FirstPage, Fork, Held, LogFrame, Present, Released, Woken};
        if !matches!(call.kind, FirstPage | Fork | Held | LogFrame | Present | Released | Woken) {
            self.outside.insert(call.thread, self.at);
        }
    }

    fn unlock(&mut self, call: &RecordedCall, database: usize) {
        let under_way = self.databases[database].under_way.as_mut();
        if let Some(commit) = under_way.filter(|commit| commit.is_locked && commit.process == call.process) {
            commit.reach(call);
            commit.is_unlocked = true;
            self.end(database);
        }
    }

    fn write_database(&mut self, call: &RecordedCall, offset: u64, database: usize) {
        self.written_bytes += call.moved_bytes();
        let page_bytes = self.page_bytes(database);
        let state = &mut self.databases[database];
        if state.has_open_log() {
            // A checkpoint: a sync of the log after the last commit's was its own.
            if let Some(late) = state.late_sync.take_if(|late| late.thread == call.thread) {
                late.take_back(&mut self.commits);
            }
            self.outside.insert(call.thread, self.at);
            state.checkpoints(true);
            return;
        }
        let first = offset / page_bytes;
        let last = offset.saturating_add(call.moved_bytes() - 1) / page_bytes;
        let pages = (first..=last).filter_map(|page| u32::try_from(page + 1).ok());
        if state.is_written_back(call, pages.clone()) {
            return;
        }
        // A build with atomic writes writes page 1 twice: its change counter, then the page (pager.c, pager_incr_changecounter).
        let has_syncs = self.files.databases[database].has_syncs;
        let (at, outside) = self.place(call.thread);
        let commit = self.going_on(call, database, |commit| {
            let begins_again = !has_syncs && !commit.is_locked && first == 0 && commit.pages.contains(&1);
            // Pages may have had another size before a VACUUM: the journal bounds it.
            let begins_again = begins_again && commit.journal_extent.is_none();
            !(commit.is_over || commit.is_synced || begins_again)
        });
        commit.description = call.description;
        commit.take_pages(pages);
        commit.page_writes += 1;
        commit.wrote(call);
        commit.bounds.wrote(at, call.thread, outside);
    }

    fn write_journal(&mut self, call: &RecordedCall, offset: u64, database: usize) {
        self.written_bytes += call.moved_bytes();
        let zeroes = offset == 0 && call.moved_bytes() == ZEROED_HEADER_BYTES;
        let begins = offset == 0 && call.moved_bytes() > ZEROED_HEADER_BYTES;
        let (at, outside) = self.place(call.thread);
        let commit = self.going_on(call, database, |commit| {
            let was_written = !commit.pages.is_empty();
            !(commit.is_over || (begins && was_written) || (commit.is_synced && !zeroes))
        });
        commit.wrote(call);
        commit.journal = Some(call.description);
        commit.bounds.opened.get_or_insert(at);
        if zeroes {
            self.databases[database].journal_ended(RecordedMode::Persist, (at, outside));
        } else {
            let end = offset.saturating_add(call.moved_bytes());
            commit.journal_extent = Some(commit.journal_extent.unwrap_or(0).max(end));
        }
    }

    /// What is not a write: the journal is made, and comes to its end.
    fn journal(&mut self, place: usize, call: &RecordedCall, database: usize) {
        let (at, outside) = self.place(call.thread);
        let end = match call.kind {
            CallKind::Open if call.flags & O_CREAT != 0 => {
                let goes_on = |commit: &CommitUnderWay| !(commit.is_over || commit.is_synced);
                let commit = self.going_on(call, database, goes_on);
                commit.bounds.opened.get_or_insert(at);
                commit.write_ns.get_or_insert(call.begin_ns);
                commit.reach(call);
                return;
            }
            CallKind::Unlink => Some(RecordedMode::Delete),
            CallKind::Ftruncate | CallKind::Truncate if call.bytes == 0 => Some(RecordedMode::Truncate),
            CallKind::Close => None,
            _ => return,
        };
        let under_way = self.databases[database].under_way.as_mut();
        let Some(commit) = under_way.filter(|commit| commit.is_of(call)) else { return };
        let is_open = |journal: u32| self.files.successors.is_used_after(place, commit.process, journal);
        let is_still_open = commit.journal.is_some_and(is_open);
        match end {
            // SQLite closes its journal before it unlinks it (pager.c, pager_end_transaction): something else did.
            Some(RecordedMode::Delete) if is_still_open => {}
            Some(mode) if commit.journal_extent.is_some() => {
                commit.reach(call);
                self.databases[database].journal_ended(mode, (at, outside));
            }
            None if commit.has_pages() && commit.journal_end.is_none() => {
                commit.reach(call);
                commit.bounds.end(at, outside, false);
            }
            _ => {}
        }
    }

    fn sync(&mut self, call: &RecordedCall, role: FileRole, database: usize) {
        self.syncs.count(call.kind);
        let database = match role {
            // A directory has several databases: that of the thread's commit.
            FileRole::Directory | FileRole::SuperJournal => self.database_of(call.thread).unwrap_or(database),
            _ => database,
        };
        let state = &mut self.databases[database];
        if role == FileRole::Log {
            self.not_told.repeated += state.repeated.synced();
        }
        let is_checkpoint = role == FileRole::Database && state.has_open_log();
        if is_checkpoint {
            state.checkpoints(false);
        }
        if role == FileRole::Log && state.is_checkpoints_sync(call) {
            return;
        }
        match state
            .under_way
            .as_mut()
            .filter(|commit| commit.is_of(call) && !(role == FileRole::Log && commit.thread != call.thread))
        {
            Some(commit) if role == FileRole::Log && commit.is_synced => commit.log_synced(),
            Some(commit) if !is_checkpoint => {
                commit.syncs.count(call.kind);
                commit.is_synced |= matches!(role, FileRole::Database | FileRole::Log) && commit.has_pages();
                if role == FileRole::Log {
                    commit.log_synced();
                }
                if role == FileRole::Database && commit.has_pages() {
                    state.synced.insert(call.description);
                }
                commit.reach(call);
            }
            // With group commit a log's sync comes when the write lock is given back.
            None if role == FileRole::Log => {
                state.late_sync = LateSync::of(call, state.last.get(&call.thread), &mut self.commits);
            }
            _ => {}
        }
    }

    /// The database whose commit a thread has under way, the latest of several, or had last.
    fn database_of(&self, thread: u32) -> Option<usize> {
        let own = |(database, state): (usize, &DatabaseState)| {
            let commit = state.under_way.as_ref().filter(|commit| commit.thread == thread)?;
            Some((commit.end_ns, database))
        };
        let latest = self.databases.iter().enumerate().filter_map(own).max();
        latest.map(|(_, database)| database).or_else(|| self.last_database.get(&thread).copied())
    }

    fn finish(mut self) -> Result<PageTransactions, DeriveError> {
        for database in 0..self.databases.len() {
            self.end(database);
            self.none_in_log(false, database);
            let state = &self.databases[database];
            self.not_told.ends += state.outsiders.more_commits();
            if state.has_frames && !state.has_bounds {
                return Err(DeriveError::NoBounds(self.files.databases[database].path.clone()));
            }
        }
        let found = self.commits.drain(..).zip(self.bounds.drain(..));
        let found = found.filter(|(commit, _)| !commit.parts.is_empty());
        let joined = join(found.collect());
        if joined.commits.is_empty() {
            return Err(match self.not_told.not_shown + self.not_told.without_journal {
                0 => DeriveError::NoCommit,
                writes => DeriveError::NotShown(writes),
            });
        }
        self.not_told.may_be_parts = joined.may_be_parts;
        let mut commits = joined.commits;
        let databases = self.files.with_commits(&mut commits);
        let mut notes = self.recording.header.inferred.clone();
        notes.extend(self.not_told.notes());
        let (syncs, written_bytes) = (self.syncs, self.written_bytes);
        Ok(PageTransactions { databases, commits, syncs, written_bytes, notes })
    }
}
