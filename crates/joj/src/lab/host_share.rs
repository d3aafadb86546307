//! The directory that host and guest share, seen from the host: gone when the session is over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lab::error::{ShareError, UnitError};
use crate::lab::job::{CELLS_DIRECTORY, TRACES_DIRECTORY, report_file};
use crate::lab::recorded_log::RECORDINGS_DIRECTORY;

/// A directory of the host that its guest sees.
#[derive(Debug)]
pub struct HostShare {
    path: PathBuf,
}

impl HostShare {
    /// Makes this process's directory `number` below the system's for temporary files.
    /// # Errors
    /// Where there is no room or no permission.
    pub fn create(number: usize) -> Result<HostShare, ShareError> {
        let path = std::env::temp_dir().join(format!("joj-lab-{}-{number}", std::process::id()));
        let problem = |error: io::Error| ShareError::Make { path: path.clone(), error };
        // What a killed joj of the same number left.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(problem(error)),
            _ => {}
        }
        for directory in [CELLS_DIRECTORY, TRACES_DIRECTORY, RECORDINGS_DIRECTORY] {
            fs::create_dir_all(path.join("share").join(directory)).map_err(problem)?;
        }
        Ok(HostShare { path })
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

impl Drop for HostShare {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
