//! Why nothing can be captured, or nothing more: eBPF, tracefs, the spool, the disks below a path.

use std::io;
use std::path::{Path, PathBuf};

use joj_analysis::filesystem::layout::{LayoutError, RegionError};
use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::ftrace::error::FtraceError;
use thiserror::Error;

use crate::machine::devices::device_bytes::DeviceOpenError;
use crate::machine::files::mounts::MountError;

/// Why a capture cannot begin, or not go on.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// eBPF cannot be used.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// tracefs cannot be used.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// The spool's temporary file cannot be read.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Whoever waited for the analysis gave it up.
    #[error("the analysis was given up")]
    GivenUp,
}

/// Why eBPF cannot be used here, and what to grant.
#[derive(Debug, Error)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "a joj without eBPF has only one reason"))]
pub enum BpfError {
    /// joj was built without its programs.
    #[error("this joj was built {0}: no eBPF")]
    NotBuilt(&'static str),
    /// CO-RE needs the kernel's types.
    #[error(
        "this kernel describes its types to nobody: /sys/kernel/btf is missing (CONFIG_DEBUG_INFO_BTF is off)"
    )]
    NoTypes,
    /// A tracepoint without which there is no trace is not there.
    #[error("this kernel has no tracepoint {0} (CONFIG_BLK_DEV_IO_TRACE or CONFIG_FTRACE_SYSCALLS is off)")]
    NoTracepoint(String),
    /// The kernel forbids eBPF to everybody.
    #[error(
        "cannot {0}: this kernel is locked down (confidentiality), which forbids eBPF to read its memory"
    )]
    LockedDown(&'static str),
    /// This process lacks capabilities.
    #[error(
        "cannot {what}: run joj as root, or grant it what it needs (`sudo setcap {capabilities}+ep JOJ`)"
    )]
    NotPermitted {
        /// What was tried.
        what: &'static str,
        /// The capabilities that it needs.
        capabilities: &'static str,
    },
    /// The kernel refuses a program, or all of them.
    #[error("cannot {what}: {error}\n  {complaints}")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// libbpf's error.
        error: String,
        /// The last lines that the kernel's verifier and libbpf wrote.
        complaints: String,
    },
    /// The object lacks a map: a fault of joj's.
    #[error("the eBPF object has no map `{0}`")]
    NoMap(&'static str),
    /// The object lacks its settings: a fault of joj's.
    #[error("the eBPF object has no settings")]
    NoSettings,
    /// The map of devices is full.
    #[error("cannot capture more than 1024 devices at once: {0}")]
    TooManyDevices(String),
    /// Events cannot be fetched.
    #[error("cannot read the eBPF ring buffer: {0}")]
    RingBuffer(String),
    /// An event is none: a fault of how joj was built.
    #[error("the eBPF programs handed up what joj cannot read: it was built from other sources than they")]
    Record,
}

/// Why a capture by tracefs cannot begin, or not go on.
#[derive(Debug, Error)]
pub enum TracefsError {
    /// Records of a big-endian machine.
    #[error("joj reads the trace buffers of little-endian machines only")]
    BigEndian,
    /// Somebody without rights.
    #[error("tracefs is closed to this user: run joj as root")]
    Closed,
    /// It is not mounted.
    #[error(
        "there is no tracefs: mount it with `mount -t tracefs nodev /sys/kernel/tracing` as root; if that says \
         `unknown filesystem type`, the kernel was built without CONFIG_TRACING"
    )]
    NotMounted,
    /// A buffer of one's own cannot be made.
    #[error("cannot make a trace buffer in {}: {error}; {}", .path.display(), remedy(.error))]
    NoInstance {
        /// Its directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A hundred directories of this process's are in the way.
    #[error("{} is full of {prefix}*: remove them with rmdir", .instances.display())]
    Full {
        /// Where the buffers' directories are.
        instances: PathBuf,
        /// How the names of joj's begin.
        prefix: &'static str,
    },
    /// A setting was refused.
    #[error("cannot write `{value}` to {}: {error}{advice}", .path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// What was written.
        value: String,
        /// What the system said.
        #[source]
        error: io::Error,
        /// How to mend it, after a semicolon; empty where that is not known.
        advice: &'static str,
    },
    /// A text or a directory of it cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A processor's buffer cannot be opened.
    #[error("cannot open {}: {error}", .path.display())]
    NotOpened {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A processor's buffer cannot be read any more.
    #[error("cannot read the trace buffer of {processor}: {error}")]
    Buffer {
        /// Its directory's name: `cpu3`.
        processor: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// This kernel lacks an event, under all of its names.
    #[error("this kernel has no event {0}")]
    NoEvent(String),
    /// The text that describes an event.
    #[error("{path}/format: {fault}")]
    Format {
        /// The event's directory.
        path: String,
        /// What is wrong with it.
        #[source]
        fault: FtraceError,
    },
    /// The kernel's events or pages are not as joj knows them.
    #[error(transparent)]
    Ftrace(#[from] FtraceError),
}

impl TracefsError {
    /// The same, with how to mend it where a setting was refused.
    pub fn with_advice(mut self, text: &'static str) -> TracefsError {
        if let TracefsError::Setting { advice, .. } = &mut self {
            *advice = text;
        }
        self
    }

    /// For `map_err`: `path` cannot be read.
    pub fn unreadable(path: &Path) -> impl Fn(io::Error) -> TracefsError + '_ {
        |error| TracefsError::Unreadable { path: path.to_owned(), error }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "run joj as root, on Android with SELinux allowing it (`su 0 setenforce 0` on a test device)"
        }
        Some(libc::EROFS) => {
            "tracefs is mounted read-only: `mount -o remount,rw` its directory, such as /sys/kernel/tracing"
        }
        Some(libc::ENOMEM) => "there is no memory for its buffers: free some",
        _ => "look into `dmesg`",
    }
}

