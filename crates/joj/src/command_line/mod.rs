//! The command line: options and help. Those of `joj bench` and `joj compare` are here, the others in a file each:
//!
//! ```text
//! lab         `joj lab`, `joj crash`
//! record      `joj record`;  replay: `joj replay`;  replay_lab: its emulated disks
//! whatif      `joj whatif`
//! trace       `joj trace`
//! monitor     `joj monitor`
//! mobibench   `joj mobibench`
//! device      `joj device`
//! io          options of `joj bench --io`;  units: sizes and times, as options have them
//! waldio      an option for waldio, NAME=VALUE, as `joj bench` and `joj lab crash` take it
//! ```

pub mod lab;
pub mod record;
pub mod replay;
mod replay_lab;
pub mod whatif;
pub mod trace;
pub mod monitor;
pub mod mobibench;
pub mod device;
pub mod io;
pub mod units;
pub mod waldio;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use joj_analysis::bench::key::{JournalMode, LogState, Schema, Synchronous, Workload};
use joj_analysis::bench::study::parts::StudyPart;

use crate::command_line::device::DeviceOptions;
use crate::command_line::io::IoOptions;
use crate::command_line::lab::LabOptions;
use crate::command_line::lab::program_crash::CrashCommandOptions;
use crate::command_line::mobibench::MobibenchOptions;
use crate::command_line::monitor::MonitorOptions;
use crate::command_line::record::RecordOptions;
use crate::command_line::replay::ReplayOptions;
use crate::command_line::trace::{TRACE_EXAMPLES, TraceOptions};
use crate::command_line::units::{parse_delay, parse_seconds};
use crate::command_line::waldio::parse_option;
use crate::command_line::whatif::WhatifOptions;

/// Measures the way from a SQLite COMMIT to the flash.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure a directory's disk: SQLite's journal modes, waldio, and the disk's own limit
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(Box<BenchOptions>),
    /// Put two results of `joj bench --json` side by side
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareOptions),
    /// Run Mobibench's tests, with its options and its output: file I/O, or SQLite transactions (-d)
    #[command(after_help = crate::command_line::mobibench::EXAMPLES, args_override_self = true, arg_required_else_help = true)]
    Mobibench(Box<MobibenchOptions>),
    /// Show every block request, with the file, the journal and the commit that caused it
    #[command(after_help = TRACE_EXAMPLES)]
    Trace(Box<TraceOptions>),
    /// Record what a program asks of its files, without contents: as it runs, or imported from strace or MobiGen
    #[command(after_help = crate::command_line::record::EXAMPLES)]
    Record(RecordOptions),
    /// Make the calls of a recording again, on the disk of a directory or on emulated ones
    #[command(after_help = crate::command_line::replay::EXAMPLES)]
    Replay(Box<ReplayOptions>),
    /// Say what would make a program faster: its recording in RAM, without syncs, in WAL mode, through waldio
    #[command(after_help = crate::command_line::whatif::EXAMPLES)]
    Whatif(Box<WhatifOptions>),
    /// Print what a trace would say of this machine's disks and filesystems, as JSON
    #[command(hide = true)]
    TraceHeader(TraceHeaderOptions),
    /// Make a trace for tests and benchmarks
    #[command(hide = true)]
    TraceGenerate(TraceGenerateOptions),
    /// Sample what processors, memory, disks, network and interrupts do, alone or while a program runs
    #[command(after_help = crate::command_line::monitor::EXAMPLES)]
    Monitor(MonitorOptions),
    /// Measure a plan in an emulated machine: filesystems, journal modes, devices, the same numbers every time
    #[command(after_help = crate::command_line::lab::EXAMPLES)]
    Lab(LabOptions),
    /// Cut the power of any program's storage, and see what it loses
    #[command(after_help = crate::command_line::lab::program_crash::EXAMPLES)]
    Crash(Box<CrashCommandOptions>),
    /// Be the first process of the emulated machine
    #[command(hide = true)]
    LabGuest,
    /// Measure a disk over growing address ranges; show the devices that joj emulates, and what the model makes of them
    #[command(after_help = crate::command_line::device::EXAMPLES)]
    Device(DeviceOptions),
    /// Print the JSON Schema of what a command writes with --json; without a NAME list them
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema(SchemaOptions),
    /// Print what a shell needs to complete joj's commands and options
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write a page for man of each command
    #[command(hide = true)]
    Man {
        /// Where to, for example /usr/share/man/man1; it is made
        directory: PathBuf,
    },
    /// Run one task from standard input, or from a file
    #[command(hide = true)]
    BenchWorker {
        /// The file
        task: Option<PathBuf>,
    },
}

