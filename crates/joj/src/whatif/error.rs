//! Why `joj whatif` gives no result.

use std::path::PathBuf;

use thiserror::Error;

use crate::machine::files::output_file::OutputError;
use crate::record::error::RecordError;
use crate::replay::error::ReplayError;

/// Why there is no result. Nothing of the replays is left then.
#[derive(Debug, Error)]
pub enum WhatifError {
    /// The recording cannot be read or replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The command cannot be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The program writes to the directory itself, where each of its runs would.
    #[error(
        "the program writes {} by a name that leads out of the copy of this directory in which it ran (its whole name, a link to it, or \
         more than {levels} `../`), and each run of --rerun would; leave --rerun out, or have it name its files from where it runs",
        .path
    )]
    Original {
        /// The file.
        path: String,
        /// So many `../` lead to no file of the user's.
        levels: usize,
    },
    /// A word of the command names a file that the copies do not have.
    #[error(
        "`{word}` is a file outside of this directory, and --rerun runs the program in copies of it, from where that names another file; \
         write its whole path, {}", .whole.display()
    )]
    Outside {
        /// The word.
        word: String,
        /// The file's whole path.
        whole: PathBuf,
    },
    /// The result cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}
