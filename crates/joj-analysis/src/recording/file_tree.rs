//! The files that calls imply: those that are there before the first call, and those that are there after the last.
//!
//! ```text
//! open("/a/b", O_RDONLY) = 3, pread(3, 4096 bytes at 8192) = 4096   before: directory /a, file /a/b of 12,288 bytes
//! access("/a/c") = -1 ENOENT, open("/a/c", O_CREAT) = 4             before: no /a/c; after: /a/c
//! ```
//!
//! A file that the recording neither creates nor finds missing was there before. Its size is the largest that a read, a stat or a seek
//! from the end asks for, or the place of its first write where none of them told where it ends. Where the recording says that a file was
//! there, it has the size that it says. What holds children, or was seen as one, is a directory.
//!
//! O_CREAT alone does not say whether a file was there. A live recording tells each that was. In others a file of which no call shows a
//! byte was not there, wherever the first write lies, but one whose name was lost.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{
    EEXIST, ENOENT, FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_KEEP_SIZE,
    FALLOC_FL_PUNCH_HOLE, O_ACCMODE, O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_PATH, O_TMPFILE, O_TRUNC,
    RENAME_EXCHANGE, RWF_APPEND, RWF_NOAPPEND, S_IFDIR, S_IFMT, S_IFREG, SEEK_END,
};
use crate::recording::paths::{below, take_with_below};
pub use crate::recording::tree_entries::{Entries, TreeEntry, link_target};
use crate::recording::tree_entries::{FileState, with_parents};
use crate::trace::header::{Header, Source};
use crate::trace::texts::Texts;

/// Older recordings have no [`CallKind::Present`].
const PRESENT_SINCE_VERSION: u32 = 4;

/// A file of the tree, apart from its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileIndex(pub u32);

#[derive(Debug, Clone, Copy)]
struct Opened {
    file: FileIndex,
    position: u64,
    appends: bool,
}

/// The files as they are between two calls.
#[derive(Debug, Default)]
pub struct FileTree {
    files: Vec<FileState>,
    names: BTreeMap<String, FileIndex>,
    /// Names that a call found missing, or took away.
    missing: HashSet<String>,
    opened: HashMap<u32, Opened>,
    /// Before the first call: second names of files, with the first ones.
    other_names: Vec<(String, String)>,
    /// The recording tells each file that was there when it is opened.
    tells_files: bool,
}

impl FileTree {
    /// Of a recording with this head, before its first call.
    pub fn of(header: &Header) -> Self {
        let is_live = matches!(header.source, Source::Bpf | Source::Ptrace);
        Self { tells_files: is_live && header.version >= PRESENT_SINCE_VERSION, ..Self::default() }
    }

    /// Applies a call, and says which files it is about.
    pub fn apply(&mut self, call: &RecordedCall, texts: &Texts) -> [Option<FileIndex>; 2] {
        let (path, second) = (texts.get(call.path), texts.get(call.second_path));
        match call.kind {
            CallKind::Present => [self.present(call, path, second), None],
            kind if call.result < 0 && (kind == CallKind::Open || kind.is_about_paths()) => {
                [self.failed(call, path, second), None]
            }
            CallKind::Open | CallKind::Held => [self.open(call, path), None],
            CallKind::Rename | CallKind::Link | CallKind::Symlink => self.two_names(call, path, second),
            kind if kind.is_about_paths() => [self.one_name(call, path), None],
            CallKind::Close | CallKind::Released => {
                let file = self.opened.get(&call.description).map(|opened| opened.file);
                if call.kind == CallKind::Released {
                    self.opened.remove(&call.description);
                }
                [file, None]
            }
            _ => [self.descriptor(call), None],
        }
    }

    /// The tree before the first call.
    pub fn before(&self) -> Entries {
        let mut entries = Entries::new();
        let there = (0..).map(FileIndex).zip(&self.files).filter(|(index, _)| self.was_there(*index));
        for (_, file) in there {
            let Some((path, bytes)) = &file.before else { continue };
            let entry = match &file.entry {
                TreeEntry::Directory => TreeEntry::Directory,
                _ => TreeEntry::File(*bytes),
            };
            entries.insert(path.clone(), entry);
        }
        let other = self.other_names.iter().cloned();
        entries.extend(other.map(|(path, first)| (path, TreeEntry::HardLink(first))));
        with_parents(entries)
    }

