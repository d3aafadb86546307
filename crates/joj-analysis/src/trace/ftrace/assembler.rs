//! Records of all processors, in the order of their times, become events: a call gets its file, a mapping its sectors.
//!
//! ```text
//! one thread    sys_enter_fsync(fd 4)  ext4_sync_file_enter(inode 12)  ..  sys_exit_fsync -> 0
//! its events    SyncBegin(inode 12, at the time of the first)              SyncEnd(inode 12, 0)
//! ```
//!
//! A sync of a filesystem without a call around it is one of its own. In a program's thread it is a durable write: a write with O_SYNC
//! or O_DSYNC. In a thread that works for programs (io_uring's, AIO's) it is named by what it asks of the filesystem. An end belongs to
//! the beginning of the same thread and file; where none is told (XFS, Btrfs, writes that go on without their thread) there is a
//! [`SyncEnd`](EventKind::SyncEnd) at once that says so.

use std::collections::{BTreeMap, BTreeSet};

use crate::trace::event::{Content, DeviceNumber, END_NOT_TOLD, Event, EventKind, FileKey};

use crate::trace::ftrace::bracket::{BegunBy, Bracket, Worker, is_one};
use crate::trace::ftrace::inode_number::own;
use crate::trace::ftrace::record::{
    Call, Holder, Inode, InodeKind, Length, Mapping, Record, RequestRecord, What,
};
use crate::trace::ftrace::step::{Step, Surroundings};
use crate::trace::ftrace::volume::{self, Volume};

/// What a filesystem's sync is called where no system call was seen around it.
const DURABLE_WRITE: &str = "durable write";
/// The same in a thread that works for programs, where the filesystem does not say what is asked of it.
const UNKNOWN_CALL: &str = "sync (call unknown)";
/// A write that went on without its thread is over after this time, also if its end was lost.
const QUEUED_NS: u64 = 10_000_000_000;
/// A request of the thread so soon after it tried is taken for the try's. A later one may be another's.
const TRIES_NS: u64 = 2_000_000;
/// So long a call waits for the record in which its filesystem names its file: a write may take its time before its sync.
const NAMED_NS: u64 = 1_000_000_000;
/// So many blocks ext4 says of a whole file (EXT_MAX_BLOCKS).
const EXT4_ALL: u64 = 0xffff_ffff;
/// EAGAIN and ENOTBLK: the kernel tries again in another way, and nothing failed.
const TRIED_AGAIN: [i64; 2] = [-11, -15];

/// What is under way on a machine.
#[derive(Debug, Default)]
pub struct Assembler {
    volumes: Vec<Volume>,
    /// By thread. They are few, and asked for at each record.
    brackets: BTreeMap<u32, Bracket>,
    /// The tree for which a thread looks for room.
    trees: BTreeMap<u32, i64>,
    /// The file in which a thread moves bytes.
    shifts: BTreeMap<u32, Inode>,
    /// Threads that create a file on XFS and have no number for it yet.
    creating: BTreeSet<u32>,
    /// Threads that work for programs.
    workers: BTreeMap<u32, Worker>,
    /// Durable writes that go on without their threads: how many of a file, and the time of the last.
    queued: BTreeMap<(DeviceNumber, u64), (u32, u64)>,
    unplaced: u64,
}

impl Assembler {
    /// One that knows these filesystems.
    pub fn new(volumes: Vec<Volume>) -> Self {
        Self { volumes, ..Self::default() }
    }

    /// Puts a filesystem in the place of the one with its device.
    pub fn replace(&mut self, volume: Volume) {
        self.volumes.retain(|old| old.device != volume.device);
        self.volumes.push(volume);
    }

    /// The filesystems.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// How many mappings of known filesystems had no place on a disk: a new chunk of Btrfs, most likely.
    pub fn unplaced(&self) -> u64 {
        self.unplaced
    }

    /// Counts them from here.
    pub fn forget_unplaced(&mut self) {
        self.unplaced = 0;
    }