/// Why what was captured cannot be had back.
#[derive(Debug, Error)]
pub enum SpoolError {
    /// The temporary file is gone: a fault of joj's.
    #[error("the spool has lost its file")]
    NoFile,
    /// The temporary file cannot be read.
    #[error("cannot read joj's temporary file in {}: {error}", .directory.display())]
    Unreadable {
        /// Where it lies.
        directory: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// What stands there is no event: a fault of joj's.
    #[error("the spool holds what is no event: a fault of joj's")]
    NoEvent,
}

/// Why it is not known which disks lie below a path, or what lies on them.
#[derive(Debug, Error)]
pub enum DiskError {
    /// The path cannot be looked at.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A device node without a number.
    #[error("{}: no device", .0.display())]
    NoDevice(PathBuf),
    /// The mount of the path is not known.
    #[error("{}: {error}", .path.display())]
    Mount {
        /// The path.
        path: PathBuf,
        /// What /proc says.
        #[source]
        error: MountError,
    },
    /// The mounts cannot be listed.
    #[error(transparent)]
    Mounts(#[from] MountError),
    /// The filesystem of the path has no disk: tmpfs, a network's.
    #[error("{}: {kind} on {} lies on no disk; name a directory on a disk's filesystem", .path.display(), .mount_point.display())]
    NoDisk {
        /// The path.
        path: PathBuf,
        /// The filesystem.
        kind: String,
        /// Where it is mounted.
        mount_point: PathBuf,
    },
    /// The kernel lists no disk of this number with a size.
    #[error("{}: {device} is no disk with a size", .path.display())]
    NoSize {
        /// The path.
        path: PathBuf,
        /// The disk.
        device: DeviceNumber,
    },
    /// There is no such disk.
    #[error("{0} is no disk of this machine; `lsblk` lists them with their numbers")]
    Unknown(DeviceNumber),
}

/// Why it is not known where a filesystem keeps its metadata.
#[derive(Debug, Error)]
pub enum MetadataError {
    /// The filesystem is mounted from a disk that is not listed.
    #[error("{0} is no disk of this machine")]
    NoDisk(DeviceNumber),
    /// The disk cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceOpenError),
    /// The disk's bytes are not those of such a filesystem.
    #[error("{disk}: {error}")]
    Layout {
        /// The disk's name.
        disk: String,
        /// Which of its structures is wrong.
        #[source]
        error: LayoutError,
    },
    /// The regions of several disks overlap.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// No disk is the one that ext4 has its journal on. With each that has a journal which cannot be read.
    #[error("no disk has its journal{}", .0.iter().map(|one| format!("; {one}")).collect::<String>())]
    NoJournal(Vec<MetadataError>),
    /// XFS's log has a device that is not listed.
    #[error("no disk is the one of its mount option logdev")]
    NoLogDevice,
    /// XFS's log does not fit on its device.
    #[error(transparent)]
    Log(LayoutError),
}
