//! Which descriptions and paths of a recording are databases, their journals, logs and wal-indexes.
//!
//! A database is a file beside which a call names a `-journal` or a `-wal`: SQLite looks for both before it reads. It is also one that
//! has a `first_page` row, or a lock on SQLite's lock bytes. SQLite's temporary files are none.
//!
//! A script of MobiGen's has lost the names of files that were opened for writing. There a thread asks for `NAME-journal` and then reads
//! bytes 24 to 39 (the change counter) of a descriptor without a name: that is NAME. A journal without a name is one whose writes are no
//! whole pages. It belongs to the database that its thread writes to next.
//!
//! ```text
//! successors   databases that get the name of another one while that is open
//! ```

pub mod successors;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{O_CREAT, O_EXCL, O_TMPFILE};
use crate::recording::page_transactions::database_files::successors::Successors;
use crate::recording::page_transactions::positions::Positions;
use crate::recording::page_transactions::{RecordedCommit, RecordedDatabase};
use crate::trace::texts::{Text, Texts};

/// Byte of a database where SQLite's lock bytes begin (PENDING); RESERVED is the next (os_unix.c).
pub const PENDING_BYTE: u64 = 0x4000_0000;
/// Where SQLite keeps a database's change counter, and how much of the header it reads to see whether its cache is still right.
const CHANGE_COUNTER: (u64, u64) = (24, 16);
/// Bytes of a page where nothing tells.
const PAGE_BYTES: u64 = 4096;

/// What a file is to its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    Database,
    Journal,
    Log,
    WalIndex,
    /// That of waldio's embedded layout.
    EmbeddedIndex,
    /// A file without content that is locked while the log is in that layout.
    EmbeddedLock,
    /// The journal of a commit over several databases.
    SuperJournal,
    /// The directory, whose sync makes names durable.
    Directory,
}

/// A database that calls are about.
#[derive(Debug, Default)]
pub struct FoundDatabase {
    pub path: String,
    pub page_bytes: u64,
    /// Some call syncs it.
    pub has_syncs: bool,
}

/// All files of all databases.
#[derive(Debug, Default)]
pub struct DatabaseFiles {
    pub databases: Vec<FoundDatabase>,
    by_description: HashMap<u32, (FileRole, usize)>,
    by_path: HashMap<Text, (FileRole, usize)>,
    strangers: HashSet<u32>,
    /// Those that get the name of another one.
    pub successors: Successors,
}

/// What is known of a description after a look at all calls.
#[derive(Debug, Default)]
struct Description {
    path: Text,
    is_lost: bool,
    /// The database that a lost name was, by SQLite's habits.
    name: Option<String>,
    is_database: bool,
    /// It had one of SQLite's locks.
    has_lock: bool,
    /// It is a file of SQLite's own for temporary tables, for a VACUUM or a sort: nothing else is made with O_EXCL (os_unix.c, unixOpen).
    /// It has no lock and no journal with its name, and nobody syncs it.
    is_temporary: bool,
    /// Writes that are no whole page.
    other_writes: u64,
    /// Lengths of reads and writes that may be a page's, and how many there were.
    lengths: BTreeMap<u64, u64>,
}

/// True for a length that a page can have.
pub fn is_page(bytes: u64) -> bool {
    bytes.is_power_of_two() && (512..=65_536).contains(&bytes)
}

/// What a name says: the file's role, and the name of its database.
fn role_of(path: &str) -> Option<(FileRole, &str)> {
    let of = |ending: &str, role| {
        let base = path.strip_suffix(ending).filter(|base| !base.is_empty() && !base.ends_with('/'))?;
        Some((role, base))
    };
    of("-journal", FileRole::Journal)
        .or_else(|| of("-wal", FileRole::Log))
        .or_else(|| of("-waldio-shm", FileRole::EmbeddedIndex))
        .or_else(|| of("-waldio", FileRole::EmbeddedLock))
        .or_else(|| of("-shm", FileRole::WalIndex))
        .or_else(|| super_journal(path))
}

/// `NAME-mj0123ABCDE`: what pager.c and vdbeaux.c call the journal of several databases.
fn super_journal(path: &str) -> Option<(FileRole, &str)> {
    let (base, number) = path.rsplit_once("-mj")?;
    let is_number = number.len() == 9 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_number && !base.is_empty()).then_some((FileRole::SuperJournal, base))
}

