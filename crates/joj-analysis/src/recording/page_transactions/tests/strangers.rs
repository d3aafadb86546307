//! Goal: what something else than a connection writes, and what is in files that have no name any more, is no commit, and told.
//! Method: recordings made by hand.

use super::{Made, PAGE, RESERVED};
use crate::recording::call::CallKind;
use crate::recording::flags::RENAME_EXCHANGE;
use crate::recording::page_transactions::RecordedMode;
use crate::recording::page_transactions::derive::{DeriveError, derive};

impl Made {
    /// A commit of a connection with a rollback journal.
    fn locked_commit(&mut self, database: u32, journal: u32, name: &str) -> &mut Self {
        self.lock(database, RESERVED - 1, 1, 0).lock(database, RESERVED, 1, 1);
        self.open(journal, &format!("{name}-journal"))
            .journal(journal, 1)
            .pages(database, &[1])
            .sync(database);
        self.close(journal).unlink(&format!("{name}-journal")).lock(database, RESERVED, 1, 2)
    }

    /// A commit of one frame in a log, with its locks.
    fn commit_of_one_frame(&mut self, log: u32, index: u32, frame: u64) -> &mut Self {
        self.lock(index, 120, 1, 1).frame(log, frame, 2, 2).sync(log).lock(index, 120, 1, 2)
    }

    fn rename(&mut self, path: &str) -> &mut Self {
        let (from, to) = (self.recording.texts.keep(path), self.recording.texts.keep("/elsewhere"));
        self.push(CallKind::Rename, 0, |call| (call.path, call.second_path) = (from, to))
    }

    fn fails_to_unlink(&mut self, path: &str) -> &mut Self {
        let path = self.recording.texts.keep(path);
        self.push(CallKind::Unlink, 0, |call| (call.path, call.result) = (path, -2))
    }

    /// A write or sync that fails.
    fn fails(&mut self, kind: CallKind, description: u32) -> &mut Self {
        self.push(kind, description, |call| (call.offset, call.bytes, call.result) = (56, PAGE, -5))
    }
}

/// Commits, and the numbers at the end of notes.
fn told(made: &Made) -> (usize, Vec<String>) {
    let found = made.derived();
    let number = |note: &String| note.rsplit_once(": ").map(|(_, number)| number.to_owned());
    (found.commits.len(), found.notes.iter().filter_map(number).collect())
}

/// A download of a database, in pieces, and later a connection.
#[test]
fn what_writes_a_database_without_its_locks_makes_no_commit() {
    for pieces in [1, 4] {
        let mut made = Made { thread: 1, ..Made::default() };
        made.open(5, "/d/a.db");
        for piece in 0..pieces {
            made.write(5, piece * PAGE, PAGE).sync(5);
        }
        made.close(5).open(1, "/d/a.db").locked_commit(1, 2, "/d/a.db");
        assert_eq!(told(&made), (1, vec![pieces.to_string()]));
        let held = |call: &mut crate::recording::call::RecordedCall| call.kind = CallKind::Held;
        // It was open before the recording: it may be a connection's that has its lock since.
        held(&mut made.recording.calls[0]);
        assert_eq!(told(&made).0, 1 + usize::try_from(pieces).unwrap());
    }
}

/// A backup of both files, which is opened afterwards.
#[test]
fn a_log_that_is_copied_has_no_commits() {
    let mut made = Made::new();
    made.lock(1, RESERVED - 1, 1, 0).open(5, "/d/b.db").write(5, 0, PAGE).close(5).open(6, "/d/b.db-wal");
    made.frame(6, 0, 1, 1).frame(6, 1, 2, 2).close(6).open(7, "/d/b.db").lock(7, RESERVED - 1, 1, 0);
    made.open(8, "/d/b.db-wal").open(9, "/d/b.db-shm").commit_of_one_frame(8, 9, 2);
    // Of a frame the head is a write of its own.
    assert_eq!(told(&made), (1, vec!["5".to_owned()]));
}

#[test]
fn a_commit_whose_log_was_not_written_or_synced_is_none_where_nothing_follows() {
    for (kind, follows, expected) in [
        (CallKind::Pwrite, false, (1, vec!["1"])),
        (CallKind::Fdatasync, false, (1, vec!["1"])),
        (CallKind::Fdatasync, true, (3, vec![])),
        (CallKind::Fstat, false, (2, vec![])),
    ] {
        let mut made = Made::new();
        made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm").commit_of_one_frame(2, 3, 0);
        made.lock(3, 120, 1, 1).frame(2, 1, 2, 2).fails(kind, 2).lock(3, 120, 1, 2);
        if follows {
            made.commit_of_one_frame(2, 3, 2);
        }
        let expected = (expected.0, expected.1.into_iter().map(str::to_owned).collect());
        assert_eq!(told(&made), expected, "{kind:?}, {follows}");
    }
}

