//! Options of `joj bench --io`.

use clap::Args;
use joj_analysis::bench::io::job::IoJob;
use joj_analysis::bench::io::way::SyncWay;

use crate::command_line::units::{parse_bytes, parse_record};

/// Options that say what to do with a file.
#[derive(Debug, Args)]
pub struct IoOptions {
    /// File I/O without SQLite instead: records written and read in order and at random, in each way to sync
    #[arg(long, conflicts_with_all = NOT_IN_FILE_IO)]
    pub io: bool,

    /// Sizes of a record, for example 4KiB,64KiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB", value_parser = parse_record, requires = "io", conflicts_with_all = NOT_IN_FILE_IO)]
    pub record: Vec<u64>,

    /// Size of the file
    #[arg(long, value_name = "SIZE", default_value = "10MiB", value_parser = parse_bytes, requires = "io", conflicts_with_all = NOT_IN_FILE_IO)]
    pub file: u64,

    /// Only these: write, randwrite, append, read, randread
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "io", conflicts_with_all = NOT_IN_FILE_IO)]
    pub jobs: Vec<IoJob>,

    /// Only these: none, osync, odsync, fsync, fdatasync, rwf-dsync, direct, direct-osync, direct-odsync, polled, mmap, mmap-async, mmap-sync
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "io", conflicts_with_all = NOT_IN_FILE_IO)]
    pub ways: Vec<SyncWay>,
}

/// Options about SQLite, or about many writers.
const NOT_IN_FILE_IO: [&str; 14] = [
    "threads",
    "processes",
    "flush_delay",
    "waldio_study",
    "transactions",
    "workloads",
    "schemas",
    "modes",
    "sync",
    "log",
    "builds",
    "sqlite",
    "waldio",
    "waldio_option",
];
