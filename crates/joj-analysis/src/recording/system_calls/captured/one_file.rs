//! Two names of one file that a rename was asked to make one: then it does nothing, and says that it worked (rename(2)).
//!
//! ```text
//! /a and /b are one file: rename("/a", "/b") = 0       both are there still
//! unlink("/a") = 0                                     so they were
//! or: at the end both are there, with one inode        so they were
//! ```
//!
//! Names that an earlier call of the recording linked are known to be one file. Of files that calls opened the capture has the inodes. This is about those of which calls only used the names.

use std::collections::BTreeMap;

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::paths::take_with_below;

/// A rename after which the old name may be there still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoubtfulRename {
    /// The old name.
    pub from: String,
    /// The new one.
    pub to: String,
    /// The names of both before the first call.
    pub originals: [String; 2],
    /// When it was over.
    pub end_ns: u64,
}

/// Those of a recording, by the old name.
#[derive(Debug, Default)]
pub struct DoubtfulRenames(BTreeMap<String, DoubtfulRename>);

impl DoubtfulRenames {
    /// Takes one.
    pub fn take(&mut self, rename: DoubtfulRename) {
        self.0.insert(rename.from.clone(), rename);
    }

    /// Those that are doubtful still.
    pub fn left(&mut self) -> Vec<DoubtfulRename> {
        std::mem::take(&mut self.0).into_values().collect()
    }

    /// A call that worked. If it needs a name that a rename took away, that rename did nothing: gives it.
    pub fn shown_by(&mut self, row: &RecordedCall, path: &str, is_created: bool) -> Option<DoubtfulRename> {
        use CallKind::{Access, Link, Lstat, Open, Rename, SetAttributes, Stat, Truncate, Unlink};
        let needs = matches!(
            row.kind,
            Access | Link | Lstat | Open | Rename | SetAttributes | Stat | Truncate | Unlink
        );
        // One that was under way at the same time may have come first.
        let is_it = |rename: &&DoubtfulRename| rename.end_ns < row.begin_ns;
        self.0.get(path).filter(is_it).filter(|_| needs && !is_created)?;
        self.0.remove(path)
    }

    /// A call made, moved or took away what is under a path, or below it.
    pub fn changed(&mut self, path: &str) {
        let is_below =
            |name: &str| name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.0.retain(|_, rename| !is_below(&rename.from) && !is_below(&rename.to));
    }
}

/// Names that the calls themselves made names of one file, with a number of that file.
#[derive(Debug, Default)]
pub struct LinkedNames {
    files: BTreeMap<String, u64>,
    count: u64,
}

impl LinkedNames {
    /// A file got another name.
    pub fn linked(&mut self, path: &str, second: &str) {
        self.count += 1;
        let file = *self.files.entry(path.to_owned()).or_insert(self.count);
        self.files.insert(second.to_owned(), file);
    }

    /// Whether a call linked it.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Whether two names are those of one file.
    pub fn are_one(&self, path: &str, second: &str) -> bool {
        self.files.get(path).is_some_and(|file| self.files.get(second) == Some(file))
    }

    /// A file or directory got another name instead of its own.
    pub fn renamed(&mut self, from: &str, to: &str, is_exchange: bool) {
        let [moved, replaced] = [from, to].map(|path| take_with_below(&mut self.files, path));
        let mut put = |path: &str, names: Vec<(String, u64)>| {
            self.files.extend(names.into_iter().map(|(rest, file)| (format!("{path}{rest}"), file)));
        };
        put(to, moved);
        if is_exchange {
            put(from, replaced);
        }
    }

    /// A name was taken away.
    pub fn is_gone(&mut self, path: &str) {
        self.files.remove(path);
    }
}
