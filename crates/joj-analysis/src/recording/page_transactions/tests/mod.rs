//! Goal: commits and pages are those that the program made.
//! Method: recordings made by hand. Published ones and those of a real SQLite: crates/joj/tests/replay_transactions.rs.
//!
//! ```text
//! attached   commits over several databases
//! logs       frames of a log
//! rollbacks  what is none of a commit
//! stretches  what may be several commits
//! strangers  what something else writes, and what has no name any more
//! told       what the result says of commits that are not told
//! waits      which commit a replay makes behind which
//! ```

mod attached;
mod logs;
mod rollbacks;
mod stretches;
mod strangers;
mod told;
mod waits;

use super::derive::{DeriveError, derive};
use super::outcome::FrameInterval;
use super::plan::{CommitWait, TransactionPlan, TransactionPlanError};
use super::{PageOne, PageTransactions, RecordedMode};
use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{O_CREAT, O_EXCL, O_RDWR};

/// A recording made by hand: each call takes 10 ns and begins 100 ns after the one before.
#[derive(Default)]
struct Made {
    recording: Recording,
    thread: u32,
}

const PAGE: u64 = 4096;
const RESERVED: u64 = 0x4000_0001;

impl Made {
    /// With `/d/a.db` as description 1.
    fn new() -> Self {
        let mut made = Self { thread: 1, ..Self::default() };
        made.open(1, "/d/a.db");
        made
    }

    fn push(&mut self, kind: CallKind, description: u32, change: impl Fn(&mut RecordedCall)) -> &mut Self {
        let begin_ns = self.recording.calls.len() as u64 * 100;
        let (process, thread) = (1, self.thread);
        let mut call = RecordedCall {
            begin_ns,
            duration_ns: 10,
            kind,
            process,
            thread,
            description,
            ..RecordedCall::default()
        };
        change(&mut call);
        self.recording.calls.push(call);
        self
    }

    fn open(&mut self, description: u32, path: &str) -> &mut Self {
        let path = self.recording.texts.keep(path);
        self.push(CallKind::Open, description, |call| (call.path, call.flags) = (path, O_RDWR | O_CREAT))
    }

    /// SQLite closes a journal before it unlinks it.
    fn unlink(&mut self, path: &str) -> &mut Self {
        let kept = self.recording.texts.keep(path);
        let last =
            self.recording.calls.iter().rposition(|call| call.kind == CallKind::Open && call.path == kept);
        let calls = &self.recording.calls[last.unwrap_or(0)..];
        let description = calls.first().map_or(0, |opened| opened.description);
        let is_closed =
            calls.iter().any(|call| call.kind == CallKind::Close && call.description == description);
        if last.is_some() && path.ends_with("-journal") && !is_closed {
            self.close(description);
        }
        self.unlink_alone(path)
    }

    /// Another program unlinks it.
    fn unlink_alone(&mut self, path: &str) -> &mut Self {
        let path = self.recording.texts.keep(path);
        self.push(CallKind::Unlink, 0, |call| call.path = path)
    }

    fn write(&mut self, description: u32, offset: u64, bytes: u64) -> &mut Self {
        self.push(CallKind::Pwrite, description, |call| {
            (call.offset, call.bytes, call.result) = (offset, bytes, bytes.cast_signed());
        })
    }

    fn pages(&mut self, description: u32, pages: &[u64]) -> &mut Self {
        for page in pages {
            self.write(description, (page - 1) * PAGE, PAGE);
        }
        self
    }

    /// A journal with its header and records of so many pages.
    fn journal(&mut self, description: u32, records: u64) -> &mut Self {
        self.write(description, 0, 512);
        for record in 0..records {
            let at = 512 + record * (PAGE + 8);
            self.write(description, at, 4).write(description, at + 4, PAGE).write(
                description,
                at + 4 + PAGE,
                4,
            );
        }
        self
    }

    fn sync(&mut self, description: u32) -> &mut Self {
        self.push(CallKind::Fdatasync, description, |_| {})
    }

    fn lock(&mut self, description: u32, offset: u64, bytes: u64, kind: u32) -> &mut Self {
        self.push(CallKind::Lock, description, |call| {
            (call.offset, call.bytes, call.flags) = (offset, bytes, kind);
        })
    }

