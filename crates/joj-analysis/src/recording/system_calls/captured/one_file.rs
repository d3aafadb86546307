//! Two names of one file that a rename was asked to make one: then it does nothing, and says that it worked (rename(2)).
//!
//! ```text
//! /a and /b are one file: rename("/a", "/b") = 0       both are there still
//! unlink("/a") = 0                                     so they were
//! or: at the end both are there, with one inode        so they were
//! ```
//!
//! Of files that calls opened the capture has the inodes. This is about those of which calls only used the names.

use std::collections::BTreeMap;

use crate::recording::call::{CallKind, RecordedCall};

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
