//! Why there is no copy.

use std::io;
use std::path::{Path, PathBuf};

use crate::machine::proc::signal::is_stopped;

/// Why there is no copy.
#[derive(Debug)]
pub enum CopyError {
    /// Ctrl-C or its kin: also where a system call says that it was interrupted.
    Stopped,
    /// What the system said, of which file.
    File(PathBuf, io::Error),
}

impl CopyError {
    /// Of a call on a file.
    pub fn of(path: &Path, error: io::Error) -> CopyError {
        if error.kind() == io::ErrorKind::Interrupted && is_stopped() {
            return CopyError::Stopped;
        }
        CopyError::File(path.to_owned(), error)
    }
}
