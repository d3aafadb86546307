//! Captures through tracefs: for kernels on which eBPF is not to be had.
//!
//! ```text
//! per processor: pages -> records --+-- in order of time --> assembler -> process, file, name -> sorter -> events
//! ```
//!
//! A page is read while later records are still being written: what is younger than [`SETTLE_NS`] waits for the next poll.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use joj_analysis::trace::event::{Content, DeviceNumber, Event, EventKind, FileKey};
use joj_analysis::trace::ftrace::assembler::Assembler;
use joj_analysis::trace::ftrace::decoder::Decoder;
use joj_analysis::trace::ftrace::inode_number;
use joj_analysis::trace::ftrace::page::{Lost, Page};
use joj_analysis::trace::ftrace::record::{Call, Command, Record, What};
use joj_analysis::trace::ftrace::step::{Step, Surroundings};
use joj_analysis::trace::ftrace::volume::{Place, Volume};
use joj_analysis::trace::order::Sorter;
use joj_analysis::trace::texts::{Text, Texts};

use crate::machine::capture::error::TracefsError;
use crate::machine::capture::selection::Selection;
use crate::machine::capture::tracefs::buffer::{self, Buffers};
use crate::machine::capture::tracefs::events as tracefs_events;
use crate::machine::capture::tracefs::files::{ELSEWHERE, Files, with_entries};
use crate::machine::capture::tracefs::filesystems::volumes;
use crate::machine::capture::tracefs::instance::Instance;
use crate::machine::capture::tracefs::name_changes::working_names::kept;
use crate::machine::capture::tracefs::threads::{self, Threads};
use crate::machine::files::mounts;
use crate::machine::proc::clock;
use crate::machine::proc::give_way::GiveWay;

/// A record has its time before it is in the buffer; nothing comes later than this, unless a virtual machine stands still.
const SETTLE_NS: u64 = 20_000_000;
/// Beginnings of sync calls are handed on when their file is known, which is later by this at most.
const BEGIN_NS: u64 = 5_000_000;

/// So long a creation waits for its name. Files without one (O_TMPFILE) wait in vain.
const CREATION_NS: u64 = 1_000_000_000;

const CALLS_UNKNOWN: &str = "no record names the file of sync_file_range and syncfs, and some descriptors were closed before joj \
    could look: where disks were chosen those calls are left out, as they may be for another one";

/// A capture under way; dropping it ends it.
#[derive(Debug)]
pub struct TracefsCapture {
    buffers: Buffers,
    decoder: Decoder,
    assembler: Assembler,
    waiting: Vec<Record>,
    /// What is left of the record before them, and its time.
    held: (u64, VecDeque<Step>),
    /// Those that records bear: programs and kernel threads take turns.
    commands: BTreeMap<Command, Text>,
    threads: Threads,
    files: Files,
    sorter: Sorter,
    selection: Selection,
    /// Those of the files that were learned at the start, yet to be told.
    names: Vec<(Event, String)>,
    started_ns: u64,
    /// When names were last looked at.
    looked_ns: u64,
    /// Records until then were used.
    handed_ns: u64,
    begun: bool,
    limits: Vec<String>,
    lost: u64,
    /// Decoding can wait while the buffers have room.
    manners: Option<GiveWay>,
    instance: Instance,
}

