//! Files that were there before the first call: what a call finds, and no earlier call made.
//!
//! ```text
//! open("/a/b") = 3, 4096 bytes long            present: /a/b, 4096 bytes
//! rename("/a/b", "/a/c"), open("/a/c") = 3     nothing new: it is the same file
//! link("/a/f", "/a/g"), open("/a/g") = 3        present: /a/f
//! open("/a/d", O_CREAT) = 4, it was made       nothing: it was not there
//! rename("/a", "/e"), open("/e/d") = 5         nothing: it came with its directory
//! open("/h") = 6, the inode of /a/b             present: /h, another name of /a/b
//! rename("/l", "/m") = 0, and /l is there still  present: /l, and /m, another name of /l
//! rename("/i", "/j"), and nothing else          present: /i, as long as /j is at the end
//! mkdir("/k") = EEXIST, or access("/k") = 0     present: /k, as it is at the end
//! ```

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{EEXIST, ENOENT, O_TMPFILE, RENAME_EXCHANGE, S_IFDIR, S_IFMT, S_IFREG};
use crate::recording::paths::take_with_below;
use crate::recording::system_calls::output::CallOutput;
use crate::recording::system_calls::path_answers::PathAnswers;

use super::one_file::{DoubtfulRename, DoubtfulRenames, LinkedNames};
use super::{CallSeen, FileIdentity};

/// What is known of names so far.
#[derive(Debug, Default)]
pub struct Presence {
    /// Names of now of which nothing is to be told any more: they were told (false), or found missing, made or taken away (true).
    known: BTreeMap<String, bool>,
    /// Names of the time before that were told.
    told: HashSet<String>,
    /// Names that a rename gave, or a call found there, with those that the same files had before the first call.
    before: BTreeMap<String, String>,
    /// Files with several names, by the one that was told first.
    shared: HashMap<FileIdentity, String>,
    /// Of files that were opened under one of several names: inode and filesystem, with the names that they had before the first call.
    opened: HashMap<(u64, u64), HashSet<String>>,
    /// Renames that may have done nothing, and those that did nothing: both names before the first call, and now.
    doubtful: DoubtfulRenames,
    one_file: Vec<DoubtfulRename>,
    /// Names that are one file because calls linked them.
    linked: LinkedNames,
    /// Files of which calls used the names alone, and that went before the end.
    unseen: u64,
}

/// What is under a path when the calls are over: `st_mode`, `st_size`, and which file it is.
pub type FilesNow = PathAnswers<(u32, u64, FileIdentity)>;

impl Presence {
    /// Looks at a row; pushes one for the file that it shows to have been there.
    pub fn look(&mut self, row: &RecordedCall, seen: CallSeen, output: &mut CallOutput) {
        let path = output.text(row.path).to_owned();
        if row.result < 0 {
            let second = output.text(row.second_path);
            self.failed(row, &path, second);
            return;
        }
        self.look_at_renames(row, seen, &path, output.text(row.second_path));
        match (row.kind, seen) {
            (CallKind::Open, CallSeen::Opened { is_created: true, .. }) => self.know(&path),
            // The path is a directory's, the file has none.
            (CallKind::Open, _) if row.flags & O_TMPFILE == O_TMPFILE => {}
            (CallKind::Open, CallSeen::Opened { mode, bytes, shared, .. }) => {
                self.found(&path, (mode & S_IFMT, bytes), shared, row, output);
                let original = self.original(&path);
                if let Some(file) = shared.filter(|_| self.told.contains(&original)) {
                    self.opened.entry(file.place()).or_default().insert(original);
                }
            }
            (CallKind::Stat | CallKind::Lstat, _) => {
                self.found(&path, (row.flags & S_IFMT, row.bytes), None, row, output);
            }
            (CallKind::Access | CallKind::SetAttributes, _) => self.named(&path),
            (CallKind::Mkdir | CallKind::Symlink, _) => self.know(&path),
            (CallKind::Link, _) => self.linked(&path, output.text(row.second_path)),
            (CallKind::Rename, _) => {
                let second = output.text(row.second_path).to_owned();
                let is_exchange = row.flags & RENAME_EXCHANGE != 0;
                // Two names of one file: nothing happens.
                if path == second || self.linked.are_one(&path, &second) {
                    return;
                }
                self.linked.renamed(&path, &second, is_exchange);
                let doubtful = self.may_be_one(&path, &second).filter(|_| !is_exchange);
                self.renamed(&path, &second, is_exchange);
                let doubtful = doubtful.map(|doubtful| DoubtfulRename { end_ns: row.end_ns(), ..doubtful });
                doubtful.into_iter().for_each(|doubtful| self.doubtful.take(doubtful));
            }
            (CallKind::Unlink | CallKind::Rmdir, _) => {
                let original = self.before.remove(&path);
                self.is_gone(&path, original);
                self.linked.is_gone(&path);
                self.know(&path);
            }
            _ => {}
        }
    }

