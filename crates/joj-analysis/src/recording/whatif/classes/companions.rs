//! Files that are worth what a database is worth, whatever they are called and wherever they lie: its journals, logs and indexes.
//!
//! After a power cut SQLite mends a database with its journal, and has what was committed from its log. So where the database has to
//! survive, these have to. A super-journal belongs to all databases of its commits: a journal that names it counts only while it is there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::recording::Recording;
use crate::recording::call::CallKind;
use crate::recording::page_transactions::database_files::{DatabaseFiles, FileRole};
use crate::recording::whatif::classes::open_files::OpenFiles;
use crate::recording::whatif::classes::{ClassPaths, FileClass};
use crate::trace::texts::{Text, Texts};

/// The files beside the databases of a recording.
#[derive(Debug, Default)]
pub struct Companions {
    /// Of each path the names of the databases that it is a file of.
    owners: BTreeMap<Text, BTreeSet<String>>,
    /// Those that are called so. The others are names that such a file also had.
    called_so: BTreeSet<Text>,
}

impl Companions {
    /// Looks at all calls. A file that a companion is renamed to, or was before, is one, too.
    pub fn find(recording: &Recording) -> Self {
        let files = DatabaseFiles::find(recording);
        let mut found = Self::default();
        for path in recording.calls.iter().flat_map(|call| [call.path, call.second_path]) {
            match files.of_path(path) {
                None | Some((FileRole::Database | FileRole::Directory, _)) => {}
                Some((_, database)) => found.add(path, &files.databases[database].path),
            }
        }
        found.add_commits_of_several(recording, &files);
        found.called_so = found.owners.keys().copied().collect();
        found.follow_names(recording, &files);
        found
    }

    /// Whether a database decides of what class a path is.
    pub fn is_one(&self, path: Text) -> bool {
        self.owners.contains_key(&path)
    }

    /// Whether it is by its own name that a database decides.
    pub fn is_called_so(&self, path: Text) -> bool {
        self.called_so.contains(&path)
    }

    /// Those whose databases are among the files of a class. A file of several databases is permanent where one of them is, and may be lost
    /// where all of them may.
    pub fn of_class(&self, class: FileClass, found: &ClassPaths, texts: &Texts) -> Vec<Text> {
        let names: BTreeSet<&str> = found.iter().map(|path| texts.get(*path)).collect();
        let is_found = |name: &String| names.contains(name.as_str());
        let is_of_class = |owners: &BTreeSet<String>| match class {
            FileClass::Permanent => owners.iter().any(is_found),
            FileClass::Cache | FileClass::Temporary => owners.iter().all(is_found),
        };
        self.owners.iter().filter(|(_, owners)| is_of_class(owners)).map(|(path, _)| *path).collect()
    }

    fn add(&mut self, path: Text, database: &str) {
        let owners = self.owners.entry(path).or_default();
        if !owners.contains(database) {
            owners.insert(database.to_owned());
        }
    }

    /// A super-journal is named by the first database alone. SQLite has it open while it writes its name to the journals of all.
    fn add_commits_of_several(&mut self, recording: &Recording, files: &DatabaseFiles) {
        // By thread the super-journal that it has open.
        let mut open: HashMap<u32, (u32, Text)> = HashMap::new();
        for call in &recording.calls {
            let Some((role, database)) = files.of_description(call.description) else { continue };
            match (call.kind, role) {
                (CallKind::Open, FileRole::SuperJournal) => {
                    open.insert(call.thread, (call.description, call.path));
                }
                (CallKind::Close | CallKind::Released, FileRole::SuperJournal) if !call.stays_open() => {
                    open.retain(|_, (description, _)| *description != call.description);
                }
                (_, FileRole::Journal) => {
                    if let Some((_, path)) = open.get(&call.thread) {
                        self.add(*path, &files.databases[database].path);
                    }
                }
                _ => {}
            }
        }
    }

