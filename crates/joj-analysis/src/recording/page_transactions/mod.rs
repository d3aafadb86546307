//! Page transactions: which commits a recording's programs made on SQLite databases, and which pages each of them wrote.
//!
//! ```text
//! calls -> database_files (what each file is) -> derive -> PageTransactions -> plan (rows of a made database) -> replay
//!
//! outcome          what came of a replay, beside the recording
//! plan             what a replay does for each commit: rows updated, rows inserted, page 1
//! derive           from calls to commits (logs: a log and its index)
//! database_state   what is known of one database
//! under_way        one commit of one database while its calls pass by
//! attached         where commits begin and end, and those over several databases
//! rollback         what reads of a journal tell
//! last_in_log      whether the last transaction in a log was a commit
//! locks            when locks count, and what they say
//! log_frames       frames of a log by their heads
//! database_files   which descriptions and paths are databases, journals and logs, and which only are called so
//! positions        where a write or read goes in its file
//! ```
//!
//! **Where a commit begins and ends.** Where locks are recorded they bound it: in rollback modes RESERVED
//! (`F_WRLCK` on byte 0x40000001 of the database) to its unlock, with a log the write lock (byte 120 of `-shm`).
//! Without them (strace, MobiGen; exclusive locking mode) it is what happens to the files:
//!
//! - *with a journal*: from the creation or first write of the journal to the last of: the database's last write and sync, the journal's
//!   end (unlinked, cut to 0 bytes, its header overwritten with 28 zeroes, closed). Who reads the journal rolls back (`rollback`): pages
//!   that are written back are none of a commit;
//! - *without a journal* (memory, off, atomic writes): the pages written up to the database's sync. Of a database that no call syncs a
//!   second write of page 1 begins the next, for each commit in a rollback mode writes page 1 (its change counter);
//! - *with a log*: up to a frame with a commit mark (`log_frame` rows; `log_frames` says which of them count). Without such rows up to a sync of the log that no checkpoint
//!   follows. A log without rows, locks and such syncs does not tell its commits, which is an error.
//!
//! Sources: pager.c and wal.c of SQLite 3.40 to 3.50; <https://www.sqlite.org/fileformat2.html>.

pub mod outcome;
pub mod plan;
pub mod derive;
mod database_state;
mod last_in_log;
mod under_way;
mod attached;
mod rollback;
mod locks;
mod log_frames;
pub mod database_files;
mod positions;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

/// How a recorded commit was made safe, from what happened to the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedMode {
    /// The journal was unlinked.
    Delete,
    /// The journal was cut to 0 bytes.
    Truncate,
    /// The journal's header was overwritten with zeroes.
    Persist,
    /// There was a journal, and its end is not in the recording: scripts of MobiGen have no ftruncate.
    Journal,
    /// Pages without a journal: in memory, switched off, or atomic writes of the filesystem.
    None,
    /// Frames of a write-ahead log.
    Wal,
}

impl RecordedMode {
    /// The word in tables and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Truncate => "truncate",
            Self::Persist => "persist",
            Self::Journal => "journal",
            Self::None => "none",
            Self::Wal => "wal",
        }
    }
}

/// What is known of page 1 in a commit. Every commit in a rollback mode writes it; with a log only one that changes more of it than
/// the change counter does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageOne {
    /// Nothing but the change counter: with a log it is not written.
    Unchanged,
    /// Written with a log too: the database grew, or its free list changed, or a frame says so.
    Changed,
    /// The recording does not tell.
    Unknown,
}

/// Calls that make something durable, by call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitSyncs {
    /// fsync.
    pub fsync: u64,
    /// fdatasync.
    pub fdatasync: u64,
    /// sync_file_range, syncfs.
    pub other: u64,
}

impl CommitSyncs {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.fsync + self.fdatasync + self.other
    }
}

/// What a commit did to one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitPart {
    /// Index into [`PageTransactions::databases`].
    pub database: usize,
    /// The connection: its open file description of the database, or of the log where there is one.
    pub description: u32,
    /// Numbers of the pages written, ascending, the first page is 1. Empty where `pages_known` is false.
    pub pages: Vec<u32>,
    /// False for frames of a log whose heads are not in the recording.
    pub pages_known: bool,
    /// Frames of the log that were written.
    pub frames: u64,
    /// What is known of page 1.
    pub page_one: PageOne,
    /// Pages of the database before.
    pub pages_before: u32,
    /// Pages of the database afterwards.
    pub pages_after: u32,
    /// How it was made safe.
    pub mode: RecordedMode,
}

impl CommitPart {
    /// How many pages were written: frames where only their number is known.
    pub fn page_count(&self) -> u64 {
        if self.pages_known { self.pages.len() as u64 } else { self.frames }
    }

    /// Pages that it wrote and that were not there before.
    pub fn new_pages(&self) -> impl Iterator<Item = u32> + '_ {
        let new = self.pages_before.saturating_add(1)..=self.pages_after;
        self.pages.iter().copied().filter(move |page| *page > 1 && new.contains(page))
    }

    /// Whether page 1 is known to be among them.
    pub fn has_page_one(&self) -> bool {
        self.pages.first() == Some(&1)
    }
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCommit {
    /// Its process.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// When the lock was granted, or else when the first of its calls began, in nanoseconds of the recording.
    pub begin_ns: u64,
    /// When it made its journal, or first wrote: what lies before is the program's work under the lock.
    pub write_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Databases that it wrote: more than one with ATTACH.
    pub parts: Vec<CommitPart>,
    /// Calls that make its files durable.
    pub syncs: CommitSyncs,
    /// Bytes written to its files.
    pub written_bytes: u64,
}

/// A database of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDatabase {
    /// Its path.
    pub path: String,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Pages before its first commit.
    pub pages_before: u32,
    /// Pages after its last one.
    pub pages_after: u32,
}

/// What all programs of a recording did to their databases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageTransactions {
    /// Databases with a commit.
    pub databases: Vec<RecordedDatabase>,
    /// Commits, in the order in which they began.
    pub commits: Vec<RecordedCommit>,
    /// All calls that make files of the databases durable, those of checkpoints included.
    pub syncs: CommitSyncs,
    /// All bytes written to their files, those of checkpoints included.
    pub written_bytes: u64,
    /// What the recording does not tell, in sentences.
    pub notes: Vec<String>,
}

impl PageTransactions {
    /// What each commit did to each database.
    pub fn parts(&self) -> impl Iterator<Item = &CommitPart> {
        self.commits.iter().flat_map(|commit| &commit.parts)
    }
}
