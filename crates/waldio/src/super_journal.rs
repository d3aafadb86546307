//! Super-journals that exist now: while one does, commits are not deferred.
//!
//! SQLite writes one where a transaction changes several databases in rollback mode. It then ignores what the second
//! phase of each commit says (vdbeaux.c, `vdbeCommit`: the super-journal is gone, the transaction has happened), so a
//! log that takes part must be durable when its `xSync` returns (F5).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

static COUNT: AtomicUsize = AtomicUsize::new(0);
static NAMES: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

fn change(act: impl FnOnce(&mut HashSet<PathBuf>)) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    act(names);
    COUNT.store(names.len(), SeqCst);
}

/// One was created.
pub fn created(path: &Path) {
    change(|names| {
        names.insert(path.to_path_buf());
    });
}

/// A file was deleted; it may have been one.
pub fn deleted(path: &Path) {
    if is_open() {
        change(|names| {
            names.remove(path);
        });
    }
}

/// True while this process has one.
pub fn is_open() -> bool {
    COUNT.load(SeqCst) > 0
}
