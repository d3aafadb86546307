//! Databases that get the name of another one while that is open.
//!
//! ```text
//! conn 1   open a.db ---- commits ------------------------- commits ---- close     the file that was a.db
//! mv                                mv a.db* elsewhere
//! conn 2                                        open a.db ---- commits ----        its successor: another file, with a state of its own
//! ```
//!
//! A connection goes on with the file that it has open, whatever happens to its name. Only a path leads to what has the name now. SQLite names a
//! journal, a log or an index by a path, too. Such a call is about the database that its thread used last of those with that name: SQLite locks,
//! writes or syncs it right before. A file that is renamed while it is open is the same database under its new name.
//!
//! Where nobody has the file open any more, the next one takes its place, and its state begins anew.

use std::collections::{HashMap, HashSet};

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::RENAME_EXCHANGE;
use crate::recording::page_transactions::database_files::{DatabaseFiles, FileRole};
use crate::trace::texts::Texts;

/// What a look at all calls found.
#[derive(Debug, Default)]
pub struct Successors {
    /// Of calls with a path, by their place in the recording, the database where it is not the first one of its name.
    by_call: HashMap<usize, usize>,
    /// By the place of an unlink or a rename the databases that lose their name.
    losers: HashMap<usize, Vec<usize>>,
    /// Places of opens of a file that took the place of one that nobody has open.
    anew: HashSet<usize>,
    /// By process and the description of a journal the place of its last call: a child may have it open longer.
    last_calls: HashMap<(u32, u32), usize>,
}

impl Successors {
    /// The database that a call with a path is about; `first` is the first one of its name.
    pub fn of_call(&self, place: usize, first: usize) -> usize {
        self.by_call.get(&place).copied().unwrap_or(first)
    }

    /// Databases whose file loses its name by the call at a place.
    pub fn losers(&self, place: usize) -> &[usize] {
        self.losers.get(&place).map_or(&[], Vec::as_slice)
    }

    /// Whether the open at a place finds another file than the ones before, and none of those is open.
    pub fn begins_anew(&self, place: usize) -> bool {
        self.anew.contains(&place)
    }

    /// Whether a process has a call on the description of a journal after a place.
    pub fn is_used_after(&self, place: usize, process: u32, journal: u32) -> bool {
        self.last_calls.get(&(process, journal)).is_some_and(|last| *last > place)
    }

    /// Looks at all calls. Gives descriptions of successors their database.
    pub fn find(files: &mut DatabaseFiles, recording: &Recording) -> Self {
        let mut look = Look::of(files);
        let mut found = Self::default();
        for (place, call) in recording.calls.iter().enumerate() {
            if call.result >= 0 && matches!(call.kind, CallKind::Unlink | CallKind::Rename | CallKind::Link) {
                let losers = look.lose_names(files, &recording.texts, call);
                if !losers.is_empty() {
                    found.losers.insert(place, losers);
                }
            }
            if let Some((role, database)) = files.of_description(call.description) {
                if role == FileRole::Journal {
                    found.last_calls.insert((call.process, call.description), place);
                }
                if look.takes_description(files, call, role, database) {
                    found.anew.insert(place);
                }
            } else if let Some((role, first)) = files.of_path(call.path) {
                let database = look.of_path(call.thread, role, first);
                if database != first {
                    found.by_call.insert(place, database);
                }
            }
        }
        found
    }
}

/// A name while the calls pass by.
#[derive(Debug)]
struct Name {
    /// The database that has it, or had it last.
    holder: usize,
    /// No file has it.
    is_free: bool,
}

#[derive(Debug, Default)]
struct Look {
    /// By the first database of each.
    names: Vec<Name>,
    /// The first database of each.
    numbers: HashMap<String, usize>,
    /// Of each database the first one of its name.
    first_of: Vec<usize>,
    /// Of each database its descriptions that are open.
    open: HashMap<usize, HashSet<u32>>,
    /// The database that a thread used last, of those with a name: by the first one's number.
    used: HashMap<(u32, usize), usize>,
}

impl Look {
    fn of(files: &DatabaseFiles) -> Self {
        let first_of: Vec<usize> = (0..files.databases.len()).collect();
        let names = first_of.iter().map(|first| Name { holder: *first, is_free: false }).collect();
        let numbers = files.databases.iter().map(|found| found.path.clone()).zip(0..).collect();
        Self { names, numbers, first_of, ..Self::default() }
    }

