//! Options of `joj replay` with --lab: the emulated disks.

use std::path::PathBuf;

use clap::Args;
use joj_analysis::filesystem::Filesystem;

/// What a replay on a disk of this machine has not.
pub const ONLY_IN_LAB: [&str; 7] =
    ["lab", "device", "filesystem", "jobs", "replay_seconds", "kernel", "modules"];

/// On which emulated disks a recording is replayed.
#[derive(Debug, Args)]
pub struct ReplayLabOptions {
    /// Replay in an emulated machine, on each --device with each --filesystem, instead of on a disk of this machine
    #[arg(long)]
    pub lab: bool,

    /// With --lab: emulated devices (see `joj device list`), or files that describe one
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "galaxy-s5-emmc",
        requires = "lab"
    )]
    pub device: Vec<String>,

    /// With --lab: filesystems: ext4, xfs, btrfs, nilfs2, f2fs
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ext4", requires = "lab")]
    pub filesystem: Vec<Filesystem>,

    /// With --lab: emulated machines at a time: no figure depends on it [default: one a processor, as far as there is memory]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000), requires = "lab")]
    pub jobs: Option<u32>,

    /// With --lab: how long one replay may take on this machine before its guest is ended, in seconds
    #[arg(long, value_name = "S", default_value = "3600", value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          requires = "lab")]
    pub replay_seconds: u64,

    /// With --lab: another kernel (a bzImage) than Debian's; needs --modules
    #[arg(long, value_name = "FILE", requires = "lab", requires = "modules")]
    pub kernel: Option<PathBuf>,

    /// With --lab: the modules of that kernel, as in /lib/modules/RELEASE
    #[arg(long, value_name = "DIR", requires = "lab", requires = "kernel")]
    pub modules: Option<PathBuf>,
}
