//! What names of a tree stand for, and what is known of a file in it.

use std::collections::BTreeMap;

use crate::recording::blocks::StoredBlocks;
use crate::recording::paths::absolute;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEntry {
    /// A directory.
    Directory,
    /// A regular file of so many bytes.
    File(u64),
    /// A symbolic link to this absolute path.
    Symlink(String),
    /// Another name of the file with this path; only before the first call.
    HardLink(String),
}

/// Entries by path: absolute, without `.` and `..`; a directory comes before what is in it.
pub type Entries = BTreeMap<String, TreeEntry>;

/// A file between two calls.
#[derive(Debug)]
pub(super) struct FileState {
    /// What it is.
    pub entry: TreeEntry,
    /// Where it was before the first call, and its size there.
    pub before: Option<(String, u64)>,
    /// What of it takes room.
    pub blocks: StoredBlocks,
    /// It may have been there before: it was opened with O_CREAT alone.
    pub is_doubtful: bool,
    /// Its name was lost, and O_CREAT is the importer's.
    pub is_lost: bool,
    /// A call wrote to it, or showed where it ends: where later writes begin says nothing of its size before.
    pub is_sized: bool,
    /// A call gave it its size: later reads say nothing of its size before.
    pub is_cut: bool,
    /// A call that was to make its name found it there, and no other call says that it was.
    pub is_in_the_way: bool,
}

/// What a link says, as an absolute path. So a replay can have it point below its own directory, wherever the link is moved.
pub fn link_target(link: &str, target: &str) -> String {
    let directory = link.rsplit_once('/').map_or("/", |(directory, _)| directory);
    absolute(directory, target)
}

impl FileState {
    /// One of which nothing else is known.
    pub fn new(entry: TreeEntry) -> Self {
        Self {
            entry,
            before: None,
            blocks: StoredBlocks::default(),
            is_doubtful: false,
            is_lost: false,
            is_sized: false,
            is_cut: false,
            is_in_the_way: false,
        }
    }
}

/// The entries with every directory above them; whatever holds another is one.
pub(super) fn with_parents(mut entries: Entries) -> Entries {
    let paths: Vec<String> = entries.keys().cloned().collect();
    for path in &paths {
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            if !matches!(entries.get(parent), Some(TreeEntry::Symlink(_))) {
                entries.insert(parent.to_owned(), TreeEntry::Directory);
            }
            above = parent;
        }
    }
    entries.remove("/");
    entries.remove("");
    entries
}