    /// The databases that an unlink or a rename takes the name away from: its own, what it replaces, and those in a directory that moves. What is
    /// open keeps its database under the name that a rename or a link gives it.
    fn lose_names(&mut self, files: &DatabaseFiles, texts: &Texts, call: &RecordedCall) -> Vec<usize> {
        if call.kind == CallKind::Unlink {
            let unlinked = files.of_path(call.path).filter(|(role, _)| *role == FileRole::Database);
            return unlinked.and_then(|(_, first)| self.free(first)).into_iter().collect();
        }
        let [from, to] = [call.path, call.second_path].map(|path| texts.get(path));
        let is_rename = call.kind == CallKind::Rename;
        let is_exchange = is_rename && call.flags & RENAME_EXCHANGE != 0;
        let (mut losers, mut moves) = (Vec::new(), Vec::new());
        for name in 0..self.names.len() {
            for (old, new, is_kept) in [(from, to, true), (to, from, is_exchange)] {
                let Some(rest) = below(&files.databases[name].path, old) else { continue };
                if self.names[name].is_free {
                    continue;
                }
                let open = self.is_in_use(name).then_some(self.names[name].holder);
                losers.extend(is_rename.then(|| self.free(name)).flatten());
                let next = self.numbers.get(&format!("{new}{rest}")).filter(|_| is_kept);
                moves.extend(open.zip(next.copied()));
            }
        }
        for (holder, name) in moves {
            self.names[name] = Name { holder, is_free: false };
        }
        losers
    }

    /// Takes a name away from the database that has it.
    fn free(&mut self, name: usize) -> Option<usize> {
        let name = &mut self.names[name];
        (!std::mem::replace(&mut name.is_free, true)).then_some(name.holder)
    }

    /// Whether the database that has a name is open.
    fn is_in_use(&self, name: usize) -> bool {
        self.open.get(&self.names[name].holder).is_some_and(|open| !open.is_empty())
    }

    /// A call on one of the files. True where it opens a file that takes the place of one that nobody has open.
    fn takes_description(
        &mut self,
        files: &mut DatabaseFiles,
        call: &RecordedCall,
        role: FileRole,
        database: usize,
    ) -> bool {
        if role == FileRole::Directory {
            return false;
        }
        let (number, first) = (call.description, self.first_of[database]);
        let (mut database, mut is_anew) = (database, false);
        if call.kind == CallKind::Open {
            (database, is_anew) = match role {
                FileRole::Database => self.opens(files, first),
                _ => (self.of_path(call.thread, role, first), false),
            };
            files.give(number, role, database);
        }
        if role == FileRole::Database {
            let open = self.open.entry(database).or_default();
            match call.kind {
                CallKind::Open | CallKind::Held => {
                    open.insert(number);
                }
                CallKind::Close | CallKind::Released if !call.stays_open() => {
                    open.remove(&number);
                }
                _ => {}
            }
        }
        self.used.insert((call.thread, first), database);
        is_anew
    }

    /// A database of this name is opened: which one it is, and whether that begins anew.
    fn opens(&mut self, files: &mut DatabaseFiles, first: usize) -> (usize, bool) {
        let is_in_use = self.is_in_use(first);
        let is_other = std::mem::take(&mut self.names[first].is_free);
        if is_other && is_in_use {
            self.names[first].holder = files.add_successor(first);
            self.first_of.push(first);
        }
        (self.names[first].holder, is_other && !is_in_use)
    }

    /// The database that a thread means by a path.
    fn of_path(&self, thread: u32, role: FileRole, first: usize) -> usize {
        let used = self.used.get(&(thread, first)).filter(|_| role != FileRole::Database);
        used.copied().unwrap_or(self.names[first].holder)
    }
}

/// Names of files, and those that they get by renames and links. SQLite opens a file again under its new name without a call: it takes a
/// descriptor that it keeps for the sake of its locks (os_unix.c, findReusableFd).
pub fn with_new_names(mut names: HashSet<String>, calls: &[RecordedCall], texts: &Texts) -> HashSet<String> {
    let is_it =
        |call: &&RecordedCall| call.result >= 0 && matches!(call.kind, CallKind::Rename | CallKind::Link);
    for call in calls.iter().filter(is_it) {
        let [from, to] = [call.path, call.second_path].map(|path| texts.get(path));
        let new = |name: &String| below(name, from).map(|rest| format!("{to}{rest}"));
        let new: Vec<String> = names.iter().filter_map(new).collect();
        names.extend(new);
    }
    names
}

/// What of a path lies below another one: nothing where they are the same, `None` where it does not.
fn below<'a>(path: &'a str, above: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(above).filter(|_| !above.is_empty())?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}
