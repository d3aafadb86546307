//! Puts events together: requests with what is in them and what caused them, sync calls, commits.
//!
//! ```text
//! Queue -> runs that wait  --Issue-->  a request under way  --Complete-->  Outcome::Request
//! SyncBegin .. SyncEnd -> Outcome::Sync
//! JournalBegin, JournalWait, JournalEnd -> which call a commit of a journal is for
//! Lock .. Lock -> Outcome::Transaction, when its thread begins the next
//! ```
//!
//! Events come in the order of their times. Memory grows with what is under way and with the number of files, not of events.

mod completions;

use crate::filesystem::class::{Class, Part};
use crate::filesystem::facts::Log;
use crate::trace::attribution::barriers::Barriers;
use crate::trace::attribution::causes::roles::Role;
use crate::trace::attribution::causes::scope::Scope;
use crate::trace::attribution::causes::syncs::Ended;
use crate::trace::attribution::causes::{Causes, Work};
use crate::trace::attribution::classify::{by_extent, classify, log_of};
use crate::trace::attribution::extents::{Extents, Owner};
use crate::trace::attribution::files::{FileInfo, Files};
use crate::trace::attribution::issued::{Issued, key_sector};
use crate::trace::attribution::places::Places;
use crate::trace::attribution::queued::Queued;
use crate::trace::attribution::request::{
    BlockRun, Evidence, Request, Sync, Transaction, TransactionId, TransactionKind,
};
use crate::trace::attribution::transactions::OpenTransactions;
use crate::trace::event::{
    Backing, Content, DeviceNumber, Event, EventKind, FileKey, Operation, RequestFlags, SECTOR_BYTES,
};
use crate::trace::file_type::{FileType, FileTypes};
use crate::trace::header::{Header, Source};
use crate::trace::texts::Texts;

/// A run that was not issued for so long will not be: its issue was lost, or its device has no request queue.
const UNISSUED_NS: u64 = 30_000_000_000;
/// How many events pass between two looks for such runs.
const LOOK_EVERY: u64 = 1 << 16;
/// What a call returns that fails before a filesystem makes anything durable (EPERM, EBADF, EAGAIN, ENOMEM, EFAULT, EINVAL, EFBIG, ESPIPE,
/// EOPNOTSUPP). Where nothing was written for it either, it is about nothing on a disk, and tracefs does not see it.
const UNHEARD: [i64; 9] = [-1, -9, -11, -12, -14, -22, -27, -29, -95];

