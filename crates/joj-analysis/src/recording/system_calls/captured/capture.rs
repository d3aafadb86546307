//! All of a capture, made a recording.

use std::collections::HashSet;

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{S_IFDIR, S_IFMT, S_IFREG};
use crate::recording::paths::is_pseudo;
use crate::recording::system_calls::calls::{Calls, GONE, HeldPlace};
use crate::recording::system_calls::links::LinksBefore;
use crate::recording::system_calls::processes::Meaning;
use crate::trace::header::Source;

use super::decode::decode;
use super::presence::{FilesNow, Presence};
use super::{CallSeen, CapturedCall, CapturedEvent, DescriptorKind, FirstPageHead};

/// A descriptor that was open when the capture began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldDescriptor {
    /// Its number.
    pub number: i32,
    /// What the kernel says it is: a path, `pipe:[77]`.
    pub known: String,
    /// That path is no name of it any more. Then this directory is there, on the way to it.
    pub nameless_below: Option<String>,
    /// `st_mode` of it.
    pub mode: u32,
    /// O_.. flags.
    pub flags: u32,
    /// Where it stands.
    pub position: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// What page 1 says, of a SQLite database.
    pub first_page: Option<FirstPageHead>,
    /// Another descriptor of the same open file description, that was told before.
    pub same_as: Option<(u32, i32)>,
}

/// The events of a capture, collected.
#[derive(Debug, Default)]
pub struct CallCapture {
    calls: Calls,
    presence: Presence,
    now: FilesNow,
    events: Vec<CapturedEvent>,
    started_ns: u64,
}

impl CallCapture {
    /// Begins at `started_ns` of the monotonic clock.
    pub fn new(started_ns: u64) -> Self {
        Self { started_ns, ..Self::default() }
    }

    /// A thread that is there when the capture begins; `sibling`: another one of its process, told before. `directory`: its own, if that
    /// has a name.
    pub fn thread(&mut self, thread: u32, sibling: Option<u32>, directory: Option<&str>) {
        match sibling {
            Some(sibling) => {
                let all = super::Sharing { files: true, directory: true, process: true };
                self.calls.processes.fork(sibling, thread, all);
            }
            None => {
                self.calls.processes.begin(thread);
                match directory {
                    Some(directory) => self.calls.processes.change_directory(thread, directory),
                    None => self.calls.processes.lose_directory(thread),
                }
            }
        }
    }

    /// What such a thread takes for `/`, with all of its process.
    pub fn root(&mut self, thread: u32, root: &str) {
        self.calls.processes.change_root(thread, root);
    }

    /// A descriptor that one of those threads has.
    pub fn held(&mut self, thread: u32, held: &HeldDescriptor) {
        let kind = DescriptorKind::of_mode(held.mode);
        let is_file = kind == DescriptorKind::File && held.known.starts_with('/') && !is_pseudo(&held.known);
        if !is_file {
            // What calls on it are counted as is said of each call.
            return;
        }
        if let Some((other, number)) = held.same_as
            && let Some(Meaning::File(description)) = self.calls.processes.meaning(other, number).cloned()
        {
            // A replay has one descriptor for all of them, as after a fork: the last close closes it.
            self.calls.processes.open(thread, held.number, Meaning::File(description), false, false);
            return;
        }
        if let Some(directory) = &held.nameless_below {
            if held.mode & S_IFMT == S_IFDIR {
                self.calls.processes.open(thread, held.number, Meaning::Other(GONE), false, false);
            } else {
                let place = HeldPlace::Nameless(directory, held.bytes);
                self.calls.hold(thread, held.number, place, held.flags, held.position);
            }
            return;
        }
        let path = held.known.as_str();
        let row = RecordedCall {
            process: self.calls.processes.process(thread),
            thread,
            descriptor: -1,
            path: self.calls.output.keep(path),
            ..RecordedCall::default()
        };
        let flags = held.mode & S_IFMT;
        let bytes = if flags == S_IFREG { held.bytes } else { 0 };
        self.presence.told(path);
        self.calls.output.push(RecordedCall { kind: CallKind::Present, bytes, flags, ..row });
        if let Some(head) = &held.first_page {
            self.calls.output.push(first_page(row, head));
        }
        self.calls.hold(thread, held.number, HeldPlace::Path(path), held.flags, held.position);
    }

