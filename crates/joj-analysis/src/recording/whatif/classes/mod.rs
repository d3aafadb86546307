//! Which files of a recording belong together: databases with their journals, and caches, by their names.
//!
//! A file that gets a name of permanent files, or had one, is permanent. A cache or a temporary file has to have such names alone in the
//! end. All that is below a directory of a class is of the class. The files beside a database are of its class.
//!
//! ```text
//! losable           which files are caches or temporary
//! file_lives        the names of each file, from its first call to its last
//! named_otherwise   how many files have the name of a class, and another class
//! companions        which files lie beside databases
//! open_files        of what class a file is that is open
//! ```

mod losable;
mod file_lives;
pub mod named_otherwise;
pub mod companions;
pub mod open_files;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use thiserror::Error;

use crate::bench::key::words;
use crate::recording::Recording;
use crate::recording::call::CallKind;
use crate::recording::page_transactions::database_files::{DatabaseFiles, FileRole};
use crate::recording::whatif::classes::companions::Companions;
use crate::recording::whatif::classes::losable::Losable;
use crate::recording::whatif::classes::open_files::OpenFiles;
use crate::recording::whatif::pattern;
use crate::trace::texts::{Text, Texts};

words! {
    /// What files are worth, as the user says it of their names.
    pub enum FileClass: "class" {
        /// What may not be lost.
        Permanent = "permanent",
        /// What can be had again: a power cut may take it.
        Cache = "cache",
        /// What nobody wants after a restart.
        Temporary = "temporary",
    }
}

/// A class and a pattern that names files of it.
pub type ClassPattern = (FileClass, String);

/// What a cache is called, unless options say otherwise.
pub const CACHE_PATTERN: &str = "*cache*";
/// Below these nothing is a cache by its name alone: each program reads `/etc/ld.so.cache`.
const OF_THE_SYSTEM: [&str; 2] = ["/etc/", "/usr/"];

/// Why files cannot be told from the others.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClassError {
    /// A directory is renamed that holds files of the class and others.
    #[error("the program renames {0}, in which such files lie beside others")]
    Renamed(String),
}

/// The paths of a class.
pub type ClassPaths = BTreeSet<Text>;

/// The databases, with journals, logs and wal-indexes.
/// # Errors
/// [`ClassError`]
pub fn databases(recording: &Recording) -> Result<ClassPaths, ClassError> {
    let files = DatabaseFiles::find(recording);
    let is_file = |role: FileRole| role != FileRole::Directory;
    let mut found = ClassPaths::new();
    for call in &recording.calls {
        let paths = [call.path, call.second_path].into_iter();
        found.extend(paths.filter(|path| files.of_path(*path).is_some_and(|(role, _)| is_file(role))));
        let opens = matches!(call.kind, CallKind::Open | CallKind::Held) && call.path != Text::NONE;
        if opens && files.of_description(call.description).is_some_and(|(role, _)| is_file(role)) {
            found.insert(call.path);
        }
    }
    // All files of each are there.
    whole(recording, FileClass::Permanent, found, &Companions::default())
}

/// What the patterns of a class name. Permanent files are of no other class, and temporary ones are no caches. A directory that also holds
/// files that are not of the class belongs to no class.
/// # Errors
/// [`ClassError`]
pub fn of(
    recording: &Recording,
    class: FileClass,
    patterns: &[ClassPattern],
) -> Result<ClassPaths, ClassError> {
    let companions = Companions::find(recording);
    let mut found = match class {
        FileClass::Permanent => named(recording, class, patterns, &companions)?,
        FileClass::Cache | FileClass::Temporary => {
            Losable::of(recording, patterns, &companions).paths(class)?
        }
    };
    remove_shared_directories(recording, &mut found);
    Ok(found)
}

/// Takes away directories that also hold files that are not of the class, and those that get a name that is not of it, or had one.
fn remove_shared_directories(recording: &Recording, found: &mut ClassPaths) {
    let files = OpenFiles::find(recording);
    for directory in files.directories_of_others(found) {
        found.remove(&directory);
    }
    let used = used_paths(recording);
    let pairs = files.pairs(recording);
    loop {
        let before = found.len();
        let is_pure = |path: &Text| {
            let below = used_below(&used, recording.texts.get(*path));
            below.iter().all(|(_, inside)| found.contains(inside))
        };
        *found = found.iter().copied().filter(is_pure).collect();
        for (_, one, other) in pairs.iter().filter(|(kind, ..)| *kind == CallKind::Rename) {
            if found.contains(one) != found.contains(other) {
                found.remove(one);
                found.remove(other);
            }
        }
        if found.len() == before {
            return;
        }
    }
}

