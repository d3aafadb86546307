//! What came of a replay, in numbers, as docs/recording.md describes its JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::run::DeviceDelta;

/// The version of a [`ReplayOutcome`] in JSON.
pub const REPLAY_VERSION: u32 = 1;

/// Calls of one kind.
#[derive(Debug, Clone, Copy, Default, JsonSchema, Serialize, Deserialize, PartialEq, Eq)]
pub struct KindOutcome {
    /// How many were made.
    pub calls: u64,
    /// Of them, those that returned something else than in the recording.
    pub differ: u64,
    /// How many were not made: their descriptor is not open here.
    pub not_made: u64,
}

/// How late calls began that should have begun at a certain time.
#[derive(Debug, Clone, Copy, Default, JsonSchema, Serialize, Deserialize, PartialEq, Eq)]
pub struct Lateness {
    /// Half of them began no later.
    pub p50_ns: u64,
    /// 99 % of them.
    pub p99_ns: u64,
    /// None began later.
    pub max_ns: u64,
}

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ReplayOutcome {
    /// Of this description: 1.
    pub version: u32,
    /// Where the recording comes from.
    pub source: String,
    /// `dependent`, `timed` or `fast`.
    pub order: String,
    /// Mobibench's reading.
    pub compat: bool,
    /// Threads.
    pub threads: u64,
    /// Calls that were made.
    pub calls: u64,
    /// By call.
    pub by_call: BTreeMap<String, KindOutcome>,
    /// Bytes that reads returned.
    pub read_bytes: u64,
    /// Bytes that writes took.
    pub written_bytes: u64,
    /// Calls that make something durable, by call.
    pub syncs: BTreeMap<String, u64>,
    /// From the first call's begin to the last one's end.
    pub elapsed_ns: u64,
    /// The same in the recording.
    pub recorded_elapsed_ns: u64,
    /// Time inside calls, of all threads together: Mobibench's `Total IO time`. Results had none at first.
    #[serde(default)]
    pub in_calls_ns: u64,
    /// What the block device did in that time, by whomever; `null` where there is none. Results had none at first.
    #[serde(default)]
    pub device: Option<DeviceDelta>,
    /// Of the calls that had a time to begin at; `null` in order `fast`.
    pub lateness: Option<Lateness>,
    /// Processor time of joj's, the kernel's for its calls included, in microseconds.
    pub cpu_us: u64,
    /// Of it, the kernel's. Results had none at first.
    #[serde(default)]
    pub cpu_system_us: u64,
    /// Calls that Mobibench skips, because its map has no such descriptor; `null` without --compat.
    pub skipped: Option<u64>,
    /// Files that it makes, one for each open; `null` without --compat.
    pub files: Option<u64>,
    /// Calls of the program that are not in the recording, and why.
    pub not_replayed: BTreeMap<String, u64>,
    /// What the recording's importer had to guess.
    pub inferred: Vec<String>,
    /// Files of other filesystems, which the program only read: they are not on the disk that is measured.
    #[serde(default)]
    pub files_apart: u64,
    /// What --check found, a sentence each; `null` without it.
    pub differences: Option<Vec<String>>,
    /// Where the files are, with --keep.
    pub kept: Option<String>,
}

impl ReplayOutcome {
    /// Calls that returned something else than in the recording, or were not made.
    pub fn differing(&self) -> u64 {
        self.by_call.values().map(|kind| kind.differ + kind.not_made).sum()
    }
}
