//! A fresh directory for the files of a measurement, gone when the measurement is over.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::machine::files::left_over::{self, NameLock, RemoveError};

/// So many directories of a process, at most, are in one place: a lane of guests has one, and so does a killed joj of the same number.
const NUMBERS: usize = 10_000;

/// Why there is no directory to measure in; nothing is left behind.
#[derive(Debug, Error)]
pub enum WorkDirError {
    /// Nothing is at the place.
    #[error("there is no directory {}; make it first with `mkdir -p {}`", .0.display(), .0.display())]
    Missing(PathBuf),
    /// It leads to nothing.
    #[error("{} is a symbolic link to a place that is not there; give another directory", .0.display())]
    Dangling(PathBuf),
    /// It was one of this joj's own.
    #[error("{}, which joj made for its files, is gone; start joj again, and let nothing remove it meanwhile", .0.display())]
    Gone(PathBuf),
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
    lock: Option<NameLock>,
}

impl WorkDir {
    /// Makes `joj-bench-<process id>` below `parent`.
    /// # Errors
    /// Why not, and what to do; nothing is left behind.
    pub fn create(parent: &Path) -> Result<WorkDir, WorkDirError> {
        Self::named(parent, "joj-bench")
    }

    /// Makes `<name>-<process id>-<n>` below `parent`. Where this joj is killed, the next that makes one there removes it.
    /// # Errors
    /// As [`WorkDir::create`].
    pub fn named(parent: &Path, name: &'static str) -> Result<WorkDir, WorkDirError> {
        Self::make(parent, name, 0o777)
    }

    /// The same, for its user alone.
    /// # Errors
    /// As [`WorkDir::create`].
    pub fn private(parent: &Path, name: &'static str) -> Result<WorkDir, WorkDirError> {
        Self::make(parent, name, 0o700)
    }

    /// Makes the first directory that is not there and whose name nobody has.
    fn make(parent: &Path, name: &'static str, mode: u32) -> Result<WorkDir, WorkDirError> {
        let place = || parent.to_owned();
        match fs::metadata(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(why_missing(parent));
            }
            Err(error) => return Err(WorkDirError::Hidden { place: place(), error }),
            Ok(facts) if !facts.is_dir() => {
                return Err(WorkDirError::NoDirectory(place()));
            }
            Ok(_) => {}
        }
        left_over::remove_left_once(parent);
        for number in 0..NUMBERS {
            let path = parent.join(format!("{name}-{}-{number}", std::process::id()));
            let lock = match NameLock::take(&path) {
                Ok(None) => continue,
                Ok(lock) => lock,
                // Some filesystems have no locks. Where nothing can be made at all, the directory says so.
                Err(_) => None,
            };
            match DirBuilder::new().mode(mode).create(&path) {
                Ok(()) => return Ok(WorkDir { path, lock }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(WorkDirError::ReadOnly { place: place(), error }),
            }
        }
        Err(WorkDirError::Full { place: place(), name })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it there, without a lock: nobody takes it for what a killed joj left.
    pub fn keep(self) -> PathBuf {
        let mut kept = std::mem::ManuallyDrop::new(self);
        drop(kept.lock.take());
        kept.path.clone()
    }

    /// Removes it, as dropping does.
    /// # Errors
    /// It stays: why, and what to do.
    pub fn remove(self) -> Result<(), RemoveError> {
        let mut removed = std::mem::ManuallyDrop::new(self);
        let lock = removed.lock.take();
        let done = left_over::remove(&removed.path);
        drop(lock);
        done
    }

    /// Removes every file in it, between two runs.
    /// # Errors
    /// As unlink(2).
    pub fn clear(&self) -> io::Result<()> {
        let pages = left_over::shared_pages(&self.path);
        for entry in fs::read_dir(&self.path)? {
            fs::remove_file(entry?.path())?;
        }
        left_over::remove_all(&pages);
        Ok(())
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Err(error) = left_over::remove(&self.path) {
            eprintln!("joj: cannot remove {}: {error}", self.path.display());
        }
    }
}

/// Why nothing is at a place: `mkdir -p` does not help everywhere.
fn why_missing(place: &Path) -> WorkDirError {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("joj-") && name.contains(&format!("-{}-", std::process::id())) {
        return WorkDirError::Gone(place.to_owned());
    }
    let is_link = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|facts| facts.is_symlink());
    match place.ancestors().find(|path| is_link(path) && !path.exists()) {
        Some(link) => WorkDirError::Dangling(link.to_owned()),
        None => WorkDirError::Missing(place.to_owned()),
    }
}

/// Whether a file is a directory that joj made for a measurement, or what belongs to it. Where the filesystem has no locks nobody knows.
pub fn is_of_joj(file: &Path) -> bool {
    left_over::is_own(file)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_directory_is_missing_is_told_with_what_helps() {
        let place = WorkDir::create(&std::env::temp_dir()).unwrap();
        let path = |name: &str| place.path().join(name);
        std::os::unix::fs::symlink("nowhere", path("link")).unwrap();
        std::os::unix::fs::symlink(".", path("here")).unwrap();
        let told = |parent: PathBuf| WorkDir::create(&parent).unwrap_err().to_string();
        let wanted = |name: &str, more: &str| format!("{}{more}", path(name).display());
        assert!(told(path("here/a/b")).ends_with(&wanted("here/a/b", "`")), "mkdir -p makes it");
        let link = wanted("link", " is a symbolic link to a place that is not there; give another directory");
        assert_eq!([told(path("link")), told(path("link/a/b"))], [link.clone(), link]);
        let own = WorkDir::create(place.path()).unwrap().path().to_owned();
        assert!(told(own.clone()).starts_with(&format!("{}, which joj made", own.display())), "it is gone");
    }

    #[test]
    fn a_directory_and_its_lock_go_together_and_a_kept_one_has_none() {
        let place = std::env::temp_dir().join(format!("joj-work-dirs-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        let names = || {
            let mut names: Vec<_> =
                fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let [first, second] = [0, 1].map(|_| WorkDir::create(&place).unwrap());
        let [one, two] = [&first, &second].map(|work| work.path().file_name().unwrap().to_owned());
        let lock = |name: &std::ffi::OsString| [name.to_str().unwrap(), ".lock"].concat().into();
        assert_eq!(names(), [one.clone(), lock(&one), two.clone(), lock(&two)]);
        drop(first);
        second.keep();
        assert_eq!(names(), [two]);
        fs::remove_dir_all(&place).unwrap();
    }
}
