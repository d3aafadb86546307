//! Why there is no recording.

use std::ffi::OsString;
use std::io;

use joj_analysis::recording::import::ImportError;
use thiserror::Error;

use crate::machine::capture::calls::error::CallCaptureError;
use crate::machine::files::output_file::OutputError;
use crate::trace::error::InputError;
use crate::trace_file::TraceWriteError;

/// Why there is no recording. Nothing is written then.
#[derive(Debug, Error)]
pub enum RecordError {
    /// Ctrl-C would end joj without cleaning up.
    #[error("cannot catch Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// The text cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A line of the text is wrong.
    #[error("{name}: {error}; nothing was written")]
    Text {
        /// The text's name.
        name: String,
        /// What is wrong in which line.
        #[source]
        error: ImportError,
    },
    /// There is nothing to replay in it.
    #[error("{0}: no call on a file in it; is it text of strace or MobiGen?")]
    NoCall(String),
    /// Nothing was recorded.
    #[error("no call on a file was made, so there is no recording")]
    NothingRecorded,
    /// A word of the command is no text.
    #[error("the word {} of the command is not UTF-8; joj keeps it in the recording: give another name", .0.display())]
    NoUtf8(OsString),
    /// Calls cannot be captured.
    #[error(transparent)]
    Capture(#[from] CallCaptureError),
    /// The recording cannot be written.
    #[error(transparent)]
    Write(#[from] TraceWriteError),
    /// The result cannot be printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl RecordError {
    /// joj's exit code: 127 or 126 where there is no such command, or it cannot be run.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Capture(CallCaptureError::Start(error)) => error.exit_code(),
            _ => 1,
        }
    }
}
