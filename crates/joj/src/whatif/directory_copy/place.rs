//! Where a copy lies: deep below a directory of joj's own. A program that names a file by `../` finds none of its user's there.
//!
//! ```text
//! DIR/joj-whatif-4711-0/joj-whatif-4711-0   a directory of joj's own, for its user alone while the copy is made
//!                                      /d/d/../d   the copy
//! ```

use std::fs::{self, Permissions};
use std::iter::successors;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use joj_analysis::recording::paths::text_of;

use crate::machine::files::work_dir::WorkDir;
use crate::whatif::directory_copy::attributes;
use crate::whatif::directory_copy::error::CopyError;

/// So many directories: no program goes up so far from where it runs. With their names of one letter a path grows by two bytes for each.
pub const LEVELS: usize = 16;

/// A directory for a copy; dropping it removes it with all that is in it and above it.
#[derive(Debug)]
pub struct CopyPlace {
    work_dir: WorkDir,
    path: PathBuf,
}

impl CopyPlace {
    /// Makes the directories below one of joj's own that is for its user alone.
    /// # Errors
    /// As mkdir(2), of which; nothing is left behind.
    pub fn below(work_dir: WorkDir) -> Result<CopyPlace, CopyError> {
        let mut path = work_dir.path().to_owned();
        attributes::remove_acls(&path);
        for _ in 0..LEVELS {
            path.push("d");
            // Whoever may reach the copy passes through, whatever the umask is.
            let made = fs::create_dir(&path)
                .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
            made.map_err(|error| CopyError::of(&path, error))?;
        }
        Ok(CopyPlace { work_dir, path })
    }

    /// Lets other users pass to the whole copy, where they may pass to its original, too: the program may be one that drops its rights.
    /// # Errors
    /// As chmod(2).
    pub fn let_pass(&self, origin: &Path) -> Result<(), CopyError> {
        if self.whole().starts_with(origin) || all_pass(origin) {
            let set = fs::set_permissions(self.whole(), Permissions::from_mode(0o711));
            set.map_err(|error| CopyError::of(self.whole(), error))?;
        }
        Ok(())
    }

    /// Where the program runs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of joj's own with all that the program finds by `../`, but for more of them than [`LEVELS`].
    pub fn whole(&self) -> &Path {
        self.work_dir.path()
    }

    /// What a program calls the copy and each directory above it, and would where its original lies: `../` is the one above that.
    pub fn names(&self, origin: &Path) -> Vec<(String, String)> {
        let text = |path: &Path| text_of(path.as_os_str().as_bytes()).into_owned();
        let originals = successors(Some(origin), |below| Some(below.parent().unwrap_or(below)));
        let names = self.path.ancestors().take(1 + LEVELS).zip(originals);
        names.map(|(copy, original)| (text(copy), text(original))).collect()
    }

    /// Removes all of it.
    /// # Errors
    /// It stays: why, and what to do.
    pub fn remove(self) -> Result<(), String> {
        self.work_dir.remove().map_err(|error| error.to_string())
    }
}

/// Whether each user may pass through all directories above this one.
fn all_pass(directory: &Path) -> bool {
    let is_open = |above: &Path| fs::metadata(above).is_ok_and(|facts| facts.mode() & 0o111 == 0o111);
    directory.ancestors().skip(1).all(|above| is_open(above) && !attributes::has_acl(above))
}
