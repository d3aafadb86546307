//! Goal: where no call shows how many commits a stretch is (exclusive locking mode), the bounds hold, whatever ends it.
//! Method: recordings made by hand. Those of a real SQLite: crates/joj/tests/record_random_databases.rs.

use super::{Made, PAGE, RESERVED};
use crate::recording::call::CallKind;
use crate::recording::page_transactions::PageTransactions;

/// Commits that are counted, and by how many there may be too many and too few.
fn bounds(found: &PageTransactions) -> (u64, u64, u64) {
    let numbers = |is_too_many: bool| -> u64 {
        let notes = found.notes.iter().filter(|note| note.contains("too many") == is_too_many);
        notes.filter_map(|note| note.rsplit_once(": ")?.1.parse::<u64>().ok()).sum()
    };
    (found.commits.len() as u64, numbers(true), numbers(false))
}

/// What ends a stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// The connection closes, and gives the database back. With a log that is a checkpoint: SQLite's, or waldio's.
    Close,
    WaldioClose,
    /// locking_mode=NORMAL, and a read.
    Normal,
    Killed,
    /// The recording.
    Nothing,
}

impl Made {
    pub(super) fn close(&mut self, description: u32) -> &mut Self {
        self.push(CallKind::Close, description, |_| {})
    }

    fn database_given_back(&mut self, end: End) -> &mut Self {
        match end {
            End::Close | End::WaldioClose => self.lock(1, RESERVED - 1, 2, 2).lock(1, 0, 0, 2).close(1),
            End::Normal => self.lock(1, RESERVED + 1, 510, 0).lock(1, RESERVED - 1, 2, 2).lock(1, 0, 0, 2),
            End::Killed => self.push(CallKind::Released, 1, |_| {}),
            End::Nothing => self,
        }
    }

    /// So many frames without heads, from `index` on.
    pub(super) fn bare_frames(&mut self, index: u64, count: u64) -> &mut Self {
        for at in (index..index + count).map(|frame| 32 + frame * (PAGE + 24)) {
            self.write(2, at, 24).write(2, at + 24, PAGE);
        }
        self
    }

    /// A log of one commit, with its locks.
    fn log_with_a_commit(&mut self) -> &mut Self {
        self.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm").lock(3, 120, 1, 1).write(2, 0, 32);
        self.bare_frames(0, 2).sync(2).lock(3, 120, 1, 2)
    }

    fn log_given_back(&mut self, end: End, has_syncs: bool) -> &mut Self {
        match end {
            End::Close | End::WaldioClose => {
                if has_syncs {
                    self.sync(2);
                }
                if end == End::WaldioClose {
                    self.sync(1).sync(2);
                }
                self.pages(1, &[1, 2]).sync(1).close(2).unlink("/d/a.db-wal")
            }
            End::Normal => self.lock(3, 120, 1, 1).bare_frames(10, 1).sync(2).lock(3, 120, 1, 2),
            End::Killed => self.push(CallKind::Released, 2, |_| {}),
            End::Nothing => self,
        }
    }
}

#[test]
fn pages_without_a_journal_and_syncs_are_up_to_one_commit_each() {
    for end in [End::Close, End::Normal, End::Killed, End::Nothing] {
        // Other pages each time, one of them more than once.
        for (pages, counted) in [(&[1, 2, 3, 4][..], 1), (&[1, 2, 2, 2, 2, 2], 0)] {
            let mut made = Made::new();
            made.open(9, "/d/a.db-journal").journal(9, 2).pages(1, &[1, 2]).unlink("/d/a.db-journal");
            made.lock(1, RESERVED, 1, 1).pages(1, pages).database_given_back(end);
            let (more, is_ended) = (pages.len() as u64 - counted, matches!(end, End::Close | End::Normal));
            let fewer = if is_ended { 0 } else { counted };
            assert_eq!(bounds(&made.derived()), (1 + counted, fewer, more), "{end:?} {pages:?}");
        }
    }
}

/// The last of them with `synchronous=FULL`, and those before without.
#[test]
fn pages_that_are_written_twice_before_a_sync_are_up_to_one_commit_each() {
    let mut made = Made::new();
    made.open(9, "/d/a.db-journal").journal(9, 2).pages(1, &[1, 2]).unlink("/d/a.db-journal");
    made.lock(1, RESERVED, 1, 1).pages(1, &[1, 2, 2, 2]).sync(1).pages(1, &[2]).sync(1);
    assert_eq!(bounds(&made.database_given_back(End::Close).derived()), (2, 0, 4));
}

/// `PRAGMA synchronous` was OFF, and FULL for the last one. In normal locking mode the lock of each shows it.
#[test]
fn other_pages_before_a_sync_may_be_commits_without_one() {
    for (end, more) in [(End::Close, 3), (End::Killed, 3), (End::Nothing, 3)] {
        let mut made = Made::new();
        made.open(9, "/d/a.db-journal").journal(9, 2).pages(1, &[1, 2]).unlink("/d/a.db-journal");
        made.lock(1, RESERVED, 1, 1).pages(1, &[1, 2, 3, 4]).sync(1).pages(1, &[5]).sync(1);
        assert_eq!(bounds(&made.database_given_back(end).derived()), (3, 0, more), "{end:?}");
    }
    let mut made = Made::new();
    made.lock(1, RESERVED, 1, 1).pages(1, &[1, 2, 3, 4]).sync(1).lock(1, RESERVED, 1, 2);
    assert_eq!(bounds(&made.derived()), (1, 0, 0));
}

