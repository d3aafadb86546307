//! Scripts of MobiGen's, which Mobibench replays: `thread microseconds operation`, grouped by thread.
//!
//! ```text
//! 1 1378 open /data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE 43
//! 1 1684 pwrite 43 512 4096
//! 2 1700 access "/data/data/com.app/x" -1
//! ```
//!
//! A path in quotes is the file's. One without was lost, so every open of it has a file of its own. The script does not say which
//! threads share descriptors: a thread's own come first, then those of the others.

use std::collections::HashMap;
use std::io::BufRead;

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{self, EAGAIN, ENOENT, O_ACCMODE, O_CREAT, O_RDONLY, O_RDWR};
use crate::recording::import::{in_column, is_no};
use crate::recording::system_calls::output::CallOutput;
use crate::trace::header::Source;
use crate::trace::import::lines::Lines;
use crate::trace::import::{ImportError, LineProblem};
use crate::trace::texts::Text;

/// What MobiGen writes in the place of a path where it saw the descriptor only.
const NEVER_OPENED: &str = "/data/data";
/// The directory of files whose names were lost.
const LOST: &str = "/mobigen";
/// The same for opens that failed.
const MISSING: &str = "/mobigen/missing";

const INFERRED: [&str; 5] = [
    "Paths without quotes were lost: each open of one has a file of its own below /mobigen.",
    "Which threads share descriptors is not in a script: a thread's own come first, then those of others.",
    "Descriptors that the script never opens were taken for files below /mobigen that were open before.",
    "Which error a failed call had is not in a script: ENOENT for names, EAGAIN for reads and writes.",
    "How long calls took is not in a script; pipes and sockets are not told from files.",
];

/// True for a line of a script.
pub fn is_line(line: &str) -> bool {
    let mut words = line.split(' ');
    let is_number = |word: Option<&str>| word.is_some_and(|word| word.parse::<u64>().is_ok());
    is_number(words.next())
        && is_number(words.next())
        && words.next().is_some_and(|word| kind(word).is_some())
}

fn kind(word: &str) -> Option<CallKind> {
    Some(match word {
        "stat64" => CallKind::Stat,
        "lstat64" => CallKind::Lstat,
        "fstat64" => CallKind::Fstat,
        "open" | "close" | "write" | "read" | "pwrite" | "pread" | "fsync" | "fdatasync" | "access"
        | "unlink" => CallKind::from_text(word)?,
        _ => return None,
    })
}

/// Imports a script.
/// # Errors
/// Names the line and its column.
pub fn import(text: impl BufRead) -> Result<Recording, ImportError> {
    let mut lines = Lines::new(text);
    let mut read = Vec::new();
    while lines.advance()? {
        let line = lines.line();
        if !line.trim().is_empty() {
            let operation = operation(&line).map_err(|problem| lines.error(problem))?;
            read.push(operation);
        }
    }
    // Of equal times the line that stands first goes first.
    read.sort_by_key(|operation| operation.call.begin_ns);
    let mut script = Script::default();
    INFERRED.iter().for_each(|sentence| script.output.infer(sentence));
    for operation in read {
        script.take(operation);
    }
    Ok(script.output.finish(Source::Mobigen, false))
}

/// A line: the call without what other lines say of its descriptor.
struct Operation {
    call: RecordedCall,
    path: Option<String>,
}