impl TracefsCapture {
    /// Begins to capture. `known_files`: files and directories whose files were there before and shall be known.
    /// # Errors
    /// Why not, and what to grant. Nothing is left behind.
    pub fn start(selection: &Selection, known_files: &[PathBuf]) -> Result<Self, TracefsError> {
        if cfg!(target_endian = "big") {
            return Err(TracefsError::BigEndian);
        }
        let mounts = mounts::list().unwrap_or_default();
        let volumes = volumes::volumes(&mounts, &selection.devices);
        let instance = Instance::create()?;
        let buffers = Buffers::open(&instance)?;
        let devices = tracefs_events::wanted_devices(selection, &volumes);
        let kinds = tracefs_events::kinds(volumes.iter().map(|mounted| mounted.mount.kind.as_str()));
        let mut enabled = tracefs_events::enable(&instance, &devices, &kinds)?;
        enabled.limits.extend(volumes.iter().flat_map(|mounted| mounted.limits.clone()));
        let (files, unseen) = Files::new(mounts, &volumes, &enabled.events);
        enabled.limits.extend(unseen);
        let started_ns = clock::shared_ns();
        instance.set("tracing_on", "1")?;
        let mut capture = Self {
            buffers,
            decoder: enabled.decoder,
            assembler: Assembler::new(volumes.into_iter().map(|mounted| mounted.volume).collect()),
            waiting: Vec::new(),
            held: (0, VecDeque::new()),
            commands: BTreeMap::new(),
            threads: Threads::default(),
            files,
            // It is told how far the records have come.
            sorter: Sorter::new(u64::MAX),
            names: Vec::new(),
            started_ns,
            looked_ns: started_ns,
            handed_ns: started_ns,
            begun: false,
            limits: enabled.limits,
            lost: 0,
            manners: None,
            selection: selection.clone(),
            instance,
        };
        capture.learn(known_files);
        // What files were called until now is known.
        capture.looked_ns = clock::shared_ns();
        capture.handed_ns = capture.looked_ns;
        Ok(capture)
    }

    /// Learns files before a command is started that may change or unmount what is there.
    fn learn(&mut self, known_files: &[PathBuf]) {
        let open = self.selection.open_files_of.map(|process| PathBuf::from(format!("/proc/{process}/fd")));
        for file in open.iter().chain(known_files).flat_map(|path| with_entries(path)) {
            let time_ns = clock::shared_ns();
            let (name, extents) = self.files.learn(&file);
            self.names.extend(name.map(|(event, name)| (Event { time_ns, ..event }, name)));
            for extent in extents {
                self.sorter.push(Event { time_ns, ..extent }, &mut |_| {});
            }
        }
    }

    /// What this kernel's trace lacks, a sentence each.
    pub fn limits(&self) -> &[String] {
        &self.limits
    }

    /// The filesystem with this device was unmounted.
    pub fn forget(&mut self, device: DeviceNumber) {
        self.files.forget(device);
    }

    /// Records that the kernel threw away because nobody read them in time.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Hands on the events that came, in order of time; waits for some up to `timeout`.
    /// # Errors
    /// The kernel's buffers cannot be read; the events until then were handed on.
    pub fn poll(
        &mut self,
        timeout: Duration,
        texts: &mut Texts,
        sink: &mut dyn FnMut(Event),
    ) -> Result<(), TracefsError> {
        let sink = &mut handing_on(sink);
        self.begin(texts, sink);
        self.buffers.wait(timeout);
        let now_ns = clock::shared_ns();
        self.look(texts)?;
        // Whether the changes that an earlier look saw are all that was changed tells the end of a call that was under way then.
        let looked_ns = std::mem::replace(&mut self.looked_ns, now_ns);
        self.hand_on(looked_ns.min(now_ns.saturating_sub(SETTLE_NS)), texts, sink);
        Ok(())
    }

    /// Ends the capture and hands on the rest. Returns how many records were lost.
    /// # Errors
    /// As [`TracefsCapture::poll`].
    pub fn stop(&mut self, texts: &mut Texts, sink: &mut dyn FnMut(Event)) -> Result<u64, TracefsError> {
        let sink = &mut handing_on(sink);
        self.begin(texts, sink);
        self.instance.set("tracing_on", "0")?;
        self.look(texts)?;
        self.hand_on(u64::MAX, texts, sink);
        self.manners = None;
        Ok(self.lost.max(self.buffers.overrun(&self.instance)))
    }

