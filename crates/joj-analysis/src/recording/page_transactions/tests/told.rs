//! Goal: where the calls do not tell how many commits there were, the result says so, and its bound holds.
//! Method: recordings made by hand. Those of a real SQLite: crates/joj/tests/record_live_rollbacks.rs.

use super::{Made, PAGE, RESERVED};
use crate::recording::call::CallKind;
use crate::recording::page_transactions::PageTransactions;
use crate::recording::page_transactions::derive::{DeriveError, derive};

/// What the only note says in the end.
fn bound(found: &PageTransactions) -> (&str, u64) {
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
    let (text, count) = found.notes[0].rsplit_once(": ").unwrap();
    (text, count.parse().unwrap())
}

impl Made {
    /// A commit with a journal.
    fn first_commit(&mut self) -> &mut Self {
        self.open(9, "/d/a.db-journal").journal(9, 2).sync(9).pages(1, &[1, 2]).sync(1);
        self.unlink("/d/a.db-journal")
    }
}

/// Page 1 is written once, and nothing tells the commits that follow.
#[test]
fn commits_in_exclusive_mode_without_journals_and_syncs_have_a_lower_bound() {
    // Other pages each time; one of them again; without any locks, and each commit was synced before.
    for (pages, is_locked, is_counted) in
        [(&[1, 3, 4, 7][..], true, true), (&[1, 3, 3, 7], true, false), (&[1, 3, 4, 7], false, false)]
    {
        let mut made = Made::new();
        made.first_commit();
        if is_locked {
            made.lock(1, RESERVED, 1, 1);
        }
        made.pages(1, pages);
        if is_locked {
            made.lock(1, RESERVED - 1, 2, 2).lock(1, 0, 0, 2);
        }
        made.push(CallKind::Close, 1, |_| {});
        let found = made.derived();
        assert_eq!(found.commits.len(), 1 + usize::from(is_counted), "{pages:?}");
        let said = found.notes.iter().find(|note| note.contains("too few")).unwrap();
        let more = if is_counted { ": 3" } else { ": 4" };
        assert!(said.ends_with(more), "{said}");
    }
}

/// In normal locking mode each commit has its lock. The calls are those of exclusive mode for a while, where several commits wrote the
/// pages under one lock: the note says that it is about those.
#[test]
fn commits_with_a_lock_each_are_counted_without_journals_and_syncs() {
    let mut made = Made::new();
    made.first_commit();
    for _ in 0..3 {
        made.lock(1, RESERVED, 1, 1).pages(1, &[1, 3]);
        made.lock(1, RESERVED + 1, 510, 0).lock(1, RESERVED - 1, 2, 2).lock(1, 0, 0, 2);
    }
    made.push(CallKind::Close, 1, |_| {});
    let found = made.derived();
    let (note, more) = bound(&found);
    assert_eq!((found.commits.len(), more), (4, 3));
    assert!(note.contains("in normal locking mode each lock is one"), "{note}");
}

#[test]
fn a_database_that_shows_no_commit_may_have_had_some() {
    let mut made = Made::new();
    made.open(9, "/d/a.db-journal").lock(1, RESERVED, 1, 1).pages(1, &[1, 3, 3, 3]);
    made.lock(1, 0, 0, 2).push(CallKind::Close, 1, |_| {});
    assert_eq!(derive(&made.recording), Err(DeriveError::NotShown(4)));
}

/// The connection has synced each of its commits before.
#[test]
fn a_process_that_ends_before_its_commits_sync_has_not_committed() {
    let mut made = Made::new();
    made.open(9, "/d/a.db-journal");
    made.lock(1, RESERVED, 1, 1).pages(1, &[1, 3]).sync(1).lock(1, 0, 0, 2);
    made.lock(1, RESERVED, 1, 1).pages(1, &[1, 3]);
    let found = made.derived();
    assert_eq!((found.commits.len(), bound(&found).1), (1, 1));
}

/// Without powersafe overwrite the last frame is written up to the end of a sector. A sync lies between two commits of the same page.
#[test]
fn frames_that_are_repeated_in_exclusive_mode_may_be_too_many() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-wal").write(2, 0, 32);
    made.frame(2, 0, 5, 9).frame(2, 1, 5, 9).frame(2, 2, 5, 9).sync(2);
    made.frame(2, 3, 5, 9).sync(2).frame(2, 4, 5, 9).sync(2);
    let found = made.derived();
    // A frame is longer than a sector, so that one fills it.
    assert_eq!((found.commits.len(), bound(&found).1), (5, 1));
}

