//! Goal: each frame of a log counts once, in the commit that its mark ends.
//! Method: recordings made by hand of what SQLite and waldio do to a log. Those of a real SQLite:
//! crates/joj/tests/record_live_sqlite.rs.

use super::{Made, PAGE, RESERVED};
use crate::recording::call::CallKind;
use crate::recording::flags::RWF_APPEND;
use crate::recording::page_transactions::PageTransactions;
use crate::recording::page_transactions::outcome::FrameInterval;

/// Frames that one write brings: index, page, commit.
type Heads = &'static [(u64, u64, u32)];

/// Of each commit its pages and how many frames they took.
fn frames(found: &PageTransactions) -> Vec<(Vec<u32>, u64)> {
    found.parts().map(|part| (part.pages.clone(), part.frames)).collect()
}

impl Made {
    /// The head of a frame alone: SQLite writes its checksums anew.
    fn head(&mut self, description: u32, index: u64, page: u64, commit: u32) -> &mut Self {
        let at = 32 + index * (PAGE + 24);
        self.write(description, at, 24);
        self.push(CallKind::LogFrame, description, |call| {
            (call.offset, call.bytes, call.flags) = (at, page, commit);
        })
    }

    /// Zeros that waldio appends ahead of need.
    fn fill(&mut self, description: u32, offset: u64) -> &mut Self {
        self.push(CallKind::Pwritev, description, |call| {
            (call.offset, call.bytes, call.result, call.flags) = (offset, 8 * PAGE, 8 * 4096, RWF_APPEND);
        })
    }

    /// A frame with a mark, with or without its row.
    fn frame_of(&mut self, description: u32, index: u64, has_head: bool) -> &mut Self {
        match has_head {
            true => self.frame(description, index, 5, 9),
            false => self.write(description, 32 + index * (PAGE + 24), PAGE + 24),
        }
    }

    /// One write that brings frames, from `offset` on.
    fn frames_at_once(&mut self, description: u32, offset: u64, heads: Heads) -> &mut Self {
        let end = 32 + (heads[heads.len() - 1].0 + 1) * (PAGE + 24);
        self.write(description, offset, end.next_multiple_of(PAGE) - offset);
        for (index, page, commit) in heads {
            let at = 32 + index * (PAGE + 24);
            self.push(CallKind::LogFrame, description, |call| {
                (call.offset, call.bytes, call.flags) = (at, *page, *commit);
            });
        }
        self
    }
}

#[test]
fn a_transaction_that_outgrows_its_cache_has_each_frame_once() {
    for is_locked in [true, false] {
        let mut made = Made::new();
        made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm").write(2, 0, 32);
        let locked = |made: &mut Made, kind| {
            if is_locked {
                made.lock(3, 120, 1, kind);
            }
        };
        locked(&mut made, 1);
        made.frame(2, 0, 5, 0).frame(2, 1, 6, 0).frame(2, 2, 7, 0);
        // Page 6 changes once more: its frame gets it. Page 5, the commit's last, gets a second frame. Then the checksums from 6 on.
        made.write(2, 32 + PAGE + 24 + 24, PAGE).frame(2, 3, 5, 9);
        made.head(2, 1, 6, 0).head(2, 2, 7, 0).head(2, 3, 5, 9).sync(2);
        locked(&mut made, 2);
        // Frames of a savepoint are rolled back, and their places get other pages.
        locked(&mut made, 1);
        made.frame(2, 4, 8, 0).frame(2, 5, 9, 0).frame(2, 6, 10, 0).frame(2, 5, 3, 9).sync(2);
        locked(&mut made, 2);
        // All of this is rolled back, and the next transaction begins in the same place.
        locked(&mut made, 1);
        made.frame(2, 6, 20, 0).frame(2, 7, 21, 0).frame(2, 8, 22, 0);
        locked(&mut made, 2);
        locked(&mut made, 1);
        made.frame(2, 6, 4, 0).frame(2, 7, 5, 9).sync(2);
        locked(&mut made, 2);
        // The log is begun anew, with the same frames in the same places; the program ends before its commit.
        made.pages(1, &[3, 4]).sync(1);
        locked(&mut made, 1);
        made.write(2, 0, 32).sync(2).frame(2, 0, 5, 0).frame(2, 1, 6, 9).sync(2);
        locked(&mut made, 2);
        locked(&mut made, 1);
        made.frame(2, 2, 7, 0);
        let found = made.derived();
        let expected = [(vec![5, 6, 7], 4), (vec![3, 8], 2), (vec![4, 5], 2), (vec![5, 6], 2)];
        assert_eq!(frames(&found), expected, "locked: {is_locked}");
        assert_eq!(FrameInterval::of(&found), FrameInterval { low: 9, high: 9 }, "locked: {is_locked}");
        assert!(found.commits.iter().all(|commit| commit.syncs.all() >= 1), "{:?}", found.commits);
    }
}