#[test]
fn frames_without_heads_locks_and_syncs_are_up_to_one_commit_each() {
    for has_syncs in [true, false] {
        for (end, expected) in [
            (End::Close, (2, 1, 7)),
            (End::WaldioClose, (2, 1, 7)),
            // The next transaction begins behind them: they are one commit at least.
            (End::Normal, (3, 0, 7)),
            (End::Killed, (1, 0, 8)),
            (End::Nothing, (2, 1, 7)),
        ] {
            let mut made = Made::new();
            made.log_with_a_commit().bare_frames(2, 8).log_given_back(end, has_syncs);
            assert_eq!(bounds(&made.derived()), expected, "{end:?}, syncs: {has_syncs}");
        }
    }
}

/// A sync that no checkpoint makes is a commit's. Those before it had none if `PRAGMA synchronous` was OFF then.
#[test]
fn frames_with_a_sync_of_their_own_are_a_commit_or_several() {
    for end in [End::Close, End::WaldioClose, End::Normal, End::Killed, End::Nothing] {
        let mut made = Made::new();
        made.log_with_a_commit().bare_frames(2, 8).sync(2).log_given_back(end, true);
        assert_eq!(bounds(&made.derived()), (2 + u64::from(end == End::Normal), 0, 7), "{end:?}");
    }
}

/// It may have been a sync of waldio's thread that fills the log ahead of need.
#[test]
fn another_threads_sync_is_none_of_the_commits() {
    let mut made = Made::new();
    made.log_with_a_commit().bare_frames(2, 8);
    made.thread = 2;
    made.sync(2);
    made.thread = 1;
    made.log_given_back(End::Close, true);
    assert_eq!(bounds(&made.derived()), (2, 1, 7));
}

/// The next one does so at the same place as they: they were rolled back.
#[test]
fn frames_that_the_next_transaction_overwrites_are_none() {
    let mut made = Made::new();
    made.log_with_a_commit().bare_frames(2, 8);
    made.lock(3, 120, 1, 1).bare_frames(2, 1).sync(2).lock(3, 120, 1, 2);
    assert_eq!(bounds(&made.derived()), (2, 0, 0));
}

/// waldio writes a log's header and its first frame at once. Where the log was unlinked, or cut to nothing, that is no recovery's write.
#[test]
fn a_log_that_is_made_anew_is_not_written_over_itself() {
    for (has_heads, is_unlinked) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut made = Made::new();
        for log in [2, 4] {
            made.open(log, "/d/a.db-wal").write(log, 0, 32 + PAGE + 24);
            if has_heads {
                made.push(CallKind::LogFrame, log, |call| (call.offset, call.bytes, call.flags) = (32, 5, 9));
            }
            made.sync(log).sync(log).pages(1, &[5]).sync(1);
            match is_unlinked {
                true => made.close(log).unlink("/d/a.db-wal"),
                false => made.push(CallKind::Ftruncate, log, |_| {}).close(log),
            };
        }
        let told = bounds(&made.derived());
        assert_eq!(told, (2, 0, 0), "heads: {has_heads}, unlinked: {is_unlinked}");
    }
}

/// The log stays where it is, and a checkpoint wrote it back.
#[test]
fn a_log_that_was_written_back_is_not_written_over_itself() {
    for has_heads in [true, false] {
        let mut made = Made::new();
        for log in [2, 4] {
            made.open(log, "/d/a.db-wal").write(log, 0, 32 + PAGE + 24);
            if has_heads {
                made.push(CallKind::LogFrame, log, |call| (call.offset, call.bytes, call.flags) = (32, 5, 9));
            }
            made.sync(log).sync(log).pages(1, &[5]).sync(1).close(log);
        }
        assert_eq!(bounds(&made.derived()), (2, 0, 0), "heads: {has_heads}");
    }
}

/// One process took the log's lock; another one has the database for itself and takes none: its commits without a sync, and then one with.
#[test]
fn frames_of_a_process_that_takes_no_log_lock_are_commits() {
    for (is_same, counted, more) in [(false, 2, 3), (true, 1, 4)] {
        let mut made = Made::new();
        made.log_with_a_commit();
        made.thread = 2;
        made.bare_frames(2, 4).sync(2);
        for call in made.recording.calls.iter_mut().filter(|call| call.thread == 2 && !is_same) {
            call.process = 2;
        }
        // A thread of the same process may be waldio's, which fills the log.
        assert_eq!(bounds(&made.derived()), (counted, 0, more), "{is_same}");
    }
}

/// Without powersafe overwrite the sync lies within a repeated frame, and another thread goes on.
#[test]
fn the_rest_of_a_frame_behind_its_sync_may_be_no_commit() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-wal").write(2, 0, 32).bare_frames(0, 1).sync(2);
    made.bare_frames(1, 1).write(2, 32 + 2 * (PAGE + 24), 1000).sync(2).write(
        2,
        1032 + 2 * (PAGE + 24),
        3120,
    );
    made.thread = 2;
    made.bare_frames(3, 1).sync(2);
    let (counted, fewer, _) = bounds(&made.derived());
    assert!((counted - fewer..=counted).contains(&3), "{counted} {fewer}");
}
