//! The command line of `joj replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use joj_analysis::bench::key::{JournalMode, Word};
use serde::{Deserialize, Serialize};

use crate::command_line::replay_lab::{ONLY_IN_LAB, ReplayLabOptions};

/// After the options in `joj replay --help`.
pub const EXAMPLES: &str = "\
Examples:
  joj replay app.joj /mnt/card                      the calls of a recording on the disk of that directory
  joj replay app.joj /mnt/card --order fast         as fast as the disk lets them
  joj replay app.joj . --check                      and compare the files that are there at the end
  joj replay app.joj . --json - --order timed
  joj replay phone.joj . --compat --order fast      a MobiGen script as Mobibench would read it
  joj replay app.joj . --as wal --order fast        its SQLite transactions alone, through SQLite in WAL mode
  joj replay app.joj . --as waldio --waldio ./libwaldio.so --json -
  joj replay app.joj . --as wal --order fast --record app-wal.joj    and the same transactions as a recording in WAL mode
  joj replay app.joj --lab                          on an emulated phone's eMMC with ext4
  joj replay app.joj --lab --device galaxy-s5-emmc,transcend-card-s3 --filesystem ext4,f2fs    a row for each
  joj replay app.joj --lab --filesystem f2fs --as wal --order fast --json result.json

Everything happens in a new directory below DIR, joj-replay-<process>-<n>, which is removed at the end, after an error and after
Ctrl-C too. So DIR may hold other files: none of them is touched. Recordings, orders, and what is not replayed: docs/recording.md.
With --lab it happens in the emulated machine of `joj lab`, which needs QEMU and Debian's packages (`joj lab --help`): its clock
counts instructions, so the figures hardly depend on what else this machine does.
With --as the commits of the recording's databases are made again in databases of joj's own: the same numbers of pages, none of the
program's data. They are made twice: to count calls and bytes, and with a clock. --record makes them a third time.
The exit code is 0, or 1 when something, or a row, failed or --check found a difference; 2 for a wrong command line, 130 after Ctrl-C.";

/// What replays calls, not transactions.
const NOT_WITH_MODE: [&str; 2] = ["check", "compat"];

/// Options of `joj replay`.
#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// The recording, of `joj record`, or the name of one that joj brings: see `joj lab list`
    pub recording: PathBuf,

    /// A directory on the disk to replay it on; without --lab it is needed
    #[arg(value_name = "DIR", required_unless_present = "lab", conflicts_with_all = ONLY_IN_LAB)]
    pub directory: Option<PathBuf>,

    /// Emulated disks instead.
    #[command(flatten)]
    pub emulated: ReplayLabOptions,

    /// When each call is made
    #[arg(long, value_enum, default_value = "dependent")]
    pub order: OrderChoice,

    /// Compare the names and sizes of the files at the end with what the recording implies
    #[arg(long, conflicts_with = "compat")]
    pub check: bool,

    /// Read a MobiGen script as Mobibench's own replayer does, mistakes included
    #[arg(long)]
    pub compat: bool,

    /// Replay only the commits on SQLite databases, through a real SQLite in this journal mode: delete, truncate, persist, memory, off,
    /// wal, or waldio (wal with the extension)
    #[arg(long = "as", value_name = "MODE", value_parser = parse_mode, conflicts_with_all = NOT_WITH_MODE)]
    pub mode: Option<JournalMode>,

    /// With --as: PRAGMA synchronous
    #[arg(long, value_enum, default_value = "full", requires = "mode", conflicts_with_all = NOT_WITH_MODE)]
    pub synchronous: SynchronousChoice,

    /// With --as: PRAGMA cache_size: pages, or KiB where negative [default: SQLite's own]
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "mode", conflicts_with_all = NOT_WITH_MODE)]
    pub cache_size: Option<i64>,

    /// With --as: the SQLite: bundled (inside joj), system, or a library
    #[arg(long, value_name = "NAME|FILE.so", default_value = "bundled", requires = "mode", conflicts_with_all = NOT_WITH_MODE)]
    pub sqlite: String,

    /// With --as waldio: the extension [default: libwaldio.so beside joj]
    #[arg(long, value_name = "FILE.so", requires = "mode", conflicts_with_all = NOT_WITH_MODE)]
    pub waldio: Option<PathBuf>,

    /// With --as: make the commits once more, and record them: a recording of the same transactions in that mode
    #[arg(long, value_name = "FILE.joj", requires = "mode", conflicts_with_all = NOT_WITH_MODE, conflicts_with = "lab")]
    pub record: Option<PathBuf>,

    /// Leave the directory there
    #[arg(long, conflicts_with = "lab")]
    pub keep: bool,

    /// Write the result as JSON (docs/recording.md); `-` for standard output instead of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The journal modes of --as: of waldio's ways the durable one.
fn parse_mode(text: &str) -> Result<JournalMode, String> {
    let why = match text.parse::<JournalMode>() {
        Ok(JournalMode::Bounded) => {
            "for this one take `waldio`, and set WALDIO_DURABILITY=bounded in the environment"
        }
        Ok(mode) => return Ok(mode),
        Err(_) => "there is no such journal mode",
    };
    let modes = JournalMode::ALL.iter().filter(|mode| **mode != JournalMode::Bounded);
    let words: Vec<&str> = modes.map(|mode| mode.word()).collect();
    Err(format!("{why}; choose from: {}", words.join(", ")))
}

/// `PRAGMA synchronous`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SynchronousChoice {
    /// Every COMMIT that returned survives a power cut
    Full,
    /// With a log no sync until the checkpoint
    Normal,
    /// No sync at all
    Off,
}

impl SynchronousChoice {
    /// The word of the option, and of the pragma.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Off => "off",
        }
    }
}

/// When each call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum OrderChoice {
    /// After those that it waits for, and the recorded think time
    Dependent,
    /// At its recorded time, not before those that it waits for
    Timed,
    /// At once after those that it waits for
    Fast,
}

impl OrderChoice {
    /// The word of the option.
    pub fn word(self) -> &'static str {
        match self {
            Self::Dependent => "dependent",
            Self::Timed => "timed",
            Self::Fast => "fast",
        }
    }
}
