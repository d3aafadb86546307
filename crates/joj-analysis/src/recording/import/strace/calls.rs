//! What each call means for files. Buffers are never looked at: of a read or write only numbers are taken.

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{O_CLOEXEC, O_RDWR};
use crate::recording::import::output::CallOutput;
use crate::recording::paths::{absolute, is_pseudo, unquoted};
use crate::trace::import::LineProblem;
use crate::trace::texts::{Text, name_of};

use super::arguments::{CallText, status, vector_bytes, without_mark};
use super::line::{self, TextCall, TextDescriptor};

use super::processes::{Closed, Meaning, Sharing, TracedProcesses};

pub(super) const DEVICE: &str = "a device or what the kernel makes up";
const NO_FILE: &str = "a pipe, a socket or the like";
const UNKNOWN: &str = "a descriptor whose opening is not in the text";
pub(super) const UNREADABLE: &str = "a path that is not in the text";
const RESTARTED: &str = "a signal interrupted it, and it began again";
const VECTORED: &str = "Vectored reads and writes were recorded with their whole length, as one buffer.";
/// How calls are counted that concern memory, signals, threads, time or identity.
const NOT_ABOUT_FILES: &str = "calls that are not about files";

/// True for calls that make a thread or process.
pub fn is_fork(name: &str) -> bool {
    matches!(name, "fork" | "vfork" | "clone" | "clone2" | "clone3")
}

/// The calls of a text on their way into a recording.
#[derive(Default)]
pub struct Calls {
    /// Where they go.
    pub output: CallOutput,
    /// Whose descriptors mean what.
    pub processes: TracedProcesses,
    /// By thread: what a close means whose end is in a later line. The descriptor may be another file's by then.
    closing: std::collections::HashMap<u32, Closed>,
    /// Threads whose first line came before the end of the call that made them.
    early: std::collections::HashSet<u32>,
    /// The path of each description.
    pub(super) paths: std::collections::HashMap<u32, Text>,
}

/// How a call became a row, or why not.
pub(super) type Told = Result<Result<RecordedCall, &'static str>, LineProblem>;

impl Calls {
    /// The begin of a call whose end comes later: what a close closes is decided now.
    pub fn begin(&mut self, thread: u32, text: &str) {
        if let Some(descriptor) =
            text.strip_prefix("close(").and_then(|word| line::descriptor(word.trim_end_matches(')')))
        {
            let closed = self.close_one(thread, descriptor);
            self.closing.insert(thread, closed);
        }
    }

    /// A thread is gone.
    pub fn exit(&mut self, thread: u32, time_ns: u64) {
        let process = self.processes.process(thread);
        for description in self.processes.exit(thread) {
            self.released(thread, process, description, time_ns);
        }
    }

    /// A thread or process begins before the line in which the call that makes it ends.
    pub fn fork_early(&mut self, parent: u32, child: u32, begin_ns: u64, text: &str) {
        self.early.insert(child);
        self.forked(parent, child, begin_ns, text);
    }