    /// A frame of a log with its row; `commit`: pages of the database after it, 0 where it ends no transaction.
    fn frame(&mut self, description: u32, index: u64, page: u64, commit: u32) -> &mut Self {
        let at = 32 + index * (PAGE + 24);
        self.write(description, at, 24);
        self.push(CallKind::LogFrame, description, |call| {
            (call.offset, call.bytes, call.flags) = (at, page, commit);
        });
        self.write(description, at + 24, PAGE)
    }

    fn first_page(&mut self, description: u32, pages: u64, free: i64) -> &mut Self {
        self.push(CallKind::FirstPage, description, |call| {
            (call.offset, call.bytes, call.result) = (PAGE, pages, free);
        })
    }

    fn size(&mut self, description: u32, pages: u64) -> &mut Self {
        self.push(CallKind::Fstat, description, |call| call.bytes = pages * PAGE)
    }

    fn derived(&self) -> PageTransactions {
        derive(&self.recording).unwrap()
    }
}

/// Of each commit its pages, its size before and after, its mode.
fn told(found: &PageTransactions) -> Vec<(Vec<u32>, u32, u32, RecordedMode)> {
    found.parts().map(|part| (part.pages.clone(), part.pages_before, part.pages_after, part.mode)).collect()
}

#[test]
fn the_journals_life_bounds_a_commit_and_tells_the_mode() {
    let mut made = Made::new();
    made.size(1, 8);
    made.open(2, "/d/a.db-journal").journal(2, 2).sync(2).pages(1, &[1, 5]).sync(1);
    made.unlink("/d/a.db-journal");
    made.open(3, "/d/a.db-journal").journal(3, 1).sync(3).pages(1, &[1, 9]).sync(1);
    made.push(CallKind::Ftruncate, 3, |_| {}).sync(3);
    made.journal(3, 2).sync(3).pages(1, &[1, 9]).sync(1).write(3, 0, 28).sync(3);
    // Rolled back: nothing of the database was written.
    made.journal(3, 1).write(3, 0, 28);
    let found = made.derived();
    assert_eq!(
        told(&found),
        [
            (vec![1, 5], 8, 8, RecordedMode::Delete),
            (vec![1, 9], 8, 9, RecordedMode::Truncate),
            (vec![1, 9], 9, 9, RecordedMode::Persist),
        ]
    );
    let syncs: Vec<u64> = found.commits.iter().map(|commit| commit.syncs.fdatasync).collect();
    assert_eq!((syncs, found.syncs.all()), (vec![2, 3, 3], 8));
    let first = &found.commits[0];
    assert_eq!((first.begin_ns, first.write_ns), (200, 200), "the journal's creation");
    assert_eq!(first.end_ns, made.recording.calls[first_unlink(&made.recording)].end_ns());
    let bytes = 512 + 2 * (PAGE + 8) + 2 * PAGE;
    assert_eq!(first.written_bytes, bytes);
}

fn first_unlink(recording: &Recording) -> usize {
    recording.calls.iter().position(|call| call.kind == CallKind::Unlink).unwrap()
}

#[test]
fn without_sizes_pages_without_a_record_in_the_journal_are_new() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-journal").journal(2, 3).pages(1, &[1, 5, 7, 40, 41]).unlink("/d/a.db-journal");
    // 42 was taken and given back in one commit; 43 is new.
    made.open(3, "/d/a.db-journal").journal(3, 2).pages(1, &[1, 5, 43]).unlink("/d/a.db-journal");
    // Without a journal nothing is new: 60 was there, and no commit wrote it.
    made.pages(1, &[1, 60]);
    let found = made.derived();
    let sizes: Vec<(u32, u32)> = told(&found).iter().map(|told| (told.1, told.2)).collect();
    assert_eq!(sizes, [(39, 41), (42, 43), (60, 60)]);
    let plan = TransactionPlan::of(&found).unwrap();
    // Three new pages; 39 rows that were there, but page 1, and those of 42 and of 44 to 60.
    assert_eq!(plan.databases[0].rows, 59 - 3);
    let parts: Vec<_> =
        plan.commits.iter().map(|commit| (commit.parts[0].updates.len(), commit.parts[0].inserts)).collect();
    assert_eq!(parts, [(1, 2), (0, 1), (1, 0)], "one page of those that grow is the parent");
}

#[test]
fn a_commit_may_go_on_in_another_thread_of_its_process() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-journal").journal(2, 2).sync(2).pages(1, &[1]);
    made.thread = 2;
    made.pages(1, &[5]).sync(1).unlink("/d/a.db-journal");
    let found = made.derived();
    assert_eq!(told(&found), [(vec![1, 5], 5, 5, RecordedMode::Delete)]);
    assert_eq!(found.commits[0].syncs.all(), 2);
}

