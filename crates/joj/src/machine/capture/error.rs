//! Why nothing can be captured, or nothing more: eBPF, tracefs, the spool, the disks below a path.

use std::io;
use std::path::PathBuf;

use joj_analysis::filesystem::layout::{LayoutError, RegionError};
use joj_analysis::trace::event::DeviceNumber;
use thiserror::Error;

use crate::machine::files::mounts::MountError;

/// Why a capture cannot begin, or not go on.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// eBPF cannot be used.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// tracefs cannot be used. What reads it gives texts.
    #[error("{0}")]
    Tracefs(String),
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
    #[error("{0}")]
    Device(String),
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
