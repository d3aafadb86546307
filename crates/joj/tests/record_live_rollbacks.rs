//! Goal: a recording of SQLite with a rollback journal has as many commits as the program made, whatever it rolled back.
//! Method: a program in Python outgrows its cache, and rolls back in each of the ways that there are. SQLite's own count of commits is
//! the database's change counter, bytes 24 to 27.

mod record;
mod replay;

use joj_analysis::recording::page_transactions::RecordedMode;
use joj_analysis::recording::page_transactions::derive::derive;
use record::{calls, methods, record_command};
use replay::{Scratch, told};

/// Without a journal file: commits that stay in the cache, and rollbacks that do not. Word 2: the journal mode.
const WITHOUT_JOURNAL: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for pragma in ['journal_mode=' + sys.argv[2], 'cache_spill=ON']:
    db.execute('PRAGMA ' + pragma).fetchall()
db.execute('CREATE TABLE u(b)')
for i in range(20):
    db.execute('INSERT INTO u VALUES(?)', ['y' * 3000])
db.execute('PRAGMA cache_size=5')
for statement in ['UPDATE u SET b = b || 1', 'INSERT INTO u SELECT * FROM u']:
    db.execute('BEGIN')
    db.execute(statement)
    db.execute('ROLLBACK')
";

#[test]
fn without_a_journal_a_rollback_is_none_or_told() {
    let scratch = Scratch::new("live-rollbacks-off");
    let script = scratch.write("rollbacks.py", WITHOUT_JOURNAL);
    for method in methods() {
        for (mode, notes) in [("memory", 1), ("off", 0)] {
            let (database, recording) =
                (scratch.file(&format!("{method}-{mode}.db")), scratch.file("it.joj"));
            let words: [&dyn AsRef<std::ffi::OsStr>; 4] = [&"/usr/bin/python3", &script, &database, &mode];
            let (code, said) = told(&record_command(method, &recording, &words));
            if code != Some(0) {
                eprintln!("skipped: no Python with SQLite: {said}");
                return;
            }
            let found = derive(&calls(&recording)).expect("commits");
            assert_eq!(
                (found.commits.len(), found.notes.len()),
                (21, notes),
                "{method} {mode}: {:?}",
                found.notes
            );
        }
    }
}

/// Word 2: the journal mode.
const ROLLBACKS: &str = "
import os, sqlite3, sys
def connect():
    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    for pragma in ['journal_mode=' + sys.argv[2], 'synchronous=FULL', 'cache_size=10', 'cache_spill=ON']:
        db.execute('PRAGMA ' + pragma).fetchall()
    return db
db = connect()
db.execute('CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE ON CONFLICT IGNORE, c UNIQUE)')
db.execute('CREATE TABLE u(b)')
for i in range(40):
    db.execute('INSERT INTO u VALUES(?)', ['y' * 3000])
# New pages, then pages that were there, then pages that were free.
for statement in ['INSERT INTO u SELECT * FROM u', 'UPDATE u SET b = b || 1']:
    db.execute('BEGIN')
    db.execute(statement)
    db.execute('ROLLBACK')
db.execute('DELETE FROM u WHERE rowid % 2')
db.execute('BEGIN')
db.execute('INSERT INTO u SELECT * FROM u')
db.execute('ROLLBACK')
# A statement that fails.
db.execute('INSERT INTO t(c) VALUES(70)')
try:
    db.execute('WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70) '
               'INSERT INTO t(b, c) SELECT i || printf(\"%.3000c\", \"z\"), i FROM n')
    sys.exit('it was to fail')
except sqlite3.IntegrityError:
    pass
# Savepoints: inside a transaction, and one that is the transaction.
db.execute('BEGIN')
db.execute('INSERT INTO t(c) VALUES(-1)')
for begin in ['SAVEPOINT s', 'SAVEPOINT s']:
    db.execute(begin)
    db.execute('UPDATE u SET b = b || 2')
    db.execute('ROLLBACK TO s')
    db.execute('INSERT INTO t(c) VALUES(NULL)')
    db.execute('RELEASE s')
    if db.in_transaction:
        db.execute('COMMIT')
# A connection that closes, and a process that is killed.
db.execute('BEGIN')
db.execute('UPDATE u SET b = b || 3')
db.close()
if os.fork() == 0:
    db = connect()
    db.execute('BEGIN')
    db.execute('UPDATE u SET b = b || 4')
    os.kill(os.getpid(), 9)
os.wait()
db = connect()
db.execute('INSERT INTO u VALUES(5)')
db.close()
";

#[test]
fn what_sqlite_rolled_back_is_no_commit() {
    let scratch = Scratch::new("live-rollbacks");
    let script = scratch.write("rollbacks.py", ROLLBACKS);
    for (method, mode) in methods().into_iter().flat_map(|method| {
        let modes = ["delete", "truncate", "persist"];
        modes.map(|mode| (method, mode))
    }) {
        let database = scratch.file(&format!("{method}-{mode}.db"));
        let recording = scratch.file(&format!("{method}-{mode}.joj"));
        let words: [&dyn AsRef<std::ffi::OsStr>; 4] = [&"/usr/bin/python3", &script, &database, &mode];
        let (code, said) = told(&record_command(method, &recording, &words));
        if said.contains("sqlite3") || said.contains("/usr/bin/python3") {
            eprintln!("skipped: no Python with SQLite: {said}");
            return;
        }
        assert_eq!(code, Some(0), "{method} {mode}: {said}");
        let file = std::fs::read(&database).expect("the database");
        let commits = u32::from_be_bytes([file[24], file[25], file[26], file[27]]);
        let found = derive(&calls(&recording)).expect("commits");
        assert_eq!(found.commits.len(), commits as usize, "{method} {mode}");
        assert_eq!(found.commits.len(), 47, "{method} {mode}");
        let pages: usize = found.parts().map(|part| part.pages.len()).sum();
        assert!(pages < 250, "{method} {mode}: {pages} pages");
        let of_mode = found.parts().filter(|part| part.mode.word() == mode).count();
        let others: Vec<RecordedMode> = found.parts().map(|part| part.mode).collect();
        assert_eq!(of_mode, found.commits.len(), "{method} {mode}: {others:?}");
        assert!(found.notes.is_empty(), "{method} {mode}: {:?}", found.notes);
    }
}
