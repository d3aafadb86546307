//! Files that patterns of a class name, and that are not of the class: how many there are, and why.

use crate::bench::key::Word;
use crate::recording::Recording;
use crate::recording::call::CallKind;
use crate::recording::flags::{O_CREAT, O_DIRECTORY};
use crate::recording::whatif::classes::companions::Companions;
use crate::recording::whatif::classes::open_files::is_unnamed;
use crate::recording::whatif::classes::{
    ClassError, ClassPaths, ClassPattern, FileClass, OF_THE_SYSTEM, Patterns, used_below, used_paths,
};
use crate::trace::texts::Text;

/// Of how many files that the patterns name each is true. All of it is zero where they name none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedOtherwise {
    /// Files of databases, which decide of their class.
    pub of_databases: u64,
    /// Permanent by one of their names.
    pub permanent: u64,
    /// Temporary by one of their names.
    pub temporary: u64,
    /// Files of the system, which [`super::CACHE_PATTERN`] does not mean.
    pub of_the_system: u64,
    /// Files that have other names in the end, or share one with a file that is not of the class.
    pub of_others: u64,
}

impl NamedOtherwise {
    /// Counts those of a class of which there is no file.
    /// # Errors
    /// [`ClassError`]
    pub fn find(
        recording: &Recording,
        class: FileClass,
        patterns: &[ClassPattern],
    ) -> Result<Self, ClassError> {
        let companions = Companions::find(recording);
        let used = used_paths(recording);
        let named = Patterns::of(class, patterns);
        let permanent = super::named(recording, FileClass::Permanent, patterns, &companions)?;
        let temporary = super::of(recording, FileClass::Temporary, patterns)?;
        let of_class = super::of(recording, class, patterns)?;
        let directories = directories(recording);
        // A name that was only looked for in vain is no file.
        let there = recording.calls.iter().filter(|call| call.result >= 0);
        let there: ClassPaths = there.flat_map(|call| [call.path, call.second_path]).collect();
        let is_file = |path: &str, text: &Text| {
            used_below(&used, path).is_empty() && !directories.contains(text) && there.contains(text)
        };
        let mut found = Self::default();
        for (path, text) in
            used.iter().filter(|(path, text)| named.name_with_above(path) && is_file(path, text))
        {
            if companions.is_one(*text) {
                found.of_databases += 1;
            } else if class != FileClass::Permanent && permanent.contains(text) {
                found.permanent += 1;
            } else if class == FileClass::Cache && temporary.contains(text) {
                found.temporary += 1;
            } else if named.is_default && OF_THE_SYSTEM.iter().any(|folder| path.starts_with(folder)) {
                found.of_the_system += 1;
            } else if !of_class.contains(text) {
                found.of_others += 1;
            }
        }
        Ok(found)
    }

    /// What to say where no file is of the class: `what` it would be, and how the class is written.
    pub fn told(&self, patterns: &[&str], what: &str, class: FileClass) -> String {
        let (names, word) = (patterns.join(" or "), class.word());
        let reasons = [
            (self.of_databases, "of a database, which has to be named itself"),
            (self.permanent, "permanent by another pattern or name"),
            (self.temporary, "temporary by another pattern or name"),
            (self.of_the_system, "below /etc or /usr, where no name alone makes a cache"),
            (self.of_others, "also under a name that is not of the class"),
        ];
        let told = reasons.into_iter().filter(|(files, _)| *files > 0);
        let told =
            told.map(|(files, why)| format!("{files} {} {why}", if files == 1 { "is" } else { "are" }));
        let told: Vec<String> = told.collect();
        let alone = if self.permanent + self.temporary > 0 { ", and not for another class, too" } else { "" };
        let remedy = format!("name some with --class '{word}:PATTERN'{alone}");
        match (names.as_str(), told.as_slice()) {
            ("", _) => format!("no file of it is {what}; {remedy}"),
            (names, []) => format!("no file of it is named {names}; {remedy}"),
            (names, told) => {
                format!("no file of it that is named {names} is {what}: {}; {remedy}", told.join(", "))
            }
        }
    }
}

