//! The calls of an import on their way into a recording.

use std::collections::BTreeMap;

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
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
        match self.not_replayed.get_mut(what) {
            Some(calls) => *calls += 1,
            None => drop(self.not_replayed.insert(what.to_owned(), 1)),
        }
    }

    /// Says once what had to be guessed.
    pub fn infer(&mut self, sentence: &str) {
        if self.inferred.iter().all(|told| told != sentence) {
            self.inferred.push(sentence.to_owned());
        }
    }

    /// The recording; its clock begins with its first call. `calendar_ns`: what that clock's times are since 1970, if they are.
    pub fn finish(mut self, source: Source, is_calendar: bool) -> Recording {
        let first_ns =
            self.calls.iter().filter(|call| call.kind != CallKind::Held).map(|call| call.begin_ns).min();
        let first_ns = first_ns.unwrap_or(0);
        for call in &mut self.calls {
            call.begin_ns = call.begin_ns.saturating_sub(first_ns);
        }
        // What was open before is told before everything else.
        self.calls.sort_by_key(|call| (call.kind != CallKind::Held, call.begin_ns));
        let ended_ns = self.calls.iter().map(RecordedCall::end_ns).max().unwrap_or(0);
        let events = self.calls.len() as u64;
        let header = Header {
            source,
            started_unix_ns: if is_calendar { first_ns } else { 0 },
            inferred: self.inferred,
            recording: Some(RecordingFacts { names_hidden: false, not_replayed: self.not_replayed }),
            ending: Some(Ending { ended_ns, events, ..Ending::default() }),
            ..Header::default()
        };
        Recording { header, calls: self.calls, texts: self.texts }
    }
}