const BENCH_EXAMPLES: &str = "\
Examples:
  joj bench                                      the disk of the current directory: one writer, and 8 threads
  joj bench /mnt/card --quick                    a slow disk: fewer transactions, fewer runs
  joj bench --html result.html --json result.json
  joj bench --modes wal,waldio --workloads insert --log steady --runs 11
  joj bench --sqlite ~/app/libsqlite3.so         your application's SQLite beside the others
  joj bench --modes delete,wal                   without the waldio extension
  joj bench --threads 1,2,4,8,16,32              many writers on one database, stock WAL and waldio in turn
  joj bench --processes 4,16 --seconds 10        the same with processes; long runs show long waits
  joj bench --threads 1,4,16 --sync full,normal  what a durable COMMIT costs beside one that is not, with and without waldio
  joj bench --threads 1,16,64 --flush-delay 2ms  the same on a device whose flush takes 2 ms
  joj bench --threads 16 --waldio-option group_commit=off
  joj bench --io /mnt/card                       files without SQLite: each order and each way to sync, records of 4 KiB
  joj bench --io --jobs randwrite,read --ways fsync,direct --record 4KiB,64KiB --file 64MiB
  joj bench --waldio-study /mnt/card             what the WALDIO paper measured, on this disk
  joj bench --waldio-study=alignment --html patterns.html

Many writers (--threads, --processes): each has a connection of its own with busy_timeout=60000 and commits autocommit
INSERTs with synchronous=FULL (or as --sync says), one after another, for the time of a run; the log has been through a checkpoint before.
A commit's latency is that of sqlite3_step, all waiting included, to the end even where the time is up before. SQLite is the system's unless --builds names others.
With --flush-delay every fsync, fdatasync and pwritev2 with RWF_DSYNC or RWF_SYNC of all writers takes its turn on one
device: it waits until those before it are done, then it takes that time at least, the real flush inside it. Nothing is
merged. A seccomp filter hands the calls to a thread of the writer's process, which needs no privilege and treats every
library and raw system calls alike.

File I/O (--io) writes or reads each record of a file once, in order or at random, and syncs the file at the end, which the
rate counts. A run takes --seconds at most. The file is made and synced before; the page cache has none of it then. A
read has only the ways none (page cache), direct, polled and mmap. What kernel or file system refuses is named (docs/io.md).

