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
//! writes or syncs it right before.
//!
//! Where nobody has the file open any more, nothing needs to be told apart, and the same state goes on.

use std::collections::{HashMap, HashSet};

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::page_transactions::database_files::{DatabaseFiles, FileRole};
use crate::trace::texts::Texts;

/// What a look at all calls found.
#[derive(Debug, Default)]
pub struct Successors {
    /// Of calls with a path, by their place in the recording, the database where it is not the first one of its name.
    by_call: HashMap<usize, usize>,
    /// By the place of an unlink or a rename the databases that lose their name.
    losers: HashMap<usize, Vec<usize>>,
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

    /// Looks at all calls. Gives descriptions of successors their database.
    pub fn find(files: &mut DatabaseFiles, recording: &Recording) -> Self {
        let names = (0..files.databases.len()).map(Name::of).collect();
        let first_of = (0..files.databases.len()).collect();
        let mut look = Look { names, first_of, ..Look::default() };
        let mut found = Self::default();
        for (place, call) in recording.calls.iter().enumerate() {
            if call.result >= 0 && matches!(call.kind, CallKind::Unlink | CallKind::Rename) {
                let losers = look.lose_names(files, &recording.texts, call);
                if !losers.is_empty() {
                    found.losers.insert(place, losers);
                }
            }
            if let Some((role, database)) = files.of_description(call.description) {
                look.takes_description(files, call, role, database);
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

impl Name {
    fn of(database: usize) -> Self {
        Self { holder: database, is_free: false }
    }
}

#[derive(Debug, Default)]
struct Look {
    /// By the first database of each.
    names: Vec<Name>,
    /// Of each database the first one of its name.
    first_of: Vec<usize>,
    /// Of each database its descriptions that are open.
    open: HashMap<usize, HashSet<u32>>,
    /// The database that a thread used last, of those with a name: by the first one's number.
    used: HashMap<(u32, usize), usize>,
}

impl Look {
    /// The databases that an unlink or a rename takes the name away from: its own, what it replaces, and those in a directory that moves.
    fn lose_names(&mut self, files: &DatabaseFiles, texts: &Texts, call: &RecordedCall) -> Vec<usize> {
        let unlinked = files.of_path(call.path).filter(|_| call.kind == CallKind::Unlink);
        let renamed = [call.path, call.second_path].map(|path| texts.get(path));
        let renamed = renamed.into_iter().filter(|path| call.kind == CallKind::Rename && !path.is_empty());
        let renamed: Vec<&str> = renamed.collect();
        let is_in = |path: &str, renamed: &&str| {
            let rest = path.strip_prefix(*renamed);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut losers = Vec::new();
        for (first, name) in self.names.iter_mut().enumerate() {
            let is_lost = unlinked == Some((FileRole::Database, first))
                || renamed.iter().any(|renamed| is_in(&files.databases[first].path, renamed));
            if is_lost && !std::mem::replace(&mut name.is_free, true) {
                losers.push(name.holder);
            }
        }
        losers
    }

    fn takes_description(
        &mut self,
        files: &mut DatabaseFiles,
        call: &RecordedCall,
        role: FileRole,
        database: usize,
    ) {
        if role == FileRole::Directory {
            return;
        }
        let (number, first) = (call.description, self.first_of[database]);
        let mut database = database;
        if call.kind == CallKind::Open {
            database = match role {
                FileRole::Database => self.opens(files, first),
                _ => self.of_path(call.thread, role, first),
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
    }

    /// A database of this name is opened.
    fn opens(&mut self, files: &mut DatabaseFiles, first: usize) -> usize {
        let name = &mut self.names[first];
        let is_in_use = self.open.get(&name.holder).is_some_and(|open| !open.is_empty());
        if std::mem::take(&mut name.is_free) && is_in_use {
            name.holder = files.add_successor(first);
            self.first_of.push(first);
        }
        name.holder
    }

    /// The database that a thread means by a path.
    fn of_path(&self, thread: u32, role: FileRole, first: usize) -> usize {
        let used = self.used.get(&(thread, first)).filter(|_| role != FileRole::Database);
        used.copied().unwrap_or(self.names[first].holder)
    }
}