#[test]
fn a_frame_that_fills_a_sector_is_no_second_commit() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm").write(2, 0, 32).lock(3, 120, 1, 1);
    made.frame(2, 0, 5, 0).frame(2, 1, 6, 9).frame(2, 2, 6, 9).sync(2).frame(2, 3, 6, 9).lock(3, 120, 1, 2);
    made.lock(3, 120, 1, 1).frame(2, 4, 6, 9).lock(3, 120, 1, 2);
    assert_eq!(frames(&made.derived()), [(vec![5, 6], 4), (vec![6], 1)]);
}

/// What comes behind a transaction.
type Follows<'a> = &'a dyn Fn(&mut Made);

/// What happens to a transaction in a log of strace's text, whose frames have no heads.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// A sync and the unlock.
    Commit,
    /// The unlock alone: with NORMAL a commit, or a rollback.
    Unlock,
    /// A sync, and then the process is killed.
    KilledBehindSync,
    /// The process is killed.
    Killed,
}

impl Made {
    /// A transaction of so many frames, in a process of its own.
    fn in_text(&mut self, index: u64, frames: u64, end: End) -> &mut Self {
        self.thread += 1;
        self.lock(3, 120, 1, 1);
        for frame in index..index + frames {
            let at = 32 + frame * (PAGE + 24);
            self.write(2, at, 24).write(2, at + 24, PAGE);
        }
        if matches!(end, End::Commit | End::KilledBehindSync) {
            self.sync(2);
        }
        if matches!(end, End::Commit | End::Unlock) {
            self.lock(3, 120, 1, 2);
        }
        let thread = self.thread;
        for call in self.recording.calls.iter_mut().filter(|call| call.thread == thread) {
            call.process = thread;
        }
        self
    }
}

