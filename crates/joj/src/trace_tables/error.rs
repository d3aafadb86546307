//! Why tables cannot be written, with their path and what to do.

use std::io;
use std::path::PathBuf;

use parquet::errors::ParquetError;
use thiserror::Error;

/// Why a trace is not there as tables.
#[derive(Debug, Error)]
pub enum TableError {
    /// The directory cannot be made.
    #[error("cannot make the directory {}: {error}; name another one with `--export parquet=DIR`", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The file cannot be made.
    #[error("cannot create {}: {error}; name another directory with `--export parquet=DIR`", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The file cannot be written to.
    #[error("cannot write {}: {error}; make room, and export again", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the library or the system said.
        #[source]
        error: ParquetError,
    },
    /// The directory has the trace with other labels: one of the two is wrong, or it is of another device.
    #[error(
        "{} is of the same trace with the labels {labels}; remove it and its namesake in `{other}`, or name another \
         directory with `--export parquet=DIR`", .path.display()
    )]
    OtherLabels {
        /// The file that is there.
        path: PathBuf,
        /// The other table.
        other: &'static str,
        /// Its labels, as JSON.
        labels: String,
    },
    /// The whole file cannot get its name.
    #[error("cannot rename {} to its name without `.part`: {error}", .path.display())]
    Rename {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The header cannot be written as JSON: a fault of joj's.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}