#[test]
fn numbers_that_no_kernel_returns_are_not_believed() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-journal");
    made.write(1, 0, 1 << 62).write(1, u64::MAX - 8, PAGE).pages(1, &[1]);
    made.push(CallKind::Ftruncate, 1, |call| call.bytes = u64::MAX);
    let found = made.derived();
    assert_eq!(told(&found).len(), 1);
    let plan = TransactionPlan::of(&found).unwrap();
    assert!(plan.database_bytes() >= PAGE);
}

#[test]
fn a_database_that_is_smaller_and_grows_again_has_its_rows_still() {
    let mut made = Made::new();
    made.size(1, 8);
    made.open(2, "/d/a.db-journal").journal(2, 3).pages(1, &[1, 3]);
    made.push(CallKind::Ftruncate, 1, |call| call.bytes = 6 * PAGE).sync(1).unlink("/d/a.db-journal");
    made.open(3, "/d/a.db-journal").journal(3, 2).pages(1, &[1, 3, 7]).sync(1).unlink("/d/a.db-journal");
    let found = made.derived();
    assert_eq!(told(&found).iter().map(|told| (told.1, told.2)).collect::<Vec<_>>(), [(8, 6), (6, 7)]);
    let plan = TransactionPlan::of(&found).unwrap();
    assert_eq!((plan.databases[0].rows, plan.shrinks_left_out), (7, 1));
    let part = &plan.commits[1].parts[0];
    assert_eq!((&*part.updates, part.inserts), (&[2, 6][..], 0));
}

#[test]
fn a_database_that_nothing_syncs_writes_page_one_in_each_commit() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-journal");
    made.pages(1, &[1, 3]).pages(1, &[1, 4]).pages(1, &[1]);
    let found = made.derived();
    assert_eq!(found.commits.len(), 3);
    assert!(found.parts().all(|part| part.mode == RecordedMode::None && part.page_one == PageOne::Unknown));
    assert_eq!(FrameInterval::of(&found), FrameInterval { low: 2, high: 5 });
    let plan = TransactionPlan::of(&found).unwrap();
    let sets: Vec<bool> = plan.commits.iter().map(|commit| commit.parts[0].sets_page_one).collect();
    assert_eq!(sets, [false, false, true], "a commit of page 1 alone has to change it");
}

#[test]
fn locks_bound_a_commit_where_they_are_recorded() {
    let mut made = Made::new();
    made.lock(1, RESERVED, 1, 1).journal_of_two_segments();
    made.lock(1, RESERVED + 1, 510, 0).lock(1, RESERVED - 1, 2, 2);
    // The lock alone: nothing is written.
    made.lock(1, RESERVED, 1, 1).lock(1, 0, 0, 2);
    let found = made.derived();
    assert_eq!(told(&found), [(vec![1, 3, 4], 4, 4, RecordedMode::Delete)]);
    let commit = &found.commits[0];
    assert_eq!(commit.begin_ns, 110, "the end of the lock's call");
    let unlock = made.recording.calls.iter().find(|call| call.kind == CallKind::Lock && call.flags == 2);
    assert_eq!(commit.end_ns, unlock.unwrap().end_ns());
    assert_eq!(commit.write_ns, 200, "the journal's creation");
    let plan = TransactionPlan::of(&found).unwrap();
    assert_eq!(plan.commits[0].hold_ns, commit.write_ns - commit.begin_ns);
}

impl Made {
    /// A transaction whose cache is too small: pages are written to the database before it ends, one of them twice.
    fn journal_of_two_segments(&mut self) -> &mut Self {
        self.open(2, "/d/a.db-journal").journal(2, 2).sync(2).pages(1, &[3, 4]);
        self.write(2, 9216, 512)
            .write(2, 9728, 4 + PAGE + 4)
            .sync(2)
            .pages(1, &[1, 4])
            .sync(1)
            .unlink("/d/a.db-journal")
    }
}

