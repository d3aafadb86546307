//! Super-journals that exist now: while one does, commits are not deferred.
//!
//! SQLite writes one where a transaction changes several databases in rollback mode. It then ignores what the second
//! phase of each commit says (vdbeaux.c, `vdbeCommit`: the super-journal is gone, the transaction has happened), so a
//! log that takes part must be durable when its `xSync` returns (docs/sqlite_internals.md).
//!
//! Those of a parent are none of a child's after a fork: each process has a list of its own.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// The super-journals that SQLite has open in this process.
#[derive(Debug, Default)]
pub struct SuperJournals {
    count: AtomicUsize,
    names: Mutex<HashSet<PathBuf>>,
}

impl SuperJournals {
    fn change(&self, act: impl FnOnce(&mut HashSet<PathBuf>)) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut names);
        self.count.store(names.len(), SeqCst);
    }

    /// One was created.
    pub fn created(&self, path: &Path) {
        self.change(|names| {
            names.insert(path.to_path_buf());
        });
    }

    /// A file was deleted; it may have been one.
    pub fn deleted(&self, path: &Path) {
        if self.is_any_open() {
            self.change(|names| {
                names.remove(path);
            });
        }
    }

    /// True while this process has one.
    pub fn is_any_open(&self) -> bool {
        self.count.load(SeqCst) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_there_from_its_creation_to_its_deletion() {
        let (journals, one, two) = (SuperJournals::default(), Path::new("/a-mj1"), Path::new("/b-mj2"));
        assert!(!journals.is_any_open());
        journals.created(one);
        journals.created(two);
        journals.deleted(Path::new("/a.db-journal"));
        journals.deleted(one);
        assert!(journals.is_any_open());
        journals.deleted(two);
        assert!(!journals.is_any_open());
    }
}