/// Something that is complete.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// A request is complete.
    Request(&'a Request),
    /// A sync call has returned.
    Sync(&'a Sync),
    /// A commit or checkpoint is over.
    Transaction(&'a Transaction),
    /// An event that is neither part of a request nor of a call (names, deletions, journal commits, losses), and what its
    /// thread is in the middle of.
    Note(&'a Event, Option<TransactionId>),
}

/// Takes whatever is complete.
pub type OutcomeSink<'a> = dyn FnMut(Outcome<'_>, &Texts) + 'a;

/// Attribution of one trace.
#[derive(Debug)]
pub struct Attributor {
    places: Places,
    files: Files,
    extents: Extents,
    queued: Queued,
    barriers: Barriers,
    issued: Issued,
    causes: Causes,
    transactions: OpenTransactions,
    with_fua: Vec<DeviceNumber>,
    /// eBPF may miss completions without a word.
    may_lack: bool,
    events: u64,
}

impl Attributor {
    /// For the trace with this head; file types by these rules.
    pub fn new(header: &Header, types: FileTypes) -> Self {
        let with_fua =
            header.disks.iter().filter(|disk| disk.fua == Some(true)).map(|disk| disk.whole).collect();
        Self {
            places: Places::new(header),
            files: Files::new(types),
            extents: Extents::default(),
            queued: Queued::default(),
            barriers: Barriers::default(),
            issued: Issued::default(),
            causes: Causes::default(),
            transactions: OpenTransactions::default(),
            with_fua,
            may_lack: header.source == Source::Bpf,
            events: 0,
        }
    }

    /// From then on nothing is known of the filesystem whose files have this device, and of its disk.
    pub fn ends(&mut self, device: DeviceNumber, until_ns: u64) {
        self.places.ends(device, until_ns);
    }

    /// What is known of the newest event; `None` where that is nothing.
    pub fn known(&self, event: &Event) -> Option<Event> {
        self.places.known(event)
    }

    /// The next event.
    pub fn event(&mut self, event: &Event, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        self.events += 1;
        for (disk, first, end) in self.places.pass(event.time_ns) {
            self.extents.free(disk, first, (end - first).saturating_mul(SECTOR_BYTES));
        }
        if self.events.is_multiple_of(LOOK_EVERY) {
            self.give_up(event.time_ns.saturating_sub(UNISSUED_NS), texts, sink);
        }
        let Some(event) = &self.known(event) else { return };
        if event.kind.changes_a_file() {
            self.causes.journals.change(event.file.device, event.time_ns);
        }
        match event.kind {
            EventKind::Queue => {
                self.causes.learn(event.command, texts);
                self.queue(event);
            }
            EventKind::Issue => self.issue(event, texts, sink),
            EventKind::Complete => self.complete(event, texts, sink),
            EventKind::Requeue => self.requeue(event),
            // A capture of one disk hears of calls and locks for files of all.
            EventKind::SyncBegin | EventKind::DurableWrite | EventKind::Lock
                if event.file.is_some() && !self.places.holds_files(event.file.device) => {}
            EventKind::SyncBegin | EventKind::DurableWrite => {
                let info = self.files.get(event.file);
                let transaction = self.transactions.sync(event.thread, info, texts);
                let commit = self.causes.journals.last_chance(event.file.device);
                if let Some(sync) =
                    self.causes.syncs.begin(event, Scope::of(event, texts), info, transaction, commit)
                {
                    self.over(sync, texts, sink);
                }
            }
            EventKind::SyncEnd => {
                self.causes.hand_over_log(event.thread);
                self.call_ends(event, texts, sink);
                if let Some(ended) = self.causes.syncs.end(event) {
                    self.over(ended, texts, sink);
                }
            }
            EventKind::Lock => self.lock(event, texts, sink),
            EventKind::Named => self.files.named(event.file, event.name, texts),
            EventKind::Unlinked => {
                self.transactions.unlinked(event.thread, self.files.get(event.file), texts);
                self.files.unlinked(event.file, event.detail);
            }
            EventKind::Extent => {
                let disk = self.places.whole(event.device);
                if event.content == Content::BtrfsTree {
                    self.extents.set_tree(disk, event.sector, event.bytes, event.detail);
                } else if !event.file.is_some() {
                    self.extents.free(disk, event.sector, event.bytes);
                } else if event.device == DeviceNumber::NONE {
                    self.extents.forget_range(event.file, event.offset, event.bytes);
                } else {
                    self.extents.set(disk, event.sector, event.bytes, event.file, event.offset);
                    self.causes.syncs.place(event.file, event.time_ns);
                }
            }
            EventKind::Freed => self.extents.forget(event.file),
            EventKind::Truncated => self.extents.cut(event.file, event.bytes),
            EventKind::JournalBegin | EventKind::JournalEnd => self.causes.commit(event),
            EventKind::JournalWait => self.causes.waits(event),
            EventKind::Lost => self.issued.doubt(),
            EventKind::Call | EventKind::Forked => {}
        }
        if event.kind.is_note() {
            let transaction =
                self.transactions.under_way_with(event.thread, self.files.get(event.file), texts);
            sink(Outcome::Note(event, transaction), texts);
        }
    }

    /// The trace is over: what is under way is handed on as it is.
    pub fn finish(mut self, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        self.issued.take_all().iter().for_each(|request| self.emit(request, texts, sink));
        self.give_up(u64::MAX, texts, sink);
        for sync in self.causes.syncs.finish() {
            sink(Outcome::Sync(&sync), texts);
        }
        self.transactions
            .finish()
            .iter()
            .for_each(|transaction| sink(Outcome::Transaction(transaction), texts));
    }

    /// A call is over. It is handed on when all that its thread handed over is complete, so that it has all of its bytes.
    fn over(&mut self, ended: Ended, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        let mut barriers = std::mem::take(&mut self.barriers);
        barriers.over(ended.sync.id, |disk, run| self.given_again(disk, run));
        self.barriers = barriers;
        if UNHEARD.contains(&ended.sync.result) && ended.wrote_nothing() {
            self.transactions.not_a_sync(ended.sync.transaction);
        } else {
            self.causes.syncs.settle(ended);
            self.tell_settled(texts, sink);
        }
    }

    fn tell_settled(&mut self, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        self.causes.syncs.take_settled().iter().for_each(|sync| sink(Outcome::Sync(sync), texts));
    }

    fn lock(&mut self, event: &Event, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        // Only databases are locked that far out.
        if event.detail == 1 && event.offset >= 0x4000_0000 {
            self.files.is_database(event.file);
        }
        for over in self.transactions.lock(event, self.files.get(event.file), texts) {
            sink(Outcome::Transaction(&over), texts);
        }
    }

    fn queue(&mut self, event: &Event) {
        let disk = self.places.whole(event.device);
        let runs = self.runs(event, disk);
        let wants_flush = event.flags.has(RequestFlags::PREFLUSH) || event.flags.has(RequestFlags::FUA);
        if wants_flush && !event.flags.has(RequestFlags::CONTINUED) {
            let run = runs.first().copied().unwrap_or_else(|| self.run(event, disk, event.sector, 0, None));
            self.barriers.want(disk, run, self.with_fua.contains(&disk));
        }
        if event.operation == Operation::Flush {
            self.causes.syncs.flushes(event.thread);
        }
        let is_journals = self.causes.role(event.command) == Role::Journal;
        if !is_journals && runs.iter().any(|run| run.class == Class::Journal) {
            self.causes.hand_over_log(event.thread);
            if event.content == Content::XfsLog && event.detail > 0 {
                let filesystem = self.places.filesystem(disk, event.sector);
                let device = filesystem.map(|filesystem| self.places.file_device(filesystem));
                self.causes.journals.hand_over(device.unwrap_or_default(), event.detail);
            }
        }
        for run in runs {
            if let Some(sync) = run.cause.filter(|_| run.class == Class::Data && !is_journals) {
                self.causes.syncs.hand_over(sync, event.time_ns, run.bytes);
            }
            self.causes.syncs.owe(&run);
            self.queued.push(disk, event.operation, run);
        }
    }

    /// A run, cut where the filesystem's layout or a file's extents change.
    fn runs(&self, event: &Event, disk: DeviceNumber) -> Vec<BlockRun> {
        let mut runs = Vec::with_capacity(1);
        let end = event.end_sector();
        let mut sector = event.sector;
        while sector < end {
            let mut until = self.places.alike_until(disk, sector).min(end);
            let mut owner = None;
            if event.backing == Backing::Unseen && self.places.region(disk, sector).is_none() {
                let found = self.extents.owner(disk, sector, until);
                until = match found {
                    Some(found) => until.min(found.end_sector),
                    None => self.extents.next_owned(disk, sector, until),
                };
                owner = found;
            }
            runs.push(self.run(event, disk, sector, until - sector, owner));
            sector = until;
        }
        if let Some(last) = runs.last_mut() {
            // A length that is no multiple of a sector stays as it was told.
            last.bytes -= (end - event.sector) * 512 - event.bytes;
        }
        runs
    }

    /// The run of `sectors` sectors from `sector` on; `owner`: whose it is by the extents.
    fn run(
        &self,
        event: &Event,
        disk: DeviceNumber,
        sector: u64,
        sectors: u64,
        owner: Option<Owner>,
    ) -> BlockRun {
        let skipped = (sector - event.sector) * 512;
        let mut part_event = Event { sector, offset: event.offset + skipped, ..*event };
        if let Some(tree) = owner.and_then(|owner| owner.tree) {
            (part_event.content, part_event.detail) = (Content::BtrfsTree, tree);
        }
        let filesystem = self.places.filesystem(disk, sector);
        let region = self.places.region(disk, sector);
        let kind = self.places.kind(filesystem);
        // jbd2 writes what its log holds to its place as metadata, data of files among it.
        let is_files = log_of(kind) == Some(Log::Copies) && owner.is_some_and(|owner| owner.tree.is_none());
        let seen = if is_files { None } else { classify(&part_event, region, kind, &self.places) };
        let (class, part, evidence) = match (seen, owner) {
            (Some((class, part)), Some(Owner { tree: Some(_), .. })) => (class, part, Evidence::Extent),
            (Some((class, part)), _) => (class, part, Evidence::Seen),
            (None, Some(Owner { file, .. })) => {
                let (class, part) = by_extent(file, kind);
                (class, part, Evidence::Extent)
            }
            (None, None) => (Class::Unattributed, Part::Plain, Evidence::None),
        };
        let holds_file = class == Class::Data || part == Part::LogOfData;
        let (file, offset) = match owner {
            // What became of a file's old place is not the file's.
            Some(owner) if seen.is_none() && holds_file => (owner.file, owner.offset),
            _ if holds_file => (event.file, part_event.offset),
            _ => (FileKey::NONE, part_event.offset),
        };
        let info = if file.is_some() { self.files.get(file) } else { FileInfo::default() };
        let cause = self.causes.of(&Work {
            queued_ns: event.time_ns,
            thread: event.thread,
            command: event.command,
            operation: event.operation,
            class,
            file,
            filesystem: filesystem.map(|filesystem| self.places.file_device(filesystem)),
        });
        let transaction =
            cause.map_or_else(|| self.transactions.under_way(event.thread), |sync| sync.transaction);
        let changed = class == Class::Journal && event.backing == Backing::Device && event.detail > 0;
        BlockRun {
            queued_ns: event.time_ns,
            sector,
            bytes: sectors * 512,
            class,
            part,
            file,
            name: info.name,
            file_type: info.file_type,
            deleted: info.deleted,
            offset,
            evidence,
            intended: event.flags,
            cause: cause.map(|sync| sync.id),
            transaction,
            journal_of_journal: class == Class::Journal && cause.is_some_and(|sync| self.for_a_journal(sync)),
            changed_bytes: if changed { u32::try_from(event.detail - 1).ok() } else { None },
            process: event.process,
            command: event.command,
            for_process: match cause {
                Some(sync) => sync.process,
                None if self.causes.role(event.command) != Role::Own => 0,
                None => event.process,
            },
        }
    }

    /// True for a call that makes SQLite's journal durable: its file, or in a commit the directory that names it.
    fn for_a_journal(&self, sync: &Sync) -> bool {
        let in_commit = || {
            sync.transaction.is_some_and(|transaction| {
                self.transactions.kind(transaction) == Some(TransactionKind::Commit)
            })
        };
        let database = matches!(sync.file_type, FileType::SqliteDatabase | FileType::SharedMemory);
        sync.file_type.is_sqlite_journal() || (!database && in_commit())
    }

    fn issue(&mut self, event: &Event, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        let disk = self.places.whole(event.device);
        self.over_before(event, texts, sink);
        let runs = if event.operation == Operation::Flush {
            let run = self.barriers.issued(disk).or_else(|| self.barriers.missed(disk));
            let runs: Vec<BlockRun> = run.into_iter().collect();
            runs.iter().for_each(|run| self.causes.syncs.owe(run));
            runs
        } else {
            let taken = self.queued.take(disk, event.operation, event.sector, event.end_sector());
            self.without_gaps(event, disk, taken)
        };
        let request = Request {
            issued_ns: event.time_ns,
            disk,
            sector: key_sector(event),
            slot: event.slot(),
            bytes: event.bytes,
            operation: event.operation,
            issued: event.flags,
            command: event.command,
            runs,
            ..Request::default()
        };
        self.issued.push(request);
    }

    /// What nobody saw being handed over is placed by the layout and the extents alone.
    fn without_gaps(&self, event: &Event, disk: DeviceNumber, taken: Vec<BlockRun>) -> Vec<BlockRun> {
        let covered: u64 = taken.iter().map(|run| run.bytes).sum();
        if covered == event.bytes {
            return taken;
        }
        let mut runs = Vec::with_capacity(taken.len() + 1);
        let mut sector = event.sector;
        let gap = |from: u64, until: u64| {
            let (bytes, backing) = ((until - from) * 512, Backing::Unseen);
            let event = Event { sector: from, offset: 0, bytes, backing, ..*event };
            self.runs(&event, disk)
        };
        for run in taken {
            if run.sector > sector {
                runs.extend(gap(sector, run.sector));
            }
            sector = run.sector + run.bytes.div_ceil(512);
            runs.push(run);
        }
        if sector < event.end_sector() {
            runs.extend(gap(sector, event.end_sector()));
        }
        runs
    }
}
