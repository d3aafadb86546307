//! The last transaction in a log: was it a commit?
//!
//! ```text
//! log    | A | B: frames, a sync |             the process of B is killed before it tells others of its frames (in the wal-index)
//!        | A | C ............... |             C begins in B's place: B was no commit
//!        | A | B ............... | C |         C begins behind B: B was one
//! ```
//!
//! A writer goes on behind the last commit that the wal-index has, or that a recovery finds. So where the next transaction
//! begins tells of each rollback and each kill. A log is begun anew when all its commits are in the database: where no checkpoint
//! followed, the last one was none. At the end of the recording nothing tells it, nor behind a checkpoint, which may be of others.
//!
//! Source: wal.c of SQLite 3.40 to 3.50 (walFrames, walIndexTryHdr).

use crate::recording::page_transactions::under_way::CommitUnderWay;

/// The last transaction in a log that was taken for a commit.
#[derive(Debug)]
pub struct LastInLog {
    /// Its place in `Deriver::commits`.
    pub commit: usize,
    /// Where its first frame is.
    pub begin: u64,
    /// One past its last byte, and the description that wrote it.
    pub end: u64,
    description: u32,
    /// Pages of the database before, where something told them, and how many are known to have been there.
    pub pages_before: (Option<u32>, u32),
    /// Pages were written back to the database since.
    pub is_checkpointed: bool,
    ending: LastEnding,
}

/// What the recording has of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastEnding {
    /// Its end is that of a commit: a mark or a sync, and behind it the unlock where a lock bounds it.
    Commit,
    /// Its process was gone before the unlock, and after the mark or the sync; or it was unlocked without both, as it is with NORMAL. Or
    /// there are no locks and no marks, and its only sync may be that of the checkpoint that followed.
    Unclear,
    /// Its process was gone before both.
    CutOff,
}

/// What is to be made of a transaction of which no later one tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutNext {
    /// It is a commit.
    Counts,
    /// It is none.
    IsNone,
    /// It counts, and the result says that it may be none.
    MayCount,
    /// It is not counted, and the result says so.
    IsNotTold,
}

impl LastInLog {
    /// Of a transaction that is over; `None` of one without frames.
    pub fn of(commit: &CommitUnderWay, place: usize, pages_before: (Option<u32>, u32)) -> Option<Self> {
        let is_safe = commit.is_synced || commit.frames.is_committed();
        let ending = match (commit.is_locked, commit.is_unlocked, is_safe) {
            (true, false, false) => LastEnding::CutOff,
            (true, false, true) | (true, true, false) => LastEnding::Unclear,
            (false, ..) if commit.is_checkpointed => LastEnding::Unclear,
            (false, ..) | (true, true, true) => LastEnding::Commit,
        };
        let begin = commit.frames.first().or_else(|| commit.log_bytes.first())?;
        let (end, description) = (commit.log_bytes.end()?, commit.description);
        let is_checkpointed = commit.is_checkpointed;
        Some(Self { commit: place, begin, end, description, pages_before, is_checkpointed, ending })
    }

    /// Whether the next transaction, whose first frame is at `first`, says that this was none.
    pub fn is_withdrawn_by(&self, first: u64) -> bool {
        self.begin == first
    }

    /// Whether a write from the log's begin to `end`, of this description, writes it over itself: a log is not begun anew before its
    /// commits are in the database.
    pub fn is_written_over(&self, description: u32, end: u64) -> bool {
        let is_of_another = self.description != description;
        self.ending == LastEnding::Commit
            && !self.is_checkpointed
            && is_of_another
            && (self.begin + 1..=self.end).contains(&end)
    }

    /// What it is where nothing follows. `is_begun_anew`: the log is.
    pub fn without_next(&self, is_begun_anew: bool) -> WithoutNext {
        match self.ending {
            LastEnding::Commit => WithoutNext::Counts,
            _ if is_begun_anew && !self.is_checkpointed => WithoutNext::IsNone,
            LastEnding::Unclear => WithoutNext::MayCount,
            LastEnding::CutOff => WithoutNext::IsNotTold,
        }
    }
}
