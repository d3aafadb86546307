//! Options of `joj whatif` for emulated disks.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use joj_analysis::filesystem::Filesystem;

/// What the directory of a disk of this machine goes without.
pub const ONLY_IN_LAB: [&str; 3] = ["lab", "device", "filesystem"];

/// On which emulated disks a recording is replayed.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("emulated_disks").args(ONLY_IN_LAB).multiple(true)))]
pub struct WhatifLabOptions {
    /// Measure in an emulated machine instead of on a disk of this machine, one round; --device and --filesystem do so, too
    #[arg(long)]
    pub lab: bool,

    /// Emulated devices (see `joj device list`), or files that describe one: a table for each with each --filesystem
    /// [default: galaxy-s5-emmc]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub device: Vec<String>,

    /// Filesystems on them: ext4, xfs, btrfs, nilfs2, f2fs [default: ext4]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub filesystem: Vec<Filesystem>,

    /// Emulated machines at a time: no figure depends on it [default: one a processor, as far as there is memory]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000),
          requires = "emulated_disks")]
    pub jobs: Option<u32>,

    /// How long the replays on one emulated disk may take on this machine before its guest is ended, in seconds
    #[arg(long, value_name = "S", default_value = "3600", value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          requires = "emulated_disks")]
    pub replay_seconds: u64,

    /// Another kernel (a bzImage) for the emulated machine than Debian's; needs --modules
    #[arg(long, value_name = "FILE", requires = "modules", requires = "emulated_disks")]
    pub kernel: Option<PathBuf>,

    /// The modules of that kernel, as in /lib/modules/RELEASE
    #[arg(long, value_name = "DIR", requires = "kernel", requires = "emulated_disks")]
    pub modules: Option<PathBuf>,
}

impl WhatifLabOptions {
    /// True where the disks are emulated ones.
    pub fn is_asked(&self) -> bool {
        self.lab || !self.device.is_empty() || !self.filesystem.is_empty()
    }

    /// The devices, or the one that is taken where none is named.
    pub fn devices(&self) -> Vec<String> {
        if self.device.is_empty() { vec!["galaxy-s5-emmc".to_owned()] } else { self.device.clone() }
    }

    /// The filesystems, or the one that is taken where none is named.
    pub fn filesystems(&self) -> Vec<Filesystem> {
        if self.filesystem.is_empty() { vec![Filesystem::Ext4] } else { self.filesystem.clone() }
    }
}
