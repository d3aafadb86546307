//! Rollbacks, as reads of a journal tell them.
//!
//! A commit does not read its journal, but for 8 bytes where the next header would stand (pager.c, syncJournal). A rollback reads the
//! header, cuts the database to the size that it names, and then reads each record and writes its page back (pager_playback). The next
//! process to open a database with a hot journal does the same. A rollback to a savepoint reads the records since then without the header.

use crate::recording::page_transactions::database_files::is_page;

/// Byte of a journal's header where the number of its records stands, which each rollback of a whole transaction reads.
const RECORD_COUNT: u64 = 8;

/// What a read of a journal tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalRead {
    /// Its whole transaction is rolled back.
    Header,
    /// A page as it was: it is written back next.
    Record,
    /// Nothing.
    Other,
}

impl JournalRead {
    /// Of a read of so many bytes. A page may have another size than those of the database in the end: a VACUUM changes it.
    pub fn of(offset: u64, bytes: u64) -> Self {
        if (offset..offset.saturating_add(bytes)).contains(&RECORD_COUNT) {
            Self::Header
        } else if is_page(bytes) {
            Self::Record
        } else {
            Self::Other
        }
    }
}

/// How many commits a stretch of calls is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HowMany {
    pub fewest: u64,
    pub most: u64,
    /// It counts as one; else as none.
    pub is_counted: bool,
}

impl HowMany {
    pub const ONE: Self = Self { fewest: 1, most: 1, is_counted: true };
    pub const NONE: Self = Self { fewest: 0, most: 0, is_counted: false };
}

/// Transactions that are not counted because the recording does not tell whether they were committed.
#[derive(Debug, Default)]
pub struct NotTold {
    /// They had a journal, and its end is missing, or frames of a log without a sync: the program was killed, or calls are not in the
    /// recording.
    pub ends: u64,
    /// Writes of transactions that had no journal, and wrote a page twice or cut one off again before their sync: so does a rollback
    /// from memory, and so do commits that outgrew their cache, and several commits in exclusive locking mode.
    pub without_journal: u64,
    /// Counted all the same: with frames in a log, and killed or without a sync, and no later transaction tells whether they were commits.
    pub last_in_log: u64,
    /// They wrote a log whose heads are not in the recording, without the lock that others take for that.
    pub outside_locks: u64,
    /// Writes of pages or frames that may be commits of their own: they had neither a journal or marks, nor a sync, nor a lock each.
    pub not_shown: u64,
    /// Writes of commits that had a sync, and neither a lock each nor a journal or marks: some of them may be commits without a sync.
    pub before_sync: u64,
    /// Writes by descriptions that are none of SQLite's.
    pub by_strangers: u64,
    /// Frames in a log that was removed while it was open.
    pub in_removed_log: u64,
    /// Counted all the same: they may be frames that fill a sector.
    pub repeated: u64,
    /// Counted all the same: nothing shows whether they were one commit with those before, with ATTACH.
    pub may_be_parts: u64,
    /// Counted all the same: they had no journal, and their begin or their end is not in the recording.
    pub may_be_none: u64,
}

impl NotTold {
    /// A stretch was counted, or not, and may be another number of commits.
    pub fn take(&mut self, of: HowMany) {
        if of.is_counted {
            self.last_in_log += 1_u64.saturating_sub(of.fewest);
        } else {
            self.ends += of.most.min(1);
        }
        self.not_shown += of.most.saturating_sub(1);
    }

    /// In sentences.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let ends = "Transactions whose journal has no end in the recording, or whose frames or pages no sync, are not counted as commits:";
        let without = "Transactions without a journal that wrote a page twice before their sync, or cut it off, are not counted: a \
                       rollback does so, too. Each write may be a commit. So there may be too few, by up to:";
        let told = |(text, count): (&str, u64)| (count > 0).then(|| format!("{text} {count}"));
        let last = "Commits that may be none: no transaction followed in the log that would tell whether they were rolled back, or \
                    killed before their end. So there may be too many, by up to:";
        let parts = "Commits that may be parts of others: without locks (exclusive locking mode) and journals nothing shows whether a \
                     thread wrote several databases in one, with ATTACH. So there may be too many, by up to:";
        let outside = "Writes of a log without its lock, which other threads take, are not counted: waldio fills a log so, and in \
                       exclusive locking mode commits are so. So there may be too few, by up to:";
        let not_shown = "Pages or frames were written without a journal or frame heads, and without a sync of each commit: in \
                         exclusive locking mode no call shows where one ends and the next begins, and each write may be one (in \
                         normal locking mode each lock is one). So there may be too few, by up to:";
        let before_sync = "Commits of several pages or frames with one sync, without a journal, frame heads and a lock each: where \
                           PRAGMA synchronous was OFF and then set to FULL in exclusive locking mode, those before the sync may be \
                           commits of their own. If so there are too few, by up to:";
        let by_strangers = "Writes of databases and logs by what took none of SQLite's locks are no commits: copies, downloads. If they \
                            are a connection's that takes none (nolock=1), there may be too few, by up to:";
        let in_removed_log = "Frames in a log that was removed or renamed while a connection had it open are not counted. So there may be too few, \
                              by up to:";
        let repeated = "Commits of the same page without a sync between: without powersafe overwrite SQLite repeats a frame up to \
                        the end of a sector. So there may be too many, by up to:";
        let none = "Commits without a journal that began before the recording, or that had neither a sync nor an unlock, may be none: \
                    rolled back, or killed before their end. So there may be too many, by up to:";
        let counted = [
            (outside, self.outside_locks),
            (last, self.last_in_log),
            (parts, self.may_be_parts),
            (not_shown, self.not_shown),
            (before_sync, self.before_sync),
            (by_strangers, self.by_strangers),
            (in_removed_log, self.in_removed_log),
            (repeated, self.repeated),
            (none, self.may_be_none),
        ];
        let all = [(ends, self.ends), (without, self.without_journal)].into_iter().chain(counted);
        all.filter_map(told)
    }
}