impl Made {
    /// `/d/a.db` loses its name, and so do its log and its journal, if it has them.
    fn loses_name(&mut self, how: &str, others: &[&str]) -> &mut Self {
        match how {
            "unlink" => others.iter().fold(self.unlink("/d/a.db"), |made, other| made.unlink_alone(other)),
            "rename" => others.iter().fold(self.rename("/d/a.db"), |made, other| made.rename(other)),
            "directory" => self.rename("/d"),
            "log first" => {
                others.iter().rev().fold(self, |made, other| made.unlink_alone(other)).unlink("/d/a.db")
            }
            _ => {
                let (from, to) =
                    (self.recording.texts.keep("/d/new.db"), self.recording.texts.keep("/d/a.db"));
                self.push(CallKind::Rename, 0, |call| (call.path, call.second_path) = (from, to))
            }
        }
    }
}

const HOW: [&str; 5] = ["unlink", "rename", "directory", "log first", "replaced"];

/// Another connection makes them anew; the first one goes on with those that it has.
#[test]
fn files_that_have_no_name_any_more_are_told_from_those_that_have_it_now() {
    for how in HOW {
        let mut made = Made::new();
        made.lock(1, RESERVED - 1, 1, 0)
            .open(2, "/d/a.db-wal")
            .open(3, "/d/a.db-shm")
            .commit_of_one_frame(2, 3, 0);
        made.loses_name(how, &["/d/a.db-wal", "/d/a.db-shm"]);
        made.thread = 2;
        made.open(11, "/d/a.db").locked_commit(11, 14, "/d/a.db");
        made.open(12, "/d/a.db-wal").open(13, "/d/a.db-shm").commit_of_one_frame(12, 13, 0);
        made.thread = 1;
        made.commit_of_one_frame(2, 3, 1);
        made.thread = 2;
        made.commit_of_one_frame(12, 13, 1);
        made.thread = 1;
        made.pages(1, &[1, 2]).sync(1).close(2).close(3).close(1);
        made.thread = 2;
        made.commit_of_one_frame(12, 13, 2);
        assert_eq!(told(&made), (6, vec![]), "{how}");
        assert_eq!(made.derived().databases.len(), 2, "{how}");
    }
}

/// SQLite takes the descriptor that it has for the file under its new name: no call opens that.
#[test]
fn a_log_of_a_new_name_belongs_to_the_database_that_was_renamed() {
    for kind in [CallKind::Rename, CallKind::Link] {
        let mut made = Made::new();
        made.lock(1, RESERVED - 1, 1, 0).open(2, "/d/a.db-wal").open(3, "/d/a.db-shm");
        made.commit_of_one_frame(2, 3, 0);
        let (from, to) = (made.recording.texts.keep("/d"), made.recording.texts.keep("/e"));
        made.push(kind, 0, |call| (call.path, call.second_path) = (from, to));
        made.open(12, "/e/a.db-wal").commit_of_one_frame(12, 3, 1).commit_of_one_frame(2, 3, 2);
        assert_eq!((told(&made), made.derived().databases.len()), ((3, vec![]), 1), "{kind:?}");
    }
}

/// The directory moves while nobody has its database open, and there is another one: its log begins where the old one did.
#[test]
fn a_database_that_takes_the_place_of_a_closed_one_begins_anew() {
    let mut made = Made::new();
    let commit = |made: &mut Made, [database, log, index]: [u32; 3]| {
        made.lock(database, RESERVED - 1, 1, 0).open(log, "/d/a.db-wal").open(index, "/d/a.db-shm");
        made.commit_of_one_frame(log, index, 0).close(log).close(index).close(database);
    };
    commit(&mut made, [1, 2, 3]);
    made.rename("/d").open(11, "/d/a.db");
    commit(&mut made, [11, 12, 13]);
    assert_eq!((told(&made), made.derived().databases.len()), ((2, vec![]), 1));
}

/// Both go on, and who comes later finds each under the other's name.
#[test]
fn databases_that_exchange_their_names_are_each_one() {
    let mut made = Made::new();
    made.open(5, "/d/b.db").locked_commit(1, 2, "/d/a.db").locked_commit(5, 6, "/d/b.db");
    let (from, to) = (made.recording.texts.keep("/d/a.db"), made.recording.texts.keep("/d/b.db"));
    made.push(CallKind::Rename, 0, |call| {
        (call.path, call.second_path, call.flags) = (from, to, RENAME_EXCHANGE)
    });
    made.open(11, "/d/a.db").locked_commit(11, 12, "/d/a.db").locked_commit(1, 22, "/d/b.db");
    let parts: Vec<usize> = made.derived().parts().map(|part| part.database).collect();
    assert_eq!((told(&made), parts), ((4, vec![]), vec![0, 1, 1, 0]));
}

