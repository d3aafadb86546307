//! A fresh directory for the files of a measurement, gone when the measurement is over.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::machine::files::left_over::{self, NameLock};
use crate::machine::proc::clock::pause;

/// So many directories of a process, at most, are in one place: a lane of guests has one, and so does a killed joj of the same number.
const NUMBERS: usize = 10_000;

/// Why there is no directory to measure in; nothing is left behind.
#[derive(Debug, Error)]
pub enum WorkDirError {
    /// Nothing is at the place.
    #[error("there is no directory {}; make it first with `mkdir -p {}`", .0.display(), .0.display())]
    Missing(PathBuf),
    /// The place cannot be looked at.
    #[error("cannot look at {}: {error}; give another directory", .place.display())]
    Hidden {
        /// The directory that was given.
        place: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file is at the place.
    #[error("{} is not a directory; give the one on the disk to measure", .0.display())]
    NoDirectory(PathBuf),
    /// Nothing can be made there.
    #[error("{}", cannot_write(.place, .error))]
    ReadOnly {
        /// The directory that was given.
        place: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Ten thousand directories of this process's number are in the way.
    #[error("{} is full of {name}-* directories; remove those of runs that were killed", .place.display())]
    Full {
        /// The directory that was given.
        place: PathBuf,
        /// What the directories are called.
        name: &'static str,
    },
}

/// A directory below the measured one; dropping it removes it with all that is in it.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    /// It goes after the directory.
    _lock: Option<NameLock>,
}

impl WorkDir {
    /// Makes `joj-bench-<process id>` below `parent`.
    /// # Errors
    /// Why not, and what to do; nothing is left behind.
    pub fn create(parent: &Path) -> Result<WorkDir, WorkDirError> {
        Self::named(parent, "joj-bench")
    }

    /// Makes `<name>-<process id>-<n>` below `parent`.
    /// # Errors
    /// As [`WorkDir::create`].
    pub fn named(parent: &Path, name: &'static str) -> Result<WorkDir, WorkDirError> {
        Self::make(parent, name, 0o777, |_| Ok(Some(None)))
    }

    /// The same, for its user alone, and with a lock beside it: where this joj is killed, the next that makes one of this name there
    /// removes it.
    /// # Errors
    /// As [`WorkDir::create`]; the filesystem has no locks.
    pub fn locked(parent: &Path, name: &'static str) -> Result<WorkDir, WorkDirError> {
        left_over::remove_left(parent, name);
        Self::make(parent, name, 0o700, |path| Ok(NameLock::take(path)?.map(Some)))
    }

    /// Makes the first directory that is not there and whose name `lock` gives.
    fn make(
        parent: &Path,
        name: &'static str,
        mode: u32,
        lock: impl Fn(&Path) -> io::Result<Option<Option<NameLock>>>,
    ) -> Result<WorkDir, WorkDirError> {
        let place = || parent.to_owned();
        match fs::metadata(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(WorkDirError::Missing(place()));
            }
            Err(error) => return Err(WorkDirError::Hidden { place: place(), error }),
            Ok(facts) if !facts.is_dir() => {
                return Err(WorkDirError::NoDirectory(place()));
            }
            Ok(_) => {}
        }
        for number in 0..NUMBERS {
            let path = parent.join(format!("{name}-{}-{number}", std::process::id()));
            let problem = |error| WorkDirError::ReadOnly { place: place(), error };
            let Some(lock) = lock(&path).map_err(problem)? else { continue };
            match DirBuilder::new().mode(mode).create(&path) {
                Ok(()) => return Ok(WorkDir { path, _lock: lock }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(problem(error)),
            }
        }
        Err(WorkDirError::Full { place: place(), name })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it there.
    pub fn keep(self) -> PathBuf {
        let kept = std::mem::ManuallyDrop::new(self);
        kept.path.clone()
    }

    /// Removes every file in it, between two runs.
    /// # Errors
    /// As unlink(2).
    pub fn clear(&self) -> io::Result<()> {
        let pages = self.shared_pages();
        for entry in fs::read_dir(&self.path)? {
            fs::remove_file(entry?.path())?;
        }
        remove_all(&pages);
        Ok(())
    }

    /// Where writing processes that were killed leave the page that waldio has them share (docs/log_format.md): one for
    /// each database, by its inode.
    fn shared_pages(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let page =
            |status: fs::Metadata| format!("/dev/shm/waldio-line-{:x}-{}", status.dev(), status.ino()).into();
        files.filter_map(|file| file.metadata().ok()).map(page).collect()
    }
}

/// Most are not there.
fn remove_all(pages: &[PathBuf]) {
    for page in pages {
        let _ = fs::remove_file(page);
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        let pages = self.shared_pages();
        // Writing processes that a signal ended may be in the middle of making a file.
        for _ in 0..50 {
            match fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    pause(Duration::from_millis(20))
                }
                _ => break,
            }
        }
        // Last: whoever made one until now is gone, or finds no database any more.
        remove_all(&pages);
        if !self.path.exists() {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("joj: cannot remove {}: {error}; remove it by hand", self.path.display());
        }
    }
}

/// What to say when a file cannot be made in or written to `place`.
pub fn cannot_write(place: &Path, error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => "the disk or the quota is full: free 64 MiB there",
        Some(libc::EROFS) => "it is mounted read-only: `joj bench DIR` with a writable directory",
        Some(libc::EACCES | libc::EPERM) => {
            "you may not write there: `joj bench DIR` with a directory of yours"
        }
        _ => "try another directory, `joj bench DIR`, and look into `dmesg` for the disk's errors",
    };
    format!("cannot write in {}: {error}; {remedy}", place.display())
}
