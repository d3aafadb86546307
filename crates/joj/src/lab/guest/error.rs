//! Why the guest cannot do its work. The host gets it as text.

use std::io;
use std::process::ExitStatus;

use joj_device::description::DescriptionError;
use thiserror::Error;

use crate::bench::ask::Stop;
use crate::lab::job::SettingError;
use crate::lab::recorded_log::RecordedLogError;
use crate::machine::files::mounts::MountError;
use crate::machine::proc::worker_process::NoOwnFile;
use crate::machine::qemu::error::GuestKernelError;

/// Why a cell, a crash state or the whole job cannot be done.
#[derive(Debug, Error)]
pub enum GuestError {
    /// The kernel refused a mount or a module.
    #[error(transparent)]
    Kernel(#[from] GuestKernelError),
    /// It is not known what is mounted.
    #[error("cannot list mounts: {0}")]
    Mounts(#[from] MountError),
    /// The job names a device that it does not describe.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A description of a device has a fault.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// joj does not find its own file, which workers run.
    #[error(transparent)]
    Workers(#[from] NoOwnFile),
    /// A worker did not do its task.
    #[error(transparent)]
    Worker(#[from] Stop),
    /// A file, device or program failed.
    #[error("cannot {doing}: {error}")]
    Io {
        /// What was to be done.
        doing: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The job that the host left has another form.
    #[error("the job is none: {0}")]
    Job(#[source] serde_json::Error),
    /// A report or a recording cannot be put into JSON, or read from it.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A program such as mkfs failed.
    #[error("{command}: {status}, {said}")]
    Program {
        /// The program and its words.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The first line of what it said.
        said: String,
    },
    /// joj trace or joj record failed, which watched a cell.
    #[error("{who}: {said}")]
    Watcher {
        /// Which of them.
        who: String,
        /// What it said.
        said: String,
    },
    /// The kernel does not begin to send requests to an emulated device.
    #[error("cannot make {node} the emulated {device}: the kernel does not begin")]
    DeviceNotReady {
        /// The node in /dev.
        node: String,
        /// The name of the description.
        device: String,
    },
    /// A cell ran, and its run failed. Why.
    #[error("{0}")]
    Run(String),
    /// A recording was not replayed. Why, as `joj replay` says it.
    #[error("{0}")]
    Replay(String),
    /// Writers of a cell got errors.
    #[error("{count} INSERTs ended in {name}")]
    Inserts {
        /// How many.
        count: u64,
        /// The name of the error.
        name: String,
    },
    /// A crash state was asked for before its cell was recorded.
    #[error("there is no recording")]
    NoRecording,
    /// A thread that recorded panicked.
    #[error("the log of the recording is gone")]
    NoLog,
    /// What a shell runs in front of a program failed.
    #[error("--before failed: {status}, {said}")]
    Before {
        /// How it ended.
        status: ExitStatus,
        /// The last line of what it said.
        said: String,
    },
    /// A word of the command line has two meanings: which, and what to write instead.
    #[error("{0}")]
    Ambiguous(String),
    /// The job has no such piece of work.
    #[error("the job has no unit {0}")]
    NoUnit(usize),
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordedLogError),
}

/// For `map_err`: `doing` failed with what the system says.
pub fn cannot(doing: impl Into<String>) -> impl Fn(io::Error) -> GuestError {
    let doing = doing.into();
    move |error| GuestError::Io { doing: doing.clone(), error }
}