The study (--waldio-study) has parts. `init`, without SQLite: a log of 4 MiB and 4 KiB is made ready in each way that there is,
made 4 MiB longer, and its first 256 blocks at most are overwritten twice, each 4 KiB made durable with fdatasync (FS) or
O_DIRECT and RWF_DSYNC (PD). A way that kernel, file system or device refuses is named with the errno.
`alignment`, log patterns without SQLite: 1,000 commits at most of one frame, laid out as WAL does (24 + 4096 bytes), padded to
sectors, to pages, to 8 KiB, and with the header inside the page; FS, PD, and without a flush (NS), on a prepared and on a growing log.
`table2`, through SQLite (the system's unless --builds names others): stock journal modes; WAL with FULL and NORMAL; waldio with
persist=flush (FS), persist=fua (PD), synchronous=NORMAL (NS), and FS with group=16KiB,2ms; insert, update, delete. Log and
database are told apart: no checkpoint runs beside the transactions, and one behind them has a clock of its own.

Without options the plan holds every workload, but mode combinations only where they tell something, and 8 threads on the
system's SQLite. Naming a mode,
schema or synchronous setting measures it with all workloads. With five runs or more the default plan measures the
slow rollback modes in every other round only; naming them measures them in each.
The exit code is 0 when every row is sound, 1 when one FAILED or nothing could be measured, 2 for a wrong command
line, 130 after Ctrl-C; the files made in DIR are removed in every case.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  joj compare before.json after.json             ratios above 1: the second is faster
  joj compare before.json after.json --fail-below 0.95

With --fail-below a row fails that is slower by more than chance, and whose ratio and share of the disk's limit are both below
RATIO. So does a row of the first that the second lacks, or that FAILED there. Rows with fewer than three runs are not judged.
The exit code is 0, 1 when the results cannot be compared or no row can be judged, 2 for a wrong command line, 3 when a row fails.";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  joj schema                                     the names, and what writes such output
  joj schema bench > bench.schema.json
  joj schema --all schemas                       schemas/bench.schema.json and all others

The schemas are of JSON Schema 2020-12, and of what this joj writes: the version stands in `$id` (docs/json_schemas.md).";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  joj completions bash > ~/.local/share/bash-completion/completions/joj
  joj completions zsh > \"${fpath[1]}/_joj\"
  joj completions fish > ~/.config/fish/completions/joj.fish";

/// Options of `joj bench`.
#[derive(Debug, Args)]
pub struct BenchOptions {
    /// Directory on the disk to measure; it needs 64 MiB
    #[arg(default_value = ".")]
    pub directory: PathBuf,

    /// Many writers instead: numbers of threads that commit to one database, for example 1,2,4,8,16,32
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024),
          conflicts_with_all = ONE_WRITER)]
    pub threads: Vec<u32>,

    /// Many writers instead: numbers of processes that commit to one database
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024),
          conflicts_with_all = ONE_WRITER)]
    pub processes: Vec<u32>,

    /// How long many writers write in each run, and a run of --io at most [default: 2, with --quick 1]
    #[arg(long, value_name = "S", value_parser = parse_seconds, conflicts_with_all = ONE_WRITER)]
    pub seconds: Option<f64>,

    /// Many writers on a device whose flushes take this long, one at a time: 2ms, 500us
    #[arg(long, value_name = "TIME", value_parser = parse_delay, conflicts_with_all = ONE_WRITER)]
    pub flush_delay: Option<u64>,

    #[command(flatten)]
    pub io: IoOptions,

    /// What the WALDIO paper (ATC 2015) measured or left out, instead; =PARTS for only these: init, alignment, table2
    #[arg(long, value_name = "PARTS", num_args = 0..=1, require_equals = true, value_delimiter = ',',
          default_missing_value = StudyPart::DEFAULT, conflicts_with_all = NOT_IN_STUDY)]
    pub waldio_study: Vec<StudyPart>,

    /// Transactions per run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub transactions: Option<u64>,

    /// Runs of each row; stock and waldio take turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,

    /// For slow disks: 200 transactions and 3 runs, unless given otherwise
    #[arg(long)]
    pub quick: bool,

    /// Only these: insert, update, delete, read, large, open
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub workloads: Vec<Workload>,

    /// Only these: waldio, atc13, mobibench
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub schemas: Vec<Schema>,

    /// Only these: delete, truncate, persist, memory, off, wal, waldio, bounded (waldio_durability=bounded)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<JournalMode>,

    /// Only these: full, normal [default with many writers: full]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub sync: Vec<Synchronous>,

    /// Only these states of the log: fresh, steady
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub log: Vec<LogState>,

    /// Only these SQLite builds: bundled, system, or the FILE of a --sqlite
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub builds: Vec<String>,

    /// Another SQLite to measure; may be repeated
    #[arg(long, value_name = "FILE.so")]
    pub sqlite: Vec<String>,

    /// The waldio extension [default: libwaldio.so beside joj]
    #[arg(long, value_name = "FILE.so")]
    pub waldio: Option<PathBuf>,

    /// Option for waldio, for example persist=flush; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_option)]
    pub waldio_option: Vec<(String, String)>,

    /// Show more columns: processor time, bytes, syncs, journal commits
    #[arg(long)]
    pub wide: bool,

    /// Write the result as JSON (docs/result_format.md); `-` for standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the result as Markdown; `-` for standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write the result as one HTML page with plots
    #[arg(long, value_name = "FILE", value_parser = page_file())]
    pub html: Option<PathBuf>,
}