    /// A thread is called so.
    pub fn know_thread(&mut self, thread: u32, command: &[u8]) {
        match Worker::of(command) {
            Some(worker) => drop(self.workers.insert(thread, worker)),
            None => drop(self.workers.remove(&thread)),
        }
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record, around: &mut Surroundings<'_>) {
        let &Record { time_ns, thread, what } = record;
        self.tell_before(record, around);
        let event = |kind| Event { time_ns, thread, kind, ..Event::default() };
        match what {
            What::Request(request) => around.event(request.told(event(request.kind)), request.command),
            What::CallBegin { .. }
            | What::CallEnd(_)
            | What::FileSync { .. }
            | What::FileSyncEnd { .. }
            | What::DirectWrite { .. }
            | What::DirectWriteQueued(_)
            | What::DirectWriteEnd { .. } => self.take_call(record, around),
            What::Mapped(mapping) => self.mapped(event(EventKind::Extent), mapping, around),
            What::Truncated { file, length } => {
                self.truncated(event(EventKind::Truncated), file, length, around)
            }
            What::Unlinked(file) => {
                around.event(Event { file: self.key(file), ..event(EventKind::Unlinked) }, None);
            }
            What::NamesChanged(change) => (around.sink)(Step::NamesChanged { thread, change }),
            What::CreateBegin => drop(self.creating.insert(thread)),
            What::Fetched(file) => {
                let (file, is_new) = (self.key(file), self.creating.remove(&thread));
                let created = Step::Created { file, kind: InodeKind::File };
                (around.sink)(if is_new { created } else { Step::Fetched(file) });
            }
            What::Created { file, kind } => (around.sink)(Step::Created { file: self.key(file), kind }),
            What::Ended(file) => {
                let file = self.key(file);
                around.event(Event { file, ..event(EventKind::Freed) }, None);
                (around.sink)(Step::Ended(file));
            }
            What::Lock { file, first, last, mode } => {
                let bytes =
                    if last >= i64::MAX as u64 { 0 } else { last.saturating_sub(first).saturating_add(1) };
                let lock = event(EventKind::Lock);
                around
                    .event(Event { file: self.key(file), offset: first, bytes, detail: mode, ..lock }, None);
            }
            What::Journal { kind, device, transaction } => {
                let bracket = self.brackets.get_mut(&thread);
                if kind != EventKind::JournalWait || bracket.is_some_and(|one| one.waits(transaction)) {
                    around.event(Event { device, detail: transaction, ..event(kind) }, None);
                }
            }
            What::NewThread { thread: new, same_process, command } => {
                self.know_thread(new, &command);
                around.made(event(EventKind::Forked), new, same_process, command);
            }
            What::Renamed { thread, command } => {
                self.know_thread(thread, &command);
                (around.sink)(Step::Renamed { thread, command });
            }
            _ => self.take_place(event(EventKind::Extent), what, around),
        }
    }

    /// Takes what says whose bytes of a filesystem are.
    fn take_place(&mut self, extent: Event, what: What, around: &mut Surroundings<'_>) {
        match what {
            What::ShiftBegin(file) => drop(self.shifts.insert(extent.thread, file)),
            What::Unmapped { file, first, count } => self.unmapped(extent, file, first, count, around),
            What::BlocksFreed { holder, start, count } => {
                let unit = self.volumes.iter().find(|volume| volume.is(holder)).map(Volume::block_bytes);
                self.placed(extent, holder, start, count.saturating_mul(unit.unwrap_or(0)), around);
            }
            What::RoomWanted(Some(tree)) => drop(self.trees.insert(extent.thread, tree)),
            What::RoomWanted(None) => drop(self.trees.remove(&extent.thread)),
            What::RoomFound { holder, start, bytes } => {
                // The thread's note stays: where the block has no place yet, this record comes again.
                if let Some(&detail) = self.trees.get(&extent.thread) {
                    let extent = Event { content: Content::BtrfsTree, detail, ..extent };
                    self.placed(extent, holder, start, bytes, around);
                }
            }
            _ => {}
        }
    }

