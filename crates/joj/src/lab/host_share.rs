//! The directory that host and guest share, seen from the host: gone when the session is over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lab::crash_job::RECORDINGS_DIRECTORY;
use crate::lab::job::{CELLS_DIRECTORY, TRACES_DIRECTORY, report_file};

/// What to do where there is no room.
const REMEDY: &str = "name another place with TMPDIR";

/// A directory of the host that its guest sees.
#[derive(Debug)]
pub struct HostShare {
    path: PathBuf,
}

impl HostShare {
    /// Makes this process's directory `number` below the system's for temporary files.
    /// # Errors
    /// Where there is no room or no permission.
    pub fn create(number: usize) -> Result<HostShare, String> {
        let path = std::env::temp_dir().join(format!("joj-lab-{}-{number}", std::process::id()));
        let problem = |error: io::Error| format!("cannot make {}: {error}; {REMEDY}", path.display());
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
    pub fn put(&self, name: &str, value: &impl Serialize) -> Result<(), String> {
        let text = serde_json::to_string(value).map_err(|error| error.to_string())?;
        let file = self.shared().join(name);
        fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}; {REMEDY}", file.display()))
    }

    /// The report of cell `index`.
    /// # Errors
    /// Where it is not there or is none.
    pub fn report<T: DeserializeOwned>(&self, index: usize) -> Result<T, String> {
        let file = self.shared().join(report_file(index));
        let text = fs::read_to_string(&file).map_err(|error| format!("no report of the cell: {error}"))?;
        serde_json::from_str::<Result<T, String>>(&text)
            .map_err(|error| format!("the cell's report is none: {error}"))?
    }

    /// Moves a file of the guest's to `to`.
    /// # Errors
    /// Where it is missing or there is no room.
    pub fn take(&self, name: &str, to: &Path) -> Result<(), String> {
        let from = self.shared().join(name);
        // Another filesystem: renaming would not do.
        fs::copy(&from, to).map_err(|error| format!("cannot copy {name} to {}: {error}", to.display()))?;
        let _ = fs::remove_file(from);
        Ok(())
    }
}

impl Drop for HostShare {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
