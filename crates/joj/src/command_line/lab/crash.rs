//! Options of `joj lab crash`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use joj_analysis::bench::key::{JournalMode, Synchronous};
use joj_analysis::filesystem::Filesystem;

/// Examples and what has to be known besides.
pub const EXAMPLES: &str = "\
Examples:
  joj lab crash                                  30 states each of ext4, XFS and F2FS with stock WAL and with waldio
  joj lab crash --modes waldio --waldio-option layout=embedded --states 200
  joj lab crash --modes waldio --waldio-option durability=bounded    how much, and how old, is gone: no more than the bound
  joj lab crash --filesystems f2fs --seed 7 --recordings kept/    other cuts; keep what they were made of
  joj lab crash --filesystems f2fs --seed 7 --recordings kept/    again: the same cuts of the same recording
  joj lab crash --filesystems f2fs --torn f2fs   what F2FS, and SQLite on it, makes of blocks that are half new
  joj lab crash --plant ignored-flushes          a device that lies: this has to lose commits
  joj crash sqlite --mode delete,truncate,persist,wal --sync full,normal    the same command by another name

A writer commits on the emulated device, whose log is recorded. A state is what a power cut at one moment may leave: everything
that a flush or a FUA write promised, and of the rest any part. The kernel mounts it, SQLite opens the
database, and every COMMIT that had returned has to be there, at most the one under way besides, and no hole.
The exit code is 0 when no promise was broken, 1 when one was, 2 for a wrong command line, 130 after Ctrl-C.";

/// A bug that shows whether one would be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Plant {
    /// The device acknowledges flushes and FUA writes, without effect.
    IgnoredFlushes,
}

/// Options of `joj lab crash`.
#[derive(Debug, Args)]
pub struct CrashOptions {
    /// Filesystems
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ext4,xfs,f2fs")]
    pub filesystems: Vec<Filesystem>,

    /// delete, truncate, persist, wal, waldio
    #[arg(long, alias = "mode", value_name = "LIST", value_delimiter = ',', default_value = "wal,waldio")]
    pub modes: Vec<JournalMode>,

    /// Option for waldio, for example layout=embedded; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_option)]
    pub waldio_option: Vec<String>,

    /// States of each filesystem and mode
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub states: u64,

    /// Chooses the cuts, and what each keeps
    #[arg(long, value_name = "S", default_value = "1")]
    pub seed: u64,

    /// Filesystems whose blocks a cut may tear into sectors of 512 bytes. F2FS counts on 4 KiB as a whole, which flash writes at once
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ext4,xfs")]
    pub torn: Vec<Filesystem>,

    /// Transactions that are committed, and cut
    #[arg(long, value_name = "N", default_value = "40", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub commits: u64,

    /// The emulated device (see `joj device list`): without a volatile cache a power cut takes only what is under way
    #[arg(long, value_name = "NAME", default_value = "galaxy-s5-emmc")]
    pub device: String,

    /// PRAGMA synchronous; with `normal` COMMITs may be lost, and only holes and damage are failures (unless durability=bounded)
    #[arg(long, alias = "sync", value_name = "LIST", value_delimiter = ',', default_value = "full")]
    pub synchronous: Vec<Synchronous>,

    /// Write the result as JSON (docs/crash_states.md); `-` for standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Keep the recorded logs in DIR, or take them from there: then the same seed gives the same states
    #[arg(long, value_name = "DIR")]
    pub recordings: Option<PathBuf>,

    /// Plant a bug, to see it found
    #[arg(long, value_enum, hide = true)]
    pub plant: Option<Plant>,

    /// How long a state may take on this machine before its guest is ended, in seconds
    #[arg(long, value_name = "S", default_value = "300", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub state_seconds: u64,
}

fn parse_option(text: &str) -> Result<String, String> {
    crate::command_line::waldio::parse_option(text).map(|(name, value)| format!("{name}={value}"))
}
