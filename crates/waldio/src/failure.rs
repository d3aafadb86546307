//! What can go wrong with the log, in the world's terms.

use std::io;

/// One failed operation on the log.
#[derive(Debug)]
pub enum Failure {
    /// The disk is full or the quota is used up. Nothing is broken: space can be made and the statement repeated.
    Full,
    /// The operation failed, and changed nothing that counts.
    Io(io::Error),
    /// A write failed before anything of it was published: the transaction is lost, and nothing else.
    Write(io::Error),
    /// What the medium holds of the log is unknown from here on, and the log is poisoned: a sync failed, say.
    Sync(io::Error),
    /// An earlier write or sync failed, and what the log holds on the medium is unknown. Why, in a sentence.
    Poisoned(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::Full,
            _ => Failure::Io(error),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Full => write!(formatter, "the disk is full"),
            Failure::Io(error) | Failure::Write(error) | Failure::Sync(error) => write!(formatter, "{error}"),
            Failure::Poisoned(why) => write!(formatter, "the log is out of use: {why}"),
        }
    }
}