/// Options that say something about one writer only.
const ONE_WRITER: [&str; 3] = ["transactions", "workloads", "log"];

/// Options that choose what the study does not leave open.
const NOT_IN_STUDY: [&str; 10] =
    ["io", "threads", "processes", "seconds", "flush_delay", "workloads", "schemas", "modes", "sync", "log"];

impl BenchOptions {
    /// True where the WALDIO study is asked for.
    pub fn is_study(&self) -> bool {
        !self.waldio_study.is_empty()
    }

    /// True where neither rows nor another measurement are chosen: one writer, then many.
    pub fn is_default_plan(&self) -> bool {
        let has_rows = self.workloads.is_empty() && self.schemas.is_empty() && self.log.is_empty();
        let has_modes = self.modes.is_empty() && self.sync.is_empty();
        has_rows && has_modes && !self.is_contended() && !self.is_study() && !self.io.io
    }

    /// True where many writers are asked for.
    pub fn is_contended(&self) -> bool {
        !self.threads.is_empty() || !self.processes.is_empty()
    }
}

/// Options of `joj compare`.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// Result to compare with
    pub first: PathBuf,
    /// Result to compare
    pub second: PathBuf,

    /// End with exit code 3 where a row of the second is slower than this part of the first: 0.95
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio)]
    pub fail_below: Option<f64>,

    /// Write the result as Markdown; `-` for standard output instead of the text
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Name the rows that are left out
    #[arg(long)]
    pub wide: bool,
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio: &f64| *ratio > 0.0 && *ratio <= 1.0);
    ratio.ok_or_else(|| format!("`{text}` is no ratio above 0 and up to 1; write it like 0.95"))
}

/// Options of `joj trace-header`.
#[derive(Debug, Args)]
pub struct TraceHeaderOptions {
    /// Only the disk below this file, directory or device
    pub path: Option<PathBuf>,

    /// Where the bytes of the file PATH lie on its disk, instead
    #[arg(long, requires = "path")]
    pub extents: bool,
}

/// Options of `joj trace-generate`.
#[derive(Debug, Args)]
pub struct TraceGenerateOptions {
    /// How many events
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub events: u64,
    /// Read it back, and say how long that takes
    #[arg(long)]
    pub read: bool,
    /// The trace to write
    #[arg(required_unless_present = "fleet")]
    pub file: Option<PathBuf>,
    /// Make the tables of so many traces of a fleet instead, with answers.json beside them (docs/trace_tables.md)
    #[arg(long, value_name = "N", requires = "out", conflicts_with_all = ["file", "events", "read"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub fleet: Option<u64>,
    /// The directory of the fleet
    #[arg(long, value_name = "DIR", requires = "fleet")]
    pub out: Option<PathBuf>,
    /// Another number makes another fleet
    #[arg(long, value_name = "S", default_value_t = 1, requires = "fleet")]
    pub seed: u64,
    /// Commits of each trace
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "fleet")]
    pub commits: u64,
    /// By how much version 2.0 writes more, and its flushes take longer; 1 for no difference
    #[arg(long, value_name = "FACTOR", default_value_t = 1.25, requires = "fleet")]
    pub regression: f64,
    /// Damage one file of so many traces
    #[arg(long, value_name = "N", default_value_t = 0, requires = "fleet")]
    pub damaged: u64,
}

