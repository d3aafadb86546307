//! A recording with all that its replay needs: its order, the files before and after.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::recording::compat as mobibench;
use joj_analysis::recording::failures::without_their_reason;
use joj_analysis::recording::file_tree::{Entries, FileTree, TreeEntry};
use joj_analysis::recording::flags::O_CREAT;
use joj_analysis::recording::order::{CallOrder, OrderFinder};
use joj_analysis::trace::texts::Texts;

use crate::machine::files::work_dir::{WorkDir, WorkDirError};
use crate::replay::error::ReplayError;
use crate::trace_file::TraceReader;

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// The calls.
    pub recording: Recording,
    /// What each waits for.
    pub order: CallOrder,
    /// The files before the first.
    pub before: Entries,
    /// Directories in which a call makes a name, but the root.
    pub grows: HashSet<String>,
    /// The files after the last, as the recording implies them.
    pub after: Entries,
    /// The bytes that they need on a disk then, each under its first name.
    pub stored_bytes: BTreeMap<String, u64>,
    /// Calls that Mobibench would skip, and files that it would make; `None` without --compat.
    pub compat: Option<(u64, u64)>,
    /// Of each call whether the replay passes it over; empty where it makes all of them.
    pub left_out: Vec<bool>,
    /// Calls that failed, and would do something else in the replay: it passes them over, too.
    pub without_their_reason: HashSet<u32>,
}

impl Plan {
    /// Reads a recording.
    /// # Errors
    /// It cannot be read, is damaged, or has no calls.
    pub fn read(path: &Path, is_compat: bool) -> Result<Self, ReplayError> {
        let mut recording = read(path)?;
        let mut compat = None;
        if is_compat {
            let reading =
                mobibench::read(&recording).ok_or_else(|| ReplayError::NoScript(path.to_owned()))?;
            compat = Some((reading.skipped, reading.files));
            recording = reading.recording;
        }
        Ok(Self::of(recording, compat))
    }

    /// Of a recording as [`read`] gives it. `compat`: see there.
    pub fn of(recording: Recording, compat: Option<(u64, u64)>) -> Self {
        let (mut tree, mut finder) = (FileTree::of(&recording.header), OrderFinder::default());
        // Directories that no call names get numbers of their own; the recording's names keep theirs.
        let mut texts = recording.texts.clone();
        for call in &recording.calls {
            let files = tree.apply(call, &recording.texts);
            finder.push(call, files, &mut texts);
        }
        let before = if compat.is_some() { compat_directory() } else { tree.before() };
        let grows = recording.calls.iter().filter_map(|call| grows(call, &recording.texts)).collect();
        let without_their_reason =
            if compat.is_some() { HashSet::new() } else { without_their_reason(&recording, &before) };
        Self {
            order: finder.finish(),
            before,
            grows,
            after: tree.after(),
            stored_bytes: tree.stored_bytes(),
            recording,
            compat,
            left_out: Vec::new(),
            without_their_reason,
        }
    }
}

/// Bytes of files that had no name any more when the recording began, and were open.
pub fn nameless_bytes(recording: &Recording) -> u64 {
    let nameless = recording.calls.iter().filter(|call| call.holds_nameless());
    nameless.map(|call| call.bytes).fold(0, u64::saturating_add)
}

/// The new directory in which everything happens.
/// # Errors
/// There is no place for it.
pub fn make_directory(below: &Path) -> Result<WorkDir, ReplayError> {
    make_named(below, "joj-replay")
}

/// The same with another name.
/// # Errors
/// There is no place for it.
pub fn make_named(below: &Path, name: &'static str) -> Result<WorkDir, ReplayError> {
    WorkDir::named(below, name).map_err(of_place)
}

/// The same for joj's user alone.
/// # Errors
/// There is no place for it.
pub fn make_private(below: &Path, name: &'static str) -> Result<WorkDir, ReplayError> {
    WorkDir::private(below, name).map_err(of_place)
}

fn of_place(error: WorkDirError) -> ReplayError {
    match error {
        WorkDirError::ReadOnly { place, error } => ReplayError::ReadOnly { place, error },
        error => error.into(),
    }
}

/// The directory in which a call makes a name.
fn grows(call: &RecordedCall, texts: &Texts) -> Option<String> {
    let path = match call.kind {
        CallKind::Open if call.flags & O_CREAT != 0 => call.path,
        CallKind::Mkdir | CallKind::Symlink => call.path,
        CallKind::Rename | CallKind::Link => call.second_path,
        _ => return None,
    };
    let (above, _) = texts.get(path).rsplit_once('/')?;
    (call.result >= 0 && !above.is_empty()).then(|| above.to_owned())
}

/// Mobibench's files are all in one directory, and nothing else is there.
fn compat_directory() -> Entries {
    Entries::from([(mobibench::DIRECTORY.to_owned(), TreeEntry::Directory)])
}

/// Gives descriptions numbers without gaps: there is a place in memory for each.
fn number_descriptions(calls: &mut [RecordedCall]) {
    let mut numbers: HashMap<u32, u32> = HashMap::from([(0, 0)]);
    for call in calls {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        call.description = *numbers.entry(call.description).or_insert(next);
    }
}

/// Reads a recording, and numbers its descriptions without gaps.
/// # Errors
/// It cannot be read, is damaged, or has no calls.
pub fn read(path: &Path) -> Result<Recording, ReplayError> {
    let mut reader = TraceReader::open(path)?;
    let header = reader.header().clone();
    if header.recording.is_none() {
        return Err(ReplayError::NoCalls(path.to_owned()));
    }
    let (mut calls, mut batch): (Vec<RecordedCall>, _) = (Vec::new(), Vec::new());
    while reader.next_calls(&mut batch)? {
        if crate::machine::proc::signal::is_stopped() {
            return Err(ReplayError::Stopped);
        }
        calls.append(&mut batch);
    }
    number_descriptions(&mut calls);
    let texts: Texts = reader.texts().clone();
    if calls.is_empty() {
        return Err(ReplayError::NoCalls(path.to_owned()));
    }
    Ok(Recording { header, calls, texts })
}
