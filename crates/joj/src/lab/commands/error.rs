//! Why a command of the lab has no result.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::bench::builds::ExtensionError;
use crate::lab::commands::merge::JoinError;
use crate::lab::commands::report::ReportError;
use crate::lab::error::{MachineError, SessionError, ShareError};
use crate::lab::image::error::ImageError;
use crate::lab::job::SettingError;
use crate::lab::shipped::error::ShippedError;
use crate::machine::files::output_file::OutputError;
use crate::machine::qemu::error::QemuError;
use crate::replay::error::ReplayError;
use crate::whatif::error::WhatifError;
use crate::workloads::WorkloadError;

/// Why there is no result.
#[derive(Debug, Error)]
pub enum LabError {
    /// A plan, a device or a paper's table cannot be used.
    #[error(transparent)]
    Shipped(#[from] ShippedError),
    /// `--only` leaves nothing of the plan.
    #[error("no cell has all texts of --only; `--dry-run` lists the cells")]
    NoCell,
    /// A directory for files of the result cannot be made.
    #[error("cannot make {}: {error}", .directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file that shards have to have alike cannot be read.
    #[error("cannot read {}: {error}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Ctrl-C would end joj without a result.
    #[error("cannot catch Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// The guest cannot be given joj.
    #[error("cannot find joj's own file: {0}")]
    OwnFile(#[source] io::Error),
    /// The guest cannot be given waldio.
    #[error(transparent)]
    Extension(#[from] ExtensionError),
    /// There is nothing to boot.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// QEMU does not run.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// It is not known what the guest runs.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A device of the job cannot be emulated.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The shell's guest and the host cannot share files.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// A plan's recording was not named.
    #[error(
        "the plan replays a recording that it calls {0}; give it with `--recording {0}=FILE`. `joj record` makes one, also of a \
         MobiGen script (`--import`)"
    )]
    NoRecording(String),
    /// A recording was named that no cell replays.
    #[error("no cell replays a recording {0}; `--dry-run` lists the cells")]
    UnusedRecording(String),
    /// The recording cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The recording cannot be replayed in other configurations, or not be made.
    #[error(transparent)]
    Whatif(#[from] WhatifError),
    /// A recording that joj brings cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The files of a recording have no room on a device.
    #[error(
        "the files of {} have {needed_mib} MiB, and the emulated disks {device_mib}; replay it in a DIR on a disk with room",
        .recording.display()
    )]
    TooLarge {
        /// The recording.
        recording: PathBuf,
        /// How much they have.
        needed_mib: u64,
        /// How large the devices are.
        device_mib: u64,
    },
    /// The SQLite that was named is not there.
    #[error("cannot find the SQLite library {}: {error}; give the right path", .file.display())]
    Sqlite {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The guests cannot go on.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// There is no report.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Parts do not become a result.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The result cannot be printed or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Options of `joj lab crash` that do not go together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CrashUsage {
    /// A list has one entry twice.
    #[error("{0}")]
    Twice(String),
    /// A mode that is not made to survive a power cut.
    #[error("`--modes` takes delete, truncate, persist, wal and waldio here")]
    Modes,
    /// An option for a mode that is not looked at.
    #[error("`--waldio-option` needs `--modes waldio`")]
    WaldioOption,
}
