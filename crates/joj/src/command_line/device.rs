//! The command line of `joj device`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::command_line::units::{parse_bytes, parse_record, parse_seconds};

/// Behind the options in `joj device --help`.
pub const EXAMPLES: &str = "\
Examples:
  joj device list
  joj device show galaxy-s5-emmc > my-phone.toml     a description to change
  joj device check my-phone.toml
  joj device sweep kingston                          what the model makes of it
  joj device probe /mnt/card                         a real one: in order and at random, over growing ranges
  joj device probe . --range-max 4GiB --record 4KiB,128KiB --runs 5 --json probe.json

joj device probe makes a file in DIR, removes it at the end, and passes the page cache (O_DIRECT). Each range is written,
then read, written at random and read at random, with records of each size (docs/device_probe.md).

The form of a description, the model's equations and what each device was fitted to: docs/device_format.md.
The exit code is 0, 1 where a description is wrong, there is no such device or it cannot be measured, 2 for a wrong command
line, 130 after Ctrl-C.";

/// Options of `joj device`.
#[derive(Debug, Args)]
pub struct DeviceOptions {
    /// What to do
    #[command(subcommand)]
    pub action: DeviceAction,
}

/// What `joj device` does.
#[derive(Debug, Subcommand)]
pub enum DeviceAction {
    /// Name the devices that come with joj
    List,
    /// Print the description of one, with the source of each number
    Show {
        /// As `joj device list` has it
        name: String,
    },
    /// Read a description and say what is wrong with it
    Check {
        /// A TOML file
        file: String,
    },
    /// Run sequential and random requests on the model: rates, and random writes over a growing range
    Sweep {
        /// A name, or a TOML file
        device: String,
    },
    /// Measure the disk of a directory: in order and at random, over address ranges that double, with records of several sizes
    Probe(ProbeOptions),
}

/// Options of `joj device probe`.
#[derive(Debug, Args)]
pub struct ProbeOptions {
    /// Directory on the disk to measure
    pub directory: PathBuf,

    /// The smallest range; each is twice the one before
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = parse_range)]
    pub range_min: u64,

    /// The largest range, or `all` that is free but a twentieth [default: 1GiB, or half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = parse_range_max)]
    pub range_max: Option<RangeMax>,

    /// Sizes of a record
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB,32KiB,128KiB,1MiB", value_parser = parse_record)]
    pub record: Vec<u64>,

    /// Records of a run at random, as in the FAST'12 paper
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub requests: u64,

    /// How long a run may take
    #[arg(long, value_name = "S", default_value = "2", value_parser = parse_seconds)]
    pub seconds: f64,

    /// Runs of each range, record and order
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,

    /// Write the result as JSON (docs/device_probe.md); `-` for standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// How far the ranges go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeMax {
    /// As far as there is room.
    All,
    Bytes(u64),
}

fn parse_range(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    let is_range = (1 << 20..=1 << 50).contains(&bytes);
    if is_range { Ok(bytes) } else { Err(format!("`{text}` is no range of at least 1MiB")) }
}

fn parse_range_max(text: &str) -> Result<RangeMax, String> {
    if text == "all" { Ok(RangeMax::All) } else { parse_range(text).map(RangeMax::Bytes) }
}
