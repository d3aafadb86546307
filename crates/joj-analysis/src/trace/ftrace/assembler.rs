//! Records of all processors, in the order of their times, become events: a call gets its file, a mapping its sectors.
//!
//! ```text
//! one thread    sys_enter_fsync(fd 4)  ext4_sync_file_enter(inode 12)  ..  sys_exit_fsync -> 0
//! its events    SyncBegin(inode 12, at the time of the first)              SyncEnd(inode 12, 0)
//! ```
//!
//! A sync of a filesystem without a call around it is one of its own, a durable write: a write with O_SYNC or O_DSYNC, io_uring, or a
//! kernel that does not show system calls. Where the filesystem tells only its beginning (XFS, Btrfs) it is none.

use std::collections::{BTreeMap, BTreeSet};

use crate::trace::event::{Content, Event, EventKind, FileKey};
use crate::trace::texts::Texts;

use crate::trace::ftrace::record::{Call, Command, Holder, Inode, Length, Record, Request, What};
use crate::trace::ftrace::volume::Volume;

/// What a filesystem's sync is called where no system call was seen around it.
const DURABLE_WRITE: &str = "durable write";

/// What comes out: events, of which generation, process and command are still to be filled in, and what helps with that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An event, and its thread's name where the record had it.
    Event(Event, Option<Command>),
    /// An inode's number belongs to a new file.
    Created {
        /// Generation 0.
        file: FileKey,
        /// True for a directory.
        directory: bool,
    },
    /// The file is gone.
    Ended(FileKey),
    /// A call of a thread that removes a name, or gives a file another one, has succeeded.
    NamesChanged {
        /// Whose.
        thread: u32,
        /// True for a removal.
        removed: bool,
    },
    /// A new thread.
    NewThread {
        /// Its number.
        thread: u32,
        /// The thread that made it, where both belong to one process.
        of: Option<u32>,
        /// Its name.
        command: Command,
    },
    /// A thread has another name.
    Renamed {
        /// Its number.
        thread: u32,
        /// Its name.
        command: Command,
    },
}

/// A sync or durable write under way in a thread.
#[derive(Debug)]
struct Bracket {
    begin: Event,
    descriptor: Option<u32>,
    /// False until its first event was handed on.
    told: bool,
    /// False where a filesystem's own event began it.
    by_call: bool,
}

/// What is under way on a machine.
#[derive(Debug, Default)]
pub struct Assembler {
    volumes: Vec<Volume>,
    /// By thread. They are few, and asked for at each record.
    brackets: BTreeMap<u32, Bracket>,
    /// The tree for which a thread looks for room.
    trees: BTreeMap<u32, i64>,
    /// Threads that create a file on XFS and have no number for it yet.
    creating: BTreeSet<u32>,
    unplaced: u64,
}