    /// An event, in whatever order.
    pub fn push(&mut self, event: CapturedEvent) {
        self.events.push(event);
    }

    /// How many there are.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Counts calls of which there is no event, because no replay can make them.
    pub fn counted(&mut self, what: &str, calls: u64) {
        self.calls.output.counted(what, calls);
    }

    /// Counts calls like this one, which was not captured: its descriptor is no file's, or no replay can make it.
    pub fn counted_calls(&mut self, like: &CapturedCall, calls: u64) {
        self.calls.output.stands_for(calls);
        self.calls.call(&decode(like));
        self.calls.output.stands_for(1);
    }

    /// Says once what a replay has to know.
    pub fn infer(&mut self, sentence: &str) {
        self.calls.output.infer(sentence);
    }

    /// Who knows what files are when the capture is over.
    pub fn ask_for_files(&mut self, now: FilesNow) {
        self.now = now;
    }

    /// The recording. `links`: those that were there before.
    pub fn finish(mut self, source: Source, links: LinksBefore) -> Recording {
        let mut events = std::mem::take(&mut self.events);
        self.calls.ask_for_links(links, changed_names(&events));
        events.sort_by_key(CapturedEvent::effect_ns);
        for event in events {
            match event {
                CapturedEvent::Call(call) => self.call(&call),
                CapturedEvent::Fork { time_ns, parent, child, sharing } => {
                    self.calls.fork(parent, child, time_ns, sharing);
                }
                CapturedEvent::Exec { time_ns, thread, former } => self.calls.exec(thread, former, time_ns),
                CapturedEvent::Woken { time_ns, thread, waker, waited_ns, awaited } => {
                    self.calls.woken(thread, waker, time_ns, [waited_ns, awaited]);
                }
                CapturedEvent::Exit { time_ns, thread, end } => self.calls.exit(thread, time_ns, end),
            }
        }
        self.presence.finish(&self.now, &mut self.calls.output);
        self.calls.finish().finish_from(self.started_ns, source)
    }

    fn call(&mut self, call: &CapturedCall) {
        if !self.calls.processes.knows(call.thread) {
            // Its begin was lost.
            self.calls.processes.begin(call.thread);
        }
        let Some(row) = self.calls.call(&decode(call)) else { return };
        self.presence.look(&row, call.seen, &mut self.calls.output);
        let beside = RecordedCall {
            begin_ns: row.begin_ns,
            process: row.process,
            thread: row.thread,
            description: row.description,
            descriptor: -1,
            ..RecordedCall::default()
        };
        for frame in &call.frames {
            self.calls.output.push(RecordedCall {
                kind: CallKind::LogFrame,
                offset: frame.offset,
                bytes: u64::from(frame.page),
                flags: frame.commit_pages,
                ..beside
            });
        }
        if let Some(head) = &call.first_page {
            self.calls.output.push(first_page(beside, head));
        }
    }
}

/// The last names of paths that calls made or took away.
fn changed_names(events: &[CapturedEvent]) -> HashSet<Vec<u8>> {
    let of_event = |event: &CapturedEvent| match event {
        CapturedEvent::Call(call) if call.result >= 0 => {
            let creates = matches!(call.seen, CallSeen::Opened { is_created: true, .. });
            (call.called.changes_names() || creates).then(|| call.paths.clone())
        }
        _ => None,
    };
    let paths = events.iter().filter_map(of_event).flatten().flatten();
    let last =
        |path: &[u8]| path.split(|byte| *byte == b'/').rfind(|part| !part.is_empty()).map(<[u8]>::to_vec);
    paths.filter_map(|path| last(&path)).collect()
}

fn first_page(row: RecordedCall, head: &FirstPageHead) -> RecordedCall {
    RecordedCall {
        kind: CallKind::FirstPage,
        offset: u64::from(head.page_bytes),
        bytes: u64::from(head.pages),
        result: i64::from(head.free_pages),
        flags: RecordedCall::first_page_flags(head.read_version, head.write_version, head.reserved_bytes),
        ..row
    }
}