/// A backup that asks for the log of each file.
#[test]
fn what_is_asked_for_beside_a_log_makes_no_database_of_that() {
    let mut made = Made::new();
    made.lock(1, RESERVED - 1, 1, 0).open(2, "/d/a.db-wal").open(3, "/d/a.db-shm");
    let path = made.recording.texts.keep("/d/a.db-wal-wal");
    made.push(CallKind::Stat, 0, |call| (call.path, call.result) = (path, -2));
    made.commit_of_one_frame(2, 3, 0);
    assert_eq!(told(&made), (1, vec![]));
}

/// In exclusive locking mode, killed within a transaction that has spilled: no lock tells it, but the commits before have ends.
#[test]
fn a_journal_without_an_end_is_no_commit_where_others_have_one() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-journal").journal(2, 1).pages(1, &[1]).sync(1).write(2, 0, 28);
    made.journal(2, 2).sync(2).pages(1, &[2, 3]);
    assert_eq!(told(&made), (1, vec!["1".to_owned()]));
}

/// The same behind the recovery of a hot journal, which took the only lock: nothing has an end.
#[test]
fn a_journal_without_an_end_is_no_commit_where_there_are_locks() {
    let mut made = Made::new();
    made.lock(1, RESERVED - 1, 512, 1).open(2, "/d/a.db-journal").journal(2, 2).sync(2).pages(1, &[2, 3]);
    assert_eq!(derive(&made.recording), Err(DeriveError::NoCommit));
    made.recording.calls.remove(1);
    assert_eq!(told(&made).0, 1, "without locks, as in a script of MobiGen's");
}

/// A log alone was moved, and its index stayed: two logs have frames at one place, and the lock of each was given back behind its mark.
#[test]
fn a_whole_commit_whose_place_another_one_takes_is_told() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-wal").open(3, "/d/a.db-shm").commit_of_one_frame(2, 3, 0);
    made.open(12, "/d/a.db-wal").open(13, "/d/a.db-shm").commit_of_one_frame(12, 13, 0);
    assert_eq!(told(&made), (1, vec!["1".to_owned()]));
}

/// What the old connection copies from its log is no commit of the new database, which has a rollback journal.
#[test]
fn a_checkpoint_of_what_has_no_name_any_more_is_no_commit() {
    for how in HOW {
        let mut made = Made::new();
        made.lock(1, RESERVED - 1, 1, 0).open(2, "/d/a.db-wal").open(3, "/d/a.db-shm");
        made.commit_of_one_frame(2, 3, 0).loses_name(how, &["/d/a.db-wal"]);
        made.open(11, "/d/a.db").locked_commit(11, 14, "/d/a.db").pages(1, &[1, 2]).sync(1);
        assert_eq!(told(&made), (2, vec![]), "{how}");
    }
}

/// A connection that keeps its journal goes on with its database, while a database with a log has the name.
#[test]
fn a_connection_with_a_rollback_journal_goes_on_beside_the_next_database() {
    for how in HOW {
        let mut made = Made::new();
        let commit = |made: &mut Made| {
            made.thread = 1;
            made.lock(1, RESERVED - 1, 1, 0).lock(1, RESERVED, 1, 1).journal(2, 1).pages(1, &[1]).sync(1);
            made.write(2, 0, 28).lock(1, RESERVED, 1, 2);
            made.thread = 2;
        };
        made.lock(1, RESERVED - 1, 1, 0).open(2, "/d/a.db-journal");
        commit(&mut made);
        made.loses_name(how, &["/d/a.db-journal"]);
        commit(&mut made);
        made.open(11, "/d/a.db").locked_commit(11, 14, "/d/a.db");
        made.open(12, "/d/a.db-wal").open(13, "/d/a.db-shm").commit_of_one_frame(12, 13, 0);
        commit(&mut made);
        made.commit_of_one_frame(12, 13, 1);
        commit(&mut made);
        assert_eq!(told(&made), (7, vec![]), "{how}");
        let modes: Vec<RecordedMode> = made.derived().parts().map(|part| part.mode).collect();
        use RecordedMode::{Delete, Persist, Wal};
        assert_eq!(modes, [Persist, Persist, Delete, Wal, Persist, Wal, Persist], "{how}");
    }
}

