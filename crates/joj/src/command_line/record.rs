//! The command line of `joj record`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use joj_analysis::recording::import::TextFormat;

/// After the options in `joj record --help`.
pub const EXAMPLES: &str = "\
Examples:
  strace -f -ttt -T -y -o app.strace ./app
  joj record --import app.strace -o app.joj
  joj record --import app.strace -o app.joj --hide-names    to give away: paths are hashes
  joj record --import mobigen.out -o phone.joj              a script of MobiGen's
  zcat app.strace.gz | joj record --import - -o app.joj

A recording has the calls of all threads with their times, sizes and results, never the contents of files. What a recording
holds and how to replay it: docs/recording.md. The exit code is 0, or 1 when something failed: no file is written then; 2 for a
wrong command line, 130 after Ctrl-C.";

/// Options of `joj record`.
#[derive(Debug, Args)]
pub struct RecordOptions {
    /// The text to import: of strace (`strace -f -ttt -T -y`) or MobiGen; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub import: PathBuf,

    /// The recording to write
    #[arg(short, long, value_name = "FILE.joj")]
    pub output: PathBuf,

    /// What the text is [default: recognised by its first line]
    #[arg(long, value_enum)]
    pub format: Option<FormatChoice>,

    /// Write hashes in the place of file names, with a key that is thrown away. Extensions stay, and SQLite's -wal, -shm, -journal
    #[arg(long)]
    pub hide_names: bool,
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
