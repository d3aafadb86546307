//! What a trace says of itself and of the machine: who captured it, which disks and filesystems there were, and
//! where those filesystems keep their metadata.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::block_device::DeviceNumber;
use crate::filesystem::region::Region;

/// The newest version of saved traces that this code reads. It writes it where a thread's end is told, or how long one waited, or that a
/// file which was there before has two names.
pub const FORMAT_VERSION: u32 = 7;

/// What other recordings are written as.
pub const CALLS_VERSION: u32 = 5;

/// What a trace without calls is written as: older versions of joj read it.
pub const EVENTS_VERSION: u32 = 2;

/// The head of a trace. Everything in it was asked of the machine at the start of the capture, but what `ending` holds.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize, Default)]
pub struct Header {
    /// Version of the format of saved traces that its writer wrote, 1 or more.
    pub version: u32,
    /// The writer, for example `joj 0.1.0`.
    pub writer: String,
    /// Where the events come from.
    pub source: Source,
    /// Wall clock at the start, nanoseconds since 1970; 0 where unknown.
    pub started_unix_ns: u64,
    /// The trace clock at the same moment.
    pub started_ns: u64,
    /// `uname -r`; empty where unknown.
    pub kernel: String,
    /// The command that was traced, word by word; empty where the whole machine was.
    pub command: Vec<String>,
    /// The process whose calls and commits were asked for; those of others are known and told apart. Absent where all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The process of the command that was traced: its own transactions come before others'. Absent where there was no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_process: Option<u32>,
    /// That process and all that it started, and those again: whose calls and commits were asked for. Empty where everybody's were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_processes: Vec<u32>,
    /// Disks and their partitions.
    pub disks: Vec<Disk>,
    /// Filesystems that were mounted from them.
    pub filesystems: Vec<MountedFilesystem>,
    /// What an importer had to guess or a capture could not read (a filesystem's layout), a sentence each.
    pub inferred: Vec<String>,
    /// What a recording says of itself; absent in a trace without calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingFacts>,
    /// What is known at the end only; `null` in a trace that was cut off.
    pub ending: Option<Ending>,
}

/// What a recording of calls says of itself.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize, Default)]
pub struct RecordingFacts {
    /// Components of paths are hashes.
    pub names_hidden: bool,
    /// Calls that are not in the recording, because no replay can make them: (which and why, how many).
    pub not_replayed: BTreeMap<String, u64>,
    /// Where the filesystems were mounted that its paths lie on; empty where nobody looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount_points: Vec<String>,
}

/// Where events come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// eBPF programs on tracepoints.
    #[default]
    Bpf,
    /// The tracefs ring buffers.
    Tracefs,
    /// blktrace's binary files.
    Blktrace,
    /// blkparse's text.
    Blkparse,
    /// ftrace's text.
    Ftrace,
    /// A tracer without eBPF: calls, no block requests.
    Ptrace,
    /// strace's text: calls, no block requests.
    Strace,
    /// A script of MobiGen's, the same.
    Mobigen,
    /// Made by a program: tests, benchmarks.
    Generated,
}

impl Source {
    /// True where blocks of a journal are told apart by what is in them.
    pub fn sees_contents(self) -> bool {
        matches!(self, Self::Bpf | Self::Generated)
    }
}

/// A disk or a partition of one.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize, Default)]
pub struct Disk {
    /// The number of the disk or partition.
    pub number: DeviceNumber,
    /// The whole disk's number: the same for a whole disk.
    pub whole: DeviceNumber,
    /// Kernel name, for example `vda1`.
    pub name: String,
    /// Where it begins on the whole disk.
    pub start_sector: u64,
    pub sectors: u64,
    /// True for `write back`: what is complete may still be lost. `null` where an imported trace does not tell.
    pub write_cache: Option<bool>,
    /// True where the device takes FUA writes; `null` as above.
    pub fua: Option<bool>,
    /// For a loop device, the file behind it.
    pub behind: Option<String>,
    /// Names in /proc/interrupts that belong to it, for example `virtio0-req.0`.
    pub interrupt: Option<String>,
}

/// A mounted filesystem.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize, Default)]
pub struct MountedFilesystem {
    /// What files on it have as their device inside the kernel (`s_dev`, as /proc/self/mountinfo has it). Btrfs tells stat
    /// another number for each subvolume.
    pub device: DeviceNumber,
    /// A name of /proc/filesystems, for example `ext4`.
    pub kind: String,
    /// Where it is mounted, once.
    pub mount_point: String,
    /// Mount options, as /proc/self/mountinfo has them.
    pub options: String,
    /// Bytes of its blocks; 0 where unknown.
    pub block_bytes: u32,
    /// Disks or partitions that hold its data; more than one for Btrfs.
    pub disks: Vec<DeviceNumber>,
    /// Where it keeps what is not data, in order of disk and sector, without overlap. Empty where nobody could read it.
    pub regions: Vec<Region>,
    /// Until when it was seen mounted, by the trace's clock: its disk may be another filesystem's from then on. Absent: to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
}

/// What is known when a capture ends.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize, Default)]
pub struct Ending {
    /// The trace clock at the end.
    pub ended_ns: u64,
    /// Events that were written.
    pub events: u64,
    /// Events that the kernel could not hand over; 0 is a promise that none is missing.
    pub lost: u64,
    /// Why the capture ended early, if it did.
    pub cut_short: Option<String>,
    /// What each whole disk's own counters say of the same time.
    pub disks: Vec<DiskCounters>,
    /// Interrupts by device: (name, how many).
    pub interrupts: Vec<(String, u64)>,
}

/// /sys/block/NAME/stat over the time of the capture.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize, Default)]
pub struct DiskCounters {
    pub disk: DeviceNumber,
    /// Completed reads and their bytes.
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub discards: u64,
    pub flushes: u64,
}

impl Header {
    /// The disk or partition with this number.
    pub fn disk(&self, number: DeviceNumber) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.number == number)
    }

    /// The filesystem whose files have this device number.
    pub fn filesystem(&self, device: DeviceNumber) -> Option<&MountedFilesystem> {
        self.filesystems.iter().find(|filesystem| filesystem.device == device)
    }
}