    /// The tree after the calls that were applied.
    pub fn after(&self) -> Entries {
        let entries =
            self.names.iter().map(|(path, file)| (path.clone(), self.files[file.0 as usize].entry.clone()));
        with_parents(entries.collect())
    }

    /// The bytes that files need on a disk after those calls, each under its first name. Holes that calls make need none.
    pub fn stored_bytes(&self) -> BTreeMap<String, u64> {
        let mut known = HashSet::new();
        let stored = self.names.iter().filter(|(_, file)| known.insert(**file)).filter_map(|(path, file)| {
            let state = &self.files[file.0 as usize];
            matches!(state.entry, TreeEntry::File(_))
                .then(|| (path.clone(), state.blocks.bytes(self.size(*file))))
        });
        stored.collect()
    }

    /// The file that has a name after those calls.
    pub fn file_of(&self, path: &str) -> Option<FileIndex> {
        self.names.get(path).copied()
    }

    /// The names after those calls, with their files.
    pub fn names(&self) -> impl Iterator<Item = (&str, FileIndex)> {
        self.names.iter().map(|(path, file)| (path.as_str(), *file))
    }

    /// Whether a file is a directory.
    pub fn is_directory(&self, file: FileIndex) -> bool {
        self.files[file.0 as usize].entry == TreeEntry::Directory
    }

    /// Whether it was there before the first call.
    pub fn was_there(&self, file: FileIndex) -> bool {
        let state = &self.files[file.0 as usize];
        // O_CREAT makes it where nothing says that it had bytes before.
        state.before.as_ref().is_some_and(|(_, bytes)| !state.is_doubtful || *bytes > 0)
    }

    /// A file that was there: later calls say nothing of what it was before.
    fn present(&mut self, call: &RecordedCall, path: &str, first: &str) -> Option<FileIndex> {
        let was_there = |file: &FileIndex| self.files[file.0 as usize].before.is_some();
        if let Some(known) = self.names.get(first).copied().filter(was_there) {
            self.put(path, vec![(String::new(), known)]);
            self.parents(path);
            self.other_names.push((path.to_owned(), first.to_owned()));
            return Some(known);
        }
        match call.flags & S_IFMT {
            S_IFDIR => Some(self.existing(path, TreeEntry::Directory)),
            S_IFREG => {
                let before = Some((path.to_owned(), call.bytes));
                let entry = TreeEntry::File(call.bytes);
                let mut file = FileState { before, is_sized: true, is_cut: true, ..FileState::new(entry) };
                file.blocks.put(0, call.bytes);
                Some(self.named(path, file))
            }
            // What is in a link nobody saw.
            _ => None,
        }
    }

    fn open(&mut self, call: &RecordedCall, path: &str) -> Option<FileIndex> {
        let path = &if call.follows_links() { self.behind_links(path) } else { path.to_owned() };
        let is_unnamed = call.flags & O_TMPFILE == O_TMPFILE;
        let makes_anew = call.flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL;
        let writes = call.flags & O_ACCMODE != 0 && call.flags & O_PATH == 0;
        if writes && !is_unnamed {
            self.is_no_directory(path);
        }
        let file = if is_unnamed {
            self.existing(path, TreeEntry::Directory);
            // It has bytes if it was open before the first call.
            let mut file = FileState::new(TreeEntry::File(call.bytes));
            file.blocks.put(0, call.bytes);
            self.add(file)
        } else if let Some(known) = self.names.get(path).filter(|_| !makes_anew) {
            *known
        } else if call.flags & O_CREAT == 0 {
            let is_directory = call.flags & O_DIRECTORY != 0;
            self.existing(path, if is_directory { TreeEntry::Directory } else { TreeEntry::File(0) })
        } else {
            let is_new =
                call.flags & (O_EXCL | O_TRUNC) != 0 || self.missing.contains(path) || self.tells_files;
            let before = if is_new { None } else { Some((path.clone(), 0)) };
            let is_lost = call.flags & RecordedCall::LOST_NAME != 0;
            let file =
                FileState { before, is_doubtful: !is_new, is_lost, ..FileState::new(TreeEntry::File(0)) };
            self.named(path, file)
        };
        if call.flags & O_TRUNC != 0 && call.flags & O_PATH == 0 && !is_unnamed {
            self.set_size(file, 0);
        }
        // What was open before stands where the recording says.
        let position = if call.kind == CallKind::Held { call.offset } else { 0 };
        let opened = Opened { file, position, appends: call.flags & O_APPEND != 0 };
        self.opened.insert(call.description, opened);
        Some(file)
    }

