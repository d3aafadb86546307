//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use joj_analysis::key::{LogState, Schema, Side, Synchronous, Workload};

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
    /// Run one task from standard input
    #[command(hide = true)]
    BenchWorker,
}

const BENCH_EXAMPLES: &str = "\
Examples:
  joj bench                                      the disk of the current directory, about a minute
  joj bench /mnt/card --quick                    a slow disk: fewer transactions, fewer runs
  joj bench --html result.html --json result.json
  joj bench --sides wal,waldio --workloads insert --log steady --runs 11
  joj bench --sqlite ~/app/libsqlite3.so         your application's SQLite beside the others
  joj bench --sides delete,wal                   without the waldio extension

Without options the plan holds every workload, but side combinations only where they tell something. Naming a side,
schema or synchronous setting measures it with all workloads. With five runs or more the default plan measures the
slow rollback sides in every other round only; naming them measures them in each.
The exit code is 0 when every row is sound, 1 when one FAILED or nothing could be measured, 2 for a wrong command
line, 130 after Ctrl-C; the files made in DIR are removed in every case.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  joj compare before.json after.json             ratios above 1: the second is faster";

/// Options of `joj bench`.
#[derive(Debug, Args)]
pub struct BenchOptions {
    /// Directory on the disk to measure; it needs 64 MiB
    #[arg(default_value = ".")]
    pub directory: PathBuf,

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

    /// Only these: delete, truncate, persist, memory, off, wal, waldio
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub sides: Vec<Side>,

    /// Only these: full, normal
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

    /// Write the result as JSON (docs/result_format.md); `-` for standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the result as one HTML page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Options of `joj compare`.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// Result to compare with
    pub first: PathBuf,
    /// Result to compare
    pub second: PathBuf,
}

fn parse_option(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or("it has no `=`; write NAME=VALUE, for example persist=flush")?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("`{name}` is no option name; take letters, digits and underscores"));
    }
    Ok((name.to_ascii_lowercase(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_of_waldio_need_a_name_and_a_value() {
        assert_eq!(parse_option("Persist=fua"), Ok(("persist".to_owned(), "fua".to_owned())));
        assert!(
            parse_option("persist").is_err() && parse_option("=1").is_err() && parse_option("a b=1").is_err()
        );
    }
}
