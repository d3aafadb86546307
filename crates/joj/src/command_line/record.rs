//! The command line of `joj record`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use joj_analysis::recording::import::TextFormat;

use crate::command_line::trace::parse_time_ns;
use crate::command_line::units::parse_bytes;

/// After the options in `joj record --help`.
pub const EXAMPLES: &str = "\
Examples:
  joj record -o app.joj -- ./app --its-own options      from its first call to its end
  joj record -o app.joj --hide-names -- ./app           to give away: paths are hashes
  joj record -o app.joj --method ptrace -- ./app        as without root
  joj record -o server.joj --pid 4242 --for 60s         a program that runs, with its threads and children
  strace -f -ttt -T -y -o app.strace ./app
  joj record --import app.strace -o app.joj
  joj record --import mobigen.out -o phone.joj          a script of MobiGen's
  zcat app.strace.gz | joj record --import - -o app.joj

A recording has the calls of all threads with their times, sizes and results, never the contents of files. What a recording
holds and how to replay it: docs/recording.md. A COMMAND has joj's own standard input, output and error; joj says on standard
error what it recorded. Ctrl-C ends the command, and what was recorded until then is written.
eBPF needs root, or CAP_BPF and CAP_PERFMON. Without it joj is the command's tracer (ptrace): each call on a file costs more, a
set-uid program has no more rights than joj's user, and the recording lasts until the last process of the command has ended.
The exit code is the command's, also where Ctrl-C or --for ended it (143 by SIGTERM, 137 by SIGKILL), and 127 or 126 where there is
no such command or it cannot be run. Else it is 0, or 1 when something failed: no file is written then; 2 for a wrong command line.
With --pid and --import it is 130 after Ctrl-C.";

/// What captures.
const NOT_IN_IMPORT: [&str; 4] = ["pid", "for_ns", "method", "command"];

/// Options of `joj record`.
#[derive(Debug, Args)]
pub struct RecordOptions {
    /// The text to import: of strace (`strace -f -ttt -T -y`) or MobiGen; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = NOT_IN_IMPORT)]
    pub import: Option<PathBuf>,

    /// Record a program that runs, with its threads and children, until it ends, or for a time
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,

    /// Stop after this time: 10s, 500ms, 2m. A COMMAND is asked to end then
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time_ns)]
    pub for_ns: Option<u64>,

    /// How calls are captured
    #[arg(long, value_enum, default_value = "auto")]
    pub method: MethodChoice,

    /// The recording to write
    #[arg(short, long, value_name = "FILE.joj")]
    pub output: PathBuf,

    /// Room in the kernel for calls that joj has not fetched yet (eBPF): 64KiB to 1GiB. What has no room is lost, and told
    #[arg(long = "buffer", value_name = "SIZE", default_value = "32MiB", value_parser = parse_bytes)]
    pub buffer_bytes: u64,

    /// What the text is [default: recognised by its first line]
    #[arg(long, value_enum, requires = "import", conflicts_with_all = NOT_IN_IMPORT)]
    pub format: Option<FormatChoice>,

    /// Write hashes in the place of file names, with a key that is thrown away. Extensions stay, and SQLite's -wal, -shm, -journal
    #[arg(long)]
    pub hide_names: bool,

    /// The command to record, behind `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Room for calls that were not fetched yet, unless it is asked for.
const BUFFER_BYTES: u64 = 32 << 20;

impl RecordOptions {
    /// Those for a command that joj starts for itself: `command` stays empty.
    pub fn of_own_command(output: &Path) -> Self {
        Self {
            import: None,
            pid: None,
            for_ns: None,
            method: MethodChoice::Auto,
            output: output.to_owned(),
            buffer_bytes: BUFFER_BYTES,
            format: None,
            hide_names: false,
            command: Vec::new(),
        }
    }
}

/// How calls are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodChoice {
    /// eBPF where that can be used, else a tracer; the reason is printed
    Auto,
    /// eBPF programs on the kernel's tracepoints: they need root
    Bpf,
    /// A tracer, which needs no root: calls cost more
    Ptrace,
}

/// What the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatChoice {
    /// What strace prints
    Strace,
    /// A script of MobiGen's, for Mobibench
    Mobigen,
}

impl From<FormatChoice> for TextFormat {
    fn from(choice: FormatChoice) -> Self {
        match choice {
            FormatChoice::Strace => Self::Strace,
            FormatChoice::Mobigen => Self::Mobigen,
        }
    }
}