impl DatabaseFiles {
    /// Looks at all calls of a recording.
    pub fn find(recording: &Recording) -> Self {
        let (descriptions, first_pages) = look(recording);
        let mut files = Self::default();
        let numbers = files.find_databases(recording, &descriptions, &first_pages);
        files.name_paths(recording, &numbers);
        for (number, description) in &descriptions {
            files.name_description(*number, description, recording.texts.get(description.path), &numbers);
        }
        files.link_lost_journals(recording, &descriptions);
        files.successors = Successors::find(&mut files, recording);
        files.strangers = files.find_strangers(&recording.calls, &descriptions);
        files.find_page_sizes(&descriptions, &first_pages);
        for call in recording.calls.iter().filter(|call| call.kind.is_sync()) {
            if let Some((FileRole::Database, index)) = files.of_description(call.description) {
                files.databases[index].has_syncs = true;
            }
        }
        files
    }

    /// What a description is, and the index of its database.
    pub fn of_description(&self, description: u32) -> Option<(FileRole, usize)> {
        self.by_description.get(&description).copied()
    }

    /// The same of a path: the first database of that name.
    pub fn of_path(&self, path: Text) -> Option<(FileRole, usize)> {
        self.by_path.get(&path).copied()
    }

    /// The same of a call, by its place in the recording.
    pub fn of_call(&self, place: usize, call: &RecordedCall) -> Option<(FileRole, usize)> {
        let by_path = || {
            let (role, first) = self.of_path(call.path)?;
            Some((role, self.successors.of_call(place, first)))
        };
        self.of_description(call.description).or_else(by_path)
    }

    /// Adds a database that gets the name of the first one.
    pub fn add_successor(&mut self, first: usize) -> usize {
        let path = self.databases[first].path.clone();
        self.databases.push(FoundDatabase { path, ..FoundDatabase::default() });
        self.databases.len() - 1
    }

    /// A description is of this database.
    pub fn give(&mut self, description: u32, role: FileRole, database: usize) {
        self.by_description.insert(description, (role, database));
    }

    /// Whether a description of such a file is none of SQLite's.
    pub fn is_stranger(&self, description: u32) -> bool {
        self.strangers.contains(&description)
    }

    /// The databases that have a commit alone; parts of commits get their numbers.
    pub fn with_commits(&self, commits: &mut [RecordedCommit]) -> Vec<RecordedDatabase> {
        let mut kept: HashMap<usize, usize> = HashMap::new();
        let mut databases: Vec<RecordedDatabase> = Vec::new();
        for part in commits.iter_mut().flat_map(|commit| &mut commit.parts) {
            let found = &self.databases[part.database];
            part.database = *kept.entry(part.database).or_insert_with(|| {
                databases.push(RecordedDatabase {
                    path: found.path.clone(),
                    page_bytes: u32::try_from(found.page_bytes).unwrap_or(u32::MAX),
                    pages_before: part.pages_before,
                    pages_after: part.pages_before,
                });
                databases.len() - 1
            });
            let database = &mut databases[part.database];
            // What a later commit finds was there from the begin, if nothing grew.
            if database.pages_after == database.pages_before && part.pages_before > database.pages_after {
                database.pages_before = part.pages_before;
            }
            database.pages_after = part.pages_after;
        }
        databases
    }

