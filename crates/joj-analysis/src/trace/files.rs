//! What is known of each file of a trace: its name now, what it is for, whether it was deleted.

use std::collections::{HashMap, HashSet};

use super::event::FileKey;
use super::file_type::{FileType, FileTypes};
use super::texts::{Text, Texts};

/// Endings that SQLite puts behind a database's name.
const SQLITE_ENDINGS: [&str; 3] = ["-wal", "-journal", "-shm"];

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileInfo {
    /// Path or last part of it; none where nobody saw it.
    pub name: Text,
    /// What it is for.
    pub file_type: FileType,
    /// It has no name any more.
    pub deleted: bool,
}

/// The files of a trace. Grows with the number of files, not of events.
#[derive(Debug, Default)]
pub struct Files {
    types: FileTypes,
    known: HashMap<FileKey, FileInfo>,
    newest_of_name: HashMap<Box<str>, FileKey>,
    /// Names of databases, learned from the files beside them.
    databases: HashSet<Box<str>>,
}

impl Files {
    /// No file yet; types by these rules.
    pub fn new(types: FileTypes) -> Self {
        Self { types, ..Self::default() }
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
            self.known.entry(file).or_default().deleted = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::DeviceNumber;
    use super::*;

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
    fn an_inode_that_is_used_again_is_another_file() {
        let (mut files, mut texts) = (Files::default(), Texts::default());
        let name = texts.keep("x.db-journal");
        files.named(file(9, 1), name, &texts);
        files.unlinked(file(9, 1), 0);
        files.named(file(9, 2), name, &texts);
        assert_eq!([1, 2].map(|generation| files.get(file(9, generation)).deleted), [true, false]);
    }
}
