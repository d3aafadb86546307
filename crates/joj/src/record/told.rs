//! What is in a recording, and what is not, as text.

use std::collections::BTreeMap;

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::CallKind;

use crate::show::text::{count, duration};

/// What is in the recording, and what is not.
pub fn told(recording: &Recording, path: &str) -> String {
    let mut kinds: BTreeMap<CallKind, u64> = BTreeMap::new();
    let mut besides: BTreeMap<CallKind, u64> = BTreeMap::new();
    let is_told =
        |kind: CallKind| !kind.is_replayed() && !matches!(kind, CallKind::Fork | CallKind::Released);
    for call in recording.calls.iter().filter(|call| is_told(call.kind)) {
        *besides.entry(call.kind).or_default() += 1;
    }
    let mut threads: Vec<u32> = Vec::new();
    for call in recording.calls.iter().filter(|call| call.kind.is_replayed()) {
        *kinds.entry(call.kind).or_default() += 1;
        threads.push(call.thread);
    }
    threads.sort_unstable();
    threads.dedup();
    let header = &recording.header;
    let length = duration(header.ending.as_ref().map_or(0, |ending| ending.ended_ns));
    let calls = count(kinds.values().sum());
    let mut text = format!("{path}: {calls} calls of {} threads in {length}\n", count(threads.len() as u64));
    text += &format!("  {}\n", words(&kinds));
    if !besides.is_empty() {
        text += &format!("  besides {}\n", words(&besides));
    }
    if let Some(facts) = header.recording.as_ref().filter(|facts| !facts.not_replayed.is_empty()) {
        text += "not in it, because no replay can make them:\n";
        for (what, calls) in &facts.not_replayed {
            text += &format!("  {} {what}\n", count(*calls));
        }
    }
    for sentence in &header.inferred {
        text += &format!("{sentence}\n");
    }
    text
}

fn words(kinds: &BTreeMap<CallKind, u64>) -> String {
    let words: Vec<String> =
        kinds.iter().map(|(kind, calls)| format!("{} {}", count(*calls), kind.text())).collect();
    words.join(", ")
}
