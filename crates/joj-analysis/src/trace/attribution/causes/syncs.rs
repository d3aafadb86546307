//! The sync calls that are under way, and which of them causes what kernel threads write.

use crate::filesystem::class::{Class, Part};
use crate::trace::attribution::causes::journals::{JournalCommit, SyncProgress};
use crate::trace::attribution::causes::roles::{Role, Roles};
use crate::trace::attribution::causes::scope::Scope;
use crate::trace::attribution::files::FileInfo;
use crate::trace::attribution::request::{BlockRun, Request, Sync, SyncId, TransactionId};
use crate::trace::event::{DeviceNumber, END_NOT_TOLD, Event, FileKey, NO_END, Operation};
use crate::trace::file_type::FileType;

/// A call that is under way.
#[derive(Debug)]
struct OpenSync {
    sync: Sync,
    scope: Scope,
    progress: SyncProgress,
    /// What is on the way for it: bytes, and flushes.
    owed: u64,
    /// Of a call for all filesystems: whose journals it waited for, and does so no longer.
    done_on: Vec<DeviceNumber>,
}

impl OpenSync {
    /// True for a call for a file of that filesystem, or for all of it. The filesystem of a call may not be known.
    fn is_on(&self, filesystem: DeviceNumber) -> bool {
        let device = self.sync.file.device;
        (device == filesystem || device == DeviceNumber::NONE) && !self.done_on.contains(&filesystem)
    }

    /// True where data of that file may be for this call. One for many files has the journal committed when their data is on the disk.
    fn awaits_data_of(&self, file: FileKey) -> bool {
        match self.scope {
            Scope::File => self.sync.file == file,
            Scope::Filesystem | Scope::All => self.progress.told.is_none(),
        }
    }

    /// A commit of its filesystem is over.
    fn committed(&mut self, commit: JournalCommit) {
        if self.scope == Scope::All {
            let is_told = self.progress.told == Some((commit.device, commit.transaction));
            self.done_on.extend(is_told.then_some(commit.device));
        } else {
            self.progress.committed(commit);
        }
    }
}

/// Sync calls between their begin and their end. Few are at once: they are looked for one by one.
#[derive(Debug, Default)]
pub struct Syncs {
    open: Vec<OpenSync>,
    /// Of each of them, its thread and its number: apart, as they are read for every request.
    threads: Vec<u32>,
    ids: Vec<SyncId>,
    begun: u64,
    /// Calls that are over, while something that their own threads handed over is on the way.
    over: Vec<Ended>,
    /// Those of them for which nothing is on the way any more.
    settled: Vec<Sync>,
}

/// A call that is over.
#[derive(Debug)]
pub struct Ended {
    pub sync: Sync,
    owed: u64,
}

impl Ended {
    /// True where nothing was handed over for it.
    pub fn wrote_nothing(&self) -> bool {
        self.owed == 0 && self.sync.requests == 0
    }
}

impl Syncs {
    /// A call begins. Returns a call that counts as over: this one, where the capture cannot see its end; else the one that its thread
    /// was in, whose end was missed. `last_chance`: the commit that a call for a directory waits for.
    pub fn begin(
        &mut self,
        event: &Event,
        scope: Scope,
        info: FileInfo,
        transaction: Option<TransactionId>,
        last_chance: Option<i64>,
    ) -> Option<Ended> {
        let id = SyncId(self.begun);
        self.begun += 1;
        let sync = Sync {
            id,
            call: event.name,
            file: event.file,
            name: info.name,
            file_type: info.file_type,
            thread: event.thread,
            process: event.process,
            command: event.command,
            begun_ns: event.time_ns,
            ended_ns: None,
            result: 0,
            bytes: [0; Class::ALL.len()],
            control_bytes: 0,
            flush_ns: 0,
            requests: 0,
            writes: 0,
            flushes: 0,
            last_completed_ns: 0,
            transaction,
        };
        if event.detail == NO_END {
            return Some(Ended { sync, owed: 0 });
        }
        let before = self.take(event.thread);
        self.threads.push(event.thread);
        self.ids.push(id);
        // ext4 commits for a directory whenever there is something to commit.
        let needs_commit = info.file_type == FileType::Directory;
        let concluded = last_chance.filter(|_| needs_commit);
        let settled_ns = event.time_ns;
        let is_for_many = scope > Scope::File;
        let progress =
            SyncProgress { settled_ns, needs_commit, concluded, is_for_many, ..SyncProgress::default() };
        self.open.push(OpenSync { sync, scope, progress, owed: 0, done_on: Vec::new() });
        before
    }

    /// A thread's call ends. `None` where its begin was before the trace.
    pub fn end(&mut self, event: &Event) -> Option<Ended> {
        let mut ended = self.take(event.thread)?;
        if event.detail != END_NOT_TOLD {
            ended.sync.ended_ns = Some(event.time_ns);
            ended.sync.result = event.detail;
        }
        Some(ended)
    }

