//! Why a benchmark has no result.

use std::io;

use thiserror::Error;

use crate::bench::ask::Stop;
use crate::bench::builds::UnknownBuild;
use crate::bench::experiments::file_io::IoSelectionError;
use crate::bench::experiments::many_writers::ContentionError;
use crate::machine::files::output_file::OutputError;

/// Why there is no result.
#[derive(Debug, Error)]
pub enum BenchError {
    /// Ctrl-C would end joj without a result, and leave its files.
    #[error("cannot catch Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// The measurement cannot go on.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The result cannot be printed or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Options that no machine could measure.
#[derive(Debug, Error)]
pub enum BenchUsage {
    /// Options of many writers, and no writers.
    #[error(
        "`--seconds` and `--flush-delay` are for many writers; add `--threads 1,4,16` or `--processes 4` (`--seconds` is for \
         `--io`, too)"
    )]
    NoWriters,
    /// A build is named that there is not.
    #[error(transparent)]
    Build(#[from] UnknownBuild),
    /// What many writers cannot do.
    #[error(transparent)]
    Contention(#[from] ContentionError),
    /// File I/O without a row.
    #[error(transparent)]
    Io(#[from] IoSelectionError),
    /// The options exclude each other.
    #[error(
        "these options leave no row to measure: reads have no fresh or steady log, `open` has only a fresh one; leave one option out"
    )]
    NoRow,
}
