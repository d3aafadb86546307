//! The calls of an import on their way into a recording.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::paths::absolute;
use crate::trace::header::{Ending, Header, RecordingFacts, Source};
use crate::trace::texts::{Text, Texts};

/// Collects calls, in whatever order they become known.
#[derive(Debug, Default)]
pub struct CallOutput {
    calls: Vec<RecordedCall>,
    texts: Texts,
    descriptions: u32,
    not_replayed: BTreeMap<String, u64>,
    inferred: Vec<String>,
    /// How many more calls are meant than the one that is told.
    more: u64,
}

impl CallOutput {
    /// Keeps a name, and gives its number.
    pub fn keep(&mut self, text: &str) -> Text {
        self.texts.keep(text)
    }

    /// The name with this number.
    pub fn text(&self, text: Text) -> &str {
        self.texts.get(text)
    }

    /// A description that no call had yet.
    pub fn new_description(&mut self) -> u32 {
        self.descriptions += 1;
        self.descriptions
    }

    /// Takes a call.
    pub fn push(&mut self, call: RecordedCall) {
        self.calls.push(call);
    }

    /// Counts a call that is not in the recording.
    pub fn not_replayed(&mut self, what: &str) {
        self.counted(what, self.more + 1);
    }

    /// Counts several.
    pub fn counted(&mut self, what: &str, calls: u64) {
        *self.not_replayed.entry(what.to_owned()).or_default() += calls;
    }

    /// From now on each call that is told and counted stands for so many.
    pub fn stands_for(&mut self, calls: u64) {
        self.more = calls.saturating_sub(1);
    }

    /// What was taken to stand below `from` stands below `to`, an absolute path, and always did.
    pub fn stands_at(&mut self, from: &str, to: &str) {
        let mut calls = std::mem::take(&mut self.calls);
        for call in &mut calls {
            let is_link = call.kind == CallKind::Symlink;
            call.path = self.moved(call.path, from, to);
            // The other one of a symbolic link is what is in it.
            call.second_path =
                if is_link { call.second_path } else { self.moved(call.second_path, from, to) };
        }
        self.calls = calls;
    }

    fn moved(&mut self, name: Text, from: &str, to: &str) -> Text {
        let rest = self.texts.get(name).strip_prefix(from);
        let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) else { return name };
        let path = absolute(to, &format!("./{rest}"));
        self.texts.keep(&path)
    }

    /// Says once what had to be guessed.
    pub fn infer(&mut self, sentence: &str) {
        if self.inferred.iter().all(|told| told != sentence) {
            self.inferred.push(sentence.to_owned());
        }
    }

    /// What had to be guessed is known now.
    pub fn take_back(&mut self, sentence: &str) {
        self.inferred.retain(|told| told != sentence);
    }

    /// Each of these is one file: its first row keeps its size, and the others name that one.
    pub fn join_present<'a>(&mut self, files: impl Iterator<Item = &'a HashSet<String>>) {
        let mut file_of: HashMap<Text, usize> = HashMap::new();
        for (names, number) in files.zip(0..) {
            file_of.extend(names.iter().map(|name| (self.texts.keep(name), number)));
        }
        let mut firsts: HashMap<usize, Text> = HashMap::new();
        let mut first_of: HashMap<Text, Text> = HashMap::new();
        for call in self.calls.iter_mut().filter(|call| call.kind == CallKind::Present) {
            let of_file = file_of.get(&call.path).map(|number| *firsts.entry(*number).or_insert(call.path));
            if let Some(first) =
                of_file.filter(|first| *first != call.path && call.second_path == Text::default())
            {
                call.second_path = first;
            }
            if call.second_path != Text::default() {
                // The first name of all, where that is another name of one, too.
                call.second_path = first_of.get(&call.second_path).copied().unwrap_or(call.second_path);
                first_of.insert(call.path, call.second_path);
            }
        }
    }

    /// The recording; its clock begins with its first call. `is_calendar`: that clock's times count from 1970.
    pub fn finish(self, source: Source, is_calendar: bool) -> Recording {
        let of_calls = self.calls.iter().filter(|call| rank(call) == CALL_RANK);
        let first_ns = of_calls.map(|call| call.begin_ns).min().unwrap_or(0);
        let mut recording = self.finish_from(first_ns, source);
        recording.header.started_unix_ns = if is_calendar { first_ns } else { 0 };
        recording
    }

    /// The recording, whose clock begins at `first_ns`.
    pub fn finish_from(mut self, first_ns: u64, source: Source) -> Recording {
        for call in &mut self.calls {
            call.begin_ns = call.begin_ns.saturating_sub(first_ns);
        }
        self.calls.sort_by_key(|call| (rank(call), call.begin_ns));
        let ended_ns = self.calls.iter().map(RecordedCall::end_ns).max().unwrap_or(0);
        let events = self.calls.len() as u64;
        let header = Header {
            source,
            inferred: self.inferred,
            recording: Some(RecordingFacts { not_replayed: self.not_replayed, ..RecordingFacts::default() }),
            ending: Some(Ending { ended_ns, events, ..Ending::default() }),
            ..Header::default()
        };
        Recording { header, calls: self.calls, texts: self.texts }
    }
}

const CALL_RANK: u32 = 2;

/// What was there before is told before everything else: files, then descriptors of them.
fn rank(call: &RecordedCall) -> u32 {
    match call.kind {
        CallKind::Present => 0,
        CallKind::FirstPage if call.description == 0 => 0,
        CallKind::Held => 1,
        _ => CALL_RANK,
    }
}
