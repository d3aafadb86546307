//! The directory that host and guest share, seen from the host: gone when the session is over.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lab::error::{ShareError, UnitError};
use crate::lab::job::{CELLS_DIRECTORY, TRACES_DIRECTORY, report_file};
use crate::lab::recorded_log::RECORDINGS_DIRECTORY;

/// Begin of the names of these directories.
const NAME: &str = "joj-lab-";
/// In each: flock(2) on it while its joj runs. The kernel lets go of it also where a joj is killed.
const LOCK: &str = "lock";

/// A directory of the host that its guest sees.
#[derive(Debug)]
pub struct HostShare {
    path: PathBuf,
    _lock: File,
}

impl HostShare {
    /// Makes this process's directory `number` below the system's for temporary files.
    /// # Errors
    /// Where there is no room or no permission.
    pub fn create(number: usize) -> Result<HostShare, ShareError> {
        let path = std::env::temp_dir().join(format!("{NAME}{}-{number}", std::process::id()));
        let problem = |error: io::Error| ShareError::Make { path: path.clone(), error };
        remove_left(&std::env::temp_dir());
        // What a killed joj of the same number left, without a lock.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(problem(error)),
            _ => {}
        }
        let lock = locked(&path).map_err(problem)?;
        for directory in [CELLS_DIRECTORY, TRACES_DIRECTORY, RECORDINGS_DIRECTORY] {
            fs::create_dir_all(path.join("share").join(directory)).map_err(problem)?;
        }
        Ok(HostShare { path, _lock: lock })
    }

    /// The shared directory itself.
    pub fn shared(&self) -> PathBuf {
        self.path.join("share")
    }

    /// A file that the guest does not see.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Leaves `value` there, in a file of this name.
    /// # Errors
    /// Where it cannot be written.
    pub fn put(&self, name: &str, value: &impl Serialize) -> Result<(), ShareError> {
        let text = serde_json::to_string(value)?;
        let file = self.shared().join(name);
        fs::write(&file, text).map_err(|error| ShareError::Write { file, error })
    }

    /// Copies a file of the host's there, unless one of this name is there.
    /// # Errors
    /// Where it cannot be read, or there is no room.
    pub fn give(&self, from: &Path, name: &str) -> Result<(), ShareError> {
        let to = self.shared();
        if to.join(name).exists() {
            return Ok(());
        }
        let copied = fs::copy(from, to.join(name));
        copied.map(drop).map_err(|error| ShareError::Recording {
            name: from.display().to_string(),
            to,
            error,
        })
    }

    /// The report of cell `index`.
    /// # Errors
    /// Where it is not there or is none, or says why there is no result.
    pub fn report<T: DeserializeOwned>(&self, index: usize) -> Result<T, UnitError> {
        let file = self.shared().join(report_file(index));
        let text = fs::read_to_string(&file).map_err(UnitError::NoReport)?;
        let report: Result<T, String> = serde_json::from_str(&text).map_err(UnitError::Damaged)?;
        report.map_err(UnitError::Reported)
    }

    /// Moves a file of the guest's to `to`.
    /// # Errors
    /// Where it is missing or there is no room.
    pub fn take(&self, name: &str, to: &Path) -> Result<(), ShareError> {
        let from = self.shared().join(name);
        // Another filesystem: renaming would not do.
        fs::copy(&from, to).map_err(|error| ShareError::Take {
            name: name.to_owned(),
            to: to.to_owned(),
            error,
        })?;
        let _ = fs::remove_file(from);
        Ok(())
    }
}

/// Makes a directory, and its lock. Another joj may take the directory for one that was left, until the lock is there.
fn locked(directory: &Path) -> io::Result<File> {
    loop {
        fs::create_dir_all(directory)?;
        let file = directory.join(LOCK);
        let lock = match File::create(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            made => made?,
        };
        flock(&lock, FlockOperation::LockExclusive)?;
        if fs::metadata(&file).is_ok_and(|facts| lock.metadata().is_ok_and(|own| own.ino() == facts.ino())) {
            return Ok(lock);
        }
    }
}

/// Removes the directories in `place` whose joj was killed.
fn remove_left(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(NAME);
        let lock = entry.path().join(LOCK);
        // Anybody may make a name there: opening a pipe would wait.
        let is_lock = is_ours && fs::symlink_metadata(&lock).is_ok_and(|facts| facts.is_file());
        let lock = is_lock.then(|| File::open(&lock).ok()).flatten();
        if let Some(lock) = lock
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // Another user's stay.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for HostShare {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_joj_left_is_removed_and_what_one_uses_is_not() {
        let place = std::env::temp_dir().join(format!("joj-left-{}", std::process::id()));
        let [used, left, without, other] =
            ["joj-lab-1-0", "joj-lab-2-0", "joj-lab-3-0", "other"].map(|name| place.join(name));
        let lock = locked(&used).unwrap();
        for directory in [&left, &other] {
            // A killed process's locks go with it.
            drop(locked(directory).unwrap());
            fs::write(directory.join("image"), "").unwrap();
        }
        fs::create_dir_all(&without).unwrap();
        remove_left(&place);
        assert_eq!([&used, &left, &without, &other].map(|one| one.exists()), [true, false, true, true]);
        drop(lock);
        remove_left(&place);
        assert!(!used.exists());
        fs::remove_dir_all(&place).unwrap();
    }
}
