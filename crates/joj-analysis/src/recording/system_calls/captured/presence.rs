//! Files that were there before the first call: what a call finds, and no earlier call made.
//!
//! ```text
//! open("/a/b") = 3, 4096 bytes long            present: /a/b, 4096 bytes
//! rename("/a/b", "/a/c"), open("/a/c") = 3     nothing new: it is the same file
//! link("/a/f", "/a/g"), open("/a/g") = 3        present: /a/f
//! open("/a/d", O_CREAT) = 4, it was made       nothing: it was not there
//! rename("/a", "/e"), open("/e/d") = 5         nothing: it came with its directory
//! open("/h") = 6, the inode of /a/b             present: /h, another name of /a/b
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

use super::{CallSeen, FileIdentity};

/// What is known of names so far.
#[derive(Debug, Default)]
pub struct Presence {
    /// Names of now of which nothing is to be told any more: they were told, found missing, or made by a call.
    known: BTreeMap<String, ()>,
    /// Names of the time before that were told.
    told: HashSet<String>,
    /// Names that a rename gave, or a call found there, with those that the same files had before the first call.
    before: BTreeMap<String, String>,
    /// Files with several names, by the one that was told first.
    shared: HashMap<FileIdentity, String>,
    /// Files of which calls used the names alone, and that went before the end.
    unseen: u64,
}

/// What is under a path when the calls are over: `st_mode` and `st_size`.
pub type FilesNow = PathAnswers<(u32, u64)>;

impl Presence {
    /// Looks at a row; pushes one for the file that it shows to have been there.
    pub fn look(&mut self, row: &RecordedCall, seen: CallSeen, output: &mut CallOutput) {
        let path = output.text(row.path).to_owned();
        if row.result < 0 {
            let second = output.text(row.second_path);
            self.failed(row, &path, second);
            return;
        }
        match (row.kind, seen) {
            (CallKind::Open, CallSeen::Opened { is_created: true, .. }) => self.know(&path),
            // The path is a directory's, the file has none.
            (CallKind::Open, _) if row.flags & O_TMPFILE == O_TMPFILE => {}
            (CallKind::Open, CallSeen::Opened { mode, bytes, shared, .. }) => {
                self.found(&path, (mode & S_IFMT, bytes), shared, row, output);
            }
            (CallKind::Stat | CallKind::Lstat, _) => {
                self.found(&path, (row.flags & S_IFMT, row.bytes), None, row, output);
            }
            (CallKind::Access | CallKind::SetAttributes, _) => self.named(&path),
            (CallKind::Mkdir | CallKind::Symlink, _) => self.know(&path),
            (CallKind::Link, _) => self.linked(&path, output.text(row.second_path)),
            (CallKind::Rename, _) => {
                let second = output.text(row.second_path).to_owned();
                self.renamed(&path, &second, row.flags & RENAME_EXCHANGE != 0);
            }
            (CallKind::Unlink | CallKind::Rmdir, _) => {
                let original = self.before.remove(&path);
                self.is_gone(&path, original);
                self.know(&path);
            }
            _ => {}
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
        self.know(path);
    }

    /// When the calls are over: files of which they said no more than the names.
    pub fn finish(&mut self, now: &FilesNow, output: &mut CallOutput) {
        for (path, original) in self.before.clone() {
            if self.known.contains_key(&path) || self.told.contains(&original) {
                continue;
            }
            match now.of(&path) {
                Some((mode, bytes)) => {
                    self.found(&path, (mode & S_IFMT, bytes), None, &RecordedCall::default(), output);
                }
                None => self.unseen += 1,
            }
        }
        if self.unseen > 0 {
            output.infer(&format!(
                "Files of which calls used the names alone are empty, because nobody saw their size: {}.",
                self.unseen
            ));
        }
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
        self.know(path);
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
        self.before.remove(second);
        // What is linked by its descriptor was told when it was opened, or was made.
        if path.is_empty() || self.known.contains_key(path) || self.told.contains(&original) {
            self.know(second);
        } else {
            self.known.remove(second);
            self.before.insert(second.to_owned(), original);
        }
    }

    fn know(&mut self, path: &str) {
        self.known.insert(path.to_owned(), ());
    }

    /// What is known of a name, and of names below it, goes along.
    fn renamed(&mut self, from: &str, to: &str, is_exchange: bool) {
        if from == to {
            return;
        }
        let (one, two) = (self.original(from), self.original(to));
        let [known, known_too] = [from, to].map(|path| take_with_below(&mut self.known, path));
        let [before, before_too] = [from, to].map(|path| take_with_below(&mut self.before, path));
        for (rest, name) in before_too.iter().filter(|_| !is_exchange) {
            let is_known = known_too.iter().any(|(other, ())| other == rest);
            self.unseen += u64::from(!is_known && !self.told.contains(name));
        }
        let mut put =
            |path: &str, known: Vec<(String, ())>, before: Vec<(String, String)>, original: String| {
                self.known.extend(known.into_iter().map(|(rest, ())| (format!("{path}{rest}"), ())));
                self.before.extend(before.into_iter().map(|(rest, name)| (format!("{path}{rest}"), name)));
                self.before.insert(path.to_owned(), original);
            };
        put(to, known, before, one);
        if is_exchange {
            put(from, known_too, before_too, two);
        }
    }
}