    /// Takes what begins or ends something durable.
    fn take_call(&mut self, record: &Record, around: &mut Surroundings<'_>) {
        let &Record { time_ns, thread, what } = record;
        let event = |kind| Event { time_ns, thread, kind, ..Event::default() };
        match what {
            What::CallBegin { call, descriptor, offset } => {
                self.begin(event(call.begins()), call, descriptor, offset, around)
            }
            What::CallEnd(result) => self.end(event(EventKind::SyncEnd), BegunBy::Call, result, around),
            What::FileSyncEnd { file, result } => {
                self.end(event(EventKind::SyncEnd), BegunBy::FileSync(file), result, around);
            }
            What::DirectWriteEnd { file, result } => {
                if self.is_begun_by(thread, BegunBy::DirectWrite(file)) {
                    self.end(event(EventKind::SyncEnd), BegunBy::DirectWrite(file), result, around);
                } else {
                    self.direct_write_is_over(self.key(file));
                }
            }
            What::DirectWriteQueued(file) if self.is_begun_by(thread, BegunBy::DirectWrite(file)) => {
                let is_over = self.brackets.get(&thread).is_some_and(|bracket| bracket.is_over);
                self.end_untold(event(EventKind::SyncEnd), around);
                if !is_over {
                    let key = self.key(file);
                    let queued = self.queued.entry((key.device, own(key.inode))).or_default();
                    *queued = (queued.0.saturating_add(1), time_ns);
                }
            }
            What::FileSync { file, ends, data_only } => {
                let begin = Event { file: self.key(file), ..event(EventKind::SyncBegin) };
                self.file_sync(begin, BegunBy::FileSync(file), ends, data_only, around);
            }
            What::DirectWrite { file, offset, bytes, tries } => {
                let begin = Event { file: self.key(file), offset, bytes, ..event(EventKind::DurableWrite) };
                if !tries {
                    self.forget_try(&begin);
                }
                self.begin_alone(begin, BegunBy::DirectWrite(file), tries, "write", around);
            }
            _ => {}
        }
    }

    /// Hands on the beginnings from before `before_ns` whose file no record named, and none will. Returns the time of the first
    /// that waits for its filesystem's word still.
    pub fn settle(&mut self, before_ns: u64, around: &mut Surroundings<'_>) -> u64 {
        let mut awaited_ns = u64::MAX;
        for (thread, bracket) in &mut self.brackets {
            let begun_ns = bracket.begin.time_ns;
            if bracket.told || bracket.tries || begun_ns >= before_ns {
                continue;
            }
            around.look_up(*thread, bracket);
            let is_awaited = bracket.is_named && begun_ns >= before_ns.saturating_sub(NAMED_NS);
            if is_awaited && !bracket.begin.file.is_some() {
                awaited_ns = awaited_ns.min(begun_ns);
            } else {
                around.tell_as_it_is(bracket);
            }
        }
        awaited_ns
    }

    /// A thread's next record says which file its call is for, or that none will. In a call that is a sync of its filesystem or
    /// its end: before that a write has found room, or read what it writes over.
    fn tell_before(&mut self, record: &Record, around: &mut Surroundings<'_>) {
        let thread = record.thread;
        let interrupts =
            matches!(record.what, What::Request(RequestRecord { kind: EventKind::Complete, .. }));
        let Some(bracket) = self.brackets.get(&thread).filter(|bracket| !bracket.told && !interrupts) else {
            return;
        };
        let says_nothing = !matches!(
            record.what,
            What::FileSync { .. } | What::DirectWrite { .. } | What::CallBegin { .. } | What::CallEnd(_)
        );
        if says_nothing && bracket.begun_by == BegunBy::Call {
            return;
        }
        let is_late = record.time_ns > bracket.begin.time_ns.saturating_add(TRIES_NS);
        match record.what {
            What::Journal { .. } => return,
            What::DirectWriteEnd { file, result }
                if bracket.begun_by == BegunBy::DirectWrite(file) && TRIED_AGAIN.contains(&result) =>
            {
                self.brackets.remove(&thread);
                return;
            }
            What::Request(_) if bracket.tries && is_late => return,
            What::Request(_)
            | What::DirectWriteEnd { .. }
            | What::DirectWriteQueued(_)
            | What::FileSync { .. } => {}
            _ if bracket.tries => return,
            _ => {}
        }
        let begin = match record.what {
            What::FileSync { file, .. } => Event { file: self.key(file), ..bracket.begin },
            What::DirectWrite { file, offset, bytes, .. } => {
                Event { file: self.key(file), offset, bytes, ..bracket.begin }
            }
            _ => bracket.begin,
        };
        let Some(bracket) = self.brackets.get_mut(&thread) else { return };
        let begin = if bracket.begun_by == BegunBy::Call { begin } else { bracket.begin };
        if begin.file.is_some() {
            bracket.begin = begin;
            bracket.told = true;
            around.event(begin, None);
        } else {
            around.tell(thread, bracket);
        }
    }