    fn follow_names(&mut self, recording: &Recording, files: &DatabaseFiles) {
        let is_database =
            |path: Text| files.of_path(path).is_some_and(|(role, _)| role == FileRole::Database);
        let pairs = OpenFiles::find(recording).pairs(recording).into_iter();
        let pairs: Vec<(Text, Text)> = pairs
            .map(|(_, one, other)| (one, other))
            .filter(|(one, other)| {
                [*one, *other].iter().all(|path| *path != Text::NONE && !is_database(*path))
            })
            .collect();
        loop {
            let count = |owners: &BTreeMap<Text, BTreeSet<String>>| -> usize {
                owners.values().map(BTreeSet::len).sum()
            };
            let before = count(&self.owners);
            for (first, second) in &pairs {
                for (one, other) in [(*first, *second), (*second, *first)] {
                    let owners = self.owners.get(&one).cloned().unwrap_or_default();
                    owners.iter().for_each(|owner| self.add(other, owner));
                }
            }
            if count(&self.owners) == before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::call::RecordedCall;
    use crate::recording::whatif::classes::of;

    const OPEN: CallKind = CallKind::Open;
    const CLOSE: CallKind = CallKind::Close;
    const WRITE: CallKind = CallKind::Pwrite;
    const ASKED: CallKind = CallKind::Access;
    const RENAME: CallKind = CallKind::Rename;

    /// Of each call the kind, one or two paths, and the description.
    type Call<'a> = (CallKind, [&'a str; 2], u32);

    fn recording(calls: &[Call]) -> Recording {
        let mut recording = Recording::default();
        for (kind, paths, description) in calls {
            let [path, second_path] = paths.map(|path| recording.texts.keep(path));
            let call = RecordedCall { kind: *kind, path, second_path, ..RecordedCall::default() };
            recording.calls.push(RecordedCall { description: *description, ..call });
        }
        recording
    }

    fn of_class(calls: &[Call], class: FileClass, patterns: &[(FileClass, &str)]) -> Vec<String> {
        let recording = recording(calls);
        let patterns: Vec<_> = patterns.iter().map(|(class, text)| (*class, (*text).to_owned())).collect();
        let found = of(&recording, class, &patterns).unwrap();
        let mut found: Vec<String> = found.iter().map(|path| recording.texts.get(*path).to_owned()).collect();
        found.sort();
        found
    }

    /// A database in DELETE mode, one in WAL mode, one with waldio, and a file beside them.
    const DIRECTORY: [Call; 9] = [
        (OPEN, ["/h/cache", ""], 1),
        (OPEN, ["/h/cache/a.db", ""], 2),
        (OPEN, ["/h/cache/a.db-journal", ""], 3),
        (OPEN, ["/h/cache/b.db", ""], 4),
        (OPEN, ["/h/cache/b.db-wal", ""], 5),
        (OPEN, ["/h/cache/b.db-shm", ""], 6),
        (OPEN, ["/h/cache/b.db-waldio-shm", ""], 7),
        (OPEN, ["/h/cache/c", ""], 8),
        (OPEN, ["/h/cache/a.db-mj0123ABCDE", ""], 9),
    ];
    const OF_A: [&str; 3] = ["/h/cache/a.db", "/h/cache/a.db-journal", "/h/cache/a.db-mj0123ABCDE"];
    const OF_B: [&str; 4] =
        ["/h/cache/b.db", "/h/cache/b.db-shm", "/h/cache/b.db-wal", "/h/cache/b.db-waldio-shm"];

    #[test]
    fn journals_and_logs_are_as_permanent_as_their_database() {
        let patterns = [(FileClass::Permanent, "*.db")];
        let both = [&OF_A[..], &OF_B[..]].concat();
        assert_eq!(of_class(&DIRECTORY, FileClass::Permanent, &patterns), both);
        assert_eq!(of_class(&DIRECTORY, FileClass::Cache, &patterns), ["/h/cache/c"]);
        // Names of their own do not matter, nor does a class that is stronger.
        let patterns = [
            (FileClass::Permanent, "a.db"),
            (FileClass::Temporary, "*-wal"),
            (FileClass::Cache, "*-journal"),
        ];
        assert_eq!(of_class(&DIRECTORY, FileClass::Permanent, &patterns), OF_A);
        assert_eq!(of_class(&DIRECTORY, FileClass::Temporary, &patterns), [""; 0]);
        assert_eq!(of_class(&DIRECTORY, FileClass::Cache, &patterns), [""; 0]);
    }

