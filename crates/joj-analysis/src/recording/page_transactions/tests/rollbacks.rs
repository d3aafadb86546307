//! Goal: what was rolled back is no commit.
//! Method: recordings made by hand of what SQLite does to a journal. Those of a real SQLite: crates/joj/tests/record_live_rollbacks.rs.

use super::{Made, PAGE, RESERVED, told};
use crate::recording::call::CallKind;
use crate::recording::flags::O_RDWR;
use crate::recording::page_transactions::RecordedMode;
use crate::recording::page_transactions::derive::{DeriveError, derive};

impl Made {
    fn read(&mut self, description: u32, offset: u64, bytes: u64) -> &mut Self {
        self.push(CallKind::Pread, description, |call| {
            (call.offset, call.bytes, call.result) = (offset, bytes, bytes.cast_signed());
        })
    }

    /// The journal's header is read, and the database is cut to what it was.
    fn header_read(&mut self, journal: u32, pages: u64) -> &mut Self {
        self.read(journal, 0, 8).read(journal, 8, 4).read(journal, 12, 4).read(journal, 16, 4).size(1, 90);
        self.push(CallKind::Ftruncate, 1, |call| call.bytes = pages * PAGE)
    }

    /// Records of the journal go back to the database.
    fn written_back(&mut self, journal: u32, database: u32, records: &[(u64, u64)]) -> &mut Self {
        for (record, page) in records {
            let at = 512 + record * (PAGE + 8);
            self.read(journal, at, 4).read(journal, at + 4, PAGE).read(journal, at + 4 + PAGE, 4);
            self.pages(database, &[*page]);
        }
        self
    }

    /// A commit of pages 1 and 5.
    fn committed(&mut self, journal: u32) -> &mut Self {
        self.open(journal, "/d/a.db-journal").journal(journal, 2).sync(journal).pages(1, &[1, 5]).sync(1);
        self.unlink("/d/a.db-journal")
    }
}

