//! The command line of `joj trace`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use joj_analysis::trace::export::{FORMATS, TraceFormat};

use crate::command_line::page_file;
use crate::command_line::units::parse_bytes;

/// Examples and explanations below the list of options.
pub const TRACE_EXAMPLES: &str = "\
Examples:
  joj trace -- sqlite3 app.db \"INSERT INTO t VALUES(1)\"    what one command makes the disk do
  joj trace --steps=3 -- ./app                            and three of its transactions, step by step
  joj trace --everybody -- sleep 10                       commits of all programs on the disks, in ten seconds
  joj trace --pid 4242 --for 30s                          a program that runs; requests of its disks are all seen
  joj trace --device /dev/vda --for 60s --save day.parquet
  joj trace --read day.parquet --html day.html            later, without root, on any machine
  joj trace --read day.parquet --export perfetto=day.perfetto-trace
  joj trace --read day.parquet --export runs=requests.csv
  joj trace --read day.parquet --export parquet=fleet --label device=A1 --label app_version=2.0
  joj trace --read old.blkparse.txt                       traces of blktrace, blkparse and ftrace
  zcat old.blkparse.gz | joj trace --read -

Capturing needs root, or for eBPF CAP_BPF, CAP_PERFMON, CAP_SYSLOG, CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH. Without the last
three joj says what it could not see. Reading a saved trace needs nothing. Every request of the chosen disks is seen, and every call and lock for
files on them, whoever makes it. Sync calls, commits and checkpoints count where they are of the command or of what it
started, with --pid of that process alone, with --everybody or without a command of all.
A commit is what SQLite does between taking its write lock and giving it back; without such locks (exclusive locking mode) there
are requests and sync calls, and no commits. Bytes that nothing places are shown as unattributed, with their share.
The exit code is the command's, 127 or 126 where there is none or it cannot be run; without a command 0, or 1 when something failed,
2 for a wrong command line, 130 after Ctrl-C.";

/// How events are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendChoice {
    /// eBPF where it is there, else tracefs; the reason is printed
    Auto,
    /// eBPF: sees the memory of each request
    Bpf,
    /// tracefs alone: older and locked-down kernels
    Tracefs,
}

impl BackendChoice {
    /// The word of the option.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Bpf => "bpf",
            Self::Tracefs => "tracefs",
        }
    }
}

/// What `--export` writes.
#[derive(Debug, Clone, Copy)]
pub enum ExportFormat {
    /// One file in this format.
    File(&'static TraceFormat),
    /// Tables for a fleet, in a directory.
    Tables,
}

/// The word of [`ExportFormat::Tables`], and its help.
const TABLES: (&str, &str) =
    ("parquet", "DIR/commits and DIR/runs as Parquet for a fleet, a file each (docs/trace_tables.md)");

/// Options of `joj trace`.
#[derive(Debug, Args)]
pub struct TraceOptions {
    /// Analyse a saved trace: joj's Parquet, blktrace's binary, blkparse's or ftrace's text; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pid", "device", "command", "seconds", "log_contents"])]
    pub read: Option<PathBuf>,

    /// Trace a program that runs: its calls and locks, and all requests of the disks
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,

    /// Count sync calls, commits and checkpoints of everybody on the disks, not those of the command and its children alone
    #[arg(long, conflicts_with = "pid")]
    pub everybody: bool,

    /// Only this disk: /dev/vda, vda, or a directory or file on it; may be repeated. Default: every disk
    #[arg(long, value_name = "DEV")]
    pub device: Vec<PathBuf>,

    /// Stop after this time: 10s, 500ms, 2m
    #[arg(long = "for", value_name = "TIME", id = "seconds", value_parser = parse_time_ns, conflicts_with = "command")]
    pub for_ns: Option<u64>,

    /// How to capture
    #[arg(long, value_enum, default_value = "auto")]
    pub backend: BackendChoice,

    /// Look at what is logged: how many bytes of each logged metadata block really changed (eBPF; costs more)
    #[arg(long)]
    pub log_contents: bool,

    /// Room in $TMPDIR for what was captured and does not fit into 64 MiB of memory: 500MiB, 8GiB, 0. Analysed when the capture
    /// is over; what has no room, meanwhile
    #[arg(long = "spool", value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes, conflicts_with = "read")]
    pub spool_bytes: u64,

    /// Keep the trace (Parquet, docs/trace_format.md)
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,

    /// Print so many transactions step by step: those of the command and its children
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3", require_equals = true)]
    pub steps: Option<usize>,

    /// Begin the steps after so many transactions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: usize,

