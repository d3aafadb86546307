//! The command line of `joj mobibench`: Mobibench's letters, and their numbers.

use std::path::PathBuf;

use clap::Args;
use joj_analysis::bench::key::JournalMode;
use joj_analysis::mobibench::setup::{DatabaseOperation, FileAccess, FileSync, JOURNAL_MODES};

/// After the options in `joj mobibench --help`.
pub const EXAMPLES: &str = "\
Examples:
  joj mobibench -p DIR -f 1024 -r 4 -a 1 -y 2    random writes of 4 KB to a file of 1 MB, fsync after each
  joj mobibench -p DIR -a 4 -y 8 -t 4            four threads append, fdatasync after each record
  joj mobibench -p DIR -d 0 -n 1000 -j 3         1,000 transactions that insert into three tables, in WAL mode
  joj mobibench -p DIR -d 1 -n 1000 -T 1         updates of one table, journal mode TRUNCATE
  joj mobibench -p DIR -d 0 -n 1000 -j 3 --waldio libwaldio.so
  joj mobibench -p DIR -a 3 -L latencies.txt -q  random reads; the time of each is appended to a file
  joj mobibench -p DIR -d 0 -n 1000 --json -     the figures as JSON

It takes the options of Mobibench 1.0.8 and prints its lines. Without -d it writes or reads files, with -d it runs SQLite
transactions. What is not as there, and why: docs/mobibench.md.
The test's files stay in DIR, but for those of deletes. After Ctrl-C or an error the files that joj made are removed.
The exit code is 0, 1 when something failed, 2 for a wrong command line, 130 after Ctrl-C.";

/// Options of `joj mobibench`.
#[derive(Debug, Args)]
pub struct MobibenchOptions {
    /// Directory of the test's files; it is made where it is missing
    #[arg(short = 'p', value_name = "DIR", default_value = "./mobibench")]
    pub directory: PathBuf,

    /// Size of all files together in KB: each thread has its part
    #[arg(short = 'f', value_name = "KB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub file_kb: u64,

    /// Size of a record in KB
    #[arg(short = 'r', value_name = "KB", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub record_kb: u64,

    /// 0 write, 1 random write, 2 read, 3 random read, 4 append
    #[arg(short = 'a', value_name = "N", default_value = "0", value_parser = parse_access)]
    pub access: FileAccess,

    /// 0 none, 1 O_SYNC, 2 fsync, 3 O_DIRECT, 4 O_SYNC and O_DIRECT, 5 mmap, 6 mmap and MS_ASYNC, 7 mmap and MS_SYNC, 8 fdatasync
    #[arg(short = 'y', value_name = "N", default_value = "0", value_parser = parse_sync)]
    pub sync: FileSync,

    /// Threads, each with files of its own
    #[arg(short = 't', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub threads: u32,

    /// SQLite transactions instead of file I/O: 0 insert, 1 update, 2 delete
    #[arg(short = 'd', value_name = "N", value_parser = parse_operation)]
    pub operation: Option<DatabaseOperation>,

    /// Transactions of all threads together
    #[arg(short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub transactions: u64,

    /// Journal mode: 0 DELETE, 1 TRUNCATE, 2 PERSIST, 3 WAL, 4 MEMORY, 5 OFF
    #[arg(short = 'j', value_name = "N", default_value = "1", value_parser = parse_journal)]
    pub journal_mode: JournalMode,

    /// PRAGMA synchronous: 0 OFF, 1 NORMAL, 2 FULL, 3 EXTRA
    #[arg(short = 's', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=3))]
    pub synchronous: u32,

    /// Pause after each transaction in milliseconds; the time of the test has it, too
    #[arg(short = 'i', value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub pause_ms: u64,

    /// Tables that a transaction writes to, in each database
    #[arg(short = 'T', value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub tables: u32,

    /// Databases that a transaction writes to, with ATTACH
    #[arg(short = 'D', value_name = "N", default_value_t = 1, value_parser = parse_databases)]
    pub databases: u32,

    /// Insert the ids in random order; it takes a word, which says nothing, as in Mobibench
    #[arg(short = 'R', value_name = "ANY")]
    pub random_ids: Option<String>,

    /// Append the time of each record or transaction to FILE
    #[arg(short = 'L', value_name = "FILE")]
    pub latency_file: Option<PathBuf>,

    /// Append what each second of a file test did to FILE: IOPS, or KB/s where records come in order
    #[arg(short = 'k', value_name = "FILE")]
    pub iops_file: Option<PathBuf>,

    /// How many per cent of the random records are repeats of others
    #[arg(short = 'v', value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=99))]
    pub repeat_percent: u64,

    /// Show no progress
    #[arg(short = 'q')]
    pub is_quiet: bool,

    /// A script of MobiGen's: joj mobibench does not replay any
    #[arg(short = 'g', value_name = "FILE")]
    pub script: Option<PathBuf>,

    /// SQLite of the transactions: bundled (inside joj), system, or a library
    #[arg(long, value_name = "NAME|FILE.so", default_value = "bundled", requires = "operation")]
    pub sqlite: String,

    /// The waldio extension, for -j 3; its options are in the environment, for example WALDIO_DURABILITY=bounded
    #[arg(long, value_name = "FILE.so", requires = "operation")]
    pub waldio: Option<PathBuf>,

    /// Write the figures as JSON (docs/mobibench.md); `-` for standard output instead of Mobibench's lines
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The member of a list that a number stands for.
fn by_number<T: Copy>(text: &str, list: &[T]) -> Result<T, String> {
    let found = text.parse().ok().and_then(|number: usize| list.get(number).copied());
    found.ok_or_else(|| format!("it is no number from 0 to {}", list.len() - 1))
}

fn parse_access(text: &str) -> Result<FileAccess, String> {
    by_number(text, &FileAccess::ALL)
}

fn parse_sync(text: &str) -> Result<FileSync, String> {
    if ["9", "10"].contains(&text) {
        return Err("fbarrier and fdatabarrier are calls of the BarrierFS kernel alone; elsewhere Mobibench synced nothing \
                    with it and did not say so. Take 2 (fsync) or 8 (fdatasync)"
            .to_owned());
    }
    by_number(text, &FileSync::ALL)
}

fn parse_operation(text: &str) -> Result<DatabaseOperation, String> {
    by_number(text, &DatabaseOperation::ALL)
}

fn parse_journal(text: &str) -> Result<JournalMode, String> {
    by_number(text, &JOURNAL_MODES)
}

/// SQLITE_MAX_ATTACHED, and the database that is open already.
const DATABASES_MAX: u32 = 11;

fn parse_databases(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=DATABASES_MAX) => Ok(number),
        Ok(12..=20) => Err(format!(
            "SQLite attaches 10 databases to a connection, so a transaction writes to {DATABASES_MAX} at most; with \
             more Mobibench's transactions failed, and it did not say so"
        )),
        _ => Err(format!("it is no number from 1 to {DATABASES_MAX}")),
    }
}
