//! Calls on names that failed: whether they fail in a replay, too.
//!
//! ```text
//! before: /f   mkdir("/f") = EEXIST                        it is there: made again
//!              symlink("/g") = EEXIST, and no /g is there  it would make a link: left out
//!              open("/d/x") = ENOTDIR, and no /d           another error: left out
//! ```
//!
//! What a call found may be in no recording: a file of another program's, or what a path's shortened part named. So the names of a
//! replay are followed here from call to call, and each call that failed is looked up there, as the kernel does it (path_resolution(7),
//! open(2), rename(2)).

use std::collections::{BTreeMap, HashSet};

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::file_tree::{Entries, TreeEntry, link_target};
use crate::recording::flags::{
    EBUSY, EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR, ENOTEMPTY, EPERM, O_ACCMODE, O_CREAT, O_DIRECTORY,
    O_EXCL, O_PATH, O_TMPFILE, RENAME_EXCHANGE, RENAME_NOREPLACE,
};
use crate::recording::paths::{below, take_with_below};
use crate::trace::header::Source;

/// The kernel follows no more links in one path (MAXSYMLINKS).
const LINKS_MAX: u32 = 40;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    Directory,
    /// Which file: two names may stand for one.
    File(usize),
    /// An absolute path.
    Link(String),
}

/// What a call does to names.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    Made(String, Named),
    Gone(String),
    Moved(String, String),
    Exchanged(String, String),
}

/// Of a recording's calls that failed on names those which would do something else in a replay that begins with these files: their
/// places. Those that [`RecordedCall::fails_for_others_reasons`] says are not among them. Scripts of MobiGen have none: a name in them may
/// be one of several that were lost, and their calls are made as Mobibench makes them.
pub fn without_their_reason(recording: &Recording, before: &Entries) -> HashSet<u32> {
    if recording.header.source == Source::Mobigen {
        return HashSet::new();
    }
    let mut names = ReplayNames::of(before);
    let mut found = HashSet::new();
    for (call, place) in recording.calls.iter().zip(0..) {
        let is_on_names = call.kind == CallKind::Open || call.kind.is_about_paths();
        if !is_on_names || call.fails_for_others_reasons() {
            continue;
        }
        let [path, second] = [call.path, call.second_path].map(|path| recording.texts.get(path));
        match names.change(call, path, second) {
            Ok(change) if call.result >= 0 => names.apply(change),
            Err(error) if call.result == -error => {}
            _ if call.result >= 0 => {}
            _ => {
                found.insert(place);
            }
        }
    }
    found
}

/// The names of a replay between two calls.
#[derive(Debug, Default)]
struct ReplayNames {
    names: BTreeMap<String, Named>,
    files: usize,
}

impl ReplayNames {
    fn of(before: &Entries) -> Self {
        let mut names = Self::default();
        for (path, entry) in before {
            let named = match entry {
                TreeEntry::Directory => Named::Directory,
                TreeEntry::File(_) => names.new_file(),
                TreeEntry::Symlink(target) => Named::Link(target.clone()),
                TreeEntry::HardLink(_) => continue,
            };
            names.names.insert(path.clone(), named);
        }
        for (path, entry) in before {
            if let TreeEntry::HardLink(first) = entry
                && let Some(named) = names.names.get(first).cloned()
            {
                names.names.insert(path.clone(), named);
            }
        }
        names
    }

    fn new_file(&mut self) -> Named {
        self.files += 1;
        Named::File(self.files)
    }

    /// What a name stands for; the empty one is the directory of the replay.
    fn at(&self, path: &str) -> Option<&Named> {
        if path.is_empty() { Some(&Named::Directory) } else { self.names.get(path) }
    }