    fn begin(
        &mut self,
        begin: Event,
        call: Call,
        descriptor: Option<u32>,
        offset: u64,
        around: &mut Surroundings<'_>,
    ) {
        self.end_untold(Event { kind: EventKind::SyncEnd, ..begin }, around);
        let begin = Event { name: around.texts.keep(call.text()), offset, ..begin };
        // sync and msync have no descriptor to wait for; msync's filesystem may tell the file, sync's will not.
        let told = matches!(call, Call::Sync);
        let is_named = !call.is_of_no_record();
        if told {
            around.event(begin, None);
        }
        let bracket = Bracket::new(begin, BegunBy::Call);
        self.brackets.insert(begin.thread, Bracket { descriptor, is_named, told, ..bracket });
    }

    /// A filesystem syncs a file: part of what the thread is in, or of a write that went on without its thread, or a call of its own.
    fn file_sync(
        &mut self,
        begin: Event,
        begun_by: BegunBy,
        ends: bool,
        data_only: Option<bool>,
        around: &mut Surroundings<'_>,
    ) {
        let bracket = self.brackets.get(&begin.thread);
        let is_part = bracket.is_some_and(|bracket| match bracket.begun_by {
            BegunBy::Call => true,
            BegunBy::DirectWrite(_) => is_one(bracket.begin.file, begin.file),
            BegunBy::FileSync(_) => false,
        });
        let worker = self.workers.get(&begin.thread);
        if is_part || (worker == Some(&Worker::Kernel) && self.has_direct_write(&begin)) {
            return;
        }
        let name = match (worker.is_some(), data_only) {
            (false, _) => DURABLE_WRITE,
            (true, Some(false)) => Call::Fsync.text(),
            (true, Some(true)) => Call::Fdatasync.text(),
            (true, None) => UNKNOWN_CALL,
        };
        self.begin_alone(begin, begun_by, false, name, around);
        if let Some(bracket) = self.brackets.get_mut(&begin.thread) {
            around.tell(begin.thread, bracket);
        }
        if !ends {
            self.end_untold(Event { kind: EventKind::SyncEnd, ..begin }, around);
        }
    }

    /// A filesystem's own beginning: part of a call's bracket, or one of its own.
    fn begin_alone(
        &mut self,
        begin: Event,
        begun_by: BegunBy,
        tries: bool,
        name: &str,
        around: &mut Surroundings<'_>,
    ) {
        if self.is_begun_by(begin.thread, BegunBy::Call) {
            return;
        }
        self.end_untold(Event { kind: EventKind::SyncEnd, ..begin }, around);
        let begin = Event { name: around.texts.keep(name), ..begin };
        self.brackets.insert(begin.thread, Bracket { tries, ..Bracket::new(begin, begun_by) });
    }

    fn is_begun_by(&self, thread: u32, begun_by: BegunBy) -> bool {
        self.brackets.get(&thread).is_some_and(|bracket| bracket.begun_by == begun_by)
    }

    fn end(&mut self, end: Event, begun_by: BegunBy, result: i64, around: &mut Surroundings<'_>) {
        if !self.is_begun_by(end.thread, begun_by) {
            return;
        }
        let is_in_vain = begun_by != BegunBy::Call && TRIED_AGAIN.contains(&result);
        if is_in_vain {
            return self.end_untold(end, around);
        }
        let Some(Bracket { begin, .. }) = self.brackets.remove(&end.thread) else { return };
        around.event(Event { file: begin.file, name: begin.name, detail: result, ..end }, None);
    }

    /// What the thread is in is over, nobody knows since when.
    fn end_untold(&mut self, end: Event, around: &mut Surroundings<'_>) {
        let Some(Bracket { begin, told, .. }) = self.brackets.remove(&end.thread) else { return };
        if told {
            let Event { time_ns, thread, kind, .. } = end;
            let end = Event { time_ns, thread, kind, ..Event::default() };
            around.event(Event { file: begin.file, name: begin.name, detail: END_NOT_TOLD, ..end }, None);
        }
    }

    /// Whether a direct write to the file of this sync goes on, its thread or not.
    fn has_direct_write(&self, sync: &Event) -> bool {
        let is_recent = |time_ns: u64| sync.time_ns < time_ns.saturating_add(QUEUED_NS);
        let queued = self.queued.get(&(sync.file.device, own(sync.file.inode)));
        queued.is_some_and(|(_, time_ns)| is_recent(*time_ns))
            || self
                .brackets
                .values()
                .any(|bracket| bracket.is_direct_write_to(sync.file) && is_recent(bracket.begin.time_ns))
    }

