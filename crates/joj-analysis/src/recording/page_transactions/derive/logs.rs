//! Calls on a log and its index: which frames are a transaction's, and what tells that it was a commit.

use crate::recording::call::RecordedCall;
use crate::recording::page_transactions::database_files::FileRole;
use crate::recording::page_transactions::database_state::DatabaseState;
use crate::recording::page_transactions::derive::Deriver;
use crate::recording::page_transactions::last_in_log::LastInLog;
use crate::recording::page_transactions::locks::{LockSense, checkpoints, recovers};
use crate::recording::page_transactions::log_frames::{
    CommittedFrames, FrameBytes, RecordedFrame, TransactionFrames,
};
use crate::recording::page_transactions::rollback::HowMany;
use crate::recording::page_transactions::under_way::CommitUnderWay;

impl DatabaseState {
    /// Whether a write of the log writes it over itself. waldio does so when it opens a log whose index is lost: its bytes become new ones
    /// to the page cache. A recovery's lock tells it, or that the last commit is in no other place (exclusive locking mode).
    fn writes_over(&self, write: &RecordedCall, offset: u64, bytes: FrameBytes) -> bool {
        let last = self.last_in_log.as_ref().filter(|_| offset == 0 && !bytes.is_empty());
        let is_over = |last: &LastInLog| last.is_written_over(write.description, bytes.end);
        self.recovers == Some(write.process) || last.is_some_and(is_over)
    }
}