/// The journal is unlinked by something else in a transaction; COMMIT, which cannot unlink or cut it, fails.
#[test]
fn a_commit_whose_journal_cannot_be_ended_is_none() {
    for (spilled, kind, expected) in [
        (false, CallKind::Unlink, (1, vec!["1"])),
        (true, CallKind::Unlink, (1, vec!["1"])),
        (true, CallKind::Ftruncate, (1, vec!["1"])),
        (true, CallKind::Fstat, (2, vec![])),
    ] {
        let mut made = Made::new();
        made.locked_commit(1, 9, "/d/a.db");
        made.lock(1, RESERVED, 1, 1).open(2, "/d/a.db-journal").journal(2, 2);
        if spilled {
            made.pages(1, &[3, 4]);
        }
        if kind == CallKind::Unlink {
            made.unlink_alone("/d/a.db-journal");
        }
        made.pages(1, &[1, 5]).sync(1);
        match kind {
            CallKind::Unlink => made.close(2).fails_to_unlink("/d/a.db-journal"),
            CallKind::Fstat => made.fails(kind, 2).unlink("/d/a.db-journal"),
            _ => made.fails(kind, 2),
        };
        made.lock(1, RESERVED, 1, 2);
        let expected = (expected.0, expected.1.into_iter().map(str::to_owned).collect());
        assert_eq!(told(&made), expected, "{spilled} {kind:?}");
    }
}

/// The same in exclusive locking mode, where SQLite overwrites the header of the journal that it has open.
#[test]
fn a_journal_that_another_program_unlinks_has_not_ended_its_commit() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-journal").journal(2, 2).pages(1, &[3, 4]).unlink_alone("/d/a.db-journal");
    made.pages(1, &[1, 5]).sync(1).write(2, 0, 28);
    assert_eq!(told(&made), (1, vec![]));
}

/// A script of MobiGen's has such calls behind commits without a journal.
#[test]
fn what_no_journal_is_unlinked_for_is_no_failure() {
    let mut made = Made::new();
    made.pages(1, &[1]).sync(1).fails_to_unlink("/d/a.db-journal").close(1);
    assert_eq!(told(&made), (1, vec![]));
}

/// Only the database was moved, or its journal was, too. A journal's path is that of the database that the thread used last.
#[test]
fn a_journal_is_unlinked_for_its_thread_s_database_and_not_for_the_next_one() {
    for (fails, expected) in [(false, (2, vec![])), (true, (1, vec!["1".to_owned()]))] {
        let mut made = Made::new();
        made.lock(1, RESERVED, 1, 1).open(2, "/d/a.db-journal").journal(2, 1).rename("/d/a.db");
        made.thread = 2;
        made.open(11, "/d/a.db").locked_commit(11, 12, "/d/a.db");
        made.thread = 1;
        made.pages(1, &[1]).sync(1).close(2);
        match fails {
            true => made.fails_to_unlink("/d/a.db-journal"),
            false => made.unlink("/d/a.db-journal"),
        };
        made.lock(1, RESERVED, 1, 2);
        assert_eq!(told(&made), expected, "{fails}");
    }
}

/// A child has it open, too, and ends later.
#[test]
fn a_journal_that_a_child_has_open_longer_has_ended_its_commit() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-journal").journal(2, 1).pages(1, &[1]).sync(1).unlink("/d/a.db-journal");
    made.push(CallKind::Released, 2, |call| (call.process, call.thread) = (7, 7));
    let modes: Vec<RecordedMode> = made.derived().parts().map(|part| part.mode).collect();
    assert_eq!((told(&made), modes), ((1, vec![]), vec![RecordedMode::Delete]));
}

/// In exclusive locking mode the journal stays, and is unlinked at the close: that another one unlinked it is no commit's failure.
#[test]
fn a_journal_that_is_gone_at_the_close_has_ended_its_commits() {
    let mut made = Made::new();
    made.open(2, "/d/a.db-journal").journal(2, 1).pages(1, &[1]).sync(1).write(2, 0, 28);
    made.fails_to_unlink("/d/a.db-journal").close(1);
    assert_eq!(told(&made), (1, vec![]));
}

/// It was open before the recording, in exclusive locking mode: its lock is in none of the calls, another database's is.
#[test]
fn the_journal_of_what_was_open_before_is_a_connections() {
    let mut made = Made { thread: 1, ..Made::default() };
    made.open(1, "/d/a.db");
    made.recording.calls[0].kind = CallKind::Held;
    made.open(5, "/d/b.db").lock(5, RESERVED - 1, 1, 0);
    made.open(2, "/d/a.db-journal").journal(2, 1).pages(1, &[1]).sync(1).close(2).unlink("/d/a.db-journal");
    let modes: Vec<RecordedMode> = made.derived().parts().map(|part| part.mode).collect();
    assert_eq!((modes, told(&made).1), (vec![RecordedMode::Delete], vec![]));
}