    /// A call that worked: it may show that an earlier rename did nothing.
    fn look_at_renames(&mut self, row: &RecordedCall, seen: CallSeen, path: &str, second: &str) {
        use CallKind::{Link, Mkdir, Rename, Rmdir, Symlink, Unlink};
        let is_created = matches!(seen, CallSeen::Opened { is_created: true, .. });
        if let Some(shown) = self.doubtful.shown_by(row, path, is_created) {
            // Both are as they were.
            for (name, original) in [&shown.from, &shown.to].into_iter().zip(&shown.originals) {
                self.known.remove(name);
                self.before.insert(name.clone(), original.clone());
            }
            self.one_file.push(shown);
        }
        if is_created || matches!(row.kind, Mkdir | Rename | Rmdir | Symlink | Unlink) {
            self.doubtful.changed(path);
        }
        if matches!(row.kind, Link | Rename) {
            self.doubtful.changed(second);
        }
    }

    /// A rename that is told next: perhaps of a file that was there to another name of it.
    fn may_be_one(&self, from: &str, to: &str) -> Option<DoubtfulRename> {
        let originals = [self.original(from), self.original(to)];
        let was_there =
            |path: &str, original: &String| self.told.contains(original) || !self.known.contains_key(path);
        let is_it = from != to && was_there(from, &originals[0]) && was_there(to, &originals[1]);
        is_it.then(|| DoubtfulRename { from: from.to_owned(), to: to.to_owned(), originals, end_ns: 0 })
    }

    /// Files with two names of which a rename was asked to make one.
    fn tell_one_file(&mut self, now: &FilesNow, output: &mut CallOutput) {
        for rename in self.doubtful.left() {
            let [one, two] = [&rename.from, &rename.to].map(|path| now.of(path).map(|(.., file)| file));
            if one.is_some() && one == two {
                self.one_file.push(rename);
            }
        }
        for rename in std::mem::take(&mut self.one_file) {
            let [mut one, mut two] = rename.originals;
            if self.told.contains(&two) {
                std::mem::swap(&mut one, &mut two);
            }
            if self.told.contains(&two) {
                continue;
            }
            let present = RecordedCall {
                kind: CallKind::Present,
                descriptor: -1,
                flags: S_IFREG,
                ..RecordedCall::default()
            };
            if !self.told.contains(&one) {
                let size = [&rename.from, &rename.to].into_iter().find_map(|path| now.of(path));
                self.unseen += u64::from(size.is_none());
                let bytes = size.map_or(0, |(_, bytes, _)| bytes);
                let path = output.keep(&one);
                output.push(RecordedCall { bytes, path, ..present });
            }
            let (path, second_path) = (output.keep(&two), output.keep(&one));
            output.push(RecordedCall { path, second_path, ..present });
            self.told.extend([one, two]);
        }
    }

    /// A call that found a name missing, or there.
    fn failed(&mut self, row: &RecordedCall, path: &str, second: &str) {
        let has_two = matches!(row.kind, CallKind::Rename | CallKind::Link);
        if !row.kind.is_about_paths() && row.kind != CallKind::Open {
            return;
        }
        match -row.result {
            // Of two names either may be missing.
            ENOENT if !has_two => self.know(path),
            EEXIST => self.named(if has_two { second } else { path }),
            _ => {}
        }
    }

    /// A call that shows no more than that a file is there.
    fn named(&mut self, path: &str) {
        if !self.known.contains_key(path) {
            self.before.insert(path.to_owned(), self.original(path));
        }
    }

    /// A file that is known to have been there.
    pub fn told(&mut self, path: &str) {
        self.told.insert(path.to_owned());
        self.known.insert(path.to_owned(), false);
    }

    /// When the calls are over: files of which they said no more than the names.
    pub fn finish(&mut self, now: &FilesNow, output: &mut CallOutput) {
        self.tell_one_file(now, output);
        for (path, original) in self.before.clone() {
            if self.known.contains_key(&path) || self.told.contains(&original) {
                continue;
            }
            match now.of(&path) {
                Some((mode, bytes, _)) => {
                    self.found(&path, (mode & S_IFMT, bytes), None, &RecordedCall::default(), output);
                }
                None => self.unseen += 1,
            }
        }
        self.join_names(now, output);
        if self.unseen > 0 {
            output.infer(&format!(
                "Files of which calls used the names alone are empty, because nobody saw their size: {}.",
                self.unseen
            ));
        }
    }