    /// The databases, by name.
    fn find_databases<'a>(
        &mut self,
        recording: &'a Recording,
        descriptions: &'a BTreeMap<u32, Description>,
        first_pages: &[RecordedCall],
    ) -> BTreeMap<&'a str, usize> {
        let texts = &recording.texts;
        let paths = recording.calls.iter().flat_map(|call| [call.path, call.second_path]);
        let roles = paths.filter_map(|path| role_of(texts.get(path)));
        let is_asked = |role: FileRole| matches!(role, FileRole::Journal | FileRole::Log);
        let asked: HashSet<&str> = roles.filter(|(role, _)| is_asked(*role)).map(|(_, base)| base).collect();
        let opened = descriptions.values().filter(|description| !description.is_lost);
        let opened =
            opened.map(|description| texts.get(description.path)).filter(|path| asked.contains(path));
        let opened = opened.map(str::to_owned).collect();
        let opened = successors::with_new_names(opened, &recording.calls, texts);
        // What an application looks for beside a journal or a log makes no database of that.
        let is_beside =
            |name: &str| role_of(name).is_some_and(|(role, base)| is_asked(role) && opened.contains(base));
        let beside = asked.iter().copied().filter(|base| opened.contains(*base) && !is_beside(base));
        let described = descriptions.values().filter_map(|description| match &description.name {
            Some(name) => Some(name.as_str()),
            None => description.is_a_database().then(|| texts.get(description.path)),
        });
        let first = first_pages.iter().map(|row| texts.get(row.path)).filter(|path| !path.is_empty());
        let found: BTreeSet<&str> = beside.chain(described).chain(first).collect();
        // It has SQLite's locks.
        let is_lock = |name: &str| {
            role_of(name).is_some_and(|(role, base)| role == FileRole::EmbeddedLock && found.contains(base))
        };
        let names: BTreeSet<&str> = found.iter().copied().filter(|name| !is_lock(name)).collect();
        for name in &names {
            self.databases.push(FoundDatabase { path: (*name).to_owned(), ..FoundDatabase::default() });
        }
        names.into_iter().zip(0..).collect()
    }

    fn name_paths(&mut self, recording: &Recording, numbers: &BTreeMap<&str, usize>) {
        for path in recording.calls.iter().flat_map(|call| [call.path, call.second_path]) {
            let text = recording.texts.get(path);
            let found = match numbers.get(text) {
                Some(index) => Some((FileRole::Database, *index)),
                None => role_of(text).and_then(|(role, base)| Some((role, *numbers.get(base)?))),
            };
            self.by_path.extend(found.map(|found| (path, found)));
        }
    }

    fn name_description(
        &mut self,
        number: u32,
        description: &Description,
        path: &str,
        numbers: &BTreeMap<&str, usize>,
    ) {
        let found = match &description.name {
            Some(name) => numbers.get(name.as_str()).map(|index| (FileRole::Database, *index)),
            None => self.of_path(description.path),
        };
        let directory = || {
            let of = |name: &str| name.rsplit_once('/').is_some_and(|(directory, _)| directory == path);
            let inside = numbers.iter().find(|(name, _)| of(name));
            inside.map(|(_, index)| (FileRole::Directory, *index))
        };
        self.by_description.extend(found.or_else(directory).map(|found| (number, found)));
    }

    /// Journals without a name: of each the database that its thread writes to next.
    fn link_lost_journals(&mut self, recording: &Recording, descriptions: &BTreeMap<u32, Description>) {
        let is_journal = |number: u32| {
            let description = descriptions.get(&number);
            description.is_some_and(|found| found.is_lost && found.name.is_none() && found.other_writes > 0)
        };
        let mut written: HashMap<u32, Vec<u32>> = HashMap::new();
        for call in recording.calls.iter().filter(|call| call.kind.is_write() && call.result > 0) {
            match self.of_description(call.description) {
                Some((FileRole::Database, index)) => {
                    for journal in written.remove(&call.thread).unwrap_or_default() {
                        self.by_description.entry(journal).or_insert((FileRole::Journal, index));
                    }
                }
                // Sequential writes are no journal: SQLite gives each its place.
                None if is_journal(call.description) && call.kind == CallKind::Pwrite => {
                    let of_thread = written.entry(call.thread).or_default();
                    if !of_thread.contains(&call.description) {
                        of_thread.push(call.description);
                    }
                }
                _ => {}
            }
        }
    }

    /// Descriptions that none of SQLite's connections has: a copy's, an archive's, a download's. SQLite takes a lock on a database before
    /// it reads or writes it, and opens journal and log while it has the database open. So where the recording has its locks, a description
    /// of a database without any is none of its own, and neither is a journal or a log that is opened while no connection has the database.
    /// What was open before the recording may have had its lock before.
    fn find_strangers(
        &self,
        calls: &[RecordedCall],
        descriptions: &BTreeMap<u32, Description>,
    ) -> HashSet<u32> {
        let mut found = HashSet::new();
        let is_locker =
            |number: u32| descriptions.get(&number).is_some_and(|description| description.has_lock);
        let is_connection = |number: &u32| matches!(self.of_description(*number), Some((FileRole::Database, _)) if is_locker(*number));
        if !descriptions.keys().any(is_connection) {
            return found;
        }
        // By database the open descriptions of connections.
        let mut open: HashMap<usize, HashSet<u32>> = HashMap::new();
        for call in calls {
            let number = call.description;
            let Some((role, database)) = self.of_description(number) else { continue };
            let connections = open.entry(database).or_default();
            match (call.kind, role) {
                (CallKind::Held, FileRole::Database) => {
                    connections.insert(number);
                }
                (CallKind::Open, FileRole::Database) if is_locker(number) => {
                    connections.insert(number);
                }
                (CallKind::Open, FileRole::Journal | FileRole::Log) if !connections.is_empty() => {}
                (CallKind::Open, FileRole::Database | FileRole::Journal | FileRole::Log) => {
                    found.insert(number);
                }
                (CallKind::Close | CallKind::Released, FileRole::Database) if !call.stays_open() => {
                    connections.remove(&number);
                }
                _ => {}
            }
        }
        found
    }

    fn find_page_sizes(&mut self, descriptions: &BTreeMap<u32, Description>, first_pages: &[RecordedCall]) {
        let mut lengths: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); self.databases.len()];
        let own = descriptions.iter().filter(|(number, _)| !self.is_stranger(**number));
        for (number, description) in own {
            if let Some((FileRole::Database | FileRole::Log, index)) = self.of_description(*number) {
                for (length, times) in &description.lengths {
                    *lengths[index].entry(*length).or_default() += times;
                }
            }
        }
        for (database, lengths) in self.databases.iter_mut().zip(&lengths) {
            let most = lengths.iter().max_by_key(|(length, times)| (**times, **length));
            database.page_bytes = most.map_or(PAGE_BYTES, |(length, _)| *length);
        }
        for row in first_pages {
            let found = self.of_description(row.description).or_else(|| self.of_path(row.path));
            if let Some((FileRole::Database, index)) = found
                && is_page(row.offset)
            {
                self.databases[index].page_bytes = row.offset;
            }
        }
    }
}

