//! Which files may be lost, of those that names call caches or temporary.
//!
//! A file is of such a class if all names are that it has to its end. As long as it has another one, it may be made, opened once and synced
//! once: programs write `x.tmp` and rename it. What is more may be a document that is moved at its end.
//!
//! A replay has each path in one place. So a path of such a file is of the class only if all files are that ever have it, and those that
//! have one of their paths:
//!
//! ```text
//! write(x.tmp), rename(x.tmp, page.cache)        x.tmp and page.cache are of the class
//! write(x.tmp), rename(x.tmp, document)          with this one, too, neither is
//! ```

use std::collections::BTreeMap;

use crate::recording::Recording;
use crate::recording::whatif::classes::companions::Companions;
use crate::recording::whatif::classes::file_lives::{FileLife, FileLives, FileUses};
use crate::recording::whatif::classes::open_files::OpenFiles;
use crate::recording::whatif::classes::{
    ClassError, ClassPaths, ClassPattern, FileClass, Patterns, add_moved_directories, named, used_paths,
};
use crate::trace::file_type::SQLITE_ENDINGS;
use crate::trace::texts::Text;

/// What a file may be used by another name before it gets one of its class.
const USES_ELSEWHERE_MAX: FileUses = FileUses { opens: 1, syncs: 1 };

/// A recording whose files are told apart.
pub struct Losable<'a> {
    recording: &'a Recording,
    patterns: &'a [ClassPattern],
    companions: &'a Companions,
    used: BTreeMap<&'a str, Text>,
    lives: FileLives,
}

/// What names of one class are.
struct Names<'a> {
    own: Patterns<'a>,
    /// Of classes that win over it.
    stronger: Vec<Patterns<'a>>,
    stronger_paths: ClassPaths,
}

impl Names<'_> {
    fn mean(&self, path: &str) -> bool {
        self.own.mean(path) && !self.stronger.iter().any(|patterns| patterns.mean(path))
    }
}

impl<'a> Losable<'a> {
    /// Looks at all calls.
    pub fn of(recording: &'a Recording, patterns: &'a [ClassPattern], companions: &'a Companions) -> Self {
        let (used, lives) = (used_paths(recording), FileLives::find(recording));
        Self { recording, patterns, companions, used, lives }
    }

    /// The paths of caches or of temporary files, with directories that have only such files in them when they are renamed.
    /// # Errors
    /// [`ClassError`]
    pub fn paths(&self, class: FileClass) -> Result<ClassPaths, ClassError> {
        let own = Patterns::of(class, self.patterns);
        let mut stronger = vec![Patterns::of(FileClass::Permanent, self.patterns)];
        let mut stronger_paths = named(self.recording, FileClass::Permanent, self.patterns, self.companions)?;
        if class == FileClass::Cache {
            stronger.push(Patterns::of(FileClass::Temporary, self.patterns));
            stronger_paths.extend(self.paths(FileClass::Temporary)?);
        }
        let mut found = self.by_files(class, &Names { own, stronger, stronger_paths });
        let pairs = OpenFiles::find(self.recording).pairs(self.recording);
        loop {
            let before = found.len();
            let mixed = add_moved_directories(&self.used, &pairs, &mut found, &self.recording.texts);
            if found.len() == before {
                return mixed.map_or(Ok(found), Err);
            }
        }
    }

    fn by_files(&self, class: FileClass, names: &Names) -> ClassPaths {
        let is_own = |path: &str, text: &Text| names.mean(path) && !self.companions.is_one(*text);
        let named = self.used.iter().filter(|(path, text)| is_own(path, text)).map(|(_, text)| *text);
        let named: ClassPaths = named.collect();
        let mut shared = names.stronger_paths.clone();
        loop {
            let mut found: ClassPaths = named.difference(&shared).copied().collect();
            let companions = self.companions.of_class(class, &found, &self.recording.texts);
            found.extend(companions.into_iter().filter(|path| !shared.contains(path)));
            let lives = self.lives.lives.iter().enumerate();
            let others = lives.filter(|(_, life)| !self.is_of(life, &found, names)).map(|(place, _)| place);
            let of_others = self.lives.connected(others);
            if found.is_disjoint(&of_others) {
                // What is left has such names in the end, whatever it was called before.
                let lives = self.lives.lives.iter().filter(|life| life.paths.is_disjoint(&of_others));
                found.extend(lives.flat_map(|life| &life.paths));
                return found;
            }
            shared.extend(of_others);
        }
    }

