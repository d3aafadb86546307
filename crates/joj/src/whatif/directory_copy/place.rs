//! Where a copy lies: deep below a directory of joj's own. A program that names a file by `../` finds none of its user's there.
//!
//! ```text
//! DIR/joj-whatif-4711-0/joj-whatif-4711-0   a directory of joj's own
//!                                      /d/d/../d   the copy
//! ```

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::machine::files::work_dir::WorkDir;

/// So many directories: no program goes up so far from where it runs. With their names of one letter a path grows by two bytes for each.
pub const LEVELS: usize = 16;

/// A directory for a copy; dropping it removes it with all that is in it and above it.
#[derive(Debug)]
pub struct CopyPlace {
    work_dir: WorkDir,
    path: PathBuf,
}

impl CopyPlace {
    /// Makes the directories below one of joj's own.
    /// # Errors
    /// As mkdir(2), of which; nothing is left behind.
    pub fn below(work_dir: WorkDir) -> Result<CopyPlace, (PathBuf, io::Error)> {
        let mut path = work_dir.path().to_owned();
        for _ in 0..LEVELS {
            path.push("d");
            // Whoever may reach the copy passes through, whatever the umask is.
            let made = fs::create_dir(&path)
                .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
            made.map_err(|error| (path.clone(), error))?;
        }
        Ok(CopyPlace { work_dir, path })
    }

    /// Where the program runs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of joj's own with all that the program finds by `../`, but for more of them than [`LEVELS`].
    pub fn whole(&self) -> &Path {
        self.work_dir.path()
    }

    /// Removes all of it.
    /// # Errors
    /// It stays: why, and what to do.
    pub fn remove(self) -> Result<(), String> {
        self.work_dir.remove().map_err(|error| error.to_string())
    }
}
