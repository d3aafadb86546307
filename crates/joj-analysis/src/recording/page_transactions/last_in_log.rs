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

use crate::recording::page_transactions::log_frames::{EMBEDDED_BLOCK_BYTES, LOG_HEADER_BYTES};
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
    /// How many commits it may be though the next transaction has its place.
    most_all_the_same: u64,
    /// How many it may be then where processes outside of the recording write to the log, too.
    most_beside_others: u64,
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
        // One without an unlock was killed, which is why the next one has its place.
        let is_cut_off = commit.is_locked && !commit.is_unlocked;
        let is_first = begin == if commit.is_embedded { EMBEDDED_BLOCK_BYTES } else { LOG_HEADER_BYTES };
        let may_be_begun_anew = commit.frames.is_empty() && !is_cut_off;
        let is_doubtful = (may_be_begun_anew && is_first) || (commit.is_locked && how_many == HowMany::ONE);
        let most_if = |may_be: bool| if may_be { how_many.most } else { 0 };
        Some(Self {
            commit: place,
            begin,
            end,
            description,
            pages_before,
            is_checkpointed: commit.is_checkpointed,
            how_many,
            most_all_the_same: most_if(is_doubtful),
            most_beside_others: most_if(may_be_begun_anew && !is_doubtful),
        })
    }

    /// Whether the next transaction, whose first frame is at `first`, says that this was none.
    pub fn is_withdrawn_by(&self, first: u64) -> bool {
        self.begin == first
    }

    /// How many commits it may be all the same: another log may have its place, or another index, which a connection found under a name. Or
    /// a process outside of the recording has begun the log anew.
    pub fn may_be_withdrawn_wrongly(&self) -> u64 {
        self.most_all_the_same
    }

    /// How many more it may be where such processes write to the log, too.
    pub fn may_be_withdrawn_beside_others(&self) -> u64 {
        self.most_beside_others
    }

    /// Whether the next transaction, whose first frame is at `first`, shows that a process outside of the recording wrote between.
    pub fn is_followed_by_others(&self, first: u64) -> bool {
        self.begin != first && self.end != first
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

    /// What it is where the next transaction begins at `first`. Where that is not at its end, a process outside of the recording wrote between,
    /// and it tells nothing.
    pub fn with_next(&self, first: u64) -> HowMany {
        match self.is_followed_by_others(first) {
            true => self.how_many,
            false => HowMany { fewest: 1, is_counted: true, ..self.how_many },
        }
    }

    /// What it is where nothing follows. `is_begun_anew`: the log is.
    pub fn without_next(&self, is_begun_anew: bool) -> HowMany {
        let is_none = is_begun_anew && !self.is_checkpointed && self.how_many != HowMany::ONE;
        HowMany { is_counted: self.how_many.is_counted && !is_none, ..self.how_many }
    }
}