/// What names the files of a class: with a `/` a pattern is for the whole path, without one for any part of it. Without any pattern caches
/// are what [`CACHE_PATTERN`] names, but for files of the system.
struct Patterns<'a> {
    texts: Vec<&'a str>,
    /// No pattern of the user's is among them.
    is_default: bool,
}

impl<'a> Patterns<'a> {
    fn of(class: FileClass, patterns: &'a [ClassPattern]) -> Self {
        let own = patterns.iter().filter(|(of, _)| *of == class).map(|(_, pattern)| pattern.as_str());
        let own: Vec<&str> = own.collect();
        let is_default = class == FileClass::Cache && own.is_empty();
        Self { texts: if is_default { vec![CACHE_PATTERN] } else { own }, is_default }
    }

    /// Whether a path has such a name.
    fn name(&self, path: &str) -> bool {
        self.texts.iter().any(|pattern| match pattern.contains('/') {
            true => pattern::matches(pattern, path),
            false => path.split('/').any(|part| !part.is_empty() && pattern::matches(pattern, part)),
        })
    }

    /// Whether it or a directory above has such a name.
    fn name_with_above(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        ends.filter(|end| *end > 0).any(|end| self.name(&path[..end]))
    }

    /// Whether a name makes it a file of the class.
    fn mean(&self, path: &str) -> bool {
        let is_of_the_system = || OF_THE_SYSTEM.iter().any(|folder| path.starts_with(folder));
        self.name_with_above(path) && !(self.is_default && is_of_the_system())
    }
}

/// Files that patterns name, but for companions: of these the database decides.
fn named(
    recording: &Recording,
    class: FileClass,
    patterns: &[ClassPattern],
    companions: &Companions,
) -> Result<ClassPaths, ClassError> {
    let patterns = Patterns::of(class, patterns);
    let used = used_paths(recording).into_iter();
    let found = used.filter(|(path, text)| patterns.mean(path) && !companions.is_one(*text));
    whole(recording, class, found.map(|(_, text)| text).collect(), companions)
}

/// All paths that calls name.
fn used_paths(recording: &Recording) -> BTreeMap<&str, Text> {
    let calls = recording.calls.iter();
    // What is in a symbolic link is no name of a file here.
    let of = calls.flat_map(|call| match call.kind {
        CallKind::Symlink => [call.path, Text::NONE],
        _ => [call.path, call.second_path],
    });
    of.filter(|path| *path != Text::NONE).map(|path| (recording.texts.get(path), path)).collect()
}

/// With what is below, the other names of the same files, and the files beside databases.
fn whole(
    recording: &Recording,
    class: FileClass,
    mut found: ClassPaths,
    companions: &Companions,
) -> Result<ClassPaths, ClassError> {
    let texts = &recording.texts;
    let used = used_paths(recording);
    let pairs = OpenFiles::find(recording).pairs(recording);
    let is_own = |path: &Text| !companions.is_one(*path);
    loop {
        let before = found.len();
        for path in found.clone() {
            let below = used_below(&used, texts.get(path)).into_iter().map(|(_, text)| text);
            found.extend(below.filter(is_own));
        }
        found.extend(companions.of_class(class, &found, texts));
        for (_, one, other) in pairs.iter().filter(|(_, one, other)| is_own(one) && is_own(other)) {
            if found.contains(one) || found.contains(other) {
                found.extend([*one, *other]);
            }
        }
        if found.len() > before {
            continue;
        }
        // All files are known by now.
        let mixed = add_moved_directories(&used, &pairs, &mut found, texts);
        if found.len() > before {
            continue;
        }
        return mixed.map_or(Ok(found), Err);
    }
}

/// Adds directories that are renamed and have only files of the class in them. Gives one that has others, too.
fn add_moved_directories(
    used: &BTreeMap<&str, Text>,
    pairs: &[(CallKind, Text, Text)],
    found: &mut ClassPaths,
    texts: &Texts,
) -> Option<ClassError> {
    let mut mixed = None;
    for (_, one, other) in pairs.iter().filter(|(kind, ..)| *kind == CallKind::Rename) {
        let names = [texts.get(*one), texts.get(*other)];
        match what_moves(used, found, names) {
            Moved::Neither => {}
            Moved::SuchFiles => {
                found.extend([*one, *other]);
                found.extend(names.iter().flat_map(|name| used_below(used, name)).map(|(_, text)| text));
            }
            Moved::Both => mixed = mixed.or_else(|| Some(ClassError::Renamed(names[0].to_owned()))),
        }
    }
    mixed
}

/// Paths that calls name below a directory.
fn used_below<'a>(used: &BTreeMap<&'a str, Text>, directory: &str) -> Vec<(&'a str, Text)> {
    let inside = format!("{directory}/");
    let from = used.range::<str, _>((Bound::Included(inside.as_str()), Bound::Unbounded));
    let below = from.take_while(|(path, _)| path.starts_with(&inside));
    below.map(|(path, text)| (*path, *text)).collect()
}

