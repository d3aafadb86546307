//! Why a saved trace cannot be read or written, with its path and what to do.

use std::io;
use std::num::TryFromIntError;
use std::path::PathBuf;

use joj_analysis::trace::header::FORMAT_VERSION;
use parquet::errors::ParquetError;
use thiserror::Error;

/// Why a saved trace cannot be read.
#[derive(Debug, Error)]
pub enum TraceReadError {
    /// There is no such file, or it may not be read.
    #[error("cannot open {path}: {error}")]
    Open {
        /// The file.
        path: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Its name says that no capture has finished it.
    #[error(
        "{path} is a capture that is still running or was interrupted: it cannot be read. Its name loses `.part` \
         when it is whole; if nothing writes it any more, delete it and capture again"
    )]
    Unfinished {
        /// The file.
        path: String,
    },
    /// It begins as a Parquet file and has no end that can be read.
    #[error("{path} was cut off or is damaged: {damage}; copy it again, or capture again")]
    CutOff {
        /// The file.
        path: String,
        /// What its end is like.
        #[source]
        damage: Damage,
    },
    /// It is no Parquet file.
    #[error(
        "{path} is no recording or trace of joj: those begin with PAR1 (Parquet). `joj record --import` takes strace's text, and \
         `joj trace --read` other programs' traces under any other ending"
    )]
    NoParquet {
        /// The file.
        path: String,
    },
    /// It is a Parquet file, and its metadata are not those of a trace that this joj can read.
    #[error("{path}: {problem}")]
    Head {
        /// The file.
        path: String,
        /// What is wrong with its metadata.
        #[source]
        problem: HeadProblem,
    },
    /// It is a trace whose rows are not those that were written.
    #[error("{path} is damaged: {damage}; take another copy of the file, or capture again")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with its rows.
        #[source]
        damage: Damage,
    },
}

/// What is wrong with the metadata of a Parquet file that should be a trace.
#[derive(Debug, Error)]
pub enum HeadProblem {
    /// It has no header of joj's.
    #[error(
        "this Parquet file is no trace of joj: it lacks the metadata entry joj_trace, which a program that rewrites \
         a trace must copy (docs/trace_format.md)"
    )]
    NoHeader,
    /// It has no checksums.
    #[error("it lacks the metadata entry joj_checksums")]
    NoChecksums,
    /// An entry is no JSON, or not of the format's.
    #[error("its metadata cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A newer joj wrote it.
    #[error(
        "written by a newer joj (format {0}; this joj, {joj}, reads up to {FORMAT_VERSION}): read it with that one, \
         or upgrade this one",
        joj = env!("CARGO_PKG_VERSION")
    )]
    Newer(u32),
    /// The header was changed after it had been written.
    #[error("it is damaged: joj_trace does not have its checksum")]
    Checksum,
}

/// What is wrong with the rows of a trace.
#[derive(Debug, Error)]
pub enum Damage {
    /// The library panicked at what no writer writes.
    #[error("the Parquet library gave up")]
    GaveUp,
    /// The library refuses what it reads.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// A length is larger than this machine's memory.
    #[error(transparent)]
    Length(#[from] TryFromIntError),
    /// A row group is damaged.
    #[error("row group {group}: {damage}")]
    Group {
        /// Its number; the first is 1.
        group: usize,
        /// What is wrong with it.
        #[source]
        damage: Box<Damage>,
    },
    /// Bytes changed since they were written.
    #[error("bytes {from} to {to} do not have the checksum that was written with them")]
    Checksum {
        /// The first byte of the file that the checksum is of.
        from: u64,
        /// The byte behind the last one.
        to: u64,
    },
    /// A row group ends where the file has no bytes.
    #[error("it ends at byte {0}, behind the file's end")]
    BehindEnd(u64),
    /// A column cannot be decoded.
    #[error("column {column}: {problem}")]
    Column {
        /// Its name.
        column: &'static str,
        /// What is wrong with it.
        #[source]
        problem: ColumnProblem,
    },
    /// A name has bytes that are no text.
    #[error("a name is no UTF-8")]
    Name,
    /// A column stands in another one's place.
    #[error("column {number} is not {name}")]
    Order {
        /// Its place; the first is 1.
        number: usize,
        /// The column that should be there.
        name: String,
    },
    /// There are more or fewer columns or row groups than were written.
    #[error("its columns or row groups are not those that were written")]
    Parts,
    /// There are more or fewer rows than events were written.
    #[error("its row groups do not hold as many events as were written")]
    Events,
}

/// What is wrong with a column of a row group.
#[derive(Debug, Error)]
pub enum ColumnProblem {
    /// The library refuses what it reads.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// Its values are not of the format's type.
    #[error("it has another type")]
    Type,
    /// It ends before the others.
    #[error("{found} values where {rows} should be")]
    Short {
        /// Values that it has.
        found: usize,
        /// Values that the others have.
        rows: usize,
    },
    /// It has a number that this joj has no word for.
    #[error("nothing has the number {0}")]
    Number(i32),
}

/// Why a trace cannot be saved. No file looks like a whole trace afterwards.
#[derive(Debug, Error)]
pub enum TraceWriteError {
    /// A directory, a device or a link has its name.
    #[error("{} is there and no regular file: name another one", .0.display())]
    NoRegularFile(PathBuf),
    /// The file cannot be made.
    #[error("cannot create {}: {error}", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The file cannot be written to: most often its disk is full.
    #[error("cannot write {}: {error}; make room, or write the trace to another disk", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the library said.
        #[source]
        error: ParquetError,
    },
    /// The whole file cannot get its name.
    #[error("cannot rename {}: {error}", .path.display())]
    Rename {
        /// The file under the name that it has while it is written.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The header cannot be written as JSON: a fault of joj's.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}
