//! Files that were there before the first call: what a call finds, and no earlier call made.
//!
//! ```text
//! open("/a/b") = 3, 4096 bytes long            present: /a/b, 4096 bytes
//! rename("/a/b", "/a/c"), open("/a/c") = 3     nothing new: it is the same file
//! open("/a/d", O_CREAT) = 4, it was made       nothing: it was not there
//! ```

use std::collections::{HashMap, HashSet};

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{ENOENT, O_TMPFILE, RENAME_EXCHANGE, S_IFDIR, S_IFMT, S_IFREG};
use crate::recording::system_calls::output::CallOutput;

use super::CallSeen;

/// What is known of names so far.
#[derive(Debug, Default)]
pub struct Presence {
    /// Names of now of which nothing is to be told any more: they were told, found missing, or made by a call.
    known: HashSet<String>,
    /// Names of the time before that were told.
    told: HashSet<String>,
    /// Names that a rename gave, with those that the same files had before the first call.
    before: HashMap<String, String>,
}

impl Presence {
    /// Looks at a row; pushes one for the file that it shows to have been there.
    pub fn look(&mut self, row: &RecordedCall, seen: CallSeen, output: &mut CallOutput) {
        let path = output.text(row.path).to_owned();
        if row.result < 0 {
            if row.result == -ENOENT && row.kind.is_about_paths() | (row.kind == CallKind::Open) {
                self.known.insert(path);
            }
            return;
        }
        match (row.kind, seen) {
            (CallKind::Open, CallSeen::Opened { is_created: true, .. }) => drop(self.known.insert(path)),
            // The path is a directory's, the file has none.
            (CallKind::Open, _) if row.flags & O_TMPFILE == O_TMPFILE => {}
            (CallKind::Open, CallSeen::Opened { mode, bytes, .. }) => {
                self.found(&path, mode & S_IFMT, bytes, row, output);
            }
            (CallKind::Stat | CallKind::Lstat, _) => {
                self.found(&path, row.flags & S_IFMT, row.bytes, row, output);
            }
            (CallKind::Mkdir | CallKind::Symlink, _) => drop(self.known.insert(path)),
            (CallKind::Link, _) => drop(self.known.insert(output.text(row.second_path).to_owned())),
            (CallKind::Rename, _) => {
                let second = output.text(row.second_path).to_owned();
                self.renamed(&path, &second, row.flags & RENAME_EXCHANGE != 0);
            }
            (CallKind::Unlink | CallKind::Rmdir, _) => {
                self.before.remove(&path);
                self.known.insert(path);
            }
            _ => {}
        }
    }

    /// A file that is known to have been there.
    pub fn told(&mut self, path: &str) {
        self.told.insert(path.to_owned());
        self.known.insert(path.to_owned());
    }

    fn found(&mut self, path: &str, kind: u32, bytes: u64, row: &RecordedCall, output: &mut CallOutput) {
        let original = self.original(path);
        if self.known.contains(path) || self.told.contains(&original) || !matches!(kind, S_IFREG | S_IFDIR) {
            return;
        }
        let bytes = if kind == S_IFREG { bytes } else { 0 };
        let present = RecordedCall {
            kind: CallKind::Present,
            process: row.process,
            thread: row.thread,
            descriptor: -1,
            bytes,
            flags: kind,
            path: output.keep(&original),
            ..RecordedCall::default()
        };
        output.push(present);
        self.told.insert(original);
        self.known.insert(path.to_owned());
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

    fn renamed(&mut self, from: &str, to: &str, is_exchange: bool) {
        let (one, two) = (self.original(from), self.original(to));
        let (was_known, was_known_too) = (self.known.contains(from), self.known.contains(to));
        self.before.remove(from);
        self.before.insert(to.to_owned(), one);
        if is_exchange {
            self.before.insert(from.to_owned(), two);
        }
        // What a call made, or was told, is so under its new name.
        let mut keep = |name: &str, is_known: bool| {
            if is_known { self.known.insert(name.to_owned()) } else { self.known.remove(name) }
        };
        keep(to, was_known);
        keep(from, was_known_too || !is_exchange);
    }
}
