//! What a file is for, by its name: SQLite's files and the kinds that the papers tell apart.
//!
//! The table is a text of one rule a line, `type pattern..`, first match wins; `file_types.txt` is the one that is built in, and
//! users put their own in front of it. `*` stands for any letters, `?` for one; letters compare without case.

use thiserror::Error;

use crate::words::words;

/// What SQLite appends to a database's name: its log, its rollback journal, its wal-index.
pub const SQLITE_ENDINGS: [&str; 3] = ["-wal", "-journal", "-shm"];

words! {
    /// What a file is for.
    FileType {
        /// A SQLite database.
        SqliteDatabase = 1 "sqlite-database",
        /// SQLite's rollback journal.
        RollbackJournal = 2 "rollback-journal",
        /// SQLite's write-ahead log.
        WriteAheadLog = 3 "write-ahead-log",
        /// SQLite's wal-index.
        SharedMemory = 4 "shared-memory",
        /// Ties the journals of several databases together.
        SuperJournal = 5 "super-journal",
        /// Made to be deleted.
        Temporary = 6 "temporary",
        /// Programs, libraries, packages.
        Executable = 7 "executable",
        /// What programs read: settings, texts, caches.
        Resource = 8 "resource",
        /// Pictures, sound, films.
        Media = 9 "media",
        /// A directory.
        Directory = 10 "directory",
        /// None of these, or without a name.
        #[default]
        Other = 0 "other",
    }
}

impl FileType {
    /// True for what SQLite writes to be able to undo or redo: the journal above the filesystem's journal.
    pub fn is_sqlite_journal(self) -> bool {
        matches!(self, Self::RollbackJournal | Self::WriteAheadLog | Self::SuperJournal)
    }

    /// True for a database, and for what SQLite writes to be able to undo or redo.
    pub fn is_sqlite(self) -> bool {
        self == Self::SqliteDatabase || self.is_sqlite_journal()
    }
}

const BUILT_IN: &str = include_str!("file_types.txt");

/// Why a text is no list of rules.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum FileTypeError {
    /// A line begins with another word than a type.
    #[error("line {line}: `{word}` is no file type; take one of {}", known())]
    Unknown {
        /// The line's number; the first is 1.
        line: usize,
        /// Its first word.
        word: String,
    },
    /// A line has a type and no pattern.
    #[error("line {line}: no pattern behind `{word}`")]
    NoPattern {
        /// The line's number; the first is 1.
        line: usize,
        /// Its first word.
        word: String,
    },
}

fn known() -> String {
    let words: Vec<&str> = FileType::ALL.iter().map(|file_type| file_type.text()).collect();
    words.join(", ")
}

/// The rules, in order.
#[derive(Debug, Clone)]
pub struct FileTypes {
    rules: Vec<(FileType, String)>,
}

impl Default for FileTypes {
    fn default() -> Self {
        Self::with("").unwrap_or(Self { rules: Vec::new() })
    }
}

impl FileTypes {
    /// `more` in front of the built-in table.
    /// # Errors
    /// A line whose first word is no type, or that has no pattern; the text names the line.
    pub fn with(more: &str) -> Result<Self, FileTypeError> {
        let mut rules = Vec::new();
        for (index, line) in more.lines().chain(BUILT_IN.lines()).enumerate() {
            let mut words = line.split('#').next().unwrap_or("").split_whitespace();
            let Some(first) = words.next() else { continue };
            let unknown = || FileTypeError::Unknown { line: index + 1, word: first.to_owned() };
            let file_type = FileType::from_text(first).ok_or_else(unknown)?;
            let before = rules.len();
            rules.extend(words.map(|pattern| (file_type, pattern.to_lowercase())));
            if rules.len() == before {
                return Err(FileTypeError::NoPattern { line: index + 1, word: first.to_owned() });
            }
        }
        Ok(Self { rules })
    }

    /// The type of the file with this name or path.
    pub fn of(&self, path: &str) -> FileType {
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        if path.ends_with('/') {
            return FileType::Directory;
        }
        let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
        let found = self.rules.iter().find(|(_, pattern)| matches(pattern.as_bytes(), name.as_bytes()));
        found.map_or(FileType::Other, |(file_type, _)| *file_type)
    }
}

/// Shell patterns of `*` and `?`, in time linear in pattern times name.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut next, mut retry) = (0, 0, None);
    while next < name.len() {
        if at < pattern.len() && pattern[at] == b'*' {
            retry = Some((at + 1, next));
            at += 1;
        } else if at < pattern.len() && (pattern[at] == b'?' || pattern[at] == name[next]) {
            (at, next) = (at + 1, next + 1);
        } else if let Some((after_star, from)) = retry {
            retry = Some((after_star, from + 1));
            (at, next) = (after_star, from + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&letter| letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlites_files_are_known_by_their_endings() {
        let types = FileTypes::default();
        for (name, expected) in [
            ("/data/app.db", FileType::SqliteDatabase),
            ("app.db-journal", FileType::RollbackJournal),
            ("app.sqlite-wal", FileType::WriteAheadLog),
            ("history-shm", FileType::SharedMemory),
            ("app.db-mj1A2B3C4D5", FileType::SuperJournal),
            ("etilqs_0123456789abcdef", FileType::Temporary),
            ("libapp.so", FileType::Executable),
            ("a/", FileType::Directory),
            ("IMG_1.JPG", FileType::Media),
            ("prefs.xml", FileType::Resource),
            ("README", FileType::Other),
            ("app.db-wal (deleted)", FileType::WriteAheadLog),
        ] {
            assert_eq!(types.of(name), expected, "{name}");
        }
    }

    #[test]
    fn users_rules_come_first_and_wrong_ones_are_named() {
        let types = FileTypes::with("sqlite-database *.mbtiles history\n\n# mine\n").expect("rules");
        assert_eq!(
            (types.of("w.MBTiles"), types.of("History")),
            (FileType::SqliteDatabase, FileType::SqliteDatabase)
        );
        assert!(
            FileTypes::with("\ndatabase *.x")
                .unwrap_err()
                .to_string()
                .starts_with("line 2: `database` is no file type")
        );
        let line = FileTypeError::NoPattern { line: 1, word: "media".to_owned() };
        assert_eq!(FileTypes::with("media").map(|_| ()), Err(line));
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*b*c", "aXbYbc", true),
            ("a?c", "ac", false),
            ("*-mj?", "x-mj12", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