/// Paths that calls use as directories.
fn directories(recording: &Recording) -> ClassPaths {
    let calls = recording.calls.iter().filter(|call| match call.kind {
        CallKind::Mkdir | CallKind::Rmdir => true,
        _ => {
            let opens = matches!(call.kind, CallKind::Open | CallKind::Held);
            is_unnamed(call) || opens && call.flags & (O_DIRECTORY | O_CREAT) == O_DIRECTORY
        }
    });
    calls.map(|call| call.path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::whatif::classes::tests::recording;

    const OPEN: CallKind = CallKind::Open;

    #[test]
    fn files_that_have_the_name_and_another_class_are_counted_with_the_reason() {
        let mut recording = recording(&[
            (CallKind::Mkdir, "/h/cache", ""),
            (OPEN, "/h/cache/a", ""),
            (OPEN, "/h/cache/b", ""),
            (OPEN, "/h/cache/i.db", ""),
            (OPEN, "/h/cache/i.db-wal", ""),
            (OPEN, "/etc/ld.so.cache", ""),
            (CallKind::Rename, "/h/c.c", "/h/c.p"),
            (CallKind::Mkdir, "/h/cache/empty", ""),
            (CallKind::Access, "/h/cache/i.db-journal", ""),
            (CallKind::Access, "/h/cache/missing", ""),
        ]);
        recording.calls[8..].iter_mut().for_each(|call| call.result = -2);
        let counts = |class, patterns: &[(FileClass, &str)]| {
            let patterns: Vec<ClassPattern> =
                patterns.iter().map(|(class, text)| (*class, (*text).to_owned())).collect();
            let found = NamedOtherwise::find(&recording, class, &patterns).unwrap();
            [found.of_databases, found.permanent, found.temporary, found.of_the_system]
        };
        use FileClass::{Cache, Permanent, Temporary};
        assert_eq!(counts(Cache, &[(Cache, "*.db-wal")]), [1, 0, 0, 0]);
        assert_eq!(counts(Cache, &[(Temporary, "*cache*")]), [1, 0, 4, 0]);
        assert_eq!(counts(Cache, &[]), [1, 0, 0, 1]);
        assert_eq!(
            counts(Cache, &[(Cache, "/h/cache"), (Permanent, "/h/cache/?"), (Temporary, "i.db")]),
            [1, 2, 1, 0]
        );
        assert_eq!(counts(Cache, &[(Cache, "*.c"), (Permanent, "*.p")]), [0, 1, 0, 0]);
        assert_eq!(counts(Temporary, &[(Temporary, "*.c"), (Permanent, "*.p")]), [0, 1, 0, 0]);
        assert_eq!(counts(Cache, &[(Cache, "*.none"), (Permanent, "*.p")]), [0; 4]);
    }

    #[test]
    fn files_that_also_have_a_name_of_others_are_counted() {
        let recording = recording(&[
            (OPEN, "/h/doc", ""),
            (OPEN, "/h/cache/n", ""),
            (CallKind::Rename, "/h/cache/n", "/h/doc"),
            (OPEN, "/h/d", ""),
            (CallKind::Link, "/h/d", "/h/cache/l"),
        ]);
        let found = NamedOtherwise::find(&recording, FileClass::Cache, &[]).unwrap();
        assert_eq!(found, NamedOtherwise { of_others: 2, ..NamedOtherwise::default() });
        assert_eq!(
            found.told(&["*cache*"], "a cache", FileClass::Cache),
            "no file of it that is named *cache* is a cache: 2 are also under a name that is not of the class; name some with --class \
             'cache:PATTERN'"
        );
    }

    #[test]
    fn the_reason_names_the_files_and_a_remedy() {
        let told =
            |found: NamedOtherwise, patterns: &[&str]| found.told(patterns, "a cache", FileClass::Cache);
        assert_eq!(
            told(NamedOtherwise::default(), &["a", "b"]),
            "no file of it is named a or b; name some with --class 'cache:PATTERN'"
        );
        assert_eq!(
            told(NamedOtherwise::default(), &[]),
            "no file of it is a cache; name some with --class 'cache:PATTERN'"
        );
        let found = NamedOtherwise { of_databases: 1, permanent: 2, ..NamedOtherwise::default() };
        assert_eq!(
            told(found, &["*.c"]),
            "no file of it that is named *.c is a cache: 1 is of a database, which has to be named itself, 2 are permanent by another \
             pattern or name; name some with --class 'cache:PATTERN', and not for another class, too"
        );
    }
}