/// What comes behind the sync is the rest of a sector, and no frame.
#[test]
fn what_is_shorter_than_a_frame_is_no_commit() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-wal").write(2, 0, 32).write(2, 32, PAGE + 24).sync(2);
    made.write(2, 32 + PAGE + 24, 100).sync(2).pages(1, &[5]).sync(1);
    assert_eq!(made.derived().commits.len(), 1);
}

/// A VACUUM that changes the size of pages: they have the last one's in the recording.
#[test]
fn pages_of_another_size_begin_no_commit_while_there_is_a_journal() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-journal");
    for _ in 0..2 {
        made.journal(2, 2).pages(1, &[1, 2, 3]).write(2, 0, 28);
    }
    made.push(CallKind::FirstPage, 1, |call| call.offset = 2 * PAGE);
    let found = made.derived();
    assert_eq!((found.commits.len(), &found.notes[..]), (2, &[][..]));
}

/// In text, where a commit and a checkpoint each have a sync of their own.
#[test]
fn frames_that_only_a_checkpoint_synced_may_be_none() {
    for (syncs, notes) in [(1, &[": 1", ": 2"][..]), (2, &[": 2"])] {
        let mut made = Made::new();
        made.open(2, "/d/a.db-wal").write(2, 0, 32).write(2, 32, PAGE + 24).sync(2);
        made.write(2, 32 + PAGE + 24, 3 * (PAGE + 24));
        for _ in 0..syncs {
            made.sync(2);
        }
        made.pages(1, &[5, 6]).sync(1).write(2, 0, 32).write(2, 32, PAGE + 24).sync(2);
        let found = made.derived();
        assert_eq!((found.commits.len(), found.notes.len()), (3, notes.len()), "{:?}", found.notes);
        let are_said = found.notes.iter().zip(notes).all(|(note, number)| note.ends_with(number));
        assert!(are_said, "{:?}", found.notes);
    }
}

/// In exclusive locking mode the database's lock is held when waldio writes the first block of its embedded layout, which has no frame.
#[test]
fn the_guard_of_the_embedded_layout_is_no_commit_in_exclusive_mode() {
    let mut made = Made::new();
    made.lock(1, RESERVED, 1, 1).first_commit();
    made.open(4, "/d/a.db-waldio").open(2, "/d/a.db-wal").write(2, 0, PAGE).write(2, 0, PAGE).sync(2);
    made.write(2, PAGE, PAGE).sync(2).write(2, 2 * PAGE, PAGE).sync(2);
    let found = made.derived();
    assert_eq!((found.commits.len(), &found.notes[..]), (3, &[][..]));
}

/// Its begin is not in the recording, and a rollback from memory looks like it. The next one has its lock, or a sync before it.
#[test]
fn a_transaction_that_began_before_the_recording_may_be_none() {
    for is_exclusive in [false, true] {
        let mut made = Made::new();
        made.recording.calls[0].kind = CallKind::Held;
        made.open(9, "/d/a.db-journal").close(9).pages(1, &[1, 3, 4]).sync(1);
        if !is_exclusive {
            made.lock(1, RESERVED - 1, 2, 2).lock(1, RESERVED, 1, 1);
        }
        made.pages(1, &[1]).sync(1);
        let found = made.derived();
        assert_eq!(found.commits.len(), 2);
        let said = found.notes.iter().find(|note| note.contains("began before the recording")).unwrap();
        assert!(said.ends_with("too many, by up to: 1"), "{said}");
    }
}

/// `journal_mode=off` in exclusive mode, which has its lock from the recovery of a hot journal; the program is killed.
#[test]
fn a_transaction_without_sync_and_unlock_may_be_none() {
    for is_killed in [true, false] {
        let mut made = Made::new();
        made.open(9, "/d/a.db-journal").close(9).pages(1, &[3, 4, 5]);
        if is_killed {
            made.push(CallKind::Released, 1, |_| {});
        } else {
            made.pages(1, &[1]).sync(1);
        }
        let found = made.derived();
        assert_eq!(found.commits.len(), 1);
        let said: Vec<_> = found.notes.iter().filter(|note| note.contains("too many")).collect();
        assert_eq!(said.len(), usize::from(is_killed), "{said:?}");
    }
}
