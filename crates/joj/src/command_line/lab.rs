//! Options of `joj lab` and `joj crash`.
//!
//! program_crash    `joj crash`;  crash: `joj lab crash`;  exec: `joj lab exec`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use joj_analysis::lab::shards::shard::Shard;

use crate::command_line::lab::crash::CrashOptions;
use crate::command_line::page_file;
use crate::command_line::trace::BackendChoice;

pub mod program_crash;
pub mod crash;
pub mod exec;

/// Examples and what has to be known besides.
pub const EXAMPLES: &str = "\
Examples:
  joj lab list                                   the plans that joj brings
  joj lab run smoke                              a few cells, to see whether it works; it says how long
  joj lab run filesystems --json result.json     five filesystems, every journal mode
  joj lab run my_plan.toml --only 'f2fs'         cells whose line in the table has this text
  joj lab run block-counts --traces traces/      and each cell's trace, for `joj trace --read`
  joj lab crash                                  what a power cut leaves of SQLite's commits, and of waldio's
  joj lab run waldio-table2 --json table2.json   what a table of a paper needs, by its name
  joj lab run atc13-fig10 --recording twitter=tw.joj --recording facebook=fb.joj    recordings that a plan replays
  joj lab report table2.json --html report.html  the papers' figures beside the lab's
  joj lab run filesystems --shard 2/4 --json parts/2.json    the second quarter of the cells; other machines do the others
  joj lab merge parts/*.json --json result.json  what one run of all cells gives, from the parts of all shards
  joj lab exec -- ./my-program                   a program of yours, in /data on an emulated phone
  joj lab shell                                  a shell in the emulated machine

The machine is QEMU's software emulation of one processor with a virtual clock: an instruction takes one nanosecond, and
what this machine does besides changes no figure. It needs no root and no KVM. Kernel and filesystem programs are Debian's,
fetched with apt once and kept below ~/.cache/joj, as the memory of a guest that has booted: each cell goes on from there.
Nothing of the guest reaches a network. Ctrl-C gives what was measured until then.
The exit code is 0 when every cell was measured, 1 when one FAILED, 2 for a wrong command line, 130 after Ctrl-C.";

/// Options of `joj lab`.
#[derive(Debug, Args)]
pub struct LabOptions {
    /// What to do.
    #[command(subcommand)]
    pub action: LabAction,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum LabAction {
    /// Measure a plan
    Run(RunOptions),
    /// Cut the power of an emulated device at many moments, recover each time, and say what was lost
    #[command(after_help = crate::command_line::lab::crash::EXAMPLES)]
    Crash(Box<CrashLabOptions>),
    /// Run a command of this machine in the emulated machine
    #[command(after_help = crate::command_line::lab::exec::EXAMPLES)]
    Exec(Box<exec::ExecOptions>),
    /// List the plans that joj brings, and the papers' tables that they serve
    List,
    /// Put results beside what the papers printed
    Report(ReportOptions),
    /// Join the parts of all shards to the result of one run: parts of `joj lab run --shard`, or of `joj crash --shard`
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeOptions),
    /// Start a shell in the emulated machine
    Shell(MachineOptions),
}

/// Examples of `joj lab merge`.
const MERGE_EXAMPLES: &str = "\
Examples:
  joj lab run smoke --shard 1/2 --json 1.json    on one machine
  joj lab run smoke --shard 2/2 --json 2.json    on another one, or later
  joj lab merge 1.json 2.json --json smoke.json  the same as `joj lab run smoke --json smoke.json`

Order does not matter. A shard that is missing or there twice, and parts of another plan, machine or recording, are an error.
The exit code is that of one run: 0 when every cell was measured, 1 when one FAILED; of `joj crash` 3 when a promise was
broken. It is 1 when the parts are no whole, too, and nothing is written then.";

/// Options of `joj lab merge`.
#[derive(Debug, Args)]
pub struct MergeOptions {
    /// What `--shard I/N --json PART` wrote, of each I from 1 to N
    #[arg(required = true, value_name = "PART")]
    pub parts: Vec<PathBuf>,

    /// Write the result as JSON, as one run does (docs/lab_format.md, docs/crash_format.md); `-` for standard output instead of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Options of `joj lab report`.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Results of `joj lab run PLAN --json RESULT`; where several have a cell, the first counts
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,

    /// Write the report as one HTML page that needs nothing else
    #[arg(long, value_name = "FILE", value_parser = page_file())]
    pub html: Option<PathBuf>,

    /// Write the report as JSON (docs/lab_format.md); `-` for standard output instead of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the report as Markdown; `-` for standard output instead of the tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// The emulated machine.
#[derive(Debug, Args)]
pub struct MachineOptions {
    /// Another kernel (a bzImage) than Debian's; needs --modules
    #[arg(long, value_name = "FILE", requires = "modules")]
    pub kernel: Option<PathBuf>,

    /// The modules of that kernel, as in /lib/modules/RELEASE
    #[arg(long, value_name = "DIR", requires = "kernel")]
    pub modules: Option<PathBuf>,

    /// The waldio extension [default: libwaldio.so beside joj]
    #[arg(long, value_name = "FILE.so")]
    pub waldio: Option<PathBuf>,
}

/// How much is done at once.
#[derive(Debug, Args)]
pub struct GuestOptions {
    /// Emulated machines at a time: no figure depends on it [default: one a processor, as far as there is memory]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub jobs: Option<u32>,
}

/// Options of `joj lab crash`.
#[derive(Debug, Args)]
pub struct CrashLabOptions {
    /// What is cut, and how often.
    #[command(flatten)]
    pub crash: CrashOptions,

    /// How much is done at once.
    #[command(flatten)]
    pub guests: GuestOptions,

    /// The emulated machine.
    #[command(flatten)]
    pub machine: MachineOptions,
}

/// Options of `joj lab run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// A plan's name, a paper's table that it serves (see `joj lab list`), or a plan's file
    pub plan: String,

    /// Only cells whose line in the table has this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,

    /// The recording (of `joj record`) that a plan calls NAME; once for each that its cells replay and joj does not bring
    #[arg(long = "recording", value_name = "NAME=FILE", value_parser = parse_recording)]
    pub recordings: Vec<(String, PathBuf)>,

    /// Say which cells there are, and measure none
    #[arg(long)]
    pub dry_run: bool,

    /// Measure the cells of shard I of N alone, 1/4 to 4/4; --json gets a part, and `joj lab merge` joins those of all shards
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,

    /// Write the result as JSON (docs/lab_format.md); `-` for standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Trace each cell in a run of its own, and keep the traces in DIR
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,

    /// Transactions of a cell that are traced, at most
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    pub traced_transactions: u64,

    /// How cells are traced
    #[arg(long, value_enum, default_value = "auto", value_name = "BACKEND")]
    pub trace_backend: BackendChoice,

    /// How long a cell may take on this machine before its guest is ended, in seconds
    #[arg(long, value_name = "S", default_value = "600", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cell_seconds: u64,

    /// How much is done at once.
    #[command(flatten)]
    pub guests: GuestOptions,

    /// The emulated machine.
    #[command(flatten)]
    pub machine: MachineOptions,
}

fn parse_recording(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("it reads NAME=FILE, for example twitter=twitter.joj".to_owned()),
    }
}