    /// Names that were told apart, and that are one file at the end: no call linked them, so they were one before.
    fn join_names(&self, now: &FilesNow, output: &mut CallOutput) {
        let mut names = self.opened.clone();
        let found = self.known.iter().filter(|(_, is_made)| !**is_made).map(|(path, _)| path);
        // A name that a call gave one of them is that file's as well, which may have lost all others.
        let is_given = |path: &&String| !self.known.contains_key(*path) || self.linked.has(path);
        for path in found.chain(self.before.keys().filter(is_given)) {
            let original = self.original(path);
            let now = now.of(path).filter(|(mode, ..)| mode & S_IFMT == S_IFREG);
            if let Some((.., file)) = now.filter(|_| self.told.contains(&original)) {
                names.entry(file.place()).or_default().insert(original);
            }
        }
        names.retain(|_, names| names.len() > 1);
        output.join_present(names.values());
    }

    /// A name is taken away, whose file may have had another one before the first call.
    fn is_gone(&mut self, path: &str, original: Option<String>) {
        let is_unseen = original.is_some_and(|name| !self.told.contains(&name));
        self.unseen += u64::from(is_unseen && !self.known.contains_key(path));
    }

    fn found(
        &mut self,
        path: &str,
        (kind, bytes): (u32, u64),
        shared: Option<FileIdentity>,
        row: &RecordedCall,
        output: &mut CallOutput,
    ) {
        let original = self.original(path);
        if self.known.contains_key(path)
            || self.told.contains(&original)
            || !matches!(kind, S_IFREG | S_IFDIR)
        {
            return;
        }
        let bytes = if kind == S_IFREG { bytes } else { 0 };
        let first = shared.and_then(|identity| match self.shared.entry(identity) {
            Entry::Occupied(first) => Some(output.keep(first.get())),
            Entry::Vacant(none) => {
                none.insert(original.clone());
                None
            }
        });
        let present = RecordedCall {
            kind: CallKind::Present,
            process: row.process,
            thread: row.thread,
            descriptor: -1,
            bytes,
            flags: kind,
            path: output.keep(&original),
            second_path: first.unwrap_or_default(),
            ..RecordedCall::default()
        };
        output.push(present);
        self.told.insert(original);
        self.known.insert(path.to_owned(), false);
    }

    /// The name that a file had before the first call, if it was there: renames of it and of directories above are taken back.
    fn original(&self, path: &str) -> String {
        let mut above = path;
        loop {
            if let Some(before) = self.before.get(above) {
                return format!("{before}{}", &path[above.len()..]);
            }
            match above.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
                Some((parent, _)) => above = parent,
                None => return path.to_owned(),
            }
        }
    }

    /// A file has another name, too. If it was there, it is found under either.
    fn linked(&mut self, path: &str, second: &str) {
        let original = self.original(path);
        if !path.is_empty() {
            self.linked.linked(path, second);
        }
        self.before.remove(second);
        // What is linked by its descriptor was told when it was opened, or was made.
        if path.is_empty() || self.known.get(path).copied().unwrap_or(false) {
            self.know(second);
            return;
        }
        if self.told.contains(&original) {
            self.know(second);
        } else {
            self.known.remove(second);
        }
        self.before.insert(second.to_owned(), original);
    }

    /// What is under a path from now on was not there before.
    fn know(&mut self, path: &str) {
        self.known.insert(path.to_owned(), true);
    }

    /// What is known of a name, and of names below it, goes along.
    fn renamed(&mut self, from: &str, to: &str, is_exchange: bool) {
        let (one, two) = (self.original(from), self.original(to));
        let [known, known_too] = [from, to].map(|path| take_with_below(&mut self.known, path));
        let [before, before_too] = [from, to].map(|path| take_with_below(&mut self.before, path));
        for (rest, name) in before_too.iter().filter(|_| !is_exchange) {
            let is_known = known_too.iter().any(|(other, _)| other == rest);
            self.unseen += u64::from(!is_known && !self.told.contains(name));
        }
        let mut put =
            |path: &str, known: Vec<(String, bool)>, before: Vec<(String, String)>, original: String| {
                self.known
                    .extend(known.into_iter().map(|(rest, is_made)| (format!("{path}{rest}"), is_made)));
                self.before.extend(before.into_iter().map(|(rest, name)| (format!("{path}{rest}"), name)));
                self.before.insert(path.to_owned(), original);
            };
        put(to, known, before, one);
        if is_exchange {
            put(from, known_too, before_too, two);
        }
    }
}