    /// A direct write has ended in another thread than its own: one that was queued, or else one whose own thread will say so later.
    fn direct_write_is_over(&mut self, file: FileKey) {
        let key = (file.device, own(file.inode));
        if let Some((count, _)) = self.queued.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.queued.remove(&key);
            }
            return;
        }
        if let Some(bracket) = self.brackets.values_mut().find(|bracket| bracket.is_direct_write_to(file)) {
            bracket.is_over = true;
        }
    }

    /// Another thread does what this write is: what was tried before was given up.
    fn forget_try(&mut self, write: &Event) {
        let place = |event: &Event| (event.file, event.offset, event.bytes);
        let is_given_up = |one: &Bracket| one.tries && !one.told && place(&one.begin) == place(write);
        self.brackets.retain(|_, bracket| !is_given_up(bracket));
    }

    fn mapped(&mut self, extent: Event, mapping: Mapping, around: &mut Surroundings<'_>) {
        let Mapping { file, in_bytes, first, start, count } = mapping;
        let Some(volume) = self.volumes.iter().find(|volume| volume.is(file.holder)) else { return };
        // The filesystem's own files (a journal, a quota) are no files to anybody else.
        if file.number < volume.first_inode && file.number != 2 {
            return;
        }
        let unit = if in_bytes { 1 } else { volume.block_bytes() };
        let (Some(offset), Some(bytes)) = (first.checked_mul(unit), count.checked_mul(unit)) else { return };
        let places = volume.places(start, bytes);
        self.unplaced += u64::from(places.is_empty());
        let key = FileKey { device: volume.device, inode: file.number, generation: 0 };
        for place in places {
            let offset = offset.saturating_add(place.skipped_bytes);
            let (device, sector, bytes) = (place.disk, place.sector, place.bytes);
            around.event(Event { file: key, offset, device, sector, bytes, ..extent }, None);
        }
    }

    /// What an extent says holds for these bytes of a filesystem.
    fn placed(
        &mut self,
        extent: Event,
        holder: Holder,
        start: u64,
        bytes: u64,
        around: &mut Surroundings<'_>,
    ) {
        let Some(volume) = self.volumes.iter().find(|volume| volume.is(holder)) else { return };
        let places = volume.places(start, bytes);
        self.unplaced += u64::from(places.is_empty());
        for place in places {
            let (device, sector, bytes) = (place.disk, place.sector, place.bytes);
            around.event(Event { device, sector, bytes, ..extent }, None);
        }
    }

    /// A file of which nobody knows any more where these blocks lie. All of them are forgotten, too, when the file leaves memory:
    /// that changes no place, unless the thread shifts them.
    fn unmapped(
        &mut self,
        extent: Event,
        file: Inode,
        first: u64,
        count: u64,
        around: &mut Surroundings<'_>,
    ) {
        let shifts = self.shifts.get(&extent.thread) == Some(&file);
        let Some(volume) = self.volumes.iter().find(|volume| volume.is(file.holder)) else { return };
        if count == 0 || (first == 0 && count >= EXT4_ALL && !shifts) {
            return;
        }
        self.shifts.remove(&extent.thread);
        let [offset, bytes] = [first, count].map(|blocks| blocks.saturating_mul(volume.block_bytes()));
        around.event(Event { file: self.key(file), offset, bytes, ..extent }, None);
    }

    fn truncated(&self, event: Event, file: Inode, length: Length, around: &mut Surroundings<'_>) {
        let bytes = match length {
            Length::Bytes(bytes) => bytes,
            Length::Blocks(blocks) => {
                let volume = self.volumes.iter().find(|volume| volume.is(file.holder));
                let Some(volume) = volume else { return };
                blocks.saturating_mul(volume.block_bytes())
            }
        };
        let file = self.key(file);
        around.event(Event { file, bytes, ..event }, None);
        if bytes == 0 {
            around.event(Event { file, kind: EventKind::Freed, ..event }, None);
        }
    }

    fn key(&self, file: Inode) -> FileKey {
        volume::file(&self.volumes, file)
    }
}

#[cfg(test)]
#[path = "assembler_tests.rs"]
mod tests;