fn operation(line: &str) -> Result<Operation, LineProblem> {
    let mut rest = line;
    let mut word = |what: &'static str| {
        rest = rest.trim_start();
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        if word.is_empty() { Err(in_column(line.len(), LineProblem::EndsBefore(what))) } else { Ok(word) }
    };
    let thread = word("thread")?;
    let thread: u32 = thread.parse().map_err(|_| is_no(line, thread, "number of a thread"))?;
    let time = word("time")?;
    let begin_ns = time.parse::<u64>().ok().and_then(|time_us| time_us.checked_mul(1_000));
    let begin_ns = begin_ns.ok_or_else(|| is_no(line, time, "time in microseconds"))?;
    let operation = word("operation")?;
    let kind = kind(operation).ok_or_else(|| is_no(line, operation, "operation of a MobiGen script"))?;
    let mut call =
        RecordedCall { begin_ns, kind, process: 1, thread, descriptor: -1, ..RecordedCall::default() };
    let mut path = None;
    let number = |word: &str| word.parse::<i64>().map_err(|_| is_no(line, word, "number"));
    let descriptor = |word: &str| word.parse::<i32>().map_err(|_| is_no(line, word, "descriptor"));
    match kind {
        CallKind::Open => {
            path = Some(word("path")?.to_owned());
            let flags = word("flags of an open")?;
            call.flags = flags::flags(flags).ok_or_else(|| is_no(line, flags, "flags of an open"))?;
            call.descriptor = descriptor(word("descriptor")?)?;
            call.result = if call.descriptor < 0 { -ENOENT } else { i64::from(call.descriptor) };
        }
        CallKind::Access | CallKind::Stat | CallKind::Lstat | CallKind::Unlink => {
            path = Some(word("path")?.to_owned());
            call.result = if number(word("result")?)? < 0 { -ENOENT } else { 0 };
        }
        _ => {
            call.descriptor = descriptor(word("descriptor")?)?;
            if matches!(kind, CallKind::Pread | CallKind::Pwrite) {
                call.offset = number(word("offset")?)?.cast_unsigned();
            }
            let last = number(word("result")?)?;
            call.result = if last < 0 { -EAGAIN } else { last };
            if kind.is_read() || kind.is_write() {
                call.bytes = call.moved_bytes();
            }
        }
    }
    match word("end") {
        Ok(more) => Err(is_no(line, more, "end of the line")),
        Err(_) => Ok(Operation { call, path }),
    }
}

#[derive(Default)]
struct Script {
    output: CallOutput,
    /// (thread, descriptor): description.
    own: HashMap<(u32, i32), u32>,
    /// Descriptor: the thread that opened it last, and the description.
    all: HashMap<i32, u32>,
    lost: u32,
}

impl Script {
    fn take(&mut self, Operation { mut call, path }: Operation) {
        match call.kind {
            CallKind::Open => self.open(&mut call, path.as_deref().unwrap_or_default()),
            CallKind::Close => {
                call.description = self.description(&call);
                self.own.retain(|_, known| *known != call.description);
                self.all.retain(|_, known| *known != call.description);
            }
            _ => match &path {
                Some(path) => call.path = self.output.keep(&absolute(path)),
                None => call.description = self.description(&call),
            },
        }
        self.output.push(call);
    }

    fn open(&mut self, call: &mut RecordedCall, path: &str) {
        if let Some(path) = quoted(path) {
            call.path = self.output.keep(&absolute(path));
        } else {
            if path == NEVER_OPENED {
                // The descriptor was open before; what it was open for is not known.
                call.flags = call.flags & !O_ACCMODE & !flags::O_TRUNC | O_RDWR;
            }
            // Below a directory that is not there an open fails again.
            let directory = if call.result < 0 { MISSING } else { LOST };
            call.path = self.lost_name(directory, call.thread);
            call.flags |= RecordedCall::LOST_NAME;
            if call.result >= 0 && call.flags & O_ACCMODE != O_RDONLY {
                call.flags |= O_CREAT;
            }
        }
        if call.result >= 0 {
            call.description = self.output.new_description();
            self.own.insert((call.thread, call.descriptor), call.description);
            self.all.insert(call.descriptor, call.description);
        }
    }

    fn lost_name(&mut self, directory: &str, thread: u32) -> Text {
        self.lost += 1;
        self.output.keep(&format!("{directory}/{thread}_{}", self.lost))
    }

    /// The description of the call's descriptor; one that was open before where no line opened it.
    fn description(&mut self, call: &RecordedCall) -> u32 {
        let known = self.own.get(&(call.thread, call.descriptor)).or_else(|| self.all.get(&call.descriptor));
        if let Some(known) = known {
            return *known;
        }
        let description = self.output.new_description();
        let path = self.lost_name(LOST, call.thread);
        let (process, thread, descriptor) = (call.process, call.thread, call.descriptor);
        let held = RecordedCall {
            kind: CallKind::Held,
            process,
            thread,
            descriptor,
            description,
            ..RecordedCall::default()
        };
        self.output.push(RecordedCall { path, flags: O_RDWR | RecordedCall::LOST_NAME, ..held });
        self.own.insert((thread, descriptor), description);
        self.all.insert(descriptor, description);
        description
    }
}

/// What stands in quotes; `None` where there is no quote at the begin.
fn quoted(word: &str) -> Option<&str> {
    word.strip_prefix('"').map(|word| word.strip_suffix('"').unwrap_or(word))
}

fn absolute(path: &str) -> String {
    crate::recording::paths::absolute("/", quoted(path).unwrap_or(path))
}