    fn forked(&mut self, parent: u32, child: u32, begin_ns: u64, text: &str) {
        let has = |flag: &str| text.contains(flag);
        let process = has("CLONE_THREAD");
        let sharing = Sharing { files: has("CLONE_FILES"), directory: has("CLONE_FS"), process };
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

    /// A whole call.
    /// # Errors
    /// Names its column.
    pub fn call(
        &mut self,
        thread: u32,
        begin_ns: u64,
        text: &str,
        call: &TextCall<'_>,
    ) -> Result<(), LineProblem> {
        let at = CallText { thread, begin_ns, text, call };
        if call.is_restarted {
            self.not_replayed(&at, RESTARTED);
            return Ok(());
        }
        if self.about_processes(&at)? {
            return Ok(());
        }
        let told = match self.about_descriptors(&at)? {
            Some(told) => Some(told),
            None => self.about_names(&at)?,
        };
        let Some(told) = told else {
            self.other(&at);
            return Ok(());
        };
        match (told, call.result) {
            (Ok(row), Some(result)) => {
                let process = self.processes.process(thread);
                let duration_ns = call.duration_ns.unwrap_or(0);
                let descriptor = if row.description == 0 { -1 } else { row.descriptor };
                self.output.push(RecordedCall {
                    begin_ns,
                    duration_ns,
                    process,
                    thread,
                    result,
                    descriptor,
                    ..row
                });
            }
            (Ok(_), None) => self.not_replayed(&at, "its result is not in the text"),
            (Err(why), _) => self.not_replayed(&at, why),
        }
        Ok(())
    }

    fn not_replayed(&mut self, at: &CallText<'_, '_>, why: &str) {
        self.output.not_replayed(&format!("{}: {why}", at.call.name));
    }

    fn other(&mut self, at: &CallText<'_, '_>) {
        let arguments = &at.call.arguments;
        let is_of_a_file =
            at.call.name.starts_with("mmap") && arguments.get(4).is_some_and(|word| !word.starts_with('-'));
        let has = |index: usize, flag: &str| arguments.get(index).is_some_and(|word| word.contains(flag));
        match (is_of_a_file, has(2, "PROT_WRITE") && has(3, "MAP_SHARED")) {
            (true, true) => self.not_replayed(at, "writes through it are not seen"),
            (true, false) => self.not_replayed(at, "reads through it are not seen"),
            _ if at.call.name.starts_with("io_uring_") || at.call.name == "io_submit" => {
                self.not_replayed(at, "reads and writes through it are not seen");
            }
            _ if is_not_about_files(at.call.name) => self.output.not_replayed(NOT_ABOUT_FILES),
            _ => self.output.not_replayed(at.call.name),
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

    /// Calls that make, change or end processes: true where this is one.
    fn about_processes(&mut self, at: &CallText<'_, '_>) -> Result<bool, LineProblem> {
        match at.call.name {
            name if is_fork(name) => {
                let child =
                    at.call.result.and_then(|child| u32::try_from(child).ok()).filter(|child| *child > 0);
                if let Some(child) = child
                    && !self.early.remove(&child)
                {
                    self.forked(at.thread, child, at.begin_ns, at.text);
                }
            }
            "execve" | "execveat" => {
                if at.succeeded() {
                    let process = self.processes.process(at.thread);
                    for description in self.processes.exec(at.thread) {
                        self.released(at.thread, process, description, at.begin_ns);
                    }
                }
            }
            "chdir" if at.succeeded() => {
                if let Ok(directory) = self.path_at(at, None, 0)? {
                    self.processes.change_directory(at.thread, directory);
                }
            }
            "fchdir" if at.succeeded() => {
                if let Some(directory) = self.known_path(at.thread, at.descriptor(0)?) {
                    self.processes.change_directory(at.thread, directory);
                }
            }
            "getcwd" if at.succeeded() => {
                if let Some(directory) = unquoted(at.argument(0)?) {
                    self.processes.change_directory(at.thread, name_of(&directory).into_owned());
                }
            }
            "chdir" | "fchdir" | "getcwd" | "exit" | "exit_group" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn about_descriptors(
        &mut self,
        at: &CallText<'_, '_>,
    ) -> Result<Option<Result<RecordedCall, &'static str>>, LineProblem> {
        let kind = match at.call.name {
            "close" => return self.close(at).map(Some),
            "close_range" => return self.close_range(at).map(Some),
            "dup" | "dup2" | "dup3" => return self.dup(at).map(Some),
            "fcntl" | "fcntl64" => return self.fcntl(at),
            "read" => CallKind::Read,
            "pread64" | "pread" => CallKind::Pread,
            "readv" => CallKind::Readv,
            "preadv" | "preadv2" => CallKind::Preadv,
            "write" => CallKind::Write,
            "pwrite64" | "pwrite" => CallKind::Pwrite,
            "writev" => CallKind::Writev,
            "pwritev" | "pwritev2" => CallKind::Pwritev,
            "lseek" | "_llseek" => CallKind::Lseek,
            "fsync" => CallKind::Fsync,
            "fdatasync" => CallKind::Fdatasync,
            "sync_file_range" => CallKind::SyncFileRange,
            "syncfs" => CallKind::Syncfs,
            "ftruncate" | "ftruncate64" => CallKind::Ftruncate,
            "fallocate" => CallKind::Fallocate,
            "fstat" | "fstat64" => CallKind::Fstat,
            "sync" => return Ok(Some(Ok(RecordedCall { kind: CallKind::Sync, ..RecordedCall::default() }))),
            _ => return Ok(None),
        };
        self.of_descriptor(at, kind).map(Some)
    }

    /// A call whose first argument is a descriptor.
    pub(super) fn of_descriptor(&mut self, at: &CallText<'_, '_>, kind: CallKind) -> Told {
        let descriptor = at.descriptor(0)?;
        let description = match self.meaning(at, descriptor) {
            Meaning::File(description) => description,
            Meaning::Other(why) => return Ok(Err(why)),
        };
        let mut row = RecordedCall {
            kind,
            description,
            descriptor: descriptor.number.unwrap_or(-1),
            ..RecordedCall::default()
        };
        let unsigned = |index| at.number(index).map(i64::cast_unsigned);
        match kind {
            CallKind::Read | CallKind::Write => row.bytes = unsigned(2)?,
            CallKind::Pread | CallKind::Pwrite => (row.bytes, row.offset) = (unsigned(2)?, unsigned(3)?),
            CallKind::Readv | CallKind::Writev | CallKind::Preadv | CallKind::Pwritev => {
                self.output.infer(VECTORED);
                row.bytes = vector_bytes(at.argument(1)?).unwrap_or(0);
                if matches!(kind, CallKind::Preadv | CallKind::Pwritev) {
                    row.offset = unsigned(3)?;
                    row.flags = if at.call.name.ends_with('2') { at.flags(4)? } else { 0 };
                }
            }
            CallKind::Lseek => {
                let is_old = at.call.name == "_llseek";
                (row.offset, row.flags) = (unsigned(1)?, at.flags(if is_old { 3 } else { 2 })?);
            }
            CallKind::SyncFileRange => {
                (row.offset, row.bytes, row.flags) = (unsigned(1)?, unsigned(2)?, at.flags(3)?);
            }
            CallKind::Ftruncate => row.bytes = unsigned(1)?,
            CallKind::Fallocate => {
                (row.flags, row.offset, row.bytes) = (at.flags(1)?, unsigned(2)?, unsigned(3)?);
            }
            CallKind::Fstat => (row.flags, row.bytes) = status(at.argument(1)?),
            _ => {}
        }
        Ok(Ok(row))
    }

    /// What a descriptor stands for. What strace says of it is believed before what earlier lines say.
    pub(super) fn meaning(&mut self, at: &CallText<'_, '_>, descriptor: TextDescriptor<'_>) -> Meaning {
        let Some(number) = descriptor.number else { return Meaning::Other(UNREADABLE) };
        let known = descriptor.known.map(without_mark);
        match known {
            Some(path) if !path.starts_with('/') => return Meaning::Other(NO_FILE),
            Some(path) if is_pseudo(path) => return Meaning::Other(DEVICE),
            _ => {}
        }
        if let Some(meaning) = self.processes.meaning(at.thread, number) {
            return meaning.clone();
        }
        let Some(path) = known else { return Meaning::Other(UNKNOWN) };
        // It was open before the text began.
        let description = self.output.new_description();
        let path = self.output.keep(&absolute("/", path));
        self.paths.insert(description, path);
        let (process, thread) = (self.processes.process(at.thread), at.thread);
        let held = RecordedCall {
            kind: CallKind::Held,
            process,
            thread,
            description,
            descriptor: number,
            ..RecordedCall::default()
        };
        self.output.push(RecordedCall { path, flags: O_RDWR, ..held });
        self.output.infer(
            "Files that were open before the text begins were opened for reading and writing, at byte 0.",
        );
        self.processes.open(at.thread, number, Meaning::File(description), false, true);
        Meaning::File(description)
    }

    fn close(&mut self, at: &CallText<'_, '_>) -> Told {
        let descriptor = at.descriptor(0)?;
        let begun = self.closing.remove(&at.thread);
        let closed = begun.unwrap_or_else(|| self.close_one(at.thread, descriptor));
        let Some((description, flags)) = closed.of_file() else {
            let of_text =
                || descriptor.known.map_or(UNKNOWN, |known| if is_pseudo(known) { DEVICE } else { NO_FILE });
            return Ok(Err(if let Closed::Other(why) = closed { why } else { of_text() }));
        };
        let descriptor = descriptor.number.unwrap_or(-1);
        Ok(Ok(RecordedCall {
            kind: CallKind::Close,
            description,
            descriptor,
            flags,
            ..RecordedCall::default()
        }))
    }

    fn close_one(&mut self, thread: u32, descriptor: TextDescriptor<'_>) -> Closed {
        descriptor.number.map_or(Closed::Unknown, |number| self.processes.close(thread, number))
    }

    /// Closes several at once; the recording has a close of each instead.
    fn close_range(&mut self, at: &CallText<'_, '_>) -> Told {
        let [first, last] =
            [0, 1].map(|index| at.number(index).map(|number| i32::try_from(number).unwrap_or(i32::MAX)));
        let (first, last) = (first?, last?);
        let flags = at.flags(2)?;
        for number in self.processes.range(at.thread, first, last) {
            if flags & 4 != 0 {
                self.processes.set_closes_on_exec(at.thread, number, true);
                continue;
            }
            let closed = self.processes.close(at.thread, number);
            let Some((description, flags)) = closed.of_file() else { continue };
            let (process, thread, begin_ns) = (self.processes.process(at.thread), at.thread, at.begin_ns);
            let row =
                RecordedCall { kind: CallKind::Close, process, thread, begin_ns, ..RecordedCall::default() };
            self.output.push(RecordedCall { description, flags, descriptor: number, ..row });
        }
        Ok(Err("the recording has a close of each descriptor instead"))
    }

    fn dup(&mut self, at: &CallText<'_, '_>) -> Told {
        let old = at.descriptor(0)?;
        let flags = if at.call.name == "dup3" { at.flags(2)? } else { 0 };
        self.duplicated(at, old, flags & O_CLOEXEC != 0)
    }

    fn fcntl(
        &mut self,
        at: &CallText<'_, '_>,
    ) -> Result<Option<Result<RecordedCall, &'static str>>, LineProblem> {
        let old = at.descriptor(0)?;
        match at.argument(1)? {
            "F_DUPFD" => self.duplicated(at, old, false).map(Some),
            "F_DUPFD_CLOEXEC" => self.duplicated(at, old, true).map(Some),
            "F_SETFD" => {
                let closes = at.argument(2)?.contains("FD_CLOEXEC");
                self.processes.set_closes_on_exec(at.thread, old.number.unwrap_or(-1), closes);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn duplicated(&mut self, at: &CallText<'_, '_>, old: TextDescriptor<'_>, closes_on_exec: bool) -> Told {
        let meaning = self.meaning(at, old);
        let new = at.call.result.and_then(|result| i32::try_from(result).ok()).filter(|new| *new >= 0);
        if let Some(new) = new.filter(|new| Some(*new) != old.number) {
            // dup2 closes what the number meant before.
            if let Closed::Own(description) = self.processes.close(at.thread, new) {
                let process = self.processes.process(at.thread);
                let row = RecordedCall {
                    kind: CallKind::Close,
                    process,
                    thread: at.thread,
                    descriptor: new,
                    ..RecordedCall::default()
                };
                self.output.push(RecordedCall { description, begin_ns: at.begin_ns, ..row });
                self.output.infer("What dup2 closes has a close of its own in the recording.");
            }
            self.processes.open(at.thread, new, meaning.clone(), closes_on_exec, true);
        }
        Ok(match meaning {
            Meaning::File(description) => Ok(RecordedCall {
                kind: CallKind::Dup,
                description,
                descriptor: new.unwrap_or(-1),
                ..RecordedCall::default()
            }),
            Meaning::Other(why) => Err(why),
        })
    }
}

/// Calls of every program that no file notices. What is missing here is counted under its own name.
fn is_not_about_files(name: &str) -> bool {
    let begins =
        ["rt_sig", "sched_", "clock_", "get", "set_", "futex", "pkey_", "timer_", "mlock", "munlock"];
    let names = [
        "alarm",
        "arch_prctl",
        "brk",
        "kill",
        "madvise",
        "membarrier",
        "mprotect",
        "mremap",
        "munmap",
        "nanosleep",
        "pause",
        "prctl",
        "prlimit64",
        "rseq",
        "sigaltstack",
        "sysinfo",
        "tgkill",
        "time",
        "times",
        "tkill",
        "umask",
        "uname",
        "wait4",
        "waitid",
    ];
    let is_of_directories = name.starts_with("getdents") || name.ends_with("xattr");
    !is_of_directories && (names.contains(&name) || begins.iter().any(|begin| name.starts_with(begin)))
}
