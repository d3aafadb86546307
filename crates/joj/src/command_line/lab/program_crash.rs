//! Options of `joj crash`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use joj_analysis::filesystem::Filesystem;
use joj_analysis::lab::shards::shard::Shard;

use crate::command_line::lab::{CrashLabOptions, GuestOptions, MachineOptions};

/// Examples and what has to be known besides.
pub const EXAMPLES: &str = "\
Examples:
  joj crash --check 'python3 /home/me/check.py' -- python3 /home/me/app.py
  joj crash --filesystems ext4,xfs,btrfs,f2fs --states 200 --check /home/me/verify.sh -- /home/me/my-program
  joj crash --mount data=writeback --before 'cp /home/me/old.json config.json' --check ./c -- ./p
  joj crash --journal-device ufs3 --check ./c -- ./p    the journal on a second device, which is cut, too
  joj crash sqlite --mode delete,truncate,persist,wal --sync full,normal    SQLite, with a workload and a check of joj's
  joj crash --shard 2/4 --recordings kept/ --json 2.json --check ./c -- ./p    a quarter of the states; `joj lab merge` joins
  joj crash --recordings kept/ --state 1/21000345671/35:1 --check 'ls -l; cat config.json' -- ./p    one state again

The program runs in an emulated machine that sees this machine's programs, libraries and files, to read only. It works in
/data, an empty filesystem on an emulated device, whose requests are recorded. Each line that it prints is a promise: what the
line speaks of survives a power cut from then on. Then the power is cut at many moments. What a flush or a FUA write covered
is there; of the rest any part may be. The kernel mounts what is left, and the check runs there: a shell command in the
recovered /data, with the lines that had been printed on its standard input, and their number in $JOJ_LINES. It says
what it found with its exit code:

  0  everything that was promised is there      2  there is something that was never written
  1  something that was promised is gone        another one, or a signal: the check itself failed

Before the program has printed anything, nothing is promised: a check has to take an empty /data, too. The last line that the check
prints tells states that broke in one way from others. Give your own files by their whole paths. A word with a `/` or a `.`
that names a file of the working directory stands for it; where the program makes one of that name, joj asks which is meant.

A short program is cut at every moment, a long one at --states moments that --seed chooses. Of each way to break joj looks for
the state with the fewest missing writes, and says which they are.
The exit code is 0 when every promise was kept, 3 when one was broken, 1 when something could not be done or only the check failed,
2 for a wrong command line, 130 after Ctrl-C.";

/// Options of `joj crash`: a program, or what joj brings.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub struct CrashCommandOptions {
    /// What joj brings.
    #[command(subcommand)]
    pub built_in: Option<BuiltIn>,

    /// A program of the user's.
    #[command(flatten)]
    pub program: ProgramCrashOptions,
}

/// Programs and checks that joj brings.
#[derive(Debug, Subcommand)]
pub enum BuiltIn {
    /// SQLite's commits, in each journal mode: the same as `joj lab crash`
    #[command(after_help = crate::command_line::lab::crash::EXAMPLES)]
    Sqlite(Box<CrashLabOptions>),
    /// Where parts are joined: `joj lab merge` has both kinds
    #[command(hide = true)]
    Merge {
        /// Whatever else was given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// A program that is to be cut.
#[derive(Debug, Args)]
pub struct ProgramCrashOptions {
    /// What says whether the files are as they should be: a shell command
    #[arg(long, value_name = "COMMAND", required = true)]
    pub check: Option<String>,

    /// Filesystems: ext4, xfs, btrfs, nilfs2, f2fs
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ext4")]
    pub filesystems: Vec<Filesystem>,

    /// Emulated devices (see `joj device list`), or files that describe one. Without a volatile cache a power cut takes only what is under way
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "galaxy-s5-emmc")]
    pub device: Vec<String>,

    /// The journal of ext4 and XFS is on an emulated device of its own, NAME, and the same power cut takes both
    #[arg(long, value_name = "NAME")]
    pub journal_device: Option<String>,

    /// Mount the filesystem with these options
    #[arg(long, value_name = "OPTIONS")]
    pub mount: Option<String>,

    /// A shell command that makes what the program begins with, in /data; it is in every state
    #[arg(long, value_name = "COMMAND")]
    pub before: Option<String>,

    /// States of each filesystem, at most
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub states: u32,

    /// Chooses the states, where there are more
    #[arg(long, value_name = "S", default_value = "1")]
    pub seed: u64,

    /// A cut may tear blocks of 4 KiB into sectors of 512 bytes. F2FS counts on whole blocks, and flash writes them
    #[arg(long)]
    pub torn: bool,

    /// Keep the recorded logs in DIR, or take them from there: then the same seed gives the same states
    #[arg(long, value_name = "DIR")]
    pub recordings: Option<PathBuf>,

    /// Look at the states of shard I of N alone, 1/4 to 4/4; --json gets a part, and `joj lab merge` joins those of all shards. All take
    /// the same DIR: the first one there records. `joj crash sqlite` has no shards
    #[arg(long, value_name = "I/N", requires = "recordings", requires = "json", conflicts_with = "state")]
    pub shard: Option<Shard>,

    /// Look at this state alone, as joj named it with the same command and DIR, and print all that the check prints
    #[arg(long, value_name = "STATE", requires = "recordings")]
    pub state: Option<String>,

    /// Write the result as JSON (docs/crash_format.md); `-` for standard output instead of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// End the program after so many seconds of the emulated machine's clock
    #[arg(long, value_name = "S", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub program_seconds: u64,

    /// Go on with the log for so many seconds when the program has ended: the kernel writes what nobody synced, later
    #[arg(long, value_name = "S", default_value = "40", value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub settle_seconds: u64,

    /// How long one run of the program or of the check may take on this machine before its guest is ended, in seconds
    #[arg(long, value_name = "S", default_value = "600", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub state_seconds: u64,

    /// Cut a device that lies: it acknowledges flushes without effect. A program that relies on them has to lose something
    #[arg(long)]
    pub lying: bool,

    /// How much is done at once.
    #[command(flatten)]
    pub guests: GuestOptions,

    /// The emulated machine.
    #[command(flatten)]
    pub machine: MachineOptions,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<String>,
}