/// The first look: what calls say of each description, and the `first_page` rows.
fn look(recording: &Recording) -> (BTreeMap<u32, Description>, Vec<RecordedCall>) {
    let mut found: BTreeMap<u32, Description> = BTreeMap::new();
    let mut first_pages = Vec::new();
    let mut positions = Positions::default();
    // By thread the database whose journal it asked for last.
    let mut asked: HashMap<u32, String> = HashMap::new();
    for call in &recording.calls {
        let place = positions.place(call);
        match call.kind {
            // Of a file without a name it is a directory's path.
            CallKind::Open | CallKind::Held if call.result >= 0 && call.flags & O_TMPFILE != O_TMPFILE => {
                let is_lost = call.flags & RecordedCall::LOST_NAME != 0;
                let is_temporary = call.flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL;
                let description =
                    Description { path: call.path, is_lost, is_temporary, ..Description::default() };
                found.insert(call.description, description);
            }
            CallKind::Access | CallKind::Stat => {
                asked.extend(asked_for(call, &recording.texts).map(|name| (call.thread, name)));
            }
            CallKind::FirstPage => {
                first_pages.push(*call);
                found.entry(call.description).and_modify(|description| description.is_database = true);
            }
            CallKind::Lock if call.offset >= PENDING_BYTE && call.offset < PENDING_BYTE + 512 => {
                found.entry(call.description).and_modify(|description| {
                    (description.is_database, description.has_lock) = (true, true);
                });
            }
            _ => {}
        }
        if let (Some(offset), Some(description)) = (place, found.get_mut(&call.description)) {
            description.take(call, offset, asked.get(&call.thread));
        }
    }
    (found, first_pages)
}

fn asked_for(call: &RecordedCall, texts: &Texts) -> Option<String> {
    let (role, base) = role_of(texts.get(call.path))?;
    (role == FileRole::Journal).then(|| base.to_owned())
}

impl Description {
    /// True where its pages or locks say that it is one. What SQLite looks for by name is one, too.
    fn is_a_database(&self) -> bool {
        self.is_database && !self.is_temporary
    }

    fn take(&mut self, call: &RecordedCall, offset: u64, asked: Option<&String>) {
        let bytes = call.moved_bytes();
        let of_page = is_page(bytes);
        if of_page {
            *self.lengths.entry(bytes).or_default() += 1;
        }
        if call.kind.is_write() {
            self.other_writes += u64::from(!of_page || !offset.is_multiple_of(bytes));
        } else if self.is_lost && self.name.is_none() && (offset, bytes) == CHANGE_COUNTER {
            self.name = asked.cloned();
        }
    }
}
