//! What becomes of each file of a recording: the names that it has in turn, and which of them stay with it to its end.
//!
//! ```text
//! open(t, O_CREAT), fsync, rename(t, a)      names t, a; to its end a
//! open(t, O_CREAT), rename(t, b)             another file: names t, b; to its end b
//! link(b, c), unlink(b), rename(a, c)        the other one has b and c to its end: only a rename takes a name along
//! ```
//!
//! So a path is one file's name at one time and another's later, and what a name says of one of them it does not say of the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::file_tree::{FileIndex, FileTree};
use crate::recording::flags::{O_SYNC_BITS, RENAME_EXCHANGE, RWF_SYNC_BITS};
use crate::recording::whatif::classes::open_files::is_unnamed;
use crate::trace::texts::Text;

/// A file from its first call to its last.
#[derive(Debug, Default)]
pub struct FileLife {
    /// By which it is named in calls, at any time, also by a symbolic link to it.
    pub paths: BTreeSet<Text>,
    /// Names that it has until they are removed, another file is put in its place, or the recording ends.
    pub last_names: BTreeSet<String>,
    /// How it is used by each path that opened it.
    pub uses: BTreeMap<Text, FileUses>,
    /// It is a directory.
    pub is_directory: bool,
    /// It was there before the first call.
    pub was_there: bool,
}

/// What is done with a file through one of its paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileUses {
    /// How often it is opened.
    pub opens: u64,
    /// How often something of it is made durable: syncs, and writes that are durable by a flag.
    pub syncs: u64,
}

/// The lives of all files.
#[derive(Debug, Default)]
pub struct FileLives {
    /// In no order.
    pub lives: Vec<FileLife>,
    by_path: HashMap<Text, Vec<usize>>,
}

/// What is known between two calls.
#[derive(Debug, Default)]
struct LivesUnderWay {
    files: HashMap<FileIndex, FileLife>,
    /// Of each description its file, the path that opened it, and whether each write is durable.
    opened: HashMap<u32, (FileIndex, Text, bool)>,
}

impl FileLives {
    /// Looks at all calls.
    pub fn find(recording: &Recording) -> Self {
        let mut tree = FileTree::of(&recording.header);
        let mut under_way = LivesUnderWay::default();
        for call in &recording.calls {
            let files = tree.apply(call, &recording.texts);
            if call.result >= 0 {
                under_way.pass(call, files, recording);
            }
        }
        for (name, file) in tree.names() {
            under_way.life(file).last_names.insert(name.to_owned());
        }
        let mut found = Self::default();
        for (file, mut life) in under_way.files {
            (life.is_directory, life.was_there) = (tree.is_directory(file), tree.was_there(file));
            for path in &life.paths {
                found.by_path.entry(*path).or_default().push(found.lives.len());
            }
            found.lives.push(life);
        }
        found
    }

    /// The paths of some files, and of all that have one of these paths at another time, or a path of such a file.
    pub fn connected(&self, files: impl Iterator<Item = usize>) -> BTreeSet<Text> {
        let mut paths = BTreeSet::new();
        let mut next: Vec<usize> = files.collect();
        while let Some(file) = next.pop() {
            for path in &self.lives[file].paths {
                if paths.insert(*path) {
                    next.extend(&self.by_path[path]);
                }
            }
        }
        paths
    }
}

impl FileLife {
    /// What is done with it through paths that are not of a class.
    pub fn uses_elsewhere(&self, is_of_class: impl Fn(Text) -> bool) -> FileUses {
        let elsewhere = self.uses.iter().filter(|(path, _)| !is_of_class(**path));
        elsewhere.fold(FileUses::default(), |sum, (_, uses)| FileUses {
            opens: sum.opens + uses.opens,
            syncs: sum.syncs + uses.syncs,
        })
    }
}

impl LivesUnderWay {
    fn life(&mut self, file: FileIndex) -> &mut FileLife {
        self.files.entry(file).or_default()
    }

    fn pass(&mut self, call: &RecordedCall, files: [Option<FileIndex>; 2], recording: &Recording) {
        let [Some(file), other] = files else { return };
        let other = other.filter(|other| *other != file);
        match call.kind {
            CallKind::Open | CallKind::Held => {
                // The path of a file without a name is its directory's.
                if !is_unnamed(call) {
                    let is_synchronous = call.flags & O_SYNC_BITS != 0;
                    self.opened.insert(call.description, (file, call.path, is_synchronous));
                    self.has_path(file, call.path);
                    self.life(file).uses.entry(call.path).or_default().opens += 1;
                }
            }
            CallKind::Rename | CallKind::Link => {
                let is_exchange = call.kind == CallKind::Rename && call.flags & RENAME_EXCHANGE != 0;
                self.has_path(file, call.path);
                self.has_path(file, call.second_path);
                if let Some(other) = other {
                    self.has_path(other, call.second_path);
                    if is_exchange {
                        self.has_path(other, call.path);
                    } else {
                        self.loses_name(other, call.second_path, recording);
                    }
                }
            }
            CallKind::Unlink | CallKind::Rmdir => {
                self.has_path(file, call.path);
                self.loses_name(file, call.path, recording);
            }
            kind if kind.is_about_paths() || kind == CallKind::Present => self.has_path(file, call.path),
            _ => self.is_used(call),
        }
    }

    fn has_path(&mut self, file: FileIndex, path: Text) {
        if path != Text::NONE {
            self.life(file).paths.insert(path);
        }
    }

    fn loses_name(&mut self, file: FileIndex, path: Text, recording: &Recording) {
        self.life(file).last_names.insert(recording.texts.get(path).to_owned());
    }

    fn is_used(&mut self, call: &RecordedCall) {
        let Some((file, path, is_synchronous)) = self.opened.get(&call.description).copied() else { return };
        let has_flag =
            matches!(call.kind, CallKind::Pwritev | CallKind::Writev) && call.flags & RWF_SYNC_BITS != 0;
        if call.kind.is_sync() || call.kind.is_write() && (is_synchronous || has_flag) {
            self.life(file).uses.entry(path).or_default().syncs += 1;
        }
    }
}