/// What a directory has in it when it gets another name.
enum Moved {
    Neither,
    SuchFiles,
    Both,
}

/// What lies in a directory with these two names: files of the class, others.
fn what_moves(used: &BTreeMap<&str, Text>, found: &ClassPaths, names: [&str; 2]) -> Moved {
    // A directory in it is neither: it counts by what is in it.
    let is_directory = |path: &str| !used_below(used, path).is_empty();
    let files = names.iter().flat_map(|name| used_below(used, name)).filter(|(path, _)| !is_directory(path));
    let (mut such, mut others) = (false, false);
    for (_, text) in files {
        if found.contains(&text) {
            such = true;
        } else {
            others = true;
        }
    }
    match (such, others) {
        (false, _) => Moved::Neither,
        (true, false) => Moved::SuchFiles,
        (true, true) => Moved::Both,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::call::RecordedCall;
    use crate::recording::flags::{O_CREAT, O_TMPFILE};

    /// Each with its kind and one or two paths. What is opened is made if it is not there.
    pub(super) fn recording(calls: &[(CallKind, &str, &str)]) -> Recording {
        let mut recording = Recording::default();
        for (number, (kind, path, second)) in (1..).zip(calls) {
            let (path, second_path) = (recording.texts.keep(path), recording.texts.keep(second));
            let call = RecordedCall {
                kind: *kind,
                path,
                second_path,
                description: number,
                flags: if *kind == CallKind::Open { O_CREAT } else { 0 },
                ..RecordedCall::default()
            };
            recording.calls.push(call);
        }
        recording
    }

    fn paths(recording: &Recording, found: &ClassPaths) -> Vec<String> {
        let mut paths: Vec<String> = found.iter().map(|path| recording.texts.get(*path).to_owned()).collect();
        paths.sort();
        paths
    }

    fn found(calls: &[(CallKind, &str, &str)], patterns: &[&str]) -> Result<Vec<String>, ClassError> {
        let recording = recording(calls);
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let patterns: Vec<ClassPattern> =
            patterns.into_iter().map(|pattern| (FileClass::Cache, pattern)).collect();
        Ok(paths(&recording, &of(&recording, FileClass::Cache, &patterns)?))
    }

    const OPEN: CallKind = CallKind::Open;
    const RENAME: CallKind = CallKind::Rename;

    #[test]
    fn a_part_of_the_path_names_a_cache_and_all_that_is_in_it() {
        let calls = [(OPEN, "/h/Cache/a", ""), (OPEN, "/h/b", ""), (OPEN, "/h/my.cache", "")];
        assert_eq!(found(&calls, &[]).unwrap(), ["/h/Cache/a", "/h/my.cache"]);
        assert_eq!(found(&calls, &["/h/?"]).unwrap(), ["/h/b"]);
        assert!(found(&calls, &["cache"]).unwrap() == ["/h/Cache/a"], "either case");
        assert_eq!(found(&calls, &["none"]).unwrap(), [""; 0]);
        assert_eq!(found(&calls, &["b", "*.cache"]).unwrap(), ["/h/b", "/h/my.cache"]);
    }

    #[test]
    fn a_permanent_file_is_no_cache_and_a_temporary_one_neither() {
        let recording =
            recording(&[(OPEN, "/h/cache/a", ""), (OPEN, "/h/cache/a.db", ""), (OPEN, "/h/cache/t.tmp", "")]);
        let pattern = |class, pattern: &str| (class, pattern.to_owned());
        let patterns = [pattern(FileClass::Permanent, "*.db"), pattern(FileClass::Temporary, "*.tmp")];
        let of = |class| paths(&recording, &super::of(&recording, class, &patterns).unwrap());
        assert_eq!(of(FileClass::Cache), ["/h/cache/a"]);
        assert_eq!(of(FileClass::Temporary), ["/h/cache/t.tmp"]);
        assert_eq!(of(FileClass::Permanent), ["/h/cache/a.db"]);
    }

    #[test]
    fn what_every_program_reads_is_no_cache_unless_it_is_named() {
        let calls = [(OPEN, "/etc/ld.so.cache", ""), (OPEN, "/usr/lib/x/__pycache__/y", "")];
        assert_eq!(found(&calls, &[]).unwrap(), [""; 0]);
        assert_eq!(found(&calls, &["*.cache"]).unwrap(), ["/etc/ld.so.cache"]);
    }

    #[test]
    fn a_file_that_is_renamed_into_the_class_is_of_it() {
        let calls = [(OPEN, "/h/new", ""), (RENAME, "/h/new", "/h/x.cache"), (OPEN, "/h/other", "")];
        assert_eq!(found(&calls, &[]).unwrap(), ["/h/new", "/h/x.cache"]);
        let whole = [(OPEN, "/h/new/a", ""), (RENAME, "/h/new", "/h/cache"), (OPEN, "/h/cache/b", "")];
        assert_eq!(found(&whole, &[]).unwrap(), ["/h/cache", "/h/cache/b", "/h/new", "/h/new/a"]);
        let out = [(OPEN, "/h/cache/a", ""), (RENAME, "/h/cache", "/h/old"), (OPEN, "/h/old/b", "")];
        assert_eq!(found(&out, &[]).unwrap(), [""; 0]);
    }

    #[test]
    fn all_names_that_a_file_gets_while_it_is_open_are_of_one_class() {
        // With a name of its own, and without one.
        for (path, flags) in [("/h/new.cache", O_CREAT), ("/h", O_TMPFILE)] {
            let mut recording = recording(&[
                (OPEN, path, ""),
                (CallKind::Link, "", "/h/x.cache"),
                (CallKind::Link, "", "/h/y.cache"),
            ]);
            recording.calls.iter_mut().for_each(|call| call.description = 1);
            recording.calls[0].flags = flags;
            let permanent = (FileClass::Permanent, "y*".to_owned());
            let one_alone = (FileClass::Cache, "x*".to_owned());
            let found = |patterns: &[ClassPattern]| {
                let found = super::of(&recording, FileClass::Cache, patterns).unwrap();
                (OpenFiles::find(&recording).is_of(1, &found), found.len())
            };
            assert_eq!(found(&[]), (Some(true), if flags == O_CREAT { 3 } else { 2 }), "{path}");
            assert_eq!(found(&[one_alone]), (Some(false), 0), "{path}");
            assert_eq!(found(&[permanent]), (Some(false), 0), "{path}");
        }
    }

    #[test]
    fn a_directory_in_which_a_file_of_others_is_opened_without_a_name_is_of_no_class() {
        for (name, found) in [
            ("", &["/h/cache", "/h/cache/in"][..]),
            ("/h/cache/a", &["/h/cache", "/h/cache/a", "/h/cache/in"]),
            ("/h/b", &[]),
        ] {
            let link = if name.is_empty() { CallKind::Fsync } else { CallKind::Link };
            let mut recording =
                recording(&[(CallKind::Mkdir, "/h/cache", ""), (OPEN, "/h/cache/in", ""), (link, "", name)]);
            recording.calls.iter_mut().for_each(|call| call.description = 1);
            recording.calls[1].flags = O_TMPFILE;
            assert_eq!(paths(&recording, &of(&recording, FileClass::Cache, &[]).unwrap()), found);
        }
    }

    #[test]
    fn a_directory_that_moves_with_such_files_and_others_is_told() {
        for other in ["/h/d/b", "/h/e/b"] {
            let calls = [(OPEN, "/h/d/x.cache", ""), (OPEN, other, ""), (RENAME, "/h/d", "/h/e")];
            assert_eq!(found(&calls, &["*.cache"]), Err(ClassError::Renamed("/h/d".to_owned())), "{other}");
        }
    }

    #[test]
    fn a_directory_that_has_no_other_files_moves_with_them() {
        let calls = [(OPEN, "/h/d/in/x.cache", ""), (RENAME, "/h/d", "/h/e"), (OPEN, "/h/e/in/x.cache", "")];
        let whole = ["/h/d", "/h/d/in/x.cache", "/h/e", "/h/e/in/x.cache"];
        assert_eq!(found(&calls, &["*.cache"]).unwrap(), whole);
        let calls = [(OPEN, "/h/d/b", ""), (RENAME, "/h/d", "/h/e"), (OPEN, "/h/x.cache", "")];
        assert_eq!(found(&calls, &["*.cache"]).unwrap(), ["/h/x.cache"]);
        // The other file gets a name of the class, but later.
        let calls = [
            (OPEN, "/h/d/x.cache", ""),
            (OPEN, "/h/d/b", ""),
            (RENAME, "/h/d", "/h/e"),
            (RENAME, "/h/e/b", "/h/e/y.cache"),
        ];
        assert!(found(&calls, &["*.cache"]).unwrap().contains(&"/h/d/b".to_owned()));
    }

    #[test]
    fn databases_are_known_by_what_lies_beside_them() {
        let access = CallKind::Access;
        let calls = [
            (OPEN, "/h/a.db", ""),
            (access, "/h/a.db-journal", ""),
            (OPEN, "/h/b", ""),
            (OPEN, "/h/c.db.new", ""),
            (RENAME, "/h/c.db.new", "/h/a.db"),
        ];
        let recording = recording(&calls);
        let found = databases(&recording).unwrap();
        assert_eq!(paths(&recording, &found), ["/h/a.db", "/h/a.db-journal", "/h/c.db.new"]);
    }
}
