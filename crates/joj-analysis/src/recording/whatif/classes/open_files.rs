//! Whose names the file of a description has: the one that it was opened by, and those that it gets while it is open.
//!
//! What is opened with `O_TMPFILE` has no name, and its path is the directory's. Where linkat(2) gives it names, these say what it is worth.
//! Where it never gets one, it is worth what its directory is.

use std::collections::HashMap;

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::O_TMPFILE;
use crate::recording::whatif::classes::ClassPaths;
use crate::trace::texts::Text;

/// What is known of a description after a look at all calls.
#[derive(Debug)]
struct OpenFile {
    /// The path that it was opened by.
    path: Text,
    /// That is a directory's.
    is_unnamed: bool,
    /// Names that it has or gets.
    names: Vec<Text>,
}

/// The files of all descriptions.
#[derive(Debug, Default)]
pub struct OpenFiles {
    by_description: HashMap<u32, OpenFile>,
}

impl OpenFiles {
    /// Looks at all calls.
    pub fn find(recording: &Recording) -> Self {
        let mut by_description: HashMap<u32, OpenFile> = HashMap::new();
        for call in recording.calls.iter().filter(|call| call.result >= 0 && call.description != 0) {
            match call.kind {
                CallKind::Open | CallKind::Held => {
                    let is_unnamed = is_unnamed(call);
                    let names = if is_unnamed { Vec::new() } else { vec![call.path] };
                    let file = OpenFile { path: call.path, is_unnamed, names };
                    by_description.insert(call.description, file);
                }
                CallKind::Link => {
                    let opened = by_description.get_mut(&call.description);
                    opened.into_iter().for_each(|file| file.names.push(call.second_path));
                }
                _ => {}
            }
        }
        Self { by_description }
    }

    /// Whether the file of a description is of a class; `None` where no call opened it.
    pub fn is_of(&self, description: u32, class: &ClassPaths) -> Option<bool> {
        let file = self.by_description.get(&description)?;
        Some(match file.names.as_slice() {
            [] => class.contains(&file.path),
            names => names.iter().all(|name| class.contains(name)),
        })
    }

    /// Directories in which a file without a name is opened that gets a name outside of a class.
    pub fn directories_of_others(&self, class: &ClassPaths) -> Vec<Text> {
        let is_other = |name: &Text| !class.contains(name);
        let files =
            self.by_description.values().filter(|file| file.is_unnamed && file.names.iter().any(is_other));
        files.map(|file| file.path).collect()
    }

    /// Pairs of paths that are names of the same file, at least in turn, and which call says so.
    pub fn pairs(&self, recording: &Recording) -> Vec<(CallKind, Text, Text)> {
        let gives_name = |call: &&RecordedCall| {
            call.result >= 0
                && call.path != Text::NONE
                && matches!(call.kind, CallKind::Rename | CallKind::Link)
        };
        let calls = recording.calls.iter().filter(gives_name);
        let by_path = calls.map(|call| (call.kind, call.path, call.second_path));
        let files = self.by_description.values();
        let by_description = files
            .flat_map(|file| file.names.windows(2).map(|names| (CallKind::Link, names[0], names[1])))
            .filter(|(_, one, _)| *one != Text::NONE);
        by_path.chain(by_description).collect()
    }
}

/// Whether a file is opened that has no name.
pub fn is_unnamed(call: &RecordedCall) -> bool {
    matches!(call.kind, CallKind::Open | CallKind::Held) && call.flags & O_TMPFILE == O_TMPFILE
}