#[test]
fn frame_heads_tell_commits_and_pages_of_a_log() {
    let mut made = Made::new();
    made.first_page(1, 10, 0);
    made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm");
    // NORMAL: no sync. The second commit grows the database, the third has its locks.
    made.write(2, 0, 32).frame(2, 0, 7, 0).frame(2, 1, 9, 10);
    made.frame(2, 2, 1, 0).frame(2, 3, 11, 11);
    made.lock(3, 120, 1, 1).frame(2, 4, 7, 11).lock(3, 120, 1, 2);
    // A checkpoint writes the database: no commit.
    made.sync(2).pages(1, &[1, 7, 9, 11]).sync(1);
    let found = made.derived();
    let wal = RecordedMode::Wal;
    assert_eq!(told(&found), [(vec![7, 9], 10, 10, wal), (vec![1, 11], 10, 11, wal), (vec![7], 11, 11, wal)]);
    let ones: Vec<PageOne> = found.parts().map(|part| part.page_one).collect();
    assert_eq!(ones, [PageOne::Unchanged, PageOne::Changed, PageOne::Unchanged]);
    assert_eq!((found.commits[1].syncs.all(), found.syncs.all()), (0, 2));
    assert_eq!(FrameInterval::of(&found), FrameInterval { low: 5, high: 5 });
}

#[test]
fn a_write_of_several_frames_may_end_several_commits() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-wal").write(2, 0, 32 + 3 * (PAGE + 24));
    for (index, page, commit) in [(0, 5, 0), (1, 6, 9), (2, 5, 9)] {
        made.push(CallKind::LogFrame, 2, |call| {
            (call.offset, call.bytes, call.flags) = (32 + index * (PAGE + 24), page, commit);
        });
    }
    made.sync(2);
    let found = made.derived();
    let pages: Vec<Vec<u32>> = found.parts().map(|part| part.pages.clone()).collect();
    assert_eq!(pages, [vec![5, 6], vec![5]]);
}

#[test]
fn without_frame_heads_syncs_end_the_commits_of_a_log() {
    let frames = |made: &mut Made, from: u64, count: u64| {
        for index in from..from + count {
            let at = 32 + index * (PAGE + 24);
            made.write(2, at, 24).write(2, at + 24, PAGE);
        }
    };
    let mut made = Made::new();
    made.open(2, "/d/a.db-wal").write(2, 0, 32).sync(2);
    frames(&mut made, 0, 2);
    made.sync(2);
    frames(&mut made, 2, 3);
    // One of them is written again.
    made.write(2, 32 + 3 * (PAGE + 24) + 24, PAGE);
    made.sync(2).sync(2).pages(1, &[1, 2, 3]).sync(1);
    let found = made.derived();
    let parts: Vec<(u64, bool)> = found.parts().map(|part| (part.page_count(), part.pages_known)).collect();
    assert_eq!(parts, [(2, false), (3, false)]);
    let plan = TransactionPlan::of(&found).unwrap();
    let rows: Vec<&[u32]> = plan.commits.iter().map(|commit| &*commit.parts[0].updates).collect();
    assert_eq!((plan.databases[0].rows, rows), (3, vec![&[1, 2][..], &[1, 2, 3]]));

    // Frames of a process that was killed, before its sync.
    frames(&mut made, 5, 2);
    made.push(CallKind::Released, 2, |_| {});
    assert_eq!(made.derived().commits.len(), 2);

    // NORMAL: the only syncs are the checkpoint's, and those of the log's header.
    let mut made = Made::new();
    made.open(2, "/d/a.db-wal");
    for _ in 0..2 {
        made.write(2, 0, 32).sync(2);
        frames(&mut made, 0, 5);
        made.sync(2).pages(1, &[1, 2, 3]).sync(1);
    }
    made.write(2, 0, 32).sync(2);
    frames(&mut made, 0, 5);
    assert_eq!(derive(&made.recording), Err(DeriveError::NoBounds("/d/a.db".to_owned())));
    assert_eq!(derive(&Made::new().recording), Err(DeriveError::NoCommit));
}

/// VACUUM writes the new database as pages of the old size, and cuts it to what the new pages need.
#[test]
fn a_vacuum_that_changes_the_size_of_pages_is_a_commit() {
    let mut made = Made::new();
    for bytes in [2 * 1024, 3 * PAGE / 2] {
        made.open(2, "/d/a.db-journal").journal(2, 2).sync(2).pages(1, &[1, 2]).first_page(1, 2, 0);
        made.push(CallKind::Ftruncate, 1, |call| call.bytes = bytes).sync(1).unlink("/d/a.db-journal");
    }
    assert_eq!(made.derived().commits.len(), 2);
}