/// Whom to ask for the file behind a thread's descriptor, and whom to hand steps to.
pub struct Surroundings<'a> {
    /// Names of calls go there.
    pub texts: &'a mut Texts,
    /// (thread, descriptor) to a file, generation included, or to [`FileKey::NONE`].
    pub ask: &'a mut dyn FnMut(u32, u32) -> FileKey,
    /// Takes the steps; nearly in the order of their times.
    pub sink: &'a mut dyn FnMut(Step),
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Surroundings").finish_non_exhaustive()
    }
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

    /// Takes the next record.
    pub fn take(&mut self, record: &Record, around: &mut Surroundings<'_>) {
        let &Record { time_ns, thread, what } = record;
        self.tell_before(record, around);
        let event = |kind| Event { time_ns, thread, kind, ..Event::default() };
        match what {
            What::Request(request) => around.event(requested(event(request.kind), &request), request.command),
            What::CallBegin { call, descriptor, offset } => {
                self.begin(event(begins(call)), call, descriptor, offset, around)
            }
            What::CallEnd(result) => self.end(event(EventKind::SyncEnd), true, result, around),
            What::FileSyncEnd(result) | What::DirectWriteEnd(result) => {
                self.end(event(EventKind::SyncEnd), false, result, around);
            }
            What::FileSync { file, ends } => {
                let begin = Event { file: self.key(file), ..event(EventKind::SyncBegin) };
                self.begin_alone(begin, DURABLE_WRITE, ends, around);
            }
            What::DirectWrite { file, offset, bytes } => {
                let begin = Event { file: self.key(file), offset, bytes, ..event(EventKind::DurableWrite) };
                self.begin_alone(begin, "write", true, around);
            }
            What::Mapped { file, in_bytes, first, start, count } => {
                self.mapped(event(EventKind::Extent), file, (in_bytes, first, start, count), around);
            }
            What::RoomWanted(tree) => match tree {
                Some(tree) => drop(self.trees.insert(thread, tree)),
                None => drop(self.trees.remove(&thread)),
            },
            What::RoomFound { holder, start, bytes } => {
                self.tree_block(event(EventKind::Extent), holder, (start, bytes), around);
            }
            What::Truncated { file, length } => {
                self.truncated(event(EventKind::Truncated), file, length, around)
            }
            What::Unlinked(file) => {
                around.event(Event { file: self.key(file), ..event(EventKind::Unlinked) }, None);
            }
            What::NamesChanged { removed } => {
                (around.sink)(Step::NamesChanged { thread, removed });
            }
            What::CreateBegin => drop(self.creating.insert(thread)),
            What::Fetched(file) => {
                if self.creating.remove(&thread) {
                    (around.sink)(Step::Created { file: self.key(file), directory: false });
                }
            }
            What::Created { file, directory } => {
                (around.sink)(Step::Created { file: self.key(file), directory });
            }
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
            What::Journal { begins, device, transaction } => {
                let kind = if begins { EventKind::JournalBegin } else { EventKind::JournalEnd };
                around.event(Event { device, detail: i64::from(transaction), ..event(kind) }, None);
            }
            What::NewThread { thread: new, same_process, command } => {
                (around.sink)(Step::NewThread { thread: new, of: same_process.then_some(thread), command });
            }
            What::Renamed { thread, command } => (around.sink)(Step::Renamed { thread, command }),
        }
    }

    /// Hands on the beginnings from before `before_ns` whose file no record named.
    pub fn settle(&mut self, before_ns: u64, around: &mut Surroundings<'_>) {
        for (thread, bracket) in &mut self.brackets {
            if !bracket.told && bracket.begin.time_ns < before_ns {
                bracket.tell_by_descriptor(*thread, around);
            }
        }
    }

    /// A thread's next record says which file its call is for, or that none will.
    fn tell_before(&mut self, record: &Record, around: &mut Surroundings<'_>) {
        let thread = record.thread;
        let interrupts = matches!(record.what, What::Request(Request { kind: EventKind::Complete, .. }));
        let Some(bracket) = self.brackets.get(&thread).filter(|bracket| !bracket.told && !interrupts) else {
            return;
        };
        let begin = match record.what {
            What::FileSync { file, .. } => Event { file: self.key(file), ..bracket.begin },
            What::DirectWrite { file, offset, bytes } => {
                Event { file: self.key(file), offset, bytes, ..bracket.begin }
            }
            _ => bracket.begin,
        };
        let Some(bracket) = self.brackets.get_mut(&thread) else { return };
        if begin.file.is_some() {
            bracket.begin = begin;
            bracket.told = true;
            around.event(begin, None);
        } else {
            bracket.tell_by_descriptor(thread, around);
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
        let begin = Event { name: around.texts.keep(call.text()), offset, ..begin };
        // sync and msync have no descriptor to wait for; msync's filesystem may tell the file, sync's will not.
        let told = matches!(call, Call::Sync);
        if told {
            around.event(begin, None);
        }
        self.brackets.insert(begin.thread, Bracket { begin, descriptor, told, by_call: true });
    }

    /// A filesystem's own beginning: part of a call's bracket, or one of its own if its end will be told too.
    fn begin_alone(&mut self, begin: Event, name: &str, ends: bool, around: &mut Surroundings<'_>) {
        if !ends || self.brackets.contains_key(&begin.thread) {
            return;
        }
        let begin = Event { name: around.texts.keep(name), ..begin };
        around.event(begin, None);
        self.brackets.insert(begin.thread, Bracket { begin, descriptor: None, told: true, by_call: false });
    }

    fn end(&mut self, end: Event, by_call: bool, result: i64, around: &mut Surroundings<'_>) {
        if self.brackets.get(&end.thread).is_none_or(|bracket| bracket.by_call != by_call) {
            return;
        }
        let Some(Bracket { begin, .. }) = self.brackets.remove(&end.thread) else { return };
        around.event(Event { file: begin.file, name: begin.name, detail: result, ..end }, None);
    }

    fn mapped(
        &mut self,
        extent: Event,
        file: Inode,
        (in_bytes, first, start, count): (bool, u64, u64, u64),
        around: &mut Surroundings<'_>,
    ) {
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

    /// A new block of a tree of Btrfs. The thread's note stays: where the block has no place yet, this record comes again.
    fn tree_block(
        &mut self,
        extent: Event,
        holder: Holder,
        (start, bytes): (u64, u64),
        around: &mut Surroundings<'_>,
    ) {
        let Some(&detail) = self.trees.get(&extent.thread) else { return };
        let Some(volume) = self.volumes.iter().find(|volume| volume.is(holder)) else { return };
        let places = volume.places(start, bytes);
        self.unplaced += u64::from(places.is_empty());
        for place in places {
            let (device, sector, bytes) = (place.disk, place.sector, place.bytes);
            let content = Content::BtrfsTree;
            around.event(Event { device, sector, bytes, content, detail, ..extent }, None);
        }
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
        let device = match file.holder {
            Holder::Device(device) => Some(device),
            id @ Holder::Id(_) => {
                self.volumes.iter().find(|volume| volume.is(id)).map(|volume| volume.device)
            }
        };
        device.map_or(FileKey::NONE, |device| FileKey { device, inode: file.number, generation: 0 })
    }
}

impl Bracket {
    fn tell_by_descriptor(&mut self, thread: u32, around: &mut Surroundings<'_>) {
        if let Some(descriptor) = self.descriptor {
            self.begin.file = (around.ask)(thread, descriptor);
        }
        self.told = true;
        around.event(self.begin, None);
    }
}

impl Surroundings<'_> {
    fn event(&mut self, event: Event, command: Option<Command>) {
        (self.sink)(Step::Event(event, command));
    }
}

fn begins(call: Call) -> EventKind {
    if call == Call::Pwritev2 { EventKind::DurableWrite } else { EventKind::SyncBegin }
}

fn requested(event: Event, request: &Request) -> Event {
    Event {
        device: request.device,
        sector: request.sector,
        bytes: request.bytes,
        operation: request.operation,
        flags: request.flags,
        detail: request.error,
        ..event
    }
}

#[cfg(test)]
#[path = "assembler_tests.rs"]
mod tests;