#[test]
fn a_rollback_that_reads_the_journal_is_no_commit() {
    for is_locked in [false, true] {
        let mut made = Made::new();
        let lock = |made: &mut Made, kind| {
            if is_locked {
                made.lock(1, RESERVED, 1, kind);
            }
        };
        made.size(1, 8);
        lock(&mut made, 1);
        // Page 4 was free and has no record; 9 and 10 are new.
        made.open(2, "/d/a.db-journal").journal(2, 2).sync(2).pages(1, &[3, 4, 5, 9, 10]);
        made.header_read(2, 8).written_back(2, 1, &[(0, 3), (1, 5)]).sync(1).unlink("/d/a.db-journal");
        lock(&mut made, 2);
        lock(&mut made, 1);
        let begin = made.recording.calls.len() as u64 * 100;
        made.committed(3);
        lock(&mut made, 2);
        let found = made.derived();
        assert_eq!(told(&found), [(vec![1, 5], 8, 8, RecordedMode::Delete)], "locks: {is_locked}");
        assert_eq!(found.commits[0].write_ns, begin, "locks: {is_locked}");
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}

/// The pages never left the cache, so none is written back: the next write is the next commit's.
#[test]
fn a_rollback_of_what_was_not_written_takes_no_page_from_the_next_commit() {
    let mut made = Made::new();
    made.size(1, 8).lock(1, RESERVED, 1, 1).open(2, "/d/a.db-journal").journal(2, 1);
    made.read(2, 0, 8).read(2, 8, 4).read(2, 512, 4).read(2, 516, PAGE).read(2, 516 + PAGE, 4);
    made.unlink("/d/a.db-journal").lock(1, RESERVED, 1, 2);
    made.lock(1, RESERVED, 1, 1).open(3, "/d/a.db-journal").journal(3, 1).sync(3);
    made.pages(1, &[1]).sync(1).unlink("/d/a.db-journal").lock(1, RESERVED, 1, 2);
    assert_eq!(told(&made.derived()), [(vec![1], 8, 8, RecordedMode::Delete)]);
}

#[test]
fn a_rollback_is_one_whatever_size_pages_get_afterwards() {
    let mut made = Made::new();
    made.size(1, 8).lock(1, RESERVED, 1, 1);
    made.open(2, "/d/a.db-journal").journal(2, 2).sync(2).pages(1, &[3, 5, 9]);
    made.header_read(2, 8).written_back(2, 1, &[(0, 3), (1, 5)]).sync(1).unlink("/d/a.db-journal");
    made.lock(1, RESERVED, 1, 2).lock(1, RESERVED, 1, 1).committed(3).lock(1, RESERVED, 1, 2);
    made.push(CallKind::FirstPage, 1, |call| call.offset = 1024);
    assert_eq!(made.derived().commits.len(), 1);
}

#[test]
fn a_hot_journal_is_rolled_back_by_the_next_process() {
    for is_read in [true, false] {
        let mut made = Made::new();
        made.size(1, 8).lock(1, RESERVED, 1, 1);
        made.open(2, "/d/a.db-journal").journal(2, 2).sync(2).pages(1, &[3, 5]);
        // Killed. The other process is thread 2 of process 2.
        let first = made.recording.calls.len();
        made.open(4, "/d/a.db").open(5, "/d/a.db-journal");
        // SQLite opens it without O_CREAT.
        made.recording.calls[first + 1].flags = O_RDWR;
        if is_read {
            made.header_read(5, 8).written_back(5, 4, &[(0, 3), (1, 5)]).sync(4).unlink("/d/a.db-journal");
        }
        made.lock(4, RESERVED, 1, 1).committed(6).lock(4, RESERVED, 1, 2);
        for call in &mut made.recording.calls[first..] {
            (call.process, call.thread) = (2, 2);
        }
        let found = made.derived();
        assert_eq!(told(&found), [(vec![1, 5], 8, 8, RecordedMode::Delete)], "read: {is_read}");
        // Nothing shows here how the first one went on.
        let unknown = "Transactions whose journal has no end in the recording, or whose frames or pages no sync, are not counted as commits: 1";
        assert_eq!(found.notes, if is_read { vec![] } else { vec![unknown.to_owned()] });
    }
}

#[test]
fn pages_since_a_savepoint_that_was_rolled_back_are_none_of_the_commit() {
    let mut made = Made::new();
    made.size(1, 8);
    made.open(2, "/d/a.db-journal").journal(2, 3).sync(2).pages(1, &[3, 5, 6, 9]);
    made.written_back(2, 1, &[(1, 5), (2, 6)]).pages(1, &[1, 6]).sync(1);
    made.push(CallKind::Ftruncate, 1, |call| call.bytes = 8 * PAGE).unlink("/d/a.db-journal");
    assert_eq!(told(&made.derived()), [(vec![1, 3, 6], 8, 8, RecordedMode::Delete)]);
}

#[test]
fn without_a_journal_a_page_written_twice_may_be_a_rollback() {
    let mut made = Made::new();
    made.open(9, "/d/a.db-journal").unlink("/d/a.db-journal");
    made.lock(1, RESERVED, 1, 1).pages(1, &[3, 5, 1, 3, 5]).sync(1).lock(1, RESERVED, 1, 2);
    made.lock(1, RESERVED, 1, 1).pages(1, &[1, 3, 9]);
    made.push(CallKind::Ftruncate, 1, |call| call.bytes = 8 * PAGE).pages(1, &[3]).lock(1, RESERVED, 1, 2);
    // Page 1 comes with the commit: this one was given up (journal_mode=off).
    made.lock(1, RESERVED, 1, 1).pages(1, &[3, 5]).lock(1, RESERVED, 1, 2);
    assert_eq!(derive(&made.recording), Err(DeriveError::NotShown(5 + 4)), "each write");
    // Atomic writes of a filesystem write page 1 twice.
    made.lock(1, RESERVED, 1, 1).pages(1, &[1, 1, 5]).sync(1).lock(1, RESERVED, 1, 2);
    let found = made.derived();
    assert_eq!(found.commits.len(), 1);
    assert!(found.notes[0].contains("a rollback does so, too") && found.notes[0].ends_with(": 5"));
    assert!(found.notes[1].ends_with("too few, by up to: 4"), "{:?}", found.notes);
}
