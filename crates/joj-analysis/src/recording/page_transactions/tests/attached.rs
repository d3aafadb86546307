//! Goal: commits over several databases are one where SQLite's COMMIT was one, and the result says where nothing shows it.
//! Method: recordings made by hand of what one thread and two processes do. Those of a real SQLite: crates/joj/tests/record_live_sqlite.rs.

use super::{Made, PAGE, RESERVED};
use crate::recording::call::CallKind;
use crate::recording::page_transactions::PageTransactions;

const READ: u32 = 0;
const WRITE: u32 = 1;
const UNLOCK: u32 = 2;
/// Description of `/d/b.db`; that of `/d/a.db` is 1. Those of journals and logs are 10 more, those of wal-indexes 20.
const B: u32 = 2;

/// How many databases each commit wrote, and notes about them.
fn told(found: &PageTransactions) -> (Vec<usize>, Vec<&str>) {
    let numbers = found.notes.iter().filter_map(|note| note.rsplit_once(": "));
    (
        found.commits.iter().map(|commit| commit.parts.len()).collect(),
        numbers.map(|(_, number)| number).collect(),
    )
}

impl Made {
    /// With `/d/b.db` too, and their journals or logs.
    fn of_two(ending: &str) -> Self {
        let mut made = Self::new();
        made.open(B, "/d/b.db").open(11, &format!("/d/a.db{ending}")).open(12, &format!("/d/b.db{ending}"));
        made.open(21, "/d/a.db-shm").open(22, "/d/b.db-shm").size(1, 8).size(B, 8);
        made
    }

    fn ask(&mut self, database: u32) -> &mut Self {
        self.lock(database, RESERVED, 1, WRITE)
    }

    fn give_back(&mut self, database: u32) -> &mut Self {
        self.lock(database, RESERVED + 1, 510, READ).lock(database, RESERVED - 1, 2, UNLOCK)
    }

    fn synced(&mut self, database: u32) -> &mut Self {
        self.pages(database, &[1, 5]).sync(database)
    }

    /// A header of zeroes.
    fn persist(&mut self, database: u32) -> &mut Self {
        self.write(database + 10, 0, 28)
    }

    fn commit_in_log(&mut self, database: u32, index: u64) -> &mut Self {
        self.frame(database + 10, index, 5, 8)
    }

    fn write_lock(&mut self, database: u32, kind: u32) -> &mut Self {
        self.lock(database + 20, 120, 1, kind)
    }
}

#[test]
fn journals_that_end_behind_all_pages_are_one_commits() {
    let mut made = Made::of_two("-journal");
    // In exclusive locking mode: the locks stay. Two commits, one over both, and one of b in the midst of one of a.
    made.ask(1).journal(11, 1).synced(1).persist(1).ask(B).journal(12, 1).synced(B).persist(B);
    made.journal(11, 1).journal(12, 1).synced(1).synced(B).persist(1).persist(B);
    made.journal(11, 1).journal(12, 1).synced(B).persist(B).synced(1).persist(1);
    made.push(CallKind::Close, 11, |_| {}).give_back(1);
    assert_eq!(told(&made.derived()), (vec![1, 1, 2, 1, 1], vec![]));
}

#[test]
fn without_a_journal_unlocks_show_one_commit_and_closes_do_not() {
    let mut made = Made::of_two("-journal");
    made.ask(1).ask(B).synced(1).synced(B).give_back(1).give_back(B);
    made.ask(1).synced(1).give_back(1).ask(B).synced(B).give_back(B);
    made.ask(1).ask(B).synced(B).give_back(B).synced(1).give_back(1);
    assert_eq!(told(&made.derived()), (vec![2, 1, 1, 1, 1], vec![]));

    // Exclusive: the second commit of b has no lock; the unlocks are those of connections that close.
    let mut made = Made::of_two("-journal");
    made.ask(B).synced(B).ask(1).synced(1).synced(B);
    for database in [1, B] {
        made.give_back(database).push(CallKind::Close, database, |_| {});
    }
    // Two pages had one sync.
    assert_eq!(told(&made.derived()), (vec![1, 1, 1], vec!["1", "2"]));
}

