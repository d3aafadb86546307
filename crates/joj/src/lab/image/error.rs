//! Why the files from which the guest boots cannot be had: packages, modules, libraries, the archive.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there is nothing to boot, and where else a kernel can come from.
#[derive(Debug, Error)]
pub enum ImageError {
    /// A file or directory cannot be read, written, made or removed.
    #[error("cannot {what} {}: {error}", .path.display())]
    File {
        /// What was tried, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The environment names no place for the cache.
    #[error("neither HOME nor XDG_CACHE_HOME is set: say where the lab's kernel may be kept")]
    NoCache,
    /// `--kernel` names something else.
    #[error("{} is no bzImage of x86-64 Linux; give `--kernel` a file such as /boot/vmlinuz-RELEASE", .0.display())]
    NotKernel(PathBuf),
    /// apt's lists do not have Debian's kernel.
    #[error("apt knows no {0}; run `apt-get update` as root, or give `--kernel FILE --modules DIR`")]
    NoKernel(&'static str),
    /// A program of Debian's is not here.
    #[error(
        "cannot run {program}: {error}; the lab takes its kernel from Debian's packages, elsewhere give `--kernel FILE --modules DIR`"
    )]
    NoProgram {
        /// The program.
        program: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A program of Debian's gave up.
    #[error("{program} failed: {said}")]
    Failed {
        /// The program.
        program: &'static str,
        /// The last lines that it printed.
        said: String,
    },
    /// The packages cannot be fetched.
    #[error("{0}; without a network, give `--kernel FILE --modules DIR`")]
    NotFetched(#[source] Box<ImageError>),
    /// A module that others need is not in the package.
    #[error("the kernel's modules are not complete: {0} is missing; remove the lab's cache")]
    NoModule(String),
    /// The cache lacks a program that makes filesystems.
    #[error("there is no {0} in the lab's cache; remove the cache")]
    NotCached(&'static str),
    /// This machine has no glibc.
    #[error("cannot run {loader}: {error}; the lab needs an x86-64 Linux with glibc")]
    NoLoader {
        /// The loader's file.
        loader: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The loader cannot say what a program needs.
    #[error("cannot find the libraries of {}: {said}", .program.display())]
    Libraries {
        /// The program or library.
        program: PathBuf,
        /// What the loader printed.
        said: String,
    },
    /// A library that a program needs is not installed.
    #[error("{} needs {library}, which is not on this machine; install its package", .program.display())]
    NoLibrary {
        /// The program or library.
        program: PathBuf,
        /// What it needs.
        library: String,
    },
    /// The library that cells are measured with is not installed.
    #[error("there is no {0} on this machine; on Debian `apt install libsqlite3-0` brings it")]
    NotInstalled(String),
    /// A file cannot be copied into the archive.
    #[error("cannot put {} into the guest: {error}", .file.display())]
    NotPut {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The archive's format has 32 bits for a length.
    #[error("{} has {bytes} bytes; the archive takes 4 GiB at most", .file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// Its length.
        bytes: u64,
    },
}

impl ImageError {
    /// For a call that failed: what was tried with which file.
    pub fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::File { what, path, error }
    }
}
