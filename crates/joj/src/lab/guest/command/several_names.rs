//! Files with several names (hard links). A copy of one name is another file than the other names are, and a program that has seen two of
//! them notices: `test a -ef b`, tar, `cp -a`. Of most files with several names a program sees one: the others are in a store of a package manager.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file with more names is not copied: each name of a copy takes memory.
const NAMES_MAX: u64 = 1_000;

/// Those that must not be copied: by their inode numbers.
#[derive(Debug, Default)]
pub struct SeveralNames {
    seen: BTreeSet<u64>,
}

impl SeveralNames {
    /// Finds those of which two names are in `used`, in a directory that is in `used`, or in one with a file that is.
    pub fn among(used: &[PathBuf]) -> SeveralNames {
        let (mut names, mut directories) = (BTreeMap::<u64, BTreeSet<PathBuf>>::new(), BTreeSet::new());
        for path in used {
            match fs::symlink_metadata(path) {
                Ok(facts) if facts.is_dir() => _ = directories.insert(path.as_path()),
                Ok(facts) if facts.nlink() > 1 => {
                    names.entry(facts.ino()).or_default().insert(path.clone());
                    directories.extend(path.parent());
                }
                _ => {}
            }
        }
        if names.is_empty() {
            return SeveralNames::default();
        }
        for directory in directories {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                if let Some(names) = names.get_mut(&entry.ino()) {
                    names.insert(entry.path());
                }
            }
        }
        let seen = names.into_iter().filter(|(_, names)| names.len() > 1).map(|(inode, _)| inode);
        SeveralNames { seen: seen.collect() }
    }

    /// False of a file that is no directory and of which two names are seen, or that has too many.
    pub fn allow(&self, facts: &Metadata) -> bool {
        facts.nlink() <= NAMES_MAX && !self.seen.contains(&facts.ino())
    }
}

/// Gives a copy as many names as the file has, in `directory`.
/// # Errors
/// As link(2).
pub fn give_names(copy: &Path, facts: &Metadata, directory: &Path) -> io::Result<()> {
    (1..facts.nlink())
        .try_for_each(|number| fs::hard_link(copy, directory.join(format!("{}-{number}", facts.ino()))))
}