    fn one_name(&mut self, call: &RecordedCall, path: &str) -> Option<FileIndex> {
        let path = &if call.follows_links() { self.behind_links(path) } else { path.to_owned() };
        match call.kind {
            CallKind::Mkdir => return Some(self.named(path, FileState::new(TreeEntry::Directory))),
            CallKind::Unlink | CallKind::Rmdir => {
                let is_directory = call.kind == CallKind::Rmdir;
                let kind = if is_directory { TreeEntry::Directory } else { TreeEntry::File(0) };
                let file = self.existing(path, kind.clone());
                if !is_directory {
                    self.is_no_directory(path);
                }
                self.remove(path);
                return Some(file);
            }
            _ => {}
        }
        let kind = call.flags & S_IFMT;
        let is_directory = call.kind != CallKind::Access && kind == S_IFDIR;
        let file = self.existing(path, if is_directory { TreeEntry::Directory } else { TreeEntry::File(0) });
        match call.kind {
            CallKind::Truncate => self.set_size(file, call.bytes),
            CallKind::Stat | CallKind::Lstat => self.was_seen(file, kind, call.bytes),
            _ => {}
        }
        Some(file)
    }

    /// A call that found or missed a name.
    fn failed(&mut self, call: &RecordedCall, path: &str, second: &str) -> Option<FileIndex> {
        use CallKind::{Link, Mkdir, Rename, Symlink};
        // Of those that make names a directory may be missing.
        let is_about_path = !matches!(call.kind, Link | Mkdir | Rename | Symlink);
        if call.result == -ENOENT && is_about_path && !self.names.contains_key(path) {
            self.missing.insert(path.to_owned());
        }
        if call.result == -EEXIST {
            // A directory, as after `mkdir -p`, where no call says what is there.
            let is_directory = call.kind == CallKind::Mkdir;
            let kind = if is_directory { TreeEntry::Directory } else { TreeEntry::File(0) };
            let found = if matches!(call.kind, CallKind::Link | CallKind::Rename) { second } else { path };
            let known = self.names.get(found).copied();
            return Some(known.unwrap_or_else(|| {
                let file = self.existing(found, kind);
                self.files[file.0 as usize].is_in_the_way = true;
                file
            }));
        }
        self.names.get(path).copied()
    }

    fn two_names(&mut self, call: &RecordedCall, path: &str, second: &str) -> [Option<FileIndex>; 2] {
        if call.kind == CallKind::Symlink {
            let link = FileState::new(TreeEntry::Symlink(link_target(path, second)));
            return [Some(self.named(path, link)), None];
        }
        let opened = self.opened.get(&call.description).map(|opened| opened.file);
        let file = match opened {
            Some(file) => file,
            None if path.is_empty() => return [None, None],
            None => self.existing(path, TreeEntry::File(0)),
        };
        if call.kind == CallKind::Link {
            self.is_no_directory(path);
        }
        let other = self.names.get(second).copied();
        if call.kind == CallKind::Rename && call.flags & RENAME_EXCHANGE != 0 {
            let other = self.existing(second, TreeEntry::File(0));
            let (one, two) =
                (take_with_below(&mut self.names, path), take_with_below(&mut self.names, second));
            self.put(second, one);
            self.put(path, two);
            return [Some(file), Some(other)];
        }
        if call.kind == CallKind::Rename {
            // Two names of one file: nothing happens (rename(2)).
            if other != Some(file) {
                self.is_replaced(file, second);
                let moved = take_with_below(&mut self.names, path);
                self.remove(second);
                self.put(second, moved);
                self.missing.insert(path.to_owned());
            }
        } else {
            self.put(second, vec![(String::new(), file)]);
        }
        self.parents(second);
        [Some(file), other]
    }

