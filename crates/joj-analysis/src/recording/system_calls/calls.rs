//! What each call means for files, whoever saw it: rows of a recording, and counts of what cannot be replayed.

use std::collections::{HashMap, HashSet};

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{O_DIRECTORY, O_RDWR, O_TMPFILE, RENAME_EXCHANGE};
use crate::recording::paths::{absolute, is_pseudo};

use super::links::{KnownLinks, LinksBefore};
use super::open_names::{NameHolder, OpenName};
use super::operation::{FileOperation, NamedDescriptor, Sharing, SystemCall, ThreadEnd};
use super::output::CallOutput;
use super::processes::{Closed, Meaning, TracedProcesses};

/// Why a call is left out that is about a device, or about files that are none on a disk.
pub(crate) const DEVICE: &str = "a device or what the kernel makes up";
/// What is written here makes the kernel drop what it keeps of files.
pub(super) const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
pub(super) const CACHE_SWITCH: &str = "the switch that drops the kernel's caches";
/// Why a call is left out that is about no file.
pub(crate) const NO_FILE: &str = "a pipe, a socket or the like";
const UNKNOWN: &str = "a descriptor whose opening was not seen";
pub(super) const GONE: &str = "a name in a directory that is gone";
pub(super) const UNREADABLE: &str = "a path that was not seen";
const VECTORED: &str = "Vectored reads and writes were recorded with their whole length, as one buffer.";
/// How calls are counted that concern memory, signals, threads, time or identity.
const NOT_ABOUT_FILES: &str = "calls that are not about files";

/// The calls of some processes on their way into a recording.
#[derive(Debug, Default)]
pub struct Calls {
    /// Where they go.
    pub output: CallOutput,
    /// Whose descriptors mean what.
    pub processes: TracedProcesses,
    /// By thread: what a close means whose end is told later. The descriptor may be another file's by then.
    closing: HashMap<u32, Closed>,
    /// Threads whose first call was told before the end of the call that made them.
    early: HashSet<u32>,
    /// Where paths lead.
    pub(super) links: KnownLinks,
    /// The directory in which the program began, if that became known after it was needed.
    pub(super) start: Option<String>,
}