    /// Keeps a call that is over until all that is on the way for it is complete.
    pub fn settle(&mut self, ended: Ended) {
        match ended.owed {
            0 => self.settled.push(ended.sync),
            _ => self.over.push(ended),
        }
    }

    /// Gives up what is on the way for calls that were over before `before_ns`.
    pub fn give_up(&mut self, before_ns: u64) {
        let is_old = |ended: &mut Ended| ended.sync.ended_ns.is_none_or(|ended_ns| ended_ns < before_ns);
        self.settled.extend(self.over.extract_if(.., is_old).map(|ended| ended.sync));
    }

    /// Calls of which everything is known by now.
    pub fn take_settled(&mut self) -> Vec<Sync> {
        std::mem::take(&mut self.settled)
    }

    fn take(&mut self, thread: u32) -> Option<Ended> {
        let at = self.threads.iter().position(|own| *own == thread)?;
        self.threads.swap_remove(at);
        self.ids.swap_remove(at);
        let OpenSync { sync, owed, .. } = self.open.swap_remove(at);
        Some(Ended { sync, owed })
    }

    fn in_thread(&self, thread: u32) -> Option<&OpenSync> {
        self.open.get(self.threads.iter().position(|own| *own == thread)?)
    }

    fn in_thread_mut(&mut self, thread: u32) -> Option<&mut OpenSync> {
        self.open.get_mut(self.threads.iter().position(|own| *own == thread)?)
    }

    fn open_mut(&mut self, id: SyncId) -> Option<&mut OpenSync> {
        self.open.get_mut(self.ids.iter().position(|own| *own == id)?)
    }

    /// True for a call that did not return yet.
    pub fn is_under_way(&self, id: SyncId) -> bool {
        self.ids.contains(&id)
    }

    /// What stands with a call is on the way.
    pub fn owe(&mut self, run: &BlockRun) {
        if let Some(open) = run.cause.and_then(|id| self.open_mut(id)) {
            open.owed += owed_for(run);
        }
    }

    /// What stood with a call that is over stands with another, or with none.
    pub fn pass(&mut self, before: &BlockRun, given: &BlockRun) {
        self.disown(before);
        self.owe(given);
        if let Some(sync) = given.cause.filter(|_| given.class == Class::Data) {
            self.hand_over(sync, given.queued_ns, given.bytes);
        }
    }

    fn disown(&mut self, run: &BlockRun) {
        let Some(at) = self.over.iter().position(|ended| Some(ended.sync.id) == run.cause) else { return };
        self.over[at].owed = self.over[at].owed.saturating_sub(owed_for(run));
        if self.over[at].owed == 0 {
            self.settled.push(self.over.swap_remove(at).sync);
        }
    }

    /// The call that a thread is in.
    pub fn of_thread(&self, thread: u32) -> Option<&Sync> {
        self.in_thread(thread).map(|open| &open.sync)
    }

    /// The call that a thread is in, where something is on the way for it.
    pub fn awaiting(&self, thread: u32) -> Option<&Sync> {
        self.in_thread(thread).filter(|open| open.owed > 0).map(|open| &open.sync)
    }

    /// The calls on a filesystem that had begun at a time.
    fn begun(&self, filesystem: DeviceNumber, by_ns: u64) -> impl Iterator<Item = &OpenSync> {
        self.open.iter().filter(move |open| open.is_on(filesystem) && open.sync.begun_ns <= by_ns)
    }

    /// The call that a kernel thread works for, other than jbd2's: of those on that filesystem that began first, but one for all
    /// filesystems last. A file's data is for a call for that very file, else for one for the filesystem.
    pub fn waiting(
        &self,
        filesystem: DeviceNumber,
        data_of: Option<FileKey>,
        queued_ns: u64,
    ) -> Option<&Sync> {
        let expecting = self
            .begun(filesystem, queued_ns)
            .filter(|open| data_of.is_none_or(|file| open.awaits_data_of(file)));
        let order = |open: &&OpenSync| {
            (open.scope == Scope::All, data_of.is_some() && open.scope > Scope::File, open.sync.id)
        };
        expecting.min_by_key(order).map(|open| &open.sync)
    }

    /// The call that jbd2's thread works for while `commit` is under way. Of those that most surely wait for it, a call for a file goes
    /// before one for more, and then the one that began first. A call that is satisfied is never the one: its thread may run long
    /// after it was woken.
    pub fn waiting_for_commit(
        &self,
        filesystem: DeviceNumber,
        commit: Option<JournalCommit>,
        queued_ns: u64,
    ) -> Option<&Sync> {
        let calls = self.begun(filesystem, queued_ns);
        let expecting = calls.filter_map(|open| Some((open.progress.expects(commit)?, open)));
        let order = |(expectation, open): &(_, &OpenSync)| (*expectation, open.scope, open.sync.id);
        expecting.min_by_key(order).map(|(_, open)| &open.sync)
    }