#[test]
fn a_log_without_locks_shows_two_commits_by_what_lies_between() {
    let mut made = Made::of_two("-wal");
    made.commit_in_log(1, 0).commit_in_log(B, 0).commit_in_log(B, 1).commit_in_log(1, 1).commit_in_log(1, 2);
    assert_eq!(told(&made.derived()), (vec![1, 1, 1, 1, 1], vec!["2"]), "ab, ba, a are the fewest");
    for is_checkpoint in [true, false] {
        let mut made = Made::of_two("-wal");
        made.open(30, "/d/other").commit_in_log(1, 0);
        let other = if is_checkpoint { 1 } else { 30 };
        made.write(other, 0, PAGE).commit_in_log(B, 0);
        assert_eq!(told(&made.derived()), (vec![1, 1], vec![]));
    }
}

#[test]
fn write_locks_show_one_commit_over_two_logs() {
    let mut made = Made::of_two("-wal");
    // In the midst of it waldio starts the thread that fills a log.
    made.write_lock(1, WRITE).write_lock(B, WRITE).commit_in_log(1, 0).push(CallKind::Fork, 0, |_| {});
    made.commit_in_log(B, 0).write_lock(1, UNLOCK).write_lock(B, UNLOCK);
    // One of b while a's transaction lasts.
    made.write_lock(1, WRITE).write_lock(B, WRITE).commit_in_log(B, 1).write_lock(B, UNLOCK);
    made.commit_in_log(1, 1).write_lock(1, UNLOCK);
    assert_eq!(told(&made.derived()), (vec![2, 1, 1], vec![]));
}

/// NORMAL: the checkpoint at the end syncs b's log, in which that thread's last commit has no sync.
#[test]
fn a_checkpoints_sync_is_no_commits() {
    for has_lock in [true, false] {
        let mut made = Made::of_two("-wal");
        for (database, index) in [(B, 0), (B, 1), (1, 0), (1, 1)] {
            made.write_lock(database, WRITE).commit_in_log(database, index).write_lock(database, UNLOCK);
        }
        if has_lock {
            made.lock(22, 121, 1, WRITE);
        }
        made.sync(12).pages(B, &[1, 5]).sync(B);
        let found = made.derived();
        assert_eq!(told(&found).0, [1, 1, 1, 1]);
        let ends: Vec<bool> = found.commits.windows(2).map(|two| two[0].end_ns < two[1].begin_ns).collect();
        assert_eq!(ends, [true; 3], "lock {has_lock}");
        assert!(found.commits.iter().all(|commit| commit.syncs.all() == 0));
    }
    // With group commit the sync comes behind the unlock, and no checkpoint follows.
    let mut made = Made::of_two("-wal");
    made.write_lock(1, WRITE).commit_in_log(1, 0).write_lock(1, UNLOCK).sync(11);
    assert_eq!(made.derived().commits[0].syncs.all(), 1);
}

/// Another process asks for the lock while this one has it, and gets it behind the unlock.
#[test]
fn a_lock_counts_from_when_it_is_granted() {
    let mut made = Made::of_two("-wal");
    let asks = |made: &mut Made, duration_ns| {
        made.push(CallKind::Lock, 21, |call| {
            (call.process, call.thread, call.duration_ns) = (2, 2, duration_ns);
            (call.offset, call.bytes, call.flags) = (120, 1, WRITE);
        });
    };
    made.write_lock(1, WRITE).frame(11, 0, 4, 0);
    asks(&mut made, 550);
    made.frame(11, 1, 5, 8).sync(11).write_lock(1, UNLOCK);
    let end = made.recording.calls.last().unwrap().end_ns();
    made.frame(11, 2, 6, 8);
    let last = made.recording.calls.len() - 3;
    for call in &mut made.recording.calls[last..] {
        (call.process, call.thread) = (2, 2);
    }
    let found = made.derived();
    let pages: Vec<&[u32]> = found.parts().map(|part| &*part.pages).collect();
    assert_eq!(pages, [&[4, 5][..], &[6]]);
    assert_eq!(found.commits[0].end_ns, end);
    assert!(found.commits[1].begin_ns > end);
}
