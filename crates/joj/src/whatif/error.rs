//! Why `joj whatif` gives no result.

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
    /// The result cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}