    fn descriptor(&mut self, call: &RecordedCall) -> Option<FileIndex> {
        let opened = *self.opened.get(&call.description)?;
        let file = opened.file;
        let moved = call.moved_bytes();
        let (mut position, mut appends) = (opened.position, opened.appends);
        match call.kind {
            kind if kind.is_read() && call.result >= 0 => {
                let is_positional = matches!(kind, CallKind::Pread | CallKind::Preadv);
                let end = (if is_positional { call.offset } else { position }).saturating_add(moved);
                self.was_read(file, if moved > 0 { end } else { 0 });
                self.files[file.0 as usize].is_sized |= moved < call.bytes;
                position = if is_positional { position } else { end };
            }
            CallKind::Write | CallKind::Writev | CallKind::Pwrite | CallKind::Pwritev if moved > 0 => {
                let is_positional = matches!(call.kind, CallKind::Pwrite | CallKind::Pwritev);
                let to_end =
                    call.flags & RWF_APPEND != 0 || (opened.appends && call.flags & RWF_NOAPPEND == 0);
                let at = match (to_end, is_positional) {
                    (true, _) => self.size(file),
                    (false, true) => call.offset,
                    (false, false) => position,
                };
                self.was_written(file, at, moved);
                position = if is_positional { position } else { at.saturating_add(moved) };
            }
            CallKind::Lseek if call.result >= 0 => {
                position = moved;
                if call.flags == SEEK_END {
                    self.ends_at(file, moved.saturating_sub(call.offset));
                }
            }
            CallKind::Fstat if call.result == 0 => self.was_seen(file, call.flags & S_IFMT, call.bytes),
            CallKind::Ftruncate if call.result == 0 => self.set_size(file, call.bytes),
            CallKind::Fallocate if call.result == 0 => self.allocate(file, call),
            CallKind::SetFlags if call.result == 0 => appends = call.flags & O_APPEND != 0,
            _ => {}
        }
        if let Some(opened) = self.opened.get_mut(&call.description) {
            (opened.position, opened.appends) = (position, appends);
        }
        Some(file)
    }

