//! What a run came to.

use std::fmt;

/// What kind of promise was broken. Shrinking keeps it the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rows, error code or message are not stock's.
    AnswerDiffers,
    /// A process ended by itself.
    Died,
    /// A process did not answer.
    Hangs,
    /// A row whose COMMIT had returned is gone.
    Lost,
    /// `integrity_check` complains, or the database cannot be read.
    Damaged,
    /// The content is not stock's.
    ContentDiffers,
    /// What is left on the disk is not what it should be.
    FilesDiffer,
    /// After a hardship was over stock went on, and waldio did not.
    StaysBroken,
}

/// A broken promise.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Which.
    pub kind: Kind,
    /// The place of the act in the program; its length stands for the end.
    pub act: usize,
    /// What was seen.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} at act {}: {}", self.kind, self.act + 1, self.text)
    }
}

/// How much was done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    /// Programs that ran to their end.
    pub programs: u64,
    /// Acts.
    pub acts: u64,
    /// Processes killed.
    pub kills: u64,
    /// Times that the files were judged.
    pub checks: u64,
    /// Rows acknowledged.
    pub rows: u64,
}

impl Stats {
    /// Adds those of another run.
    pub fn add(&mut self, other: Stats) {
        self.programs += other.programs;
        self.acts += other.acts;
        self.kills += other.kills;
        self.checks += other.checks;
        self.rows += other.rows;
    }
}