/// Options of `joj schema`.
#[derive(Debug, Args)]
pub struct SchemaOptions {
    /// Which, as `joj schema` lists them
    pub name: Option<String>,
    /// Write each as NAME.schema.json into this directory; it is made
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub all: Option<PathBuf>,
}

/// A file for a page: that is nothing for a terminal, and standard output has the text.
fn page_file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|file| match file == "-" {
        true => Err("a page goes to a file, not to standard output; give another name, or `./-` for a file that is called so"),
        false => Ok(PathBuf::from(file)),
    })
}

/// What a command line lacks that only its command can tell; the exit code for it, which is clap's own.
pub fn wrong_usage(what: &str) -> ExitCode {
    eprintln!("error: {what}\n\nFor more information, try '--help'.");
    ExitCode::from(2)
}

/// What is wrong where the list of an option has one entry twice, if it has: the same would be done twice.
pub fn named_twice(option: &str, entries: impl IntoIterator<Item = impl Into<String>>) -> Option<String> {
    let mut known = BTreeSet::new();
    let again = entries.into_iter().map(Into::into).find(|entry: &String| !known.insert(entry.clone()))?;
    Some(format!("`{option}` names `{again}` twice; give each one once"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use joj_analysis::bench::key::Word;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_fleet_of_no_traces_is_none() {
        let fleet = |traces| Cli::try_parse_from(["joj", "trace-generate", "--fleet", traces, "--out", "a"]);
        assert!(fleet("1").is_ok());
        for wrong in ["0", "-1", "1.5", "a", ""] {
            assert!(fleet(wrong).is_err(), "{wrong}");
        }
    }

    /// clap lets an option pass without the one that it requires where something is there that excludes the other.
    #[test]
    fn no_option_is_taken_in_silence_without_the_one_that_it_belongs_to() {
        let replay = ["replay", "a.joj"];
        let (on_disk, checked) = ([&replay[..], &["."]].concat(), [&replay[..], &[".", "--check"]].concat());
        let of_lab =
            [["--device", "ram"], ["--filesystem", "xfs"], ["--jobs", "1"], ["--replay-seconds", "9"]];
        let of_mode =
            [["--synchronous", "full"], ["--cache-size", "9"], ["--sqlite", "system"], ["--waldio", "a.so"]];
        let of_io = [["--record", "4KiB"], ["--file", "1MiB"], ["--jobs", "read"], ["--ways", "none"]];
        let cases = [
            of_lab.map(|option| [&on_disk[..], &option].concat()),
            of_mode.map(|option| [&checked[..], &option].concat()),
            of_io.map(|option| [&["bench", "--threads", "1"][..], &option].concat()),
        ];
        let others = [
            vec!["replay", "a.joj", ".", "--kernel", "k", "--modules", "m"],
            vec!["record", "-o", "a.joj", "--format", "strace", "--", "true"],
        ];
        for words in cases.into_iter().flatten().chain(others) {
            let said = Cli::try_parse_from([&["joj"], &words[..]].concat()).map(|_| ());
            assert!(said.is_err_and(|error| error.to_string().contains("cannot be used with")), "{words:?}");
        }
    }

    #[test]
    fn the_study_has_all_parts_unless_some_are_named() {
        let parts = |words: &[&str]| match Cli::try_parse_from([&["joj", "bench"], words].concat()) {
            Ok(Cli { command: Command::Bench(options) }) => Ok((options.waldio_study, options.directory)),
            Ok(_) => Err("another command".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let all = (StudyPart::ALL.to_vec(), PathBuf::from("/mnt"));
        assert_eq!(parts(&["--waldio-study", "/mnt"]), Ok(all.clone()));
        assert_eq!(parts(&["/mnt", "--waldio-study=init"]), Ok((vec![StudyPart::Init], all.1)));
        assert!(parts(&["--waldio-study=innit"]).unwrap_err().contains("init"));
        assert!(parts(&["--waldio-study", "--modes", "wal"]).unwrap_err().contains("cannot be used with"));
        assert_eq!(StudyPart::DEFAULT.split(',').count(), StudyPart::ALL.len());
    }
}