#[test]
fn where_the_next_transaction_begins_tells_whether_the_last_one_was_a_commit() {
    for end in [End::Unlock, End::KilledBehindSync, End::Killed] {
        let log = |made: &mut Made| {
            made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm").write(2, 0, 32).in_text(0, 2, End::Commit);
        };
        // In its place, and behind it.
        let mut made = Made::new();
        log(&mut made);
        made.in_text(2, 3, end).in_text(2, 1, end).in_text(2, 4, End::Commit);
        made.in_text(6, 5, end).in_text(11, 1, End::Commit);
        let found = made.derived();
        assert_eq!(frames(&found).iter().map(|part| part.1).collect::<Vec<_>>(), [2, 4, 5, 1]);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
        // The log is begun anew, behind a checkpoint and without one; or nothing follows.
        let begun_anew = |made: &mut Made| {
            made.thread += 1;
            made.lock(3, 120, 1, 1).write(2, 0, 32);
        };
        let written_back = |made: &mut Made| {
            made.lock(3, 120, 1, 1).lock(3, 120, 1, 2).pages(1, &[3, 4]).sync(1);
            begun_anew(made);
        };
        let nothing = |_: &mut Made| {};
        let is_counted = usize::from(end != End::Killed);
        let cases: [(Follows<'_>, usize); 3] =
            [(&written_back, is_counted), (&begun_anew, 0), (&nothing, is_counted)];
        for (case, (follows, counted)) in cases.into_iter().enumerate() {
            let mut made = Made::new();
            log(&mut made);
            made.in_text(2, 3, end);
            follows(&mut made);
            let found = made.derived();
            assert_eq!((found.commits.len(), found.notes.len()), (1 + counted, 1), "case {case}");
        }
    }
}

/// Another process, outside of the recording, committed between, or has begun the log anew.
#[test]
fn where_others_wrote_between_the_last_one_may_be_none() {
    let cases = [(3, 2, ""), (9, 2, "too many, by up to: 1"), (0, 1, "not counted as commits: 1")];
    for (next, counted, note) in cases {
        let mut made = Made::new();
        made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm");
        made.in_text(0, 3, End::Unlock).in_text(next, 1, End::Commit);
        let found = made.derived();
        assert_eq!(found.commits.len(), counted, "{next}");
        let is_told = found.notes.join("").ends_with(note) && found.notes.is_empty() == note.is_empty();
        assert!(is_told, "{next} {:?}", found.notes);
    }
    // Rolled back, as it seems; but others write here, as the last one shows.
    for others in [false, true] {
        let mut made = Made::new();
        made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm");
        made.in_text(0, 2, End::Commit).in_text(2, 1, End::Unlock).in_text(2, 1, End::Commit);
        made.in_text(if others { 9 } else { 3 }, 1, End::Commit);
        let found = made.derived();
        assert_eq!((found.commits.len(), found.notes.len()), (3, usize::from(others)), "{:?}", found.notes);
    }
}

#[test]
fn heads_of_a_block_that_is_written_again_are_no_frames() {
    for is_locked in [true, false] {
        let mut made = Made::new();
        made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm");
        let blocks: [(u64, Heads); 4] = [
            (0, &[(0, 5, 9)]),
            (0, &[(0, 5, 9), (1, 6, 0), (2, 7, 9)]),
            (8192, &[(2, 7, 9), (3, 7, 9)]),
            // Begun anew.
            (0, &[(0, 5, 9)]),
        ];
        for (place, (offset, heads)) in blocks.into_iter().enumerate() {
            if place == 3 {
                made.pages(1, &[5]).sync(1);
            }
            if is_locked {
                made.lock(3, 120, 1, 1);
            }
            made.frames_at_once(2, offset, heads).sync(2);
            if is_locked {
                made.lock(3, 120, 1, 2);
            }
        }
        let expected = [(vec![5], 1), (vec![6, 7], 2), (vec![7], 1), (vec![5], 1)];
        assert_eq!(frames(&made.derived()), expected, "locked: {is_locked}");
    }
}

/// waldio's thread that fills the log ahead of need takes no lock. Text has no heads that would tell its bytes from frames.
#[test]
fn what_is_written_without_the_lock_that_others_take_is_said() {
    // Each write may be a commit; of the embedded layout, each block.
    for (index_of_log, more) in [("/d/a.db-shm", ": 2"), ("/d/a.db-waldio-shm", ": 16")] {
        let mut made = Made::new();
        made.open(2, "/d/a.db-wal").open(3, index_of_log).write(2, 0, 32);
        for index in 0..2 {
            made.thread = 1;
            made.lock(3, 120, 1, 1).write(2, 32 + index * (PAGE + 24), PAGE + 24).sync(2).lock(3, 120, 1, 2);
            made.thread = 2;
            made.write(2, 32 + (10 + index) * (PAGE + 24), 8 * PAGE);
        }
        let found = made.derived();
        assert_eq!(found.commits.len(), 2);
        let said = |note: &String| note.contains("without its lock") && note.ends_with(more);
        assert!(found.notes.iter().any(said), "{:?}", found.notes);
    }
}

/// In waldio's embedded layout a log begins with a block without frames, which is written before anybody has a lock. Each frame is
/// a block without a head in the recording, and zeros are appended ahead of need.
#[test]
fn blocks_of_the_embedded_layout_are_frames_but_for_its_guard_and_what_is_filled() {
    for stock_commits in [0, 1] {
        let mut made = Made::new();
        if stock_commits > 0 {
            // The same database had its log in SQLite's own layout before, whose frames have heads.
            made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm").lock(3, 120, 1, 1).write(2, 0, 32);
            made.frame(2, 0, 2, 3).sync(2).lock(3, 120, 1, 2).pages(1, &[2]).sync(1).close(2);
            made.unlink("/d/a.db-wal");
        }
        for (log, index) in [(10, 11), (20, 21)] {
            made.open(log, "/d/a.db-wal").write(log, 0, PAGE).open(index, "/d/a.db-waldio-shm");
            made.lock(index, 120, 1, 1).write(log, 0, 3 * PAGE).sync(log).lock(index, 120, 1, 2);
            made.thread = log;
            made.fill(log, 3 * PAGE).sync(log);
            made.thread = 1;
            // Room that is made under the lock, and a rollback.
            made.lock(index, 120, 1, 1).fill(log, 11 * PAGE).lock(index, 120, 1, 2);
            made.lock(index, 120, 1, 1).write(log, 3 * PAGE, PAGE).sync(log).lock(index, 120, 1, 2);
            // The last close empties the log where it is.
            made.pages(1, &[2]).sync(1).write(log, 0, PAGE).sync(log).write(log, 0, 32).sync(log).close(log);
        }
        let found = made.derived();
        let frames: Vec<u64> = found.parts().map(|part| part.frames).skip(stock_commits).collect();
        assert_eq!(frames, [2, 1, 2, 1], "of {stock_commits}: {:?}", found.notes);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}

/// Its pages got another size in the end, so that their size tells nothing.
#[test]
fn the_embedded_layouts_own_files_tell_it_where_the_size_of_pages_does_not() {
    let mut made = Made::new();
    made.open(4, "/d/a.db-waldio").lock(4, RESERVED - 1, 1, 0).open(2, "/d/a.db-wal").write(2, 0, PAGE);
    made.open(3, "/d/a.db-waldio-shm").lock(3, 120, 1, 1).write(2, 0, 3 * PAGE).sync(2).lock(3, 120, 1, 2);
    // The last close empties the log where it is.
    made.pages(1, &[2]).sync(1).unlink("/d/a.db-waldio").write(2, 0, PAGE).sync(2).write(2, 0, 32).close(2);
    made.push(CallKind::FirstPage, 1, |call| call.offset = 1024);
    let found = made.derived();
    assert_eq!((frames(&found), &found.notes[..]), (vec![(vec![], 2)], &[][..]));
    assert_eq!(found.databases.len(), 1);
}

/// waldio writes a log whose index is lost over itself, before anybody reads it. Heads are the same as before.
#[test]
fn a_log_that_is_written_over_itself_has_no_new_commit() {
    for (is_locked, has_heads) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut made = Made::new();
        made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm");
        let written = |made: &mut Made, description| {
            match has_heads {
                true => made.frames_at_once(description, 0, &[(0, 5, 9)]),
                false => made.write(description, 0, 32 + PAGE + 24),
            };
            made.sync(description);
        };
        for lock in [1, 2] {
            if is_locked {
                made.lock(3, 120, 1, lock);
            }
            if lock == 1 {
                written(&mut made, 2);
            }
        }
        made.open(4, "/d/a.db-wal");
        if is_locked {
            made.lock(3, 120, 1, 1).lock(3, 121, 2, 1);
        }
        written(&mut made, 4);
        if is_locked {
            made.lock(3, 121, 2, 2).lock(3, 120, 1, 2).lock(3, 120, 1, 1);
        }
        made.frame_of(4, 1, has_heads).sync(4);
        if is_locked {
            made.lock(3, 120, 1, 2);
        }
        let found = made.derived();
        assert_eq!(found.commits.len(), 2, "locked: {is_locked}, heads: {has_heads}");
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}

/// Descriptions 1 and 3 are of the connection that writes, 4 to 6 of another one of its process.
#[test]
fn another_connection_that_closes_or_checkpoints_ends_no_transaction() {
    let begun = || {
        let mut made = Made::new();
        made.lock(1, RESERVED + 1, 510, 0).open(2, "/d/a.db-wal").open(3, "/d/a.db-shm").write(2, 0, 32);
        made.open(4, "/d/a.db").open(5, "/d/a.db-wal");
        made.lock(3, 120, 1, 1).bare_frames(0, 3);
        made
    };
    let mut made = begun();
    // It asks for the database for itself, in vain.
    made.lock(4, RESERVED - 1, 1, 1).close(5).lock(4, RESERVED - 1, 2, 2).close(4);
    made.bare_frames(3, 2).sync(2).lock(3, 120, 1, 2);
    let found = made.derived();
    assert_eq!((found.commits.len(), found.notes.len()), (1, 0), "{:?}", found.notes);

    // Rolled back: the sync was the checkpoint's, and nothing follows.
    let mut made = begun();
    made.lock(3, 121, 1, 1).sync(5).pages(4, &[1, 2]).sync(4).lock(3, 121, 1, 2).lock(3, 120, 1, 2);
    let found = made.derived();
    assert!(found.notes.iter().any(|note| note.ends_with("too many, by up to: 1")), "{:?}", found.notes);
}

/// Where heads are known, bytes without one are no frame, wherever they begin, and nothing is said of them.
#[test]
fn bytes_within_a_frame_are_not_told_where_heads_are_known() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-wal").write(2, 0, 32).frame(2, 0, 5, 8).sync(2);
    made.thread = 2;
    made.write(2, 32 + (PAGE + 24) + 1000, 3120).sync(2);
    let found = made.derived();
    assert_eq!((found.commits.len(), found.notes.len()), (1, 0), "{:?}", found.notes);
}
