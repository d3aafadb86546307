//! Which operation of a simulated disk fails, and how.

use std::io;

/// What a failing operation reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// EIO.
    Io,
    /// ENOSPC.
    Full,
    /// EFBIG: a limit of the process.
    TooLarge,
}

/// How much of a failing write still reaches the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// No byte.
    Nothing,
    /// The first half: a short write.
    Half,
    /// All bytes, and an error all the same.
    All,
}

/// Which operations are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Everything but reads: creations, renames, removals, writes, truncations, extensions, syncs.
    Changes,
    /// Syncs of files and directories, and durable writes.
    Flushes,
    /// Reads.
    Reads,
}

/// One planned failure.
///
/// A failing sync leaves the data in the page cache *clean*, as Linux does: a later sync that succeeds does not write
/// it, so it may be lost for good although every read shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Which operations count.
    pub counted: Counted,
    /// The number of the operation that fails, from 0.
    pub number: u64,
    /// What it reports.
    pub kind: FaultKind,
    /// What is left of a failing write.
    pub kept: Kept,
    /// Whether every counted operation after it fails too.
    pub lasting: bool,
}

impl Fault {
    /// The one change `number` fails with `kind` and leaves half of what it wrote.
    pub fn at_change(number: u64, kind: FaultKind) -> Self {
        Fault { counted: Counted::Changes, number, kind, kept: Kept::Half, lasting: false }
    }

    pub(crate) fn hits(&self, counted: Counted, number: u64) -> bool {
        self.counted == counted && (number == self.number || self.lasting && number > self.number)
    }

    pub(crate) fn error(&self) -> io::Error {
        match self.kind {
            FaultKind::Io => io::Error::from_raw_os_error(5),
            FaultKind::Full => io::Error::from_raw_os_error(28),
            FaultKind::TooLarge => io::Error::from_raw_os_error(27),
        }
    }

    pub(crate) fn kept_bytes(&self, len_bytes: usize) -> usize {
        match self.kept {
            Kept::Nothing => 0,
            Kept::Half => len_bytes / 2,
            Kept::All => len_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_kinds_are_what_callers_match_on() {
        assert_eq!(Fault::at_change(0, FaultKind::Full).error().kind(), io::ErrorKind::StorageFull);
        assert_eq!(Fault::at_change(0, FaultKind::TooLarge).error().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(Fault::at_change(0, FaultKind::Io).error().raw_os_error(), Some(5));
    }

    #[test]
    fn lasting_fault_hits_from_its_number_on() {
        let once = Fault::at_change(3, FaultKind::Io);
        let lasting = Fault { lasting: true, ..once };
        let hits = |fault: Fault| (0..6).filter(|number| fault.hits(Counted::Changes, *number)).count();
        assert_eq!((hits(once), hits(lasting)), (1, 3));
        assert!(!once.hits(Counted::Reads, 3));
    }
}