    #[test]
    fn journals_and_logs_may_be_lost_where_their_database_may() {
        let patterns = [(FileClass::Temporary, "a.db"), (FileClass::Permanent, "*-wal")];
        assert_eq!(of_class(&DIRECTORY, FileClass::Temporary, &patterns), OF_A);
        assert_eq!(of_class(&DIRECTORY, FileClass::Permanent, &patterns), [""; 0]);
        let caches = [&OF_B[..], &["/h/cache/c"]].concat();
        assert_eq!(of_class(&DIRECTORY, FileClass::Cache, &patterns), caches);
        assert_eq!(of_class(&DIRECTORY, FileClass::Cache, &[(FileClass::Cache, "b.db")]), OF_B);
    }

    #[test]
    fn a_directory_that_others_share_belongs_to_no_class() {
        let of = |patterns: &[(FileClass, &str)]| of_class(&DIRECTORY[..3], FileClass::Cache, patterns);
        assert_eq!(of(&[]), ["/h/cache", "/h/cache/a.db", "/h/cache/a.db-journal"]);
        assert_eq!(of(&[(FileClass::Permanent, "*.db")]), [""; 0]);
    }

    #[test]
    fn other_names_of_a_journal_follow_the_database() {
        let calls = [
            (OPEN, ["/h/a.db", ""], 1),
            (RENAME, ["/h/new", "/h/a.db-wal"], 0),
            (RENAME, ["/h/a.db-wal", "/cache/old"], 0),
            (ASKED, ["/h/a.db-journal", ""], 0),
        ];
        let all = ["/cache/old", "/h/a.db", "/h/a.db-journal", "/h/a.db-wal", "/h/new"];
        assert_eq!(of_class(&calls, FileClass::Cache, &[]), [""; 0]);
        let patterns = [(FileClass::Cache, "*cache*"), (FileClass::Cache, "a.db")];
        assert_eq!(of_class(&calls, FileClass::Cache, &patterns), all);
        assert_eq!(of_class(&calls, FileClass::Permanent, &[(FileClass::Permanent, "*.db")]), all);
    }

    #[test]
    fn a_journal_of_several_databases_is_worth_the_most_of_them() {
        let calls = [
            (OPEN, ["/h/a.db", ""], 1),
            (OPEN, ["/h/a.db-journal", ""], 2),
            (OPEN, ["/h/b.db", ""], 3),
            (OPEN, ["/h/b.db-journal", ""], 4),
            (OPEN, ["/h/a.db-mj0123ABCDE", ""], 5),
            (WRITE, ["", ""], 2),
            (WRITE, ["", ""], 4),
            (CLOSE, ["", ""], 5),
            (OPEN, ["/h/c.db", ""], 6),
            (OPEN, ["/h/c.db-journal", ""], 7),
            (WRITE, ["", ""], 7),
        ];
        let has = |class, patterns: &[(FileClass, &str)]| {
            of_class(&calls, class, patterns).contains(&"/h/a.db-mj0123ABCDE".to_owned())
        };
        assert!(has(FileClass::Permanent, &[(FileClass::Permanent, "b.db")]));
        assert!(!has(FileClass::Permanent, &[(FileClass::Permanent, "c.db")]));
        assert!(!has(FileClass::Cache, &[(FileClass::Cache, "a.db")]), "b.db is as durable as recorded");
        assert!(has(FileClass::Cache, &[(FileClass::Cache, "a.db"), (FileClass::Cache, "b.db")]));
    }
}