impl Deriver<'_> {
    pub(super) fn log_lock(&mut self, call: &RecordedCall, role: FileRole, database: usize) {
        let sense = LockSense::of_log(call);
        if let Some(begins) = recovers(call) {
            self.databases[database].recovers = begins.then_some(call.process);
        }
        if let Some(begins) = checkpoints(call) {
            self.databases[database].checkpointer = begins.then_some(call.thread);
        }
        let (at, outside) = self.place(call.thread);
        let state = &mut self.databases[database];
        if sense == LockSense::Begins {
            state.has_bounds = true;
            state.log_lockers.insert((call.process, call.thread));
            state.log.is_embedded = role == FileRole::EmbeddedIndex;
        }
        if sense == LockSense::Ends
            && let Some(commit) = state.under_way.as_mut().filter(|commit| commit.process == call.process)
        {
            commit.bounds.end(at, outside, false);
        }
        self.lock(call, sense, database);
        if sense == LockSense::Begins
            && let Some(begun) = &mut self.databases[database].under_way
        {
            begun.has_log_lock = true;
        }
    }

    /// A lock on a database. In the midst of a transaction in its log that is another connection's of the process, which opens or closes.
    pub(super) fn database_lock(&mut self, call: &RecordedCall, database: usize) {
        let is_in_log = |commit: &CommitUnderWay| commit.has_log_lock && commit.process == call.process;
        let sense = match self.databases[database].under_way.as_ref().is_some_and(is_in_log) {
            true => LockSense::Nothing,
            false => LockSense::of_database(call),
        };
        self.lock(call, sense, database);
    }

    /// The next transaction of a log begins, at `first`: it tells whether the last one was a commit.
    fn next_in_log(&mut self, first: u64, database: usize) {
        let Some(last) = self.databases[database].last_in_log.take() else { return };
        self.databases[database].outsiders.has_any |= last.is_followed_by_others(first);
        if last.is_withdrawn_by(first) {
            self.databases[database].outsiders.may_be_commits += last.may_be_withdrawn_beside_others();
            self.not_told.ends += last.may_be_withdrawn_wrongly();
            return self.withdraw(&last, database);
        }
        self.tell(&last, last.with_next(first), database);
    }

    /// The last transaction was so many commits.
    fn tell(&mut self, last: &LastInLog, how_many: HowMany, database: usize) {
        self.not_told.take(how_many);
        if !how_many.is_counted {
            self.withdraw(last, database);
        }
    }

    fn withdraw(&mut self, last: &LastInLog, database: usize) {
        self.databases[database].withdraw(last);
        self.commits[last.commit].parts.clear();
    }

    /// The log is no more: what is written next to one of its name is another.
    pub(super) fn log_gone(&mut self, database: usize) {
        if self.databases[database].under_way.as_ref().is_some_and(CommitUnderWay::is_of_log) {
            self.end(database);
        }
        self.none_in_log(false, database);
        let log = &mut self.databases[database].log;
        *log = CommittedFrames::none(log.is_embedded);
    }

    /// No transaction follows the last one in a log, which may be begun anew.
    pub(super) fn none_in_log(&mut self, is_begun_anew: bool, database: usize) {
        let Some(last) = self.databases[database].last_in_log.take() else { return };
        self.tell(&last, last.without_next(is_begun_anew), database);
    }

    pub(super) fn write_log(
        &mut self,
        call: &RecordedCall,
        offset: u64,
        database: usize,
        heads: &[RecordedFrame],
    ) {
        self.written_bytes += call.moved_bytes();
        let page_bytes = self.page_bytes(database);
        let state = &mut self.databases[database];
        let new = state.log.new_ones(heads);
        let begins_anew = offset == 0 && new.len() == heads.len();
        let is_embedded = match begins_anew {
            true => heads.is_empty() && state.begins_embedded(call, page_bytes),
            false => state.log.is_embedded,
        };
        let Some(bytes) = FrameBytes::of(call, offset, is_embedded) else { return };
        if begins_anew
            && state.under_way.as_ref().is_some_and(|commit| !commit.is_locked && commit.is_of_log())
        {
            self.end(database);
        }
        let state = &mut self.databases[database];
        if state.writes_over(call, offset, bytes) {
            return;
        }
        state.has_frames |= !bytes.is_empty();
        if begins_anew {
            state.log = CommittedFrames::none(is_embedded);
        }
        state.late_sync = None;
        let (at, outside) = self.place(call.thread);
        let commit = self.going_on(call, database, |commit| {
            let is_first = !begins_anew || commit.is_locked || !commit.is_of_log();
            is_first && commit.takes_log_write(new.first(), bytes.end, page_bytes)
        });
        let is_next = !(commit.is_of_log() || bytes.is_empty());
        if begins_anew {
            // Under one lock: it was rolled back to a savepoint before its first frame.
            commit.frames = TransactionFrames::default();
        }
        commit.description = call.description;
        commit.is_embedded = is_embedded;
        commit.log_bytes.take(bytes.begin, bytes.end);
        commit.wrote(call);
        commit.bounds.wrote(at, call.thread, outside);
        if begins_anew {
            self.none_in_log(true, database);
        }
        let first = new.first().map(|head| head.offset);
        let first = first.or((!self.databases[database].log.has_heads).then_some(bytes.begin));
        if let Some(first) = first.filter(|_| is_next) {
            self.next_in_log(first, database);
        }
        for head in new {
            self.frame(call, *head, database);
        }
    }

    fn frame(&mut self, call: &RecordedCall, head: RecordedFrame, database: usize) {
        let state = &mut self.databases[database];
        (state.has_bounds, state.log.has_heads) = (true, true);
        let (at, outside) = self.place(call.thread);
        // Only a write of several frames has another one behind a commit mark: what wrote a head alone has begun the next commit.
        let commit = self.going_on(call, database, |commit| {
            commit.pages.is_empty() && commit.frames.may_have(&head, commit.is_locked)
        });
        commit.description = call.description;
        commit.reach(call);
        commit.bounds.wrote(at, call.thread, outside);
        commit.frames.take(head);
        if head.commit_pages == 0 {
            return;
        }
        (commit.pages_after, commit.is_over) = (Some(head.commit_pages), true);
        let page_bytes = self.page_bytes(database);
        let DatabaseState { under_way, log, repeated, .. } = &mut self.databases[database];
        if let Some(commit) = under_way {
            log.take(&commit.frames);
            let is_alone = commit.frames.first() == Some(head.offset);
            repeated.marked(head, commit.is_locked, is_alone, page_bytes);
        }
    }
}