    fn allocate(&mut self, file: FileIndex, call: &RecordedCall) {
        let size = self.size(file);
        if call.flags & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE | FALLOC_FL_PUNCH_HOLE) == 0 {
            self.files[file.0 as usize].blocks.put(call.offset, call.bytes);
        }
        if call.flags & FALLOC_FL_COLLAPSE_RANGE != 0 {
            self.set_size(file, size.saturating_sub(call.bytes));
        } else if call.flags & FALLOC_FL_INSERT_RANGE != 0 {
            self.set_size(file, size.saturating_add(call.bytes));
        } else if call.flags & (FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE) == 0 {
            self.set_size(file, size.max(call.offset.saturating_add(call.bytes)));
        }
    }

    fn size(&self, file: FileIndex) -> u64 {
        match self.files[file.0 as usize].entry {
            TreeEntry::File(bytes) => bytes,
            _ => 0,
        }
    }

    fn set_size(&mut self, file: FileIndex, bytes: u64) {
        let state = &mut self.files[file.0 as usize];
        state.is_cut = true;
        state.blocks.cut(bytes);
        if let TreeEntry::File(size) = &mut state.entry {
            *size = bytes;
        }
    }

    /// A read ended at `end`: where no call explains that, the file had so many bytes before.
    fn was_read(&mut self, file: FileIndex, end: u64) {
        let state = &mut self.files[file.0 as usize];
        let (TreeEntry::File(size), Some((_, before))) = (&mut state.entry, &mut state.before) else {
            return;
        };
        if end > *size && !state.is_cut {
            (*before, *size) = (end, end);
            state.blocks.put(0, end);
        }
    }

    fn ends_at(&mut self, file: FileIndex, end: u64) {
        self.was_read(file, end);
        self.files[file.0 as usize].is_sized = true;
    }

    fn was_written(&mut self, file: FileIndex, at: u64, bytes: u64) {
        let state = &self.files[file.0 as usize];
        let was_there =
            state.before.as_ref().is_some_and(|(_, bytes)| !state.is_doubtful || state.is_lost || *bytes > 0);
        if was_there && !state.is_sized {
            // The first write lies within the file, or at its end.
            self.was_read(file, at);
        }
        let state = &mut self.files[file.0 as usize];
        state.is_sized = true;
        state.blocks.put(at, bytes);
        if let TreeEntry::File(size) = &mut state.entry {
            *size = (*size).max(at.saturating_add(bytes));
        }
    }

    fn was_seen(&mut self, file: FileIndex, kind: u32, bytes: u64) {
        match kind {
            S_IFREG => self.ends_at(file, bytes),
            S_IFDIR => self.files[file.0 as usize].entry = TreeEntry::Directory,
            // What is in a link stat does not say.
            _ => {}
        }
    }

    /// The file of this name; where nothing is known of it, it was there before.
    fn existing(&mut self, path: &str, kind: TreeEntry) -> FileIndex {
        if let Some(known) = self.names.get(path).copied() {
            if kind == TreeEntry::Directory {
                self.files[known.0 as usize].entry = kind;
            }
            return known;
        }
        // A name that was missing came back without a call: nothing in the recording makes it.
        let before = if self.missing.contains(path) { None } else { Some((path.to_owned(), 0)) };
        self.named(path, FileState { before, ..FileState::new(kind) })
    }

    fn named(&mut self, path: &str, file: FileState) -> FileIndex {
        // Two made it at the same time: it was not there before.
        if let Some(known) = self.names.get(path).map(|known| &mut self.files[known.0 as usize])
            && known.is_in_the_way
        {
            known.before = None;
        }
        let index = self.add(file);
        self.names.insert(path.to_owned(), index);
        self.parents(path);
        index
    }

    fn add(&mut self, file: FileState) -> FileIndex {
        let index = FileIndex(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(file);
        index
    }

    /// The directories above a name that is there.
    fn parents(&mut self, path: &str) {
        if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            let known = self.names.get(parent).copied();
            let is_known = known.is_some_and(|known| {
                matches!(self.files[known.0 as usize].entry, TreeEntry::Directory | TreeEntry::Symlink(_))
            });
            if !is_known {
                self.existing(parent, TreeEntry::Directory);
            }
        }
    }

    /// What a mkdir found in its way was taken for a directory, and a later call shows that it is none. One that holds a name was a link.
    fn is_no_directory(&mut self, path: &str) {
        let is_empty = below(&self.names, path).next().is_none();
        let known = self.names.get(path).map(|file| &mut self.files[file.0 as usize]);
        if let Some(state) = known.filter(|state| is_empty && state.entry == TreeEntry::Directory) {
            state.entry = TreeEntry::File(0);
        }
    }

    /// A rename puts `file` in the place of what a call had found in its way: it is of the same kind (rename(2)).
    fn is_replaced(&mut self, file: FileIndex, path: &str) {
        let is_directory = self.files[file.0 as usize].entry == TreeEntry::Directory;
        let Some(other) = self.names.get(path).map(|other| &mut self.files[other.0 as usize]) else { return };
        match (is_directory, other.is_in_the_way) {
            (false, true) => self.is_no_directory(path),
            (true, true) => other.entry = TreeEntry::Directory,
            _ => {}
        }
    }

    /// Takes a name away, with those below it.
    fn remove(&mut self, path: &str) {
        for (name, _) in take_with_below(&mut self.names, path) {
            self.missing.insert(format!("{path}{name}"));
        }
    }

    fn put(&mut self, path: &str, taken: Vec<(String, FileIndex)>) {
        for (name, file) in taken {
            self.names.insert(format!("{path}{name}"), file);
        }
    }

    /// The path to which a symbolic link leads that the recording made.
    fn behind_links(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..8 {
            let link = self.names.get(&path).map(|file| &self.files[file.0 as usize].entry);
            let Some(TreeEntry::Symlink(target)) = link else { break };
            path = target.clone();
        }
        path
    }
}
