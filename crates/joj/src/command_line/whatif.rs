//! The command line of `joj whatif`; `emulated`: its emulated disks; `row`: one row there.

pub mod emulated;
pub mod row;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use joj_analysis::bench::key::Word;
use joj_analysis::recording::whatif::classes::{ClassPattern, FileClass};
use joj_analysis::recording::whatif::configuration::Configuration;

use crate::command_line::page_file;
use crate::command_line::whatif::emulated::{ONLY_IN_LAB, WhatifLabOptions};
use crate::command_line::whatif::row::RowOptions;

/// After the options in `joj whatif --help`.
pub const EXAMPLES: &str = "\
Examples:
  joj whatif app.joj                       a recording of `joj record`, on the disk of the current directory
  joj whatif browser                       one that joj brings: see `joj lab list`
  joj whatif app.joj /mnt/card             on the disk of that directory
  joj whatif -- ./app --its-own options    records the program first
  joj whatif --rerun -- ./app --its-own options    and runs it in RAM and without syncs, to check the forecast
  joj whatif app.joj --class 'cache:*.cache' --class 'cache:/home/*/thumbnails/*'
  joj whatif app.joj --class 'permanent:*.db' --class 'temporary:/tmp/*'    and each class as durable as it has to be
  joj whatif app.joj --only recorded,wal,waldio --rounds 7
  joj whatif app.joj --html whatif.html --markdown whatif.md --json whatif.json
  joj whatif app.joj --device galaxy-s5-emmc,kingston --filesystem ext4,f2fs    on emulated disks, a table each
  joj whatif app.joj --device galaxy-s5-emmc --rounds 1    for a first look: another round may differ
  joj whatif app.joj --device kingston --raid0 2 --write-buffer pcm-16mb    on one card, two striped ones, one behind a buffer

Each configuration is a replay without think time, several rounds of all of them in turn. What the columns mean, and what the
figures are worth: docs/whatif.md. Everything happens in new directories below DIR and /dev/shm, which are removed at the end, after an
error and after Ctrl-C too. On emulated disks it happens in the machine of `joj lab`, which needs QEMU and Debian's packages (`joj lab
--help`). There each round of each row has a new device and a new filesystem. The clock counts instructions, and think time passes at
once, so replays have it. The exit code is 0, or 1 when something failed; 2 for a wrong command line, 130 after Ctrl-C. A row
that cannot be had says why, and is no failure.";

/// Options of `joj whatif`.
#[derive(Debug, Args)]
pub struct WhatifOptions {
    /// The recording, of `joj record`
    #[arg(value_name = "FILE.joj", required_unless_present = "command", conflicts_with = "command")]
    pub recording: Option<PathBuf>,

    /// A directory on the disk to measure
    #[arg(value_name = "DIR", default_value = ".", conflicts_with_all = ONLY_IN_LAB)]
    pub directory: PathBuf,

    /// Emulated disks instead.
    #[command(flatten)]
    pub emulated: WhatifLabOptions,

    /// With a COMMAND: run it in each configuration that running it can have, too, and show that beside the forecast. It runs in copies of
    /// the current directory
    #[arg(long, requires = "command", conflicts_with = "recording", conflicts_with_all = ONLY_IN_LAB)]
    pub rerun: bool,

    /// One row, for `joj whatif` outside of the emulated machine.
    #[command(flatten)]
    pub row: RowOptions,

    /// How often each configuration is replayed [default: 3, and on a real disk fewer where they would take longer than a minute]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,

    /// Have each replay wait for the program's think time, too: for programs of which several threads sync. It takes as long as the program for
    /// each row and round
    #[arg(long, conflicts_with_all = ONLY_IN_LAB)]
    pub think_time: bool,

    /// Only these: recorded (always), databases-in-ram, caches-in-ram, all-in-ram, no-sync, caches-no-sync, by-class, wal, waldio, waldio-bounded, wal-normal
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub only: Vec<Configuration>,

    /// What files are worth: `permanent:PATTERN`, `cache:PATTERN` or `temporary:PATTERN` with * and ?; may be repeated. With a / it is for
    /// the whole path, else for each part of it. A database's journals and logs are of its class [default: cache:*cache*]
    #[arg(long = "class", value_name = "CLASS:PATTERN", value_parser = parse_class)]
    pub classes: Vec<ClassPattern>,

    /// The SQLite that makes commits: bundled (inside joj), system, or a library
    #[arg(long, value_name = "NAME|FILE.so", default_value = "bundled")]
    pub sqlite: String,

    /// The waldio extension [default: libwaldio.so beside joj]
    #[arg(long, value_name = "FILE.so")]
    pub waldio: Option<PathBuf>,

    /// With a COMMAND: keep its recording in this file
    #[arg(short, long, value_name = "FILE.joj", conflicts_with = "recording")]
    pub output: Option<PathBuf>,

    /// Write the result as JSON (docs/whatif.md); `-` for standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the result as Markdown; `-` for standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write the result as one HTML page with bars
    #[arg(long, value_name = "FILE", value_parser = page_file())]
    pub html: Option<PathBuf>,

    /// The command to record first, behind `--`, in the current directory. Where the result has standard output (`--json -`, `--markdown -`),
    /// what the command prints goes to standard error
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The pattern of a class.
fn parse_class(text: &str) -> Result<ClassPattern, String> {
    let Some((class, pattern)) = text.split_once(':') else {
        return Err("it has no `:`; write it like `cache:*.cache`".to_owned());
    };
    let class = class.parse::<FileClass>().map_err(|error| error.to_string())?;
    if pattern.is_empty() {
        return Err(format!("it has no pattern; write it like `{}:*.{0}`", class.word()));
    }
    Ok((class, pattern.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_a_name_and_a_pattern() {
        assert_eq!(parse_class("cache:*.c:d"), Ok((FileClass::Cache, "*.c:d".to_owned())));
        assert_eq!(parse_class("temporary:a"), Ok((FileClass::Temporary, "a".to_owned())));
        for wrong in ["cache", "cache:", "cash:*.db", ""] {
            assert!(parse_class(wrong).is_err(), "{wrong}");
        }
    }
}
