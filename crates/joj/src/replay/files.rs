//! The files of a recording, made before the first call of its replay.

use std::io;
use std::path::{Path, PathBuf};

use crate::machine::proc::signal;
use crate::machine::replayer::trees::{self, Roots};
use crate::replay::error::ReplayError;
use crate::replay::plan::Plan;
use crate::trace::progress::ProgressLine;

/// Makes what is there before the first call. `place` is the directory that was given.
/// # Errors
/// A signal, or a file that cannot be made. A part is there then.
pub fn make(plan: &Plan, roots: Roots<'_>, place: &Path) -> Result<(), ReplayError> {
    let mut progress = ProgressLine::begin();
    let mut go_on = |bytes: u64| {
        progress
            .tell(|| format!("making the files of the recording, {} MiB; Ctrl-C gives it up", bytes >> 20));
        !signal::is_stopped()
    };
    let made = trees::make(roots, &plan.before, &plan.grows, &mut go_on);
    if made.map_err(|(path, error)| problem(place, path, error))? {
        Ok(())
    } else {
        Err(ReplayError::Stopped)
    }
}

/// What a file that cannot be made means: `place` is the directory that was given.
pub fn problem(place: &Path, path: PathBuf, error: io::Error) -> ReplayError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            let what = format!("{} has no room", path.display());
            ReplayError::Full { place: place.to_owned(), what }
        }
        _ => ReplayError::File { path, error },
    }
}