    /// The call that a kernel thread writes XFS's log for. The log is handed over up to checkpoint `handed_over`; the next checkpoint
    /// that calls wait for is written now. Of those calls it is the one that began first. A call that waits for checkpoint 0 waits for
    /// whatever the log holds.
    pub fn waiting_for_checkpoint(
        &self,
        filesystem: DeviceNumber,
        handed_over: i64,
        queued_ns: u64,
    ) -> Option<&Sync> {
        let calls = self.begun(filesystem, queued_ns);
        let told =
            calls.filter_map(|open| Some((open.progress.told.filter(|told| told.0 == filesystem)?.1, open)));
        let expecting = told.filter_map(|(checkpoint, open)| match checkpoint {
            0 => Some((i64::MAX, open)),
            checkpoint => (checkpoint > handed_over).then_some((checkpoint, open)),
        });
        let order = |(checkpoint, open): &(i64, &OpenSync)| (*checkpoint, open.scope, open.sync.id);
        expecting.min_by_key(order).map(|(_, open)| &open.sync)
    }

    /// The transaction that a thread's call is known to wait for, and whose.
    pub fn awaited(&self, thread: u32) -> Option<(DeviceNumber, i64)> {
        self.in_thread(thread)?.progress.told
    }

    /// A commit is over: those that waited for it do so no longer.
    pub fn committed(&mut self, commit: JournalCommit) {
        for open in self.open.iter_mut().filter(|open| open.is_on(commit.device)) {
            open.committed(commit);
        }
    }

    /// The capture tells for which transaction a thread's call waits.
    pub fn waits(&mut self, event: &Event) {
        if let Some(open) = self.in_thread_mut(event.thread).filter(|open| open.is_on(event.device)) {
            open.progress.tell(event.device, event.detail);
        }
    }

    /// Data is handed over for a call, by its own thread or by one that works for it.
    pub fn hand_over(&mut self, id: SyncId, time_ns: u64, bytes: u64) {
        if let Some(open) = self.open_mut(id) {
            open.progress.hand_over(time_ns, bytes);
        }
    }

    /// Blocks of a file have a place now, whichever thread gave it to them.
    pub fn place(&mut self, file: FileKey, time_ns: u64) {
        for open in self.open.iter_mut().filter(|open| open.sync.file == file) {
            open.progress.place(time_ns);
        }
    }

    /// A thread asks for a flush by itself: the last that ext4's calls do.
    pub fn flushes(&mut self, thread: u32) {
        if let Some(open) = self.in_thread_mut(thread).filter(|open| open.scope == Scope::File) {
            open.progress.is_satisfied = true;
        }
    }

    /// Adds a request to the calls for which its runs were written.
    pub fn count(&mut self, request: &Request, roles: &Roles) {
        let mut counted = None;
        for run in &request.runs {
            let is_first = counted != run.cause;
            if let Some(open) = run.cause.and_then(|id| self.open_mut(id)) {
                if run.class == Class::Data && roles.of(run.command) != Role::Journal {
                    open.progress.complete(request.completed_ns.unwrap_or(0), run.bytes);
                }
                open.owed = open.owed.saturating_sub(owed_for(run));
                add(&mut open.sync, request, run, is_first);
            } else if let Some(ended) = self.over.iter_mut().find(|ended| Some(ended.sync.id) == run.cause) {
                add(&mut ended.sync, request, run, is_first);
                self.disown(run);
            }
            counted = run.cause;
        }
    }

    /// Calls that never ended, in the order in which they began.
    pub fn finish(&mut self) -> Vec<Sync> {
        let Self { open, over, settled, .. } = std::mem::take(self);
        let over = over.into_iter().map(|ended| ended.sync).chain(settled);
        let mut left: Vec<Sync> = open.into_iter().map(|open| open.sync).chain(over).collect();
        left.sort_by_key(|sync| sync.id);
        left
    }
}

/// What a run adds to what is on the way.
fn owed_for(run: &BlockRun) -> u64 {
    run.bytes.max(1)
}

/// Adds a run of a request to its call; `is_first`: of the request's runs for that call.
fn add(sync: &mut Sync, request: &Request, run: &BlockRun, is_first: bool) {
    let written = request.written_of(run);
    sync.bytes[usize::from(run.class.code())] += written;
    if matches!(run.part, Part::Descriptor | Part::Commit | Part::Revoke) {
        sync.control_bytes += written;
    }
    if is_first {
        let is_flush = request.operation == Operation::Flush;
        sync.requests += 1;
        sync.writes += u64::from(request.operation == Operation::Write);
        sync.flushes += u64::from(is_flush);
        sync.flush_ns += if is_flush { request.latency_ns().unwrap_or(0) } else { 0 };
        sync.last_completed_ns = sync.last_completed_ns.max(request.completed_ns.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests;
