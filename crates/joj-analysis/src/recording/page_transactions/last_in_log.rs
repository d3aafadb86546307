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
//! In exclusive locking mode, without heads and syncs, there may be several commits where this sees one: up to one for each frame.
//!
//! Source: wal.c of SQLite 3.40 to 3.50 (walFrames, walIndexTryHdr).

use crate::recording::page_transactions::rollback::HowMany;
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
    /// How many commits it is as far as its own calls tell.
    how_many: HowMany,
    /// It had its lock to the end, and its mark or its sync.
    is_locked_to_the_end: bool,
}

impl LastInLog {
    /// Of a transaction that is over; `None` of one without frames.
    pub fn of(
        commit: &CommitUnderWay,
        place: usize,
        pages_before: (Option<u32>, u32),
        page_bytes: u64,
    ) -> Option<Self> {
        let is_safe = commit.is_synced || commit.frames.is_committed();
        let how_many = match (commit.is_locked, commit.is_unlocked, is_safe) {
            // Its COMMIT was told so.
            _ if commit.has_failed => HowMany { fewest: 0, most: 1, is_counted: false },
            // Its process was gone before both the mark or the sync, and the unlock.
            (true, false, false) => HowMany { fewest: 0, most: 1, is_counted: false },
            // It was gone before the unlock; or it was unlocked without a mark and a sync, as it is with NORMAL.
            (true, false, true) | (true, true, false) => HowMany { fewest: 0, most: 1, is_counted: true },
            (false, ..) if commit.is_open_in_log() => {
                HowMany { fewest: 0, most: commit.commits_max(page_bytes), is_counted: true }
            }
            (false, ..) | (true, true, true) => HowMany::ONE,
        };
        let begin = commit.frames.first().or_else(|| commit.log_bytes.first())?;
        let (end, description) = (commit.log_bytes.end()?, commit.description);
        Some(Self {
            commit: place,
            begin,
            end,
            description,
            pages_before,
            is_checkpointed: commit.is_checkpointed,
            how_many,
            is_locked_to_the_end: commit.is_locked && how_many == HowMany::ONE,
        })
    }

    /// Whether the next transaction, whose first frame is at `first`, says that this was none.
    pub fn is_withdrawn_by(&self, first: u64) -> bool {
        self.begin == first
    }

    /// How many commits it may be all the same: another log may have its place, or another index, which a connection found under a name.
    pub fn may_be_withdrawn_wrongly(&self) -> u64 {
        u64::from(self.is_locked_to_the_end)
    }

    /// Whether a write from the log's begin to `end`, of this description, writes it over itself: a log is not begun anew before its
    /// commits are in the database.
    pub fn is_written_over(&self, description: u32, end: u64) -> bool {
        let is_of_another = self.description != description;
        self.how_many == HowMany::ONE
            && !self.is_checkpointed
            && is_of_another
            && (self.begin + 1..=self.end).contains(&end)
    }

    /// What it is where the next transaction begins behind it.
    pub fn with_next(&self) -> HowMany {
        HowMany { fewest: 1, is_counted: true, ..self.how_many }
    }

    /// What it is where nothing follows. `is_begun_anew`: the log is.
    pub fn without_next(&self, is_begun_anew: bool) -> HowMany {
        let is_none = is_begun_anew && !self.is_checkpointed && self.how_many != HowMany::ONE;
        if is_none { HowMany::NONE } else { self.how_many }
    }
}