/// Where a file is that was open before the first call.
#[derive(Debug, Clone, Copy)]
pub enum HeldPlace<'a> {
    /// Under this path.
    Path(&'a str),
    /// Under none any more. A replay makes a file without a name, of so many bytes, in this directory.
    Nameless(&'a str, u64),
}

/// How a call became a row, or why not.
pub(super) type Told = Result<RecordedCall, &'static str>;

impl Calls {
    /// Who knows of links that were there before, and the last names of paths that calls made or took away.
    pub fn ask_for_links(&mut self, before: LinksBefore, changed: HashSet<Vec<u8>>) {
        self.links.ask(before, changed);
    }

    /// The begin of a close whose end is told later: what it closes is decided now.
    pub fn begin_close(&mut self, thread: u32, descriptor: NamedDescriptor<'_>) {
        let closed = self.close_one(thread, descriptor);
        self.closing.insert(thread, closed);
    }

    /// A thread is gone: by its own call, or because another one ended it.
    pub fn exit(&mut self, thread: u32, time_ns: u64, end: ThreadEnd) {
        let process = self.processes.process(thread);
        for description in self.processes.exit(thread) {
            self.released(thread, process, description, time_ns);
        }
        if end != ThreadEnd::ByOthers {
            let row = RecordedCall {
                begin_ns: time_ns,
                process,
                thread,
                descriptor: -1,
                result: match end {
                    ThreadEnd::WithProcess => RecordedCall::PROCESS_ENDS,
                    ThreadEnd::WithProgram => RecordedCall::PROGRAM_ENDS,
                    ThreadEnd::ByItself | ThreadEnd::ByOthers => 0,
                },
                ..RecordedCall::default()
            };
            self.output.push(RecordedCall { kind: CallKind::Ended, ..row });
        }
    }

    /// A thread or process begins before the end of the call that makes it is told.
    pub fn fork_early(&mut self, parent: u32, child: u32, begin_ns: u64, sharing: Sharing) {
        self.early.insert(child);
        self.forked(parent, child, begin_ns, sharing);
    }

    /// A thread made another one, and both go on.
    pub fn fork(&mut self, parent: u32, child: u32, begin_ns: u64, sharing: Sharing) {
        self.forked(parent, child, begin_ns, sharing);
    }

    /// A process runs another program from now on; its one thread that is left had the number `former`.
    pub fn exec(&mut self, thread: u32, former: u32, time_ns: u64) {
        let process = self.processes.process(former);
        for description in self.processes.exec(former) {
            self.released(former, process, description, time_ns);
        }
        for description in self.processes.rename(former, thread) {
            self.released(thread, process, description, time_ns);
        }
        if thread != former {
            // What that one did until then is what comes before the new program.
            self.woken(thread, former, time_ns, [0, 0]);
        }
    }

    fn forked(&mut self, parent: u32, child: u32, begin_ns: u64, sharing: Sharing) {
        self.processes.fork(parent, child, sharing);
        let process = self.processes.process(parent);
        let call = RecordedCall {
            begin_ns,
            kind: CallKind::Fork,
            process,
            thread: parent,
            descriptor: -1,
            ..RecordedCall::default()
        };
        self.output.push(RecordedCall { result: i64::from(child), ..call });
    }

    /// A thread woke another one, which had waited for so long, and for this.
    pub fn woken(&mut self, thread: u32, waker: u32, begin_ns: u64, [waited_ns, awaited]: [u64; 2]) {
        self.output.push(RecordedCall {
            begin_ns,
            kind: CallKind::Woken,
            process: self.processes.process(thread),
            thread,
            descriptor: -1,
            result: i64::from(waker),
            bytes: waited_ns,
            offset: awaited,
            ..RecordedCall::default()
        });
    }

    /// A call that is over; gives its row.
    pub fn call(&mut self, call: &SystemCall<'_>) -> Option<RecordedCall> {
        match (self.told(call)?, call.result) {
            (Ok(row), Some(result)) => {
                let process = self.processes.process(call.thread);
                let (begin_ns, duration_ns, thread) = (call.begin_ns, call.duration_ns, call.thread);
                let descriptor = if row.description == 0 { -1 } else { row.descriptor };
                let row = RecordedCall { begin_ns, duration_ns, process, thread, result, descriptor, ..row };
                self.output.push(row);
                if result >= 0 {
                    self.change_names(&row);
                }
                return Some(row);
            }
            (Ok(_), None) => self.not_replayed(call, "its result was not seen"),
            (Err(why), _) => self.not_replayed(call, why),
        }
        None
    }

    fn not_replayed(&mut self, call: &SystemCall<'_>, why: &str) {
        self.output.not_replayed(&format!("{}: {why}", call.name));
    }

    /// The row of a call, or why there is none; `None` where the recording has no row for such calls.
    fn told(&mut self, call: &SystemCall<'_>) -> Option<Told> {
        match &call.operation {
            FileOperation::Fork(sharing) => self.fork_call(call, *sharing),
            FileOperation::Exec if call.succeeded() => {
                let process = self.processes.process(call.thread);
                for description in self.processes.exec(call.thread) {
                    self.released(call.thread, process, description, call.begin_ns);
                }
            }
            FileOperation::EnterPath(_)
            | FileOperation::EnterRoot(_)
            | FileOperation::EnterDescriptor(_)
            | FileOperation::TellDirectory(_)
                if call.succeeded() =>
            {
                self.enter(call);
            }
            FileOperation::Unshare(own) if call.succeeded() => self.processes.unshare(call.thread, *own),
            FileOperation::Exec
            | FileOperation::Unshare(_)
            | FileOperation::EnterPath(_)
            | FileOperation::EnterRoot(_)
            | FileOperation::EnterDescriptor(_)
            | FileOperation::TellDirectory(_)
            | FileOperation::End => {}
            FileOperation::Close(descriptor) => return Some(self.close(call.thread, *descriptor)),
            FileOperation::CloseRange { first, last, on_exec, unshares } => {
                if *unshares && call.succeeded() {
                    let own = Sharing { files: true, ..Sharing::default() };
                    self.processes.unshare(call.thread, own);
                }
                return Some(self.close_range(call, *first..=*last, *on_exec));
            }
            FileOperation::Dup { old, closes_on_exec } => {
                return Some(self.duplicated(call, *old, *closes_on_exec));
            }
            FileOperation::SetClosesOnExec { descriptor, closes_on_exec } => {
                let number = descriptor.number.unwrap_or(-1);
                self.processes.set_closes_on_exec(call.thread, number, *closes_on_exec);
                self.output.not_replayed(call.name);
            }
            // It may lack a privilege, which a replay does not need.
            FileOperation::OnDescriptor(_, row) | FileOperation::OnPath(_, row)
                if row.kind.sets_attributes() && !call.succeeded() =>
            {
                return Some(Err("it failed"));
            }
            FileOperation::OnDescriptor(descriptor, row) => {
                return Some(self.on_descriptor(call.thread, *descriptor, *row));
            }
            FileOperation::Everywhere(kind) => {
                return Some(Ok(RecordedCall { kind: *kind, ..RecordedCall::default() }));
            }
            FileOperation::NotReplayed(why) => self.not_replayed(call, why),
            FileOperation::NotAboutFiles => self.output.not_replayed(NOT_ABOUT_FILES),
            FileOperation::Other => self.output.not_replayed(call.name),
            FileOperation::Open { .. }
            | FileOperation::OnPath(..)
            | FileOperation::OnTwoPaths(..)
            | FileOperation::LinkDescriptor { .. }
            | FileOperation::Symlink { .. } => return Some(self.about_names(call)),
        }
        None
    }

    /// The thread is in another directory, takes another one for `/`, or its directory is told.
    fn enter(&mut self, call: &SystemCall<'_>) {
        let thread = call.thread;
        match &call.operation {
            FileOperation::EnterPath(path) => {
                if let Ok(directory) = self.path_of(call, path, true) {
                    self.processes.change_directory(thread, &directory);
                }
            }
            FileOperation::EnterRoot(path) => {
                if let Ok(root) = self.path_of(call, path, true) {
                    self.processes.change_root(thread, &root);
                }
            }
            FileOperation::EnterDescriptor(descriptor) => match self.known_path(thread, *descriptor) {
                Ok(directory) => self.processes.change_directory(thread, &directory),
                Err(GONE) => self.processes.lose_directory(thread),
                Err(_) => {}
            },
            FileOperation::TellDirectory(Some(directory)) if directory.starts_with('/') => {
                let root = self.processes.root(thread).unwrap_or("/");
                let directory = absolute(root, &format!("./{directory}"));
                self.is_in(thread, &directory);
            }
            _ => {}
        }
    }

    fn fork_call(&mut self, call: &SystemCall<'_>, sharing: Sharing) {
        let child = call.result.and_then(|child| u32::try_from(child).ok()).filter(|child| *child > 0);
        if let Some(child) = child
            && !self.early.remove(&child)
        {
            self.forked(call.thread, child, call.begin_ns, sharing);
        }
    }

    fn released(&mut self, thread: u32, process: u32, description: u32, begin_ns: u64) {
        let row = RecordedCall {
            begin_ns,
            kind: CallKind::Released,
            process,
            thread,
            description,
            descriptor: -1,
            ..RecordedCall::default()
        };
        self.output.push(row);
    }

    fn on_descriptor(&mut self, thread: u32, descriptor: NamedDescriptor<'_>, row: RecordedCall) -> Told {
        let row = where_it_stands(row);
        let description = match self.description(thread, descriptor) {
            Err(CACHE_SWITCH) if row.kind.is_write() => {
                return Ok(RecordedCall { kind: CallKind::DropCaches, ..RecordedCall::default() });
            }
            other => other?,
        };
        if matches!(row.kind, CallKind::Readv | CallKind::Writev | CallKind::Preadv | CallKind::Pwritev) {
            self.output.infer(VECTORED);
        }
        Ok(RecordedCall { description, descriptor: descriptor.number.unwrap_or(-1), ..row })
    }

    /// The description behind a descriptor, or why there is none that can be replayed. What is known of it is believed before what
    /// earlier calls say.
    pub(super) fn description(
        &mut self,
        thread: u32,
        descriptor: NamedDescriptor<'_>,
    ) -> Result<u32, &'static str> {
        let number = descriptor.number.ok_or(UNREADABLE)?;
        match descriptor.known {
            Some(path) if !path.starts_with('/') => return Err(NO_FILE),
            Some(DROP_CACHES) => return Err(CACHE_SWITCH),
            Some(path) if is_pseudo(path) => return Err(DEVICE),
            _ => {}
        }
        match self.processes.meaning(thread, number) {
            Some(Meaning::Other(why)) => return Err(why),
            Some(Meaning::File(description)) => return Ok(*description),
            None => {}
        }
        let path = descriptor.known.ok_or(UNKNOWN)?;
        // It was open before the recording began.
        self.output.infer(
            "Files that were open before the text begins were opened for reading and writing, at byte 0.",
        );
        // Of one without a name the text does not say which directories are there.
        let place = if descriptor.is_gone { HeldPlace::Nameless("/", 0) } else { HeldPlace::Path(path) };
        Ok(self.hold(thread, number, place, O_RDWR, 0))
    }

    /// A descriptor of a file that was open before the first call, at byte `position`; gives its description.
    pub fn hold(&mut self, thread: u32, number: i32, place: HeldPlace<'_>, flags: u32, position: u64) -> u32 {
        let description = self.output.new_description();
        let holder = NameHolder::Description(description);
        // The kernel says O_TMPFILE also of a file that got a name since.
        let flags = flags & !(O_TMPFILE & !O_DIRECTORY);
        let (path, flags, bytes) = match place {
            HeldPlace::Path(path) => (absolute("/", path), flags, 0),
            HeldPlace::Nameless(directory, bytes) => (absolute("/", directory), flags | O_TMPFILE, bytes),
        };
        match place {
            HeldPlace::Path(_) => self.processes.names.put(holder, &path),
            HeldPlace::Nameless(..) => self.processes.names.lose(holder),
        }
        let path = self.output.keep(&path);
        let held = RecordedCall {
            kind: CallKind::Held,
            process: self.processes.process(thread),
            thread,
            description,
            descriptor: number,
            ..RecordedCall::default()
        };
        self.output.push(RecordedCall { path, flags, offset: position, bytes, ..held });
        self.processes.open(thread, number, Meaning::File(description), false, true);
        description
    }

    fn close(&mut self, thread: u32, descriptor: NamedDescriptor<'_>) -> Told {
        let begun = self.closing.remove(&thread);
        let closed = begun.unwrap_or_else(|| self.close_one(thread, descriptor));
        let Some((description, flags)) = closed.of_file() else {
            let of_known =
                || descriptor.known.map_or(UNKNOWN, |known| if is_pseudo(known) { DEVICE } else { NO_FILE });
            return Err(if let Closed::Other(why) = closed { why } else { of_known() });
        };
        let descriptor = descriptor.number.unwrap_or(-1);
        Ok(RecordedCall { kind: CallKind::Close, description, descriptor, flags, ..RecordedCall::default() })
    }

    fn close_one(&mut self, thread: u32, descriptor: NamedDescriptor<'_>) -> Closed {
        descriptor.number.map_or(Closed::Unknown, |number| self.processes.close(thread, number))
    }

    /// Closes several at once; the recording has a close of each instead.
    fn close_range(
        &mut self,
        call: &SystemCall<'_>,
        numbers: std::ops::RangeInclusive<i32>,
        on_exec: bool,
    ) -> Told {
        if !call.succeeded() {
            return Err("it failed");
        }
        for number in self.processes.range(call.thread, *numbers.start(), *numbers.end()) {
            if on_exec {
                self.processes.set_closes_on_exec(call.thread, number, true);
                continue;
            }
            let closed = self.processes.close(call.thread, number);
            let Some((description, flags)) = closed.of_file() else { continue };
            let (process, thread, begin_ns) =
                (self.processes.process(call.thread), call.thread, call.begin_ns);
            let row =
                RecordedCall { kind: CallKind::Close, process, thread, begin_ns, ..RecordedCall::default() };
            self.output.push(RecordedCall { description, flags, descriptor: number, ..row });
        }
        Err("the recording has a close of each descriptor instead")
    }

    fn duplicated(&mut self, call: &SystemCall<'_>, old: NamedDescriptor<'_>, closes_on_exec: bool) -> Told {
        let description = self.description(call.thread, old);
        let new = call.new_descriptor();
        if let Some(new) = new.filter(|new| Some(*new) != old.number) {
            // dup2 closes what the number meant before.
            if let Closed::Own(description) = self.processes.close(call.thread, new) {
                let process = self.processes.process(call.thread);
                let row = RecordedCall {
                    kind: CallKind::Close,
                    process,
                    thread: call.thread,
                    descriptor: new,
                    ..RecordedCall::default()
                };
                self.output.push(RecordedCall { description, begin_ns: call.begin_ns, ..row });
                self.output.infer("What dup2 closes has a close of its own in the recording.");
            }
            let meaning = description.map_or_else(Meaning::Other, Meaning::File);
            self.processes.open(call.thread, new, meaning, closes_on_exec, true);
        }
        let (description, descriptor) = (description?, new.unwrap_or(-1));
        Ok(RecordedCall { kind: CallKind::Dup, description, descriptor, ..RecordedCall::default() })
    }

    /// What is open follows its file to another name.
    fn change_names(&mut self, row: &RecordedCall) {
        let [path, second] = [row.path, row.second_path].map(|path| self.output.text(path));
        match row.kind {
            CallKind::Rename => {
                let is_exchange = row.flags & RENAME_EXCHANGE != 0;
                self.processes.names.renamed(path, second, is_exchange);
                self.links.renamed(path, second, is_exchange);
            }
            CallKind::Unlink | CallKind::Rmdir => {
                self.processes.names.gone(path);
                self.links.gone(path);
            }
            CallKind::Symlink => self.links.made(path, second),
            CallKind::Link if row.description != 0 => {
                self.processes.names.named(NameHolder::Description(row.description), second);
            }
            CallKind::Link => {
                self.processes.names.linked(path, second);
                self.links.linked(path, second);
            }
            _ => {}
        }
    }

    /// The path of a descriptor: what is known of it, or of its opening and of renames since then.
    pub(super) fn known_path(
        &self,
        thread: u32,
        descriptor: NamedDescriptor<'_>,
    ) -> Result<String, &'static str> {
        if descriptor.is_gone {
            return Err(GONE);
        }
        if let Some(known) = descriptor.known {
            return if known.starts_with('/') { Ok(known.to_owned()) } else { Err(UNREADABLE) };
        }
        let number = descriptor.number.ok_or(UNREADABLE)?;
        let description = match self.processes.meaning(thread, number) {
            Some(Meaning::File(description)) => description,
            Some(Meaning::Other(GONE)) => return Err(GONE),
            _ => return Err(UNREADABLE),
        };
        match self.processes.names.get(NameHolder::Description(*description)) {
            OpenName::Path(path) => Ok(path.to_owned()),
            OpenName::Gone => Err(GONE),
            OpenName::Unknown => Err(UNREADABLE),
        }
    }
}

/// preadv2 and pwritev2 at -1 read and write where the description stands, and move it. Their flags stay.
fn where_it_stands(row: RecordedCall) -> RecordedCall {
    let kind = match row.kind {
        CallKind::Preadv if row.offset == u64::MAX => CallKind::Readv,
        CallKind::Pwritev if row.offset == u64::MAX => CallKind::Writev,
        _ => return row,
    };
    RecordedCall { kind, offset: 0, ..row }
}
