//! Options of `joj lab exec`.

use std::path::PathBuf;

use clap::Args;
use joj_analysis::filesystem::Filesystem;

use crate::command_line::lab::{GuestOptions, MachineOptions};

/// Examples and what has to be known besides.
pub const EXAMPLES: &str = "\
Examples:
  joj lab exec -- sqlite3 app.db 'CREATE TABLE t(x); INSERT INTO t VALUES (1);'
  joj lab exec --device transcend,kingston --filesystem ext4,f2fs --json times.json -- python3 /home/me/load.py
  joj lab exec --take /tmp/app.joj -- joj record -o /tmp/app.joj -- /home/me/my-program

The command sees this machine's programs, libraries and files, to read only. Its working directory is /data, an empty
filesystem on the emulated device. /tmp is memory, and its HOME. Give your own files by their whole paths. There is no
network and no standard input.

It runs twice in each machine: first to have what it reads of this machine in memory, then again on a new /data, and this
run counts. Its times are those of the emulated disk and of a processor that executes an instruction in a nanosecond.

With one device and one filesystem joj prints what the command printed, and ends with its exit code (128 and the number
of the signal that ended it). With several there is a table; the exit code is 1 when one of them did not end with 0.
130 after Ctrl-C.";

/// Options of `joj lab exec`.
#[derive(Debug, Args)]
pub struct ExecOptions {
    /// Emulated devices (see `joj device list`), or files that describe one
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "galaxy-s5-emmc")]
    pub device: Vec<String>,

    /// Filesystems: ext4, xfs, btrfs, nilfs2, f2fs
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ext4")]
    pub filesystem: Vec<Filesystem>,

    /// A file below /data or /tmp to keep when the command is over, in the directory of --take-to; may be repeated
    #[arg(long, value_name = "FILE")]
    pub take: Vec<PathBuf>,

    /// Where kept files go; with several rows their names begin with FILESYSTEM-DEVICE-
    #[arg(long, value_name = "DIR", default_value = ".", requires = "take")]
    pub take_to: PathBuf,

    /// Write the result as JSON (docs/lab_format.md); `-` for standard output instead of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// How long both runs may take on this machine before the guest is ended, in seconds
    #[arg(long, value_name = "S", default_value = "3600", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub exec_seconds: u64,

    /// How much is done at once.
    #[command(flatten)]
    pub guests: GuestOptions,

    /// The emulated machine.
    #[command(flatten)]
    pub machine: MachineOptions,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