    /// Whether a file is of the class, where such paths are.
    fn is_of(&self, life: &FileLife, found: &ClassPaths, names: &Names) -> bool {
        let stays = if life.last_names.is_empty() {
            // Its name was lost without a call.
            life.paths.iter().all(|path| found.contains(path))
        } else {
            life.last_names.iter().all(|name| self.is_name_of(name, life, found, names))
        };
        let was_elsewhere = life.paths.iter().any(|path| !found.contains(path));
        let uses = life.uses_elsewhere(|path| found.contains(&path));
        // Commits of a database are synced in the files beside it.
        let has_commits = life.paths.iter().any(|path| !found.contains(path) && self.has_files_beside(*path));
        let is_short = life.is_directory
            || uses.opens <= USES_ELSEWHERE_MAX.opens
                && uses.syncs <= USES_ELSEWHERE_MAX.syncs
                && !has_commits;
        stays && (!was_elsewhere || !life.was_there && is_short)
    }

    fn has_files_beside(&self, path: Text) -> bool {
        let path = self.recording.texts.get(path);
        SQLITE_ENDINGS.iter().any(|ending| self.used.contains_key(format!("{path}{ending}").as_str()))
    }

    /// Whether a name that a file has in the end makes it one of the class.
    fn is_name_of(&self, name: &str, life: &FileLife, found: &ClassPaths, names: &Names) -> bool {
        let is_companion = || life.paths.iter().any(|path| self.companions.is_called_so(*path));
        match self.used.get(name) {
            Some(text) => {
                // Another file may have the name that a journal gets: of this one no database decides.
                let is_of_other = self.companions.is_one(*text) && !self.companions.is_called_so(*text);
                found.contains(text) && (!is_of_other || is_companion())
            }
            // It has that because a directory above was renamed, and its database with it.
            None if is_companion() => SQLITE_ENDINGS
                .iter()
                .find_map(|ending| name.strip_suffix(ending))
                .is_some_and(|base| names.mean(base)),
            None => names.mean(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::call::{CallKind, RecordedCall};
    use crate::recording::flags::{O_CREAT, O_RDWR, O_SYNC_BITS, O_TMPFILE, RENAME_EXCHANGE};
    use crate::recording::whatif::classes::of;
    use crate::recording::whatif::variants::without_syncs_of;

    /// Calls in a row, without the recording of a program that makes them.
    #[derive(Default)]
    struct Made {
        recording: Recording,
        descriptions: u32,
    }

    impl Made {
        fn call(&mut self, kind: CallKind, paths: [&str; 2], flags: u32) -> &mut Self {
            let [path, second_path] = paths.map(|path| self.recording.texts.keep(path));
            let description =
                if path == Text::NONE || kind == CallKind::Open { self.descriptions } else { 0 };
            let call = RecordedCall {
                kind,
                thread: 1,
                description,
                path,
                second_path,
                flags,
                ..RecordedCall::default()
            };
            self.recording.calls.push(call);
            self
        }

        fn opens(&mut self, path: &str, flags: u32) -> &mut Self {
            self.descriptions += 1;
            self.call(CallKind::Open, [path, ""], flags)
        }

        /// Writes a file and makes it durable.
        fn saves(&mut self, path: &str) -> &mut Self {
            self.opens(path, O_RDWR | O_CREAT).syncs().call(CallKind::Close, ["", ""], 0)
        }

        fn syncs(&mut self) -> &mut Self {
            self.call(CallKind::Fsync, ["", ""], 0)
        }

        fn renames(&mut self, from: &str, to: &str) -> &mut Self {
            self.call(CallKind::Rename, [from, to], 0)
        }

        fn links(&mut self, from: &str, to: &str) -> &mut Self {
            self.call(CallKind::Link, [from, to], 0)
        }

        fn removes(&mut self, path: &str) -> &mut Self {
            self.call(CallKind::Unlink, [path, ""], 0)
        }

        /// Its caches, and how many of its syncs a replay leaves out for them.
        fn caches_of(&self, patterns: &[(FileClass, &str)]) -> (Vec<&str>, usize) {
            let patterns: Vec<ClassPattern> =
                patterns.iter().map(|(class, text)| (*class, (*text).to_owned())).collect();
            let found = of(&self.recording, FileClass::Cache, &patterns).unwrap();
            let mut names: Vec<&str> = found.iter().map(|path| self.recording.texts.get(*path)).collect();
            names.sort_unstable();
            let (_, left_out) = without_syncs_of(&self.recording, &found);
            (names, left_out.iter().filter(|is_left_out| **is_left_out).count())
        }

        fn caches(&self) -> (Vec<&str>, usize) {
            self.caches_of(&[])
        }
    }

    const NONE: (Vec<&str>, usize) = (Vec::new(), 0);

    #[test]
    fn a_cache_that_is_renamed_over_a_document_takes_no_syncs_from_it() {
        let mut made = Made::default();
        made.saves("/h/doc").saves("/h/doc").saves("/h/cache/n");
        assert_eq!(made.caches(), (vec!["/h/cache/n"], 1));
        made.renames("/h/cache/n", "/h/doc");
        assert_eq!(made.caches(), NONE);
        made.saves("/h/cache/other");
        assert_eq!(made.caches(), (vec!["/h/cache/other"], 1));
    }

    #[test]
    fn a_document_that_is_saved_by_rename_is_none_because_one_version_is_made_in_a_cache() {
        let mut made = Made::default();
        for _ in 0..3 {
            made.saves("/h/docs/t.tmp").renames("/h/docs/t.tmp", "/h/docs/main");
        }
        made.saves("/h/cache/n").renames("/h/cache/n", "/h/docs/main");
        assert_eq!(made.caches(), NONE);
    }

    #[test]
    fn a_database_that_is_restored_from_a_cache_is_as_permanent_as_its_journal() {
        let mut made = Made::default();
        let commits = |made: &mut Made, path: &str| {
            made.saves(&format!("{path}-journal")).removes(&format!("{path}-journal")).saves(path);
        };
        (0..3).for_each(|_| commits(&mut made, "/h/main.db"));
        commits(&mut made, "/h/cache/new.db");
        assert_eq!(made.caches(), (vec!["/h/cache/new.db", "/h/cache/new.db-journal"], 2));
        made.renames("/h/cache/new.db", "/h/main.db");
        assert_eq!(made.caches(), NONE);
    }

    #[test]
    fn a_database_that_had_commits_before_it_is_moved_to_a_cache_is_none_whatever_they_synced() {
        let mut made = Made::default();
        made.saves("/h/docs/a.db").opens("/h/docs/a.db-wal", O_RDWR | O_CREAT);
        for _ in 0..3 {
            made.syncs();
        }
        made.renames("/h/docs/a.db", "/h/cache/a.db").renames("/h/docs/a.db-wal", "/h/cache/a.db-wal");
        assert_eq!(made.caches(), NONE);
    }

    #[test]
    fn a_name_is_used_again_by_documents_that_never_were_in_the_cache() {
        let mut made = Made::default();
        made.saves("/h/cache/a").renames("/h/cache/a", "/h/docs/a").removes("/h/docs/a");
        for _ in 0..3 {
            made.saves("/h/docs/a").removes("/h/docs/a");
        }
        assert_eq!(made.caches(), NONE);
    }

    #[test]
    fn a_document_with_another_name_in_a_cache_is_none() {
        let mut made = Made::default();
        made.saves("/h/docs/d").links("/h/docs/d", "/h/cache/l").saves("/h/docs/d");
        assert_eq!(made.caches(), NONE);
        // In whatever order its names go.
        made.removes("/h/docs/d").removes("/h/cache/l");
        assert_eq!(made.caches(), NONE);
    }

    #[test]
    fn a_temporary_name_makes_no_document_of_a_cache_unless_documents_are_made_under_it() {
        let mut made = Made::default();
        made.saves("/h/x.tmp").renames("/h/x.tmp", "/h/page.cache");
        assert_eq!(made.caches(), (vec!["/h/page.cache", "/h/x.tmp"], 1));
        made.saves("/h/y.tmp").renames("/h/y.tmp", "/h/page.cache").saves("/h/y.tmp");
        assert_eq!(made.caches(), NONE, "y.tmp is one in the end, and page.cache lies where that is");
    }

    #[test]
    fn a_document_that_goes_to_a_cache_in_the_end_was_one() {
        let is_cache = |change: fn(&mut Made) -> &mut Made| {
            let mut made = Made::default();
            change(&mut made).renames("/h/doc", "/h/cache/old");
            made.caches() != NONE
        };
        assert!(is_cache(|made| made.saves("/h/doc")), "so is a cache made");
        assert!(!is_cache(|made| made.saves("/h/doc").saves("/h/doc")));
        assert!(!is_cache(|made| made.saves("/h/doc").syncs()));
        assert!(
            !is_cache(|made| made.call(CallKind::Stat, ["/h/doc", ""], 0).saves("/h/doc")),
            "it was there"
        );
        assert!(!is_cache(|made| {
            made.opens("/h/doc", O_RDWR | O_CREAT | O_SYNC_BITS);
            (0..2).fold(made, |made, _| made.call(CallKind::Write, ["", ""], 0))
        }));
    }

    #[test]
    fn a_symbolic_link_in_a_cache_is_no_other_name_of_a_document() {
        let mut made = Made::default();
        made.saves("/h/doc").call(CallKind::Symlink, ["/h/cache/l", "/h/doc"], 0).saves("/h/cache/l");
        assert_eq!(made.caches(), NONE);
    }

    #[test]
    fn a_directory_that_is_made_in_a_cache_and_moved_out_of_it_holds_documents() {
        let mut made = Made::default();
        made.call(CallKind::Mkdir, ["/h/cache/new", ""], 0).saves("/h/cache/new/a");
        made.renames("/h/cache/new", "/h/docs").saves("/h/docs/b").saves("/h/cache/c");
        assert_eq!(made.caches(), (vec!["/h/cache/c"], 1));
    }

    #[test]
    fn a_directory_is_in_one_place_under_both_of_its_names() {
        let mut made = Made::default();
        made.call(CallKind::Mkdir, ["/h/cache/new", ""], 0).renames("/h/cache/new", "/h/docs");
        assert_eq!(made.caches(), NONE);
        let mut made = Made::default();
        made.call(CallKind::Mkdir, ["/h/docs", ""], 0).saves("/h/docs/a").saves("/h/docs/a");
        made.renames("/h/docs", "/h/cache/old");
        assert_eq!(made.caches(), NONE, "what is in it is none of the class");
    }

    #[test]
    fn files_that_change_places_lie_in_one() {
        let mut made = Made::default();
        made.saves("/h/cache/a").saves("/h/doc");
        made.call(CallKind::Rename, ["/h/cache/a", "/h/doc"], RENAME_EXCHANGE);
        assert_eq!(made.caches(), NONE);
    }

    #[test]
    fn a_file_without_a_name_that_gets_a_documents_is_one() {
        let mut made = Made::default();
        made.opens("/h/cache", O_RDWR | O_TMPFILE).syncs().links("", "/h/cache/a").syncs();
        assert_eq!(made.caches(), (vec!["/h/cache", "/h/cache/a"], 2));
        made.saves("/h/doc").renames("/h/cache/a", "/h/doc");
        assert_eq!(made.caches(), NONE);
    }

    #[test]
    fn a_journal_of_a_cache_makes_no_document_one_that_it_is_renamed_over() {
        let mut made = Made::default();
        made.saves("/h/doc").saves("/h/doc").saves("/h/cache/i.db").saves("/h/cache/i.db-journal");
        made.renames("/h/cache/i.db-journal", "/h/doc");
        assert_eq!(made.caches(), (vec!["/h/cache/i.db"], 1));
    }

    #[test]
    fn permanent_wins_by_any_name_and_temporary_by_the_last() {
        use FileClass::{Permanent, Temporary};
        let mut made = Made::default();
        made.saves("/h/x.tmp")
            .renames("/h/x.tmp", "/h/page.cache")
            .saves("/h/cache/t.tmp")
            .saves("/h/cache/b");
        let all = (vec!["/h/cache/b", "/h/page.cache", "/h/x.tmp"], 2);
        assert_eq!(made.caches_of(&[(Temporary, "*.tmp")]), all);
        assert_eq!(made.caches_of(&[(Permanent, "*.tmp")]), (vec!["/h/cache/b"], 1));
        assert_eq!(
            made.caches_of(&[(Temporary, "x.tmp"), (Permanent, "page*")]).0,
            ["/h/cache/b", "/h/cache/t.tmp"]
        );
    }
}