/// SQLite makes it with O_EXCL, and looks for no journal of it: for temporary tables, and for what VACUUM writes back.
#[test]
fn a_temporary_file_of_sqlites_is_no_database() {
    let mut made = Made::new();
    let path = made.recording.texts.keep("/tmp/etilqs_1234");
    made.push(CallKind::Open, 3, |call| (call.path, call.flags) = (path, O_RDWR | O_CREAT | O_EXCL));
    made.unlink("/tmp/etilqs_1234").pages(3, &[1, 2, 3]).first_page(3, 3, 0);
    made.open(2, "/d/a.db-journal").journal(2, 1).sync(2).pages(1, &[1]).sync(1).unlink("/d/a.db-journal");
    made.pages(3, &[1, 2]).first_page(3, 3, 0);
    let found = made.derived();
    let databases: Vec<&str> = found.databases.iter().map(|database| database.path.as_str()).collect();
    assert_eq!((databases, found.commits.len()), (vec!["/d/a.db"], 1));
}

#[test]
fn page_one_changed_where_the_free_list_did() {
    let mut made = Made::new();
    made.first_page(1, 8, 2);
    for (journal, free) in [(2, 2), (3, 1)] {
        made.open(journal, "/d/a.db-journal").journal(journal, 2).pages(1, &[1]).first_page(1, 8, free);
        made.pages(1, &[5]).unlink("/d/a.db-journal");
    }
    let ones: Vec<PageOne> = made.derived().parts().map(|part| part.page_one).collect();
    assert_eq!(ones, [PageOne::Unchanged, PageOne::Changed]);
}

#[test]
fn commits_of_attached_databases_are_one_and_connections_take_turns() {
    let mut made = Made::new();
    made.open(2, "/d/b.db").size(1, 8).size(2, 8);
    made.open(3, "/d/a.db-journal").journal(3, 2).open(4, "/d/b.db-journal").journal(4, 2);
    made.pages(1, &[1, 2]).sync(1).pages(2, &[1, 3]).sync(2);
    made.unlink("/d/a.db-journal").unlink("/d/b.db-journal");
    // Another connection of another thread, to one of them.
    made.thread = 2;
    made.open(5, "/d/b.db").open(6, "/d/b.db-journal").journal(6, 2).pages(5, &[1, 4]).sync(5);
    made.unlink("/d/b.db-journal");
    let found = made.derived();
    let parts: Vec<usize> = found.commits.iter().map(|commit| commit.parts.len()).collect();
    assert_eq!(parts, [2, 1]);
    let plan = TransactionPlan::of(&found).unwrap();
    assert_eq!(plan.connections, [vec![0, 1], vec![1]]);
    assert_eq!(plan.commits[1].waits, [CommitWait { connection: 0, commits: 1 }]);
    assert_eq!(plan.commits[1].ready_ns, found.commits[0].end_ns);
    assert_eq!((plan.commits[1].parts[0].database, &*plan.commits[1].parts[0].updates), (0, &[3][..]));

    let mut many = found.clone();
    let part = many.commits[0].parts[0].clone();
    many.databases = vec![many.databases[0].clone(); 12];
    many.commits[0].parts = (0..12).map(|database| super::CommitPart { database, ..part.clone() }).collect();
    let error = TransactionPlan::of(&many).unwrap_err();
    assert_eq!(error, TransactionPlanError::TooManyDatabases { process: 1, databases: 12 });
}

#[test]
fn a_directorys_sync_is_the_latest_commits() {
    let mut made = Made::new();
    made.open(2, "/d/b.db").open(9, "/d");
    for (database, journal, path) in [(1, 3, "/d/a.db-journal"), (2, 4, "/d/b.db-journal")] {
        made.open(journal, path).journal(journal, 2).sync(journal).sync(9);
        made.pages(database, &[1, 2]).sync(database).unlink(path);
    }
    let found = made.derived();
    let syncs: Vec<u64> = found.commits.iter().map(|commit| commit.syncs.all()).collect();
    assert_eq!((syncs, found.databases.len()), (vec![3, 3], 2));
}

#[test]
fn a_connection_that_is_over_leaves_its_place_to_the_next() {
    let mut made = Made::new();
    for (number, thread) in [(10, 1), (20, 2), (30, 1)] {
        made.thread = thread;
        made.open(number, "/d/a.db").open(number + 1, "/d/a.db-journal").journal(number + 1, 2);
        made.pages(number, &[1, 3]).sync(number).unlink("/d/a.db-journal");
    }
    let plan = TransactionPlan::of(&made.derived()).unwrap();
    assert_eq!(plan.connections, [vec![0]]);
    assert_eq!(plan.commits.iter().map(|commit| commit.connection).collect::<Vec<_>>(), [0, 0, 0]);
}