    /// Types of files, in front of the built-in ones: lines of `type pattern..`
    #[arg(long, value_name = "FILE")]
    pub file_types: Option<PathBuf>,

    /// Write the summary as JSON; `-` for standard output instead of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the summary as Markdown; `-` for standard output instead of the tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write the summary with all pictures as one HTML page
    #[arg(long, value_name = "FILE", value_parser = page_file())]
    pub html: Option<PathBuf>,

    /// Write when and where requests went, as an SVG picture of the disk with the most of them
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,

    /// Write the trace in another format; may be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = parse_export, long_help = export_help())]
    pub export: Vec<(ExportFormat, PathBuf)>,

    /// What the tables of `--export parquet=DIR` say of this trace, for example device=A1 or app_version=2.0; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_label, requires = "export")]
    pub label: Vec<(String, String)>,

    /// The command to trace, behind `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Nanoseconds of a time like `10s`.
pub(super) fn parse_time_ns(text: &str) -> Result<u64, String> {
    let units = [("ms", 1_000_000.0), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];
    let found = units.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, *ns)));
    let (number, unit_ns) = found.unwrap_or((text, 1e9));
    let time_ns = number.parse().ok().map(|number: f64| number * unit_ns);
    let time_ns = time_ns.filter(|time_ns| (1e6..=1e16).contains(time_ns));
    time_ns
        .map(|time_ns| std::time::Duration::from_secs_f64(time_ns / 1e9))
        .and_then(|time| u64::try_from(time.as_nanos()).ok())
        .ok_or_else(|| format!("`{text}` is no time; write it like 500ms, 10s, 2m"))
}

fn export_help() -> String {
    let formats = FORMATS.iter().map(|format| (format.name, format.help)).chain([TABLES]);
    let lines = formats.map(|(name, help)| format!("\n  {name:8}  {help}"));
    format!("Write the trace in another format; may be repeated:{}", lines.collect::<String>())
}

fn parse_export(text: &str) -> Result<(ExportFormat, PathBuf), String> {
    let (name, file) =
        text.split_once('=').ok_or("it has no `=`; write FORMAT=FILE, for example csv=events.csv")?;
    let of_name =
        FORMATS.iter().find(|format| format.name.eq_ignore_ascii_case(name)).map(ExportFormat::File);
    let tables = || name.eq_ignore_ascii_case(TABLES.0).then_some(ExportFormat::Tables);
    let format = of_name.or_else(tables).ok_or_else(|| {
        let known = FORMATS.iter().map(|format| format.name).chain([TABLES.0]).collect::<Vec<_>>().join(", ");
        format!("`{name}` is no format; take one of {known}")
    })?;
    match (file, &format) {
        ("", _) => Err("no FILE behind `=`".to_owned()),
        ("-", ExportFormat::Tables) => {
            Err("tables are several files, which standard output cannot take; name a directory".to_owned())
        }
        _ => Ok((format, PathBuf::from(file))),
    }
}

/// A label: what the tables of a fleet are grouped by.
fn parse_label(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("`{text}` is no label; write KEY=VALUE, for example app_version=2.0");
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if key.is_empty() || !key.chars().all(is_name) {
        return Err(format!("`{key}` is no key of a label: take letters, digits and _"));
    }
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        let times = ["10s", "500ms", "2m", "1.5", "0.5h"].map(parse_time_ns);
        let expected = [10_000, 500, 120_000, 1_500, 1_800_000].map(|ms| Ok(ms * 1_000_000));
        assert_eq!(times, expected);
        for wrong in ["", "s", "-1s", "0s", "nan", "1d", "inf"] {
            assert!(parse_time_ns(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn exports_name_their_format_and_file() {
        let (format, file) = parse_export("csv=a=b").unwrap();
        assert!(matches!(format, ExportFormat::File(format) if format.name == "csv"));
        assert_eq!(file, PathBuf::from("a=b"));
        assert!(matches!(parse_export("parquet=d"), Ok((ExportFormat::Tables, _))));
        assert!(parse_export("csv").unwrap_err().contains("FORMAT=FILE"));
        assert!(parse_export("xml=a").unwrap_err().contains("runs, perfetto"));
        assert!(parse_export("csv=").is_err());
        assert!(parse_export("parquet=-").unwrap_err().contains("name a directory"));
    }

    #[test]
    fn labels_have_a_key_and_a_value() {
        assert_eq!(parse_label("device=A=1"), Ok(("device".to_owned(), "A=1".to_owned())));
        assert_eq!(parse_label("build="), Ok(("build".to_owned(), String::new())));
        for wrong in ["", "device", "=A", "a b=c"] {
            assert!(parse_label(wrong).is_err(), "{wrong}");
        }
    }
}
