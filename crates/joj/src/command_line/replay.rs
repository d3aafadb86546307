//! The command line of `joj replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// After the options in `joj replay --help`.
pub const EXAMPLES: &str = "\
Examples:
  joj replay app.joj /mnt/card                      the calls of a recording on the disk of that directory
  joj replay app.joj /mnt/card --order fast         as fast as the disk lets them
  joj replay app.joj . --check                      and compare the files that are there at the end
  joj replay app.joj . --json - --order timed
  joj replay phone.joj . --compat --order fast      a MobiGen script as Mobibench would read it

Everything happens in a new directory below DIR, joj-replay-<process>-<n>, which is removed at the end, after an error and after
Ctrl-C too. So DIR may hold other files: none of them is touched. Recordings, orders, and what is not replayed: docs/recording.md.
The exit code is 0, or 1 when something failed or --check found a difference; 2 for a wrong command line, 130 after Ctrl-C.";

/// Options of `joj replay`.
#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// The recording, of `joj record`
    pub recording: PathBuf,

    /// A directory on the disk to replay it on
    pub directory: PathBuf,

    /// When each call is made
    #[arg(long, value_enum, default_value = "dependent")]
    pub order: OrderChoice,

    /// Compare the names and sizes of the files at the end with what the recording implies
    #[arg(long, conflicts_with = "compat")]
    pub check: bool,

    /// Read a MobiGen script as Mobibench's own replayer does, mistakes included
    #[arg(long)]
    pub compat: bool,

    /// Leave the directory there
    #[arg(long)]
    pub keep: bool,

    /// Write the result as JSON (docs/recording.md); `-` for standard output instead of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// When each call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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