    /// The name to which a path leads, in a directory that is there.
    fn walk<'a>(&'a self, path: &'a str, follows: bool) -> Result<String, i64> {
        let parts = |path: &'a str| path.rsplit('/').filter(|part| !part.is_empty());
        let (mut at, mut left, mut links) = (String::new(), parts(path).collect::<Vec<_>>(), 0);
        while let Some(part) = left.pop() {
            at.push('/');
            at.push_str(part);
            match self.names.get(&at) {
                Some(Named::Link(target)) if follows || !left.is_empty() => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(ELOOP);
                    }
                    at.clear();
                    left.extend(parts(target));
                }
                Some(Named::Directory) => {}
                _ if left.is_empty() => {}
                None => return Err(ENOENT),
                Some(_) => return Err(ENOTDIR),
            }
        }
        Ok(at)
    }

    /// What a call does, or its errno.
    fn change(&mut self, call: &RecordedCall, path: &str, second: &str) -> Result<Change, i64> {
        let at = self.walk(path, call.follows_links())?;
        let found = self.at(&at);
        match (call.kind, found) {
            (CallKind::Open, _) => self.open(call.flags, at),
            (CallKind::Rename, _) => self.rename(call.flags, at, second),
            (CallKind::Link, _) => self.link(call, &at, second),
            (CallKind::Mkdir | CallKind::Symlink, Some(_)) => Err(EEXIST),
            (CallKind::Mkdir, None) => Ok(Change::Made(at, Named::Directory)),
            (CallKind::Symlink, None) => Ok(Change::Made(at, Named::Link(link_target(path, second)))),
            (_, None) => Err(ENOENT),
            (CallKind::Truncate | CallKind::Unlink, Some(Named::Directory)) => Err(EISDIR),
            (CallKind::Unlink, Some(_)) => Ok(Change::Gone(at)),
            (CallKind::Rmdir, Some(Named::Directory)) if at.is_empty() => Err(EBUSY),
            (CallKind::Rmdir, Some(Named::Directory)) if self.is_full(&at) => Err(ENOTEMPTY),
            (CallKind::Rmdir, Some(Named::Directory)) => Ok(Change::Gone(at)),
            (CallKind::Rmdir, Some(_)) => Err(ENOTDIR),
            _ => Ok(Change::Nothing),
        }
    }

    fn open(&mut self, flags: u32, at: String) -> Result<Change, i64> {
        let has = |flag: u32| flags & flag == flag;
        let makes = has(O_CREAT) && !has(O_PATH);
        match self.at(&at) {
            None if !makes || has(O_TMPFILE) => Err(ENOENT),
            None => Ok(Change::Made(at, self.new_file())),
            Some(Named::Directory) if has(O_TMPFILE) => Ok(Change::Nothing),
            Some(_) if makes && has(O_EXCL) => Err(EEXIST),
            Some(Named::Directory) if makes || (flags & O_ACCMODE != 0 && !has(O_PATH)) => Err(EISDIR),
            Some(Named::Directory) => Ok(Change::Nothing),
            Some(_) if has(O_DIRECTORY) => Err(ENOTDIR),
            // It would have been followed without O_NOFOLLOW.
            Some(Named::Link(_)) if !has(O_PATH) => Err(ELOOP),
            Some(_) => Ok(Change::Nothing),
        }
    }

    fn link(&mut self, call: &RecordedCall, at: &str, second: &str) -> Result<Change, i64> {
        let source =
            if call.description == 0 { self.at(at).cloned().ok_or(ENOENT)? } else { self.new_file() };
        let to = self.walk(second, false)?;
        match source {
            _ if self.at(&to).is_some() => Err(EEXIST),
            Named::Directory => Err(EPERM),
            source => Ok(Change::Made(to, source)),
        }
    }

    fn rename(&self, flags: u32, from: String, second: &str) -> Result<Change, i64> {
        let to = self.walk(second, false)?;
        let is_exchange = flags & RENAME_EXCHANGE != 0;
        let is_below = |path: &str, directory: &str| {
            path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
        };
        let moved = self.at(&from).ok_or(ENOENT)?;
        let target = self.at(&to);
        match target {
            Some(_) if flags & RENAME_NOREPLACE != 0 => Err(EEXIST),
            None if is_exchange => Err(ENOENT),
            _ if is_below(&to, &from) => Err(EINVAL),
            _ if is_below(&from, &to) => Err(if is_exchange { EINVAL } else { ENOTEMPTY }),
            Some(_) if from == to => Ok(Change::Nothing),
            Some(_) if is_exchange => Ok(Change::Exchanged(from, to)),
            Some(target) if *target != Named::Directory && target == moved => Ok(Change::Nothing),
            Some(Named::Directory) if *moved != Named::Directory => Err(EISDIR),
            Some(Named::Directory) if self.is_full(&to) => Err(ENOTEMPTY),
            Some(Named::File(_) | Named::Link(_)) if *moved == Named::Directory => Err(ENOTDIR),
            _ => Ok(Change::Moved(from, to)),
        }
    }

    fn is_full(&self, directory: &str) -> bool {
        below(&self.names, directory).next().is_some()
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Made(path, named) => drop(self.names.insert(path, named)),
            Change::Gone(path) => drop(self.names.remove(&path)),
            Change::Moved(from, to) => {
                let moved = take_with_below(&mut self.names, &from);
                self.put(&to, moved);
            }
            Change::Exchanged(one, two) => {
                let [first, second] = [&one, &two].map(|path| take_with_below(&mut self.names, path));
                self.put(&two, first);
                self.put(&one, second);
            }
        }
    }

    fn put(&mut self, path: &str, taken: Vec<(String, Named)>) {
        self.names.extend(taken.into_iter().map(|(rest, named)| (format!("{path}{rest}"), named)));
    }
}