    /// What is there at the start: threads, trees, and the names of the files that were learned.
    fn begin(&mut self, texts: &mut Texts, sink: &mut dyn FnMut(Event)) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        // Not before: the command that is traced has started now, and inherits nothing.
        self.manners = Some(GiveWay::begin());
        self.threads.learn_running(texts);
        for (thread, name) in self.threads.names() {
            self.assembler.know_thread(thread, texts.get(name).as_bytes());
        }
        for place in self.assembler.volumes().iter().flat_map(Volume::tree_places) {
            self.sorter.push(tree_block(&place, self.started_ns), sink);
        }
        for (event, name) in std::mem::take(&mut self.names) {
            self.sorter.push(Event { name: kept(&name, texts), ..event }, sink);
        }
    }

    /// Empties the kernel's buffers into `waiting`.
    fn read(&mut self) -> Result<(), TracefsError> {
        let Self { buffers, decoder, waiting, lost, sorter, files, .. } = self;
        let before = *lost;
        let mut gone = |time_ns, count: Lost| {
            let (known, detail) = match count {
                Lost::None => return,
                Lost::Counted(count) => (count, count.cast_signed()),
                Lost::Unknown => (1, -1),
            };
            *lost = lost.saturating_add(known);
            let event = Event { time_ns, kind: EventKind::Lost, detail, ..Event::default() };
            sorter.push(event, &mut |_| {});
        };
        let fullest = buffers.read(&mut |_, bytes, layout| {
            let Ok(mut page) = Page::new(bytes, layout) else {
                return gone(clock::shared_ns(), Lost::Unknown);
            };
            gone(page.time_ns(), page.lost());
            for (time_ns, data) in page.by_ref() {
                let record = decoder.record(time_ns, data);
                if let Some(Record { thread, what: What::NamesChanged(change), time_ns }) = record {
                    files.note_call(thread, change, time_ns);
                }
                waiting.extend(record);
            }
            if page.is_damaged() {
                gone(page.time_ns(), Lost::Unknown);
            }
        })?;
        if fullest > buffer::BYTES / 2 {
            self.manners = None;
        }
        if self.lost > before {
            // Where files got new places in between nobody told us.
            self.files.forget_places();
        }
        Ok(())
    }

    /// Takes the records, and what happened to names of files.
    fn look(&mut self, texts: &mut Texts) -> Result<(), TracefsError> {
        self.files.look();
        self.files.subvolumes.forget_open();
        // With the calls whose changes were just seen.
        self.read()?;
        for (event, name) in self.files.settle_names(self.handed_ns) {
            self.sorter.push(Event { name: kept(&name, texts), ..event }, &mut |_| {});
        }
        Ok(())
    }

    /// Makes events of the records up to a time.
    fn hand_on(&mut self, until_ns: u64, texts: &mut Texts, sink: &mut dyn FnMut(Event)) {
        // Each processor's records are in order, so that this merges a few runs.
        self.waiting.sort_by_key(|record| record.time_ns);
        let count = self.waiting.partition_point(|record| record.time_ns <= until_ns);
        let mut waiting = std::mem::take(&mut self.waiting);
        let (mut time_ns, mut steps) = std::mem::take(&mut self.held);
        let (mut taken, mut reread) = (0, false);
        let is_held = loop {
            if !self.take_steps(time_ns, &mut steps, until_ns, texts) {
                break true;
            }
            let Some(record) = waiting[..count].get(taken) else { break false };
            (taken, time_ns) = (taken + 1, record.time_ns);
            let Self { assembler, files, threads, .. } = self;
            let mut ask = |thread, descriptor, is_named| {
                files.by_descriptor(thread, threads.process_of(thread), descriptor, is_named)
            };
            let mut around = Surroundings { texts, ask: &mut ask, sink: &mut |step| steps.push_back(step) };
            let before = assembler.unplaced();
            assembler.take(record, &mut around);
            // Btrfs took a new chunk: once more, with it. Once in a poll, as some layouts never have a place.
            let is_unplaced = self.assembler.unplaced() > before;
            if self.assembler.unplaced() > 0 && !std::mem::replace(&mut reread, true) {
                self.assembler.forget_unplaced();
                for volume in self.files.reread_chunks() {
                    self.assembler.replace(volume);
                }
                if !is_unplaced {
                    continue;
                }
                let mut around = Surroundings {
                    texts,
                    ask: &mut |_, _, _| FileKey::NONE,
                    sink: &mut |step| steps.push_back(step),
                };
                self.assembler.take(record, &mut around);
            }
        };
        let until_ns = if is_held { time_ns.saturating_sub(1) } else { until_ns };
        self.handed_ns = self.handed_ns.max(until_ns);
        self.held = (time_ns, steps);
        waiting.drain(..taken);
        self.waiting = waiting;
        let awaited_ns = self.settle(until_ns, texts);
        for (event, name) in self.files.overdue(until_ns.saturating_sub(SETTLE_NS)) {
            self.sorter.push(Event { name: kept(&name, texts), ..event }, &mut |_| {});
        }
        self.files.limits().for_each(|limit| self.note_limit(limit));
        self.sorter.release(until_ns.saturating_sub(BEGIN_NS).min(awaited_ns.saturating_sub(1)), sink);
    }

    /// Tells the beginnings whose file no record named. Returns the time of the first that waits for such a record still.
    fn settle(&mut self, until_ns: u64, texts: &mut Texts) -> u64 {
        let mut told = Vec::new();
        let Self { assembler, files, threads, .. } = self;
        let mut ask = |thread, descriptor, is_named| {
            files.by_descriptor(thread, threads.process_of(thread), descriptor, is_named)
        };
        let mut around = Surroundings { texts, ask: &mut ask, sink: &mut |step| told.push(step) };
        let awaited_ns = assembler.settle(until_ns.saturating_sub(BEGIN_NS / 2), &mut around);
        for step in told {
            self.step(until_ns, step, texts);
        }
        awaited_ns
    }

    /// Takes the steps of a record of this time. False where the rest must wait: a file was created, and the watch has not said yet
    /// which, as the call that creates it goes on. Without that its name, and that of the next one with its number, would be lost.
    fn take_steps(
        &mut self,
        time_ns: u64,
        steps: &mut VecDeque<Step>,
        until_ns: u64,
        texts: &mut Texts,
    ) -> bool {
        let is_patient = until_ns < u64::MAX && until_ns < time_ns.saturating_add(CREATION_NS);
        while let Some(step) = steps.pop_front() {
            if let Step::Created { file, .. } = &step
                && is_patient
                && self.files.awaits_creation(*file, time_ns)
            {
                steps.push_front(step);
                return false;
            }
            self.step(time_ns, step, texts);
        }
        true
    }

    /// A command as text.
    fn kept(&mut self, command: &Command, texts: &mut Texts) -> Text {
        *self.commands.entry(*command).or_insert_with(|| threads::keep(command, texts))
    }

    fn step(&mut self, time_ns: u64, step: Step, texts: &mut Texts) {
        match step {
            Step::Created { file, kind } => self.files.created(file, kind, time_ns),
            Step::Ended(file) => self.files.ended(file),
            Step::Fetched(file) => self.files.fetched(file),
            Step::NamesChanged { thread, change } => {
                for (event, name) in self.files.names_changed(thread, change, time_ns) {
                    let name = kept(&name, texts);
                    self.sorter.push(Event { time_ns, name, ..event }, &mut |_| {});
                }
            }
            Step::NewThread { thread, of, command } => self.threads.made(thread, of, &command, texts),
            Step::Renamed { thread, command } => self.threads.renamed(thread, &command, texts),
            Step::Event(mut event, command) => {
                let (process, name) = self.threads.who(event.thread, texts);
                event.process = process;
                event.command = match command {
                    Some(command) => self.kept(&command, texts),
                    None => name,
                };
                let said = event.file;
                event.file = self.files.in_its_subvolume(event.file, process);
                if said.is_some() && !event.file.is_some() && event.kind == EventKind::Lock {
                    return;
                }
                let is_wanted = self.is_wanted(&event, texts);
                let elsewhere = event.file == ELSEWHERE;
                self.note_unknown_call(&event, elsewhere, texts);
                // Of such a call only the filesystem is sure: the descriptor may be another file's by now.
                if elsewhere || is_known_by_descriptor(&event, texts) {
                    event.file = FileKey::NONE;
                }
                if is_wanted && self.identify(&mut event, texts) {
                    self.sorter.push(event, &mut |_| {});
                }
            }
        }
    }

    /// Says once that there were calls of which nobody knows the file, and so whether they are meant. `elsewhere`: that is known.
    fn note_unknown_call(&mut self, event: &Event, elsewhere: bool, texts: &Texts) {
        let is_unknown = event.kind == EventKind::SyncBegin && !event.file.is_some() && !elsewhere;
        let is_asked_for = is_known_by_descriptor(event, texts);
        if is_unknown && is_asked_for {
            self.note_limit(CALLS_UNKNOWN);
        }
    }

    /// Says once what this capture lacks.
    fn note_limit(&mut self, limit: &str) {
        if !self.limits.iter().any(|known| known == limit) {
            self.limits.push(limit.to_owned());
        }
    }

    fn is_wanted(&self, event: &Event, texts: &Texts) -> bool {
        use EventKind::{DurableWrite, Lock, SyncBegin, SyncEnd};
        if !matches!(event.kind, SyncBegin | SyncEnd | DurableWrite | Lock) {
            return true;
        }
        if event.file == ELSEWHERE {
            return self.selection.devices.is_empty();
        }
        // A call for a file of none of these filesystems. sync(2) alone has no file and means them all.
        let elsewhere = !event.file.is_some() && texts.get(event.name) != Call::Sync.text();
        self.selection.devices.is_empty() || !elsewhere
    }

    /// Fills in the file's generation, and tells its name if it is new. False where the event says nothing of a file's bytes.
    fn identify(&mut self, event: &mut Event, texts: &mut Texts) -> bool {
        if !event.file.is_some() {
            return true;
        }
        let bare = FileKey { generation: 0, ..event.file };
        // F2FS cuts a file's blocks when the file is gone already, and these with it.
        if matches!(event.kind, EventKind::Truncated | EventKind::Freed) && self.files.is_gone(bare) {
            return false;
        }
        let around = Event {
            time_ns: event.time_ns,
            thread: event.thread,
            process: event.process,
            ..Event::default()
        };
        if matches!(event.kind, EventKind::SyncBegin | EventKind::DurableWrite | EventKind::Lock) {
            for extent in self.files.place(bare, event.process) {
                self.sorter
                    .push(Event { time_ns: event.time_ns, command: event.command, ..extent }, &mut |_| {});
            }
        }
        // When it is known again whether the file has a name, that is told.
        if event.kind == EventKind::Unlinked && self.files.is_doubtful(bare, event.process, event.time_ns) {
            return false;
        }
        let known = self.files.identify(bare, event.process);
        event.file.generation = known.generation;
        let is_metadata = known.holds_metadata && event.kind == EventKind::Extent;
        let untold = known.tell(event.time_ns);
        // Most events have no need of the name.
        let name = match &known.name {
            Some(name) if untold || event.kind == EventKind::Unlinked => kept(name, texts),
            _ => Text::NONE,
        };
        if untold && name != Text::NONE {
            let named =
                Event { kind: EventKind::Named, file: event.file, name, command: event.command, ..around };
            self.sorter.push(named, &mut |_| {});
        }
        if event.kind == EventKind::Unlinked {
            (event.name, event.detail) = (name, known.links.left());
        }
        !is_metadata || !self.files.hides_metadata(event.file.device)
    }
}

/// Files as all of joj knows them.
fn handing_on(sink: &mut dyn FnMut(Event)) -> impl FnMut(Event) {
    |event| sink(Event { file: inode_number::handed_on(event.file), ..event })
}

/// A place where blocks of trees are, nobody knows of which.
fn tree_block(place: &Place, time_ns: u64) -> Event {
    let Place { disk: device, sector, bytes, .. } = *place;
    let content = Content::BtrfsTree;
    Event { time_ns, kind: EventKind::Extent, device, sector, bytes, content, ..Event::default() }
}

/// True for a call that no filesystem tells of: its file is looked up by the descriptor, later.
fn is_known_by_descriptor(event: &Event, texts: &Texts) -> bool {
    let name = texts.get(event.name);
    [Call::Syncfs, Call::SyncFileRange].iter().any(|call| call.text() == name)
}

#[cfg(test)]
#[path = "tests/capture.rs"]
mod tests;
