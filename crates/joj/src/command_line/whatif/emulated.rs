//! Options of `joj whatif` for emulated disks.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use joj_analysis::filesystem::Filesystem;
use joj_device::request::BLOCK_BYTES;

use crate::command_line::units::parse_bytes;

/// What the directory of a disk of this machine goes without.
pub const ONLY_IN_LAB: [&str; 5] = ["lab", "device", "filesystem", "raid0", "write_buffer"];

/// On which emulated disks a recording is replayed.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("emulated_disks").args(ONLY_IN_LAB).multiple(true)))]
pub struct WhatifLabOptions {
    /// Measure in an emulated machine instead of on a disk of this machine; so do --device, --filesystem, --raid0 and --write-buffer
    #[arg(long)]
    pub lab: bool,

    /// Emulated devices (see `joj device list`), or files that describe one: a table for each with each --filesystem
    /// [default: galaxy-s5-emmc]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub device: Vec<String>,

    /// Each device as RAID-0, too: this many of it, with stripes of 4 KiB, or as in 2x64KiB
    #[arg(long, value_name = "N[xSTRIPE]", value_parser = parse_raid0)]
    pub raid0: Option<String>,

    /// Each device behind a persistent write buffer, too: pcm-16mb, a size of such memory as in 64MiB, or a device without a volatile cache
    #[arg(long, value_name = "NAME|SIZE|FILE", value_parser = parse_write_buffer)]
    pub write_buffer: Option<String>,

    /// Filesystems on them: ext4, xfs, btrfs, nilfs2, f2fs [default: ext4]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub filesystem: Vec<Filesystem>,

    /// Emulated machines at a time [default: one a processor, as far as there is memory]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000),
          requires = "emulated_disks")]
    pub jobs: Option<u32>,

    /// How long a row on one emulated disk may take on this machine before its guest is ended, in seconds
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
        self.lab
            || !self.device.is_empty()
            || !self.filesystem.is_empty()
            || self.raid0.is_some()
            || self.write_buffer.is_some()
    }

    /// The devices, or the one that is taken where none is named; behind each what it is put together to.
    pub fn devices(&self) -> Vec<String> {
        let named =
            if self.device.is_empty() { vec!["galaxy-s5-emmc".to_owned()] } else { self.device.clone() };
        let with_pilots = |device: String| {
            let striped = self.raid0.as_ref().map(|raid0| format!("{raid0}{device}"));
            let buffered = self.write_buffer.as_ref().map(|buffer| format!("{buffer}{device}"));
            [Some(device), striped, buffered]
        };
        named.into_iter().flat_map(with_pilots).flatten().collect()
    }

    /// The filesystems, or the one that is taken where none is named.
    pub fn filesystems(&self) -> Vec<Filesystem> {
        if self.filesystem.is_empty() { vec![Filesystem::Ext4] } else { self.filesystem.clone() }
    }
}

/// What stands in front of a device's name where it is behind a write buffer: `pcm-16mb+`, or `65536KiB+`.
fn parse_write_buffer(text: &str) -> Result<String, String> {
    match parse_bytes(text) {
        Ok(bytes) => Ok(format!("{}KiB+", in_blocks("write buffer", text, bytes)?)),
        Err(_) => Ok(format!("{text}+")),
    }
}

/// KiB of a size in whole blocks: what devices' names say.
fn in_blocks(what: &str, text: &str, bytes: u64) -> Result<u64, String> {
    if bytes == 0 || !bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(format!("a {what} of {text} is not a multiple of 4KiB"));
    }
    Ok(bytes / 1024)
}

/// What stands in front of a device's name where several of it are RAID-0: `2x`, or `2x64KiB:`.
fn parse_raid0(text: &str) -> Result<String, String> {
    let (count, stripe) = text.split_once('x').map_or((text, None), |(count, stripe)| (count, Some(stripe)));
    if !count.parse::<u64>().is_ok_and(|count| (2..=16).contains(&count)) {
        return Err(format!(
            "`{text}` does not begin with a number from 2 to 16; write it like 2, or 2x64KiB"
        ));
    }
    let Some(stripe) = stripe else { return Ok(format!("{count}x")) };
    Ok(format!("{count}x{}KiB:", in_blocks("stripe", stripe, parse_bytes(stripe)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use joj_device::assembly::Assembly;

    #[test]
    fn what_a_write_buffer_is_written_like_is_the_begin_of_a_devices_name() {
        for (text, begin) in [("pcm-16mb", "pcm-16mb+"), ("64MiB", "65536KiB+"), ("1g", "1048576KiB+")] {
            assert_eq!(parse_write_buffer(text).as_deref(), Ok(begin));
            Assembly::named(&format!("{begin}kingston")).unwrap();
        }
        for wrong in ["0", "5000", "65537"] {
            assert!(parse_write_buffer(wrong).is_err(), "{wrong} bytes are no blocks");
        }
    }

    #[test]
    fn what_raid0_is_written_like_is_the_begin_of_a_devices_name() {
        for (text, begin) in [("2", "2x"), ("16", "16x"), ("3x64KiB", "3x64KiB:"), ("2x1MiB", "2x1024KiB:")] {
            assert_eq!(parse_raid0(text), Ok(begin.to_owned()));
            Assembly::named(&format!("{begin}kingston")).unwrap();
        }
        for wrong in ["1", "17", "", "x", "2x", "2x1KiB", "2x5KiB", "2x0", "two", "2xkingston"] {
            assert!(parse_raid0(wrong).is_err(), "{wrong}");
        }
    }
}
