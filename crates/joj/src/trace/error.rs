//! Why `joj trace` and its two helpers give no result: what, where, and how to mend it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use joj_analysis::trace::file_type::FileTypeError;
use joj_analysis::trace::import::ImportError;
use thiserror::Error;

use crate::machine::capture::error::{CaptureError, DiskError};
use crate::machine::files::output_file::OutputError;
use crate::machine::proc::watched_command::StartError;
use crate::trace_file::{TraceReadError, TraceWriteError};
use crate::trace_tables::TableError;

/// A signal asked joj to end.
#[derive(Debug, Error)]
#[error("stopped by a signal: nothing is kept")]
pub struct Stopped;

/// Why there is no trace, or no result of one.
#[derive(Debug, Error)]
pub enum TraceError {
    /// Ctrl-C or its kin ended the reading or the analysis.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// Ctrl-C would end joj without cleaning up.
    #[error("cannot catch Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// The process to trace is not there.
    #[error("there is no process {0}; `ps -e` lists those that run")]
    NoProcess(u32),
    /// It has ended, and its parent has not asked how.
    #[error("process {0} has ended already; `ps -e` lists those that run")]
    EndedProcess(u32),
    /// The number is a thread's.
    #[error(
        "{thread} is a thread of process {process}; `--pid {process}` traces that with all of its threads"
    )]
    Thread {
        /// The number that was given.
        thread: u32,
        /// Its process.
        process: u32,
    },
    /// The kernel's records have other numbers.
    #[error(
        "`--pid` cannot be used here: joj runs in a pid namespace of its own (a container), and the kernel knows \
         process {0} by another number. Run joj outside, with the number that it has there, or leave `--pid` out"
    )]
    OtherNumbers(u32),
    /// A word of the command cannot stand in a trace's header.
    #[error("{} is not UTF-8", .0.display())]
    NoUtf8(OsString),
    /// The command cannot be run.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The rules for types of files cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    FileTypesUnreadable {
        /// Their file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The rules for types of files have a line that is none.
    #[error("{}: {error}", .path.display())]
    FileTypes {
        /// Their file.
        path: PathBuf,
        /// What is wrong in which line.
        #[source]
        error: FileTypeError,
    },
    /// The input cannot be read, or not be kept for a second reading.
    #[error(transparent)]
    Input(#[from] InputError),
    /// joj's own trace cannot be read.
    #[error(transparent)]
    Read(#[from] TraceReadError),
    /// It has calls, and no request to a disk.
    #[error(
        "{0} is a recording: it has a program's calls, and no requests to a disk. `joj replay {0} DIR` makes them again, \
         `joj whatif {0} DIR` says what would make them faster, and every Parquet reader has its rows (docs/trace_format.md)"
    )]
    Recording(String),
    /// A text of another program's cannot be read as a trace.
    #[error("{name}: {error}")]
    Text {
        /// The text's name.
        name: String,
        /// What is wrong in which line.
        #[source]
        error: ImportError,
    },
    /// blktrace's files cannot be read as a trace; the error names the file.
    #[error(transparent)]
    Blktrace(ImportError),
    /// The input is of no program that joj knows.
    #[error("{0}: neither a trace of joj's or blktrace's nor text of blkparse's or ftrace's")]
    UnknownFormat(String),
    /// The input is a text in which no line is an event.
    #[error("{0}: no event in it; is it a trace?")]
    NoEvent(String),
    /// Another program wrote the input while joj read it twice.
    #[error("{0} changed while it was read; read it again when it is whole")]
    Changed(String),
    /// The disks to trace are not known.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The capture cannot begin as it was asked for, or not go on.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The capture cannot begin in either way.
    #[error("cannot capture. With eBPF: {bpf}. With tracefs: {tracefs}")]
    NoWay {
        /// Why not with eBPF.
        bpf: Box<CaptureError>,
        /// Why not with tracefs.
        #[source]
        tracefs: Box<CaptureError>,
    },
    /// The capture is over, and there is nothing in it.
    #[error(
        "nothing was captured: no request went to {disks}, and nobody called for durability there; the files may be in \
         memory, or on a disk that `--device` leaves out"
    )]
    NothingCaptured {
        /// The names of the disks.
        disks: String,
        /// The command's, where it is not 0: that it failed is the better reason.
        exit_code: Option<u8>,
    },
    /// The trace cannot be saved.
    #[error(transparent)]
    Save(#[from] TraceWriteError),
    /// The trace cannot be written in another format.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// There is nothing to draw.
    #[error("{} was not written: no request went to a disk", .0.display())]
    NoPicture(PathBuf),
    /// A file's extents cannot be asked for.
    #[error("{}: {error}", .path.display())]
    Extents {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A result cannot be written as JSON: a fault of joj's.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A result cannot be printed or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl TraceError {
    /// True where nothing is wrong but that a signal asked joj to end.
    pub fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_) | Self::Input(InputError::Stopped(_)))
    }

    /// The exit code of a capture that ended so: 126 and 127 for a command that cannot be run, as shells have it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Start(error) => error.exit_code(),
            Self::NothingCaptured { exit_code, .. } => exit_code.unwrap_or(1),
            _ => 1,
        }
    }
}

/// Why the bytes of a saved trace cannot be had.
#[derive(Debug, Error)]
pub enum InputError {
    /// Ctrl-C or its kin ended the wait for a pipe.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The input cannot be opened or read.
    #[error("cannot read {name}: {error}")]
    Unreadable {
        /// What messages call it.
        name: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The input is a directory.
    #[error("cannot read {0}: it is a directory")]
    Directory(String),
    /// What a pipe gives has to be kept, and cannot be.
    #[error(
        "cannot keep what comes from {name} in {}: {error}. TMPDIR names another place; a file needs none",
        .directory.display()
    )]
    NotKept {
        /// What messages call the pipe.
        name: String,
        /// Where temporary files go.
        directory: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

/// Why a trace cannot be written in another format.
#[derive(Debug, Error)]
pub enum ExportError {
    /// Tables for a fleet cannot be written.
    #[error(transparent)]
    Tables(#[from] TableError),
    /// The file cannot be made.
    #[error("cannot create {}: {error}", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The file cannot be written to.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}
