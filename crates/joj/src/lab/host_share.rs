//! The directory that host and guest share, seen from the host: gone when the session is over.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lab::error::{ShareError, UnitError};
use crate::lab::job::{CELLS_DIRECTORY, TRACES_DIRECTORY, report_file};
use crate::lab::recorded_log::RECORDINGS_DIRECTORY;
use crate::machine::files::work_dir::{WorkDir, WorkDirError};

/// Begin of the names of these directories.
const NAME: &str = "joj-lab";

/// A directory of the host that its guest sees.
#[derive(Debug)]
pub struct HostShare {
    directory: WorkDir,
}

impl HostShare {
    /// Makes a directory of this process below the system's for temporary files.
    /// # Errors
    /// Where there is none, no room or no permission.
    pub fn create() -> Result<HostShare, ShareError> {
        Self::below(&std::env::temp_dir())
    }

    fn below(place: &Path) -> Result<HostShare, ShareError> {
        let directory = WorkDir::private(place, NAME).map_err(|error| match error {
            WorkDirError::ReadOnly { place, error } => ShareError::Make { path: place.join(NAME), error },
            error => ShareError::Place(error),
        })?;
        let share = HostShare { directory };
        for directory in [CELLS_DIRECTORY, TRACES_DIRECTORY, RECORDINGS_DIRECTORY] {
            let path = share.shared().join(directory);
            fs::create_dir_all(&path).map_err(|error| ShareError::Make { path, error })?;
        }
        Ok(share)
    }

    /// The shared directory itself.
    pub fn shared(&self) -> PathBuf {
        self.directory.path().join("share")
    }

    /// A file that the guest does not see.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
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
        // Another filesystem: renaming would not do.
        self.copy(name, to)?;
        let _ = fs::remove_file(self.shared().join(name));
        Ok(())
    }

    /// Copies a file of the guest's to `to`.
    /// # Errors
    /// As [`HostShare::take`].
    pub fn copy(&self, name: &str, to: &Path) -> Result<(), ShareError> {
        let copied = fs::copy(self.shared().join(name), to);
        copied.map(drop).map_err(|error| ShareError::Take { name: name.to_owned(), to: to.to_owned(), error })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("joj-share-{name}-{}", std::process::id()))
    }

    /// As two containers with one /tmp have it: the second finds its own name taken.
    #[test]
    fn a_second_joj_with_the_same_process_number_has_a_directory_of_its_own() {
        let place = place("two");
        fs::create_dir(&place).unwrap();
        let first = HostShare::below(&place).unwrap();
        first.put("job", &1).unwrap();
        let second = HostShare::below(&place).unwrap();
        assert!(first.shared() != second.shared() && first.shared().join("job").exists());
        drop((first, second));
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        fs::remove_dir(&place).unwrap();
    }

    /// The job of a command has the whole environment, which often holds passwords.
    #[test]
    fn no_other_user_reads_what_a_guest_is_told() {
        let share = HostShare::create().unwrap();
        let above = share.shared().parent().unwrap().to_owned();
        assert_eq!(fs::metadata(above).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_for_temporary_files_that_is_missing_is_not_made() {
        let place = place("missing");
        let said = HostShare::below(&place).unwrap_err().to_string();
        assert!(said.contains("there is no directory") && said.contains("TMPDIR"), "{said}");
        assert!(!place.exists());
    }
}
