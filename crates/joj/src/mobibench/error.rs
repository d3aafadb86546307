//! Why there is no result, or no test.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::bench::ask::Stop;
use crate::bench::builds::ExtensionError;
use crate::machine::files::output_file::OutputError;
use crate::machine::proc::worker_process::NoOwnFile;

/// Why there is no result.
#[derive(Debug, Error)]
pub enum MobibenchError {
    /// Ctrl-C would end joj without a result, and leave its files.
    #[error("cannot catch Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// There is no worker.
    #[error(transparent)]
    Workers(#[from] NoOwnFile),
    /// There is no extension to load.
    #[error(transparent)]
    Extension(#[from] ExtensionError),
    /// The directory cannot be made.
    #[error("cannot make the directory {}: {error}; take another one with -p", .path.display())]
    NoDirectory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The test cannot go on.
    #[error("{stop}{hint}")]
    Stopped {
        /// What the worker said.
        #[source]
        stop: Stop,
        /// What may be the cause.
        hint: &'static str,
    },
    /// A file of Mobibench's cannot be written.
    #[error("cannot append to {}: {error}; give another FILE with {option}", .path.display())]
    Lines {
        /// The file.
        path: PathBuf,
        /// `-L` or `-k`.
        option: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The result cannot be printed or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Options that no machine could run.
#[derive(Debug, Error)]
pub enum MobibenchUsage {
    /// A script is to be replayed.
    #[error(
        "-g replays a script of MobiGen's, which is another part's work (joj replay); joj mobibench runs the tests \
         alone: leave -g out"
    )]
    Script,
    /// A device would be overwritten.
    #[error(
        "-p {} is below /dev: Mobibench opens such a path as a device and overwrites what is on it, joj does not; take a \
         directory of a file system on it",
        .0.display()
    )]
    Device(PathBuf),
    /// Something that is no directory.
    #[error("-p {} is no directory; take the one that the files shall be in", .0.display())]
    NoDirectory(PathBuf),
    /// No thread would write or read anything.
    #[error(
        "there is no record to write or read: a file of -f {file_kb} KB in {threads} threads has no record of -r {record_kb} KB; \
         take a larger -f"
    )]
    NoRecord {
        /// KB.
        file_kb: u64,
        /// Threads.
        threads: u32,
        /// KB.
        record_kb: u64,
    },
    /// There are more threads than transactions.
    #[error(
        "there is no transaction to run: -n {transactions} in {threads} threads is none for each; take a larger -n"
    )]
    NoTransaction {
        /// Of all threads.
        transactions: u64,
        /// Threads.
        threads: u32,
    },
    /// waldio has nothing to do.
    #[error("--waldio is for write-ahead logs; add -j 3, or leave it out")]
    NoLog,
    /// A record that msync refuses.
    #[error(
        "-r {record_kb} is no multiple of the {page_kb} KB of a memory page, and msync (-y 6 and 7) takes whole pages; Mobibench \
         synced nothing then and did not say so. Take -r {page_kb}"
    )]
    NoPages {
        /// KB.
        record_kb: u64,
        /// KB.
        page_kb: u64,
    },
}
