//! Why there is no emulated machine, or its kernel does not do what it is asked for.

use std::ffi::NulError;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use thiserror::Error;

/// Why QEMU does not run.
#[derive(Debug, Error)]
pub enum QemuError {
    /// It does not say its version.
    #[error(
        "cannot run {program}: {error}; install it, on Debian: apt-get install --no-install-recommends qemu-system-x86"
    )]
    NoVersion {
        /// The program.
        program: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// It does not start.
    #[error(
        "cannot run {program}: {error}; on Debian: apt-get install --no-install-recommends qemu-system-x86"
    )]
    NotStarted {
        /// The program.
        program: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

/// What the guest's kernel refuses.
#[derive(Debug, Error)]
pub enum GuestKernelError {
    /// A file or directory cannot be made or loaded.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The options of a mount have a byte 0.
    #[error(transparent)]
    Options(#[from] NulError),
    /// A filesystem cannot be mounted.
    #[error("cannot mount {source_name} on {path} as {kind}: {error}")]
    Mount {
        /// The device, or what stands for it.
        source_name: String,
        /// Where it was to be seen.
        path: String,
        /// The filesystem's name.
        kind: String,
        /// What the system said.
        error: Errno,
    },
    /// A filesystem cannot be unmounted.
    #[error("cannot unmount {}: {error}", .path.display())]
    Unmount {
        /// Where it is mounted.
        path: PathBuf,
        /// What the system said.
        error: Errno,
    },
}
