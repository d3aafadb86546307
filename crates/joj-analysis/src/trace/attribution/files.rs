//! What is known of each file of a trace: its name now, what it is for, whether it was deleted.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::trace::event::FileKey;
use crate::trace::file_type::{FileType, FileTypes, SQLITE_ENDINGS};
use crate::trace::texts::{Text, Texts};

/// The path of the database that a file of this path is or belongs to. A super-journal has the name of its connection's main database.
pub fn database_of(path: &str) -> &str {
    let of_one = SQLITE_ENDINGS.iter().find_map(|ending| path.strip_suffix(ending));
    of_one.or_else(|| main_database_of(path)).unwrap_or(path)
}

/// `app.db-mj1A2B3C4D5` (SQLite's vdbeCommit()): nine hexadecimal digits.
fn main_database_of(path: &str) -> Option<&str> {
    let (database, number) = path.rsplit_once("-mj")?;
    (number.len() == 9 && number.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(database)
}

/// What is known of a file: its name, what it is for, and whether it still has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileInfo {
    /// Path or last part of it; none where nobody saw it.
    pub name: Text,
    /// What it is for.
    pub file_type: FileType,
    /// It has no name any more.
    pub deleted: bool,
}

/// So many deleted files are remembered: what is still written to one comes soon after its end.
const DELETED_MAX: usize = 4096;

/// The files of a trace. Grows with the number of files that are there at one time, not of events.
#[derive(Debug, Default)]
pub struct Files {
    types: FileTypes,
    known: HashMap<FileKey, FileInfo>,
    newest_of_name: HashMap<Box<str>, FileKey>,
    /// Names of databases, learned from the files beside them.
    databases: HashSet<Box<str>>,
    /// Deleted ones, the oldest first.
    deleted: VecDeque<FileKey>,
}

impl Files {
    /// No file yet; types by these rules.
    pub fn new(types: FileTypes) -> Self {
        Self { types, ..Self::default() }
    }

    fn forget_oldest(&mut self) {
        while self.deleted.len() > DELETED_MAX {
            let oldest = self.deleted.pop_front();
            // It may have got a name again: then it is alive.
            if let Some(file) = oldest.filter(|file| self.known.get(file).is_some_and(|info| info.deleted)) {
                self.known.remove(&file);
            }
        }
    }

    /// What is known of a file: nothing for one that nobody named.
    pub fn get(&self, file: FileKey) -> FileInfo {
        self.known.get(&file).copied().unwrap_or_default()
    }

    /// A file has this name now.
    pub fn named(&mut self, file: FileKey, name: Text, texts: &Texts) {
        let path = texts.get(name);
        if let Some(database) = SQLITE_ENDINGS.iter().find_map(|ending| path.strip_suffix(ending)) {
            self.databases.insert(database.into());
            if let Some(info) = self.newest_of_name.get(database).and_then(|file| self.known.get_mut(file)) {
                info.file_type = FileType::SqliteDatabase;
            }
        }
        let by_name = self.types.of(path);
        let is_database = self.databases.contains(path) && !by_name.is_sqlite_journal();
        let file_type = if is_database { FileType::SqliteDatabase } else { by_name };
        self.known.insert(file, FileInfo { name, file_type, deleted: false });
        self.newest_of_name.insert(path.into(), file);
    }

    /// SQLite locks it as it locks databases.
    pub fn is_database(&mut self, file: FileKey) {
        let info = self.known.entry(file).or_default();
        if !info.file_type.is_sqlite_journal() {
            info.file_type = FileType::SqliteDatabase;
        }
    }

    /// A name is gone; `left` names remain.
    pub fn unlinked(&mut self, file: FileKey, left: i64) {
        if left <= 0 {
            let info = self.known.entry(file).or_default();
            if !std::mem::replace(&mut info.deleted, true) {
                self.deleted.push_back(file);
            }
            self.forget_oldest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::event::DeviceNumber;

    fn file(inode: u64, generation: u32) -> FileKey {
        FileKey { device: DeviceNumber(1), inode, generation }
    }

    #[test]
    fn a_file_beside_a_log_is_a_database_whatever_its_name() {
        let (mut files, mut texts) = (Files::default(), Texts::default());
        let names =
            ["/a/History", "/a/History-wal", "/b/Cookies-journal", "/b/Cookies"].map(|name| texts.keep(name));
        for (inode, name) in (1..).zip(names) {
            files.named(file(inode, 0), name, &texts);
        }
        let types: Vec<FileType> = (1..=4).map(|inode| files.get(file(inode, 0)).file_type).collect();
        let database = FileType::SqliteDatabase;
        assert_eq!(types, [database, FileType::WriteAheadLog, FileType::RollbackJournal, database]);
    }

    #[test]
    fn memory_does_not_grow_with_files_that_are_gone() {
        let (mut files, mut texts) = (Files::default(), Texts::default());
        let name = texts.keep("x.db-journal");
        for generation in 0..20_000 {
            files.named(file(9, generation), name, &texts);
            files.unlinked(file(9, generation), 0);
        }
        assert!(files.known.len() <= DELETED_MAX + 1, "{} files", files.known.len());
        assert!(files.get(file(9, 19_999)).deleted && files.get(file(9, 0)).name == Text::NONE);
    }

    #[test]
    fn an_inode_that_is_used_again_is_another_file() {
        let (mut files, mut texts) = (Files::default(), Texts::default());
        let name = texts.keep("x.db-journal");
        files.named(file(9, 1), name, &texts);
        files.unlinked(file(9, 1), 0);
        files.named(file(9, 2), name, &texts);
        assert_eq!([1, 2].map(|generation| files.get(file(9, generation)).deleted), [true, false]);
    }
}
