//! Goal: SQLite's commits are counted for each database, whatever else their thread has locked, and what cannot be counted is said.
//! Method: one thread that has a lock on one database and commits to another; the first opening and the last close of a log.

mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use trace::inserts::Traced;
use trace::volume::{Volume, has_backend, run, volume_or_skip};

/// Two connections of one thread: `held` keeps a lock, `other` makes a table and commits nine rows.
const TWO_DATABASES: &str = "
import os, sqlite3, sys
directory, mode, lock = sys.argv[1:]
held = sqlite3.connect(directory + '/held.db', isolation_level=None)
other = sqlite3.connect(directory + '/other.db', isolation_level=None)
for sql in lock.split(';'):
    held.execute(sql)
other.execute('PRAGMA journal_mode=' + mode)
other.execute('PRAGMA synchronous=FULL')
other.execute('CREATE TABLE t(a)')
for number in range(9):
    other.execute('INSERT INTO t VALUES(?)', (number,))
os._exit(0)
";

const CLOSE: &str = "
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1] + '/closed.db', isolation_level=None)
connection.execute('PRAGMA journal_mode=WAL')
connection.execute('PRAGMA synchronous=FULL')
connection.execute('CREATE TABLE t(a)')
connection.close()
";

/// Processes that each open a database in WAL mode first, commit once or read only, and leave it without closing.
const OPENINGS: &str = "
import os, sqlite3, sys
for sql in ['INSERT INTO t VALUES(1)'] * 4 + ['SELECT count(*) FROM t'] * 3:
    child = os.fork()
    if child == 0:
        sqlite3.connect(sys.argv[1] + '/opened.db', isolation_level=None).execute(sql).fetchall()
        os._exit(0)
    os.waitpid(child, 0)
";

/// Two threads of a process commit fifty rows each to one log, which is checkpointed after five pages, by whichever commits then.
const THREADS: &str = "
import os, sqlite3, sys, threading
def connect():
    connection = sqlite3.connect(sys.argv[1] + '/shared.db', isolation_level=None, timeout=60)
    connection.execute('PRAGMA wal_autocheckpoint=5')
    return connection
def write():
    connection = connect()
    for row in range(50):
        connection.execute('INSERT INTO t VALUES(?)', (row,))
    keep.append(connection)
keep = [connect()]
keep[0].execute('PRAGMA journal_mode=WAL')
keep[0].execute('CREATE TABLE t(a)')
threads = [threading.Thread(target=write) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
os._exit(0)
";

/// Ten transactions over two databases of one connection.
const TWO_SUBVOLUMES: &str = "
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1] + '/one/one.db', isolation_level=None)
connection.execute('ATTACH ? AS other', (sys.argv[1] + '/two/two.db',))
connection.execute('CREATE TABLE main.t(a)')
connection.execute('CREATE TABLE other.u(a)')
for row in range(10):
    connection.execute('BEGIN')
    connection.execute('INSERT INTO t VALUES(?)', (row,))
    connection.execute('INSERT INTO u VALUES(?)', (row,))
    connection.execute('COMMIT')
os._exit(0)
";

/// Eleven transactions each of two processes, one after another by turns, which are there for a second longer.
const TWO_PROCESSES: &str = "
import os, sqlite3, sys, time
turns = [os.pipe(), os.pipe()]
children = []
for place, name in enumerate(['one', 'two']):
    child = os.fork()
    children.append(child)
    if child == 0:
        connection = sqlite3.connect(sys.argv[1] + '/' + name + '/of.db', isolation_level=None)
        for row in range(11):
            os.read(turns[place][0], 1)
            connection.execute('INSERT INTO t VALUES(1)' if row else 'CREATE TABLE t(a)')
            os.write(turns[1 - place][1], b'x')
        time.sleep(1)
        os._exit(0)
os.write(turns[0][1], b'x')
for child in children: os.waitpid(child, 0)
";

/// Commits six times each to one, to the other and to the first again, and has only that database open.
const ONE_AFTER_ANOTHER: &str = "
import sqlite3, sys, time
for name in ['one', 'two', 'one']:
    connection = sqlite3.connect(sys.argv[1] + '/' + name + '/of.db', isolation_level=None)
    for row in range(6):
        connection.execute('CREATE TABLE t%d(a)' % (time.monotonic_ns(),))
    time.sleep(0.6)
    connection.close()
";

/// A commit and then a transaction that is rolled back, five times.
const ROLLED_BACK: &str = "
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1] + '/rolled.db', isolation_level=None)
connection.execute('CREATE TABLE t(a)')
for row in range(5):
    connection.execute('INSERT INTO t VALUES(?)', (row,))
    connection.execute('BEGIN')
    connection.execute('INSERT INTO t VALUES(0)')
    connection.execute('ROLLBACK')
os._exit(0)
";

fn commits_by_database(traced: &Traced) -> BTreeMap<String, usize> {
    let mut commits = BTreeMap::new();
    for commit in &traced.commits {
        let file = commit["file"].as_str().expect("a path").trim_start_matches('/');
        *commits.entry(file.trim_end_matches("-shm").to_owned()).or_default() += 1;
    }
    commits
}

/// Makes a directory on the volume for a program's databases.
fn directory(volume: &Volume, name: &str) -> PathBuf {
    let directory = volume.path().join(name);
    std::fs::create_dir(&directory).expect("a directory");
    directory
}

/// Traces a program, which gets the directory and these words.
fn traced(volume: &Volume, backend: &str, program: &str, directory: &Path, words: &[&str]) -> Traced {
    let script = volume.beside("program.py");
    std::fs::write(&script, program).expect("a script");
    let [script, directory] = [&*script, directory].map(|path| path.to_str().expect("UTF-8"));
    let fixed = ["/usr/bin/python3", script, directory];
    let command = fixed.iter().chain(words).map(|word| (*word).to_owned());
    Traced::command(volume, backend, directory, &[], &command.collect::<Vec<_>>())
}

/// The ways of capturing that there are here.
fn backends() -> impl Iterator<Item = &'static str> {
    ["bpf", "tracefs"].into_iter().filter(|backend| has_backend(backend))
}

#[test]
fn a_thread_that_has_the_lock_of_one_database_commits_to_another() {
    let Some(volume) = volume_or_skip("ext4") else { return };
    let exclusive = "PRAGMA locking_mode=EXCLUSIVE;CREATE TABLE t(a);INSERT INTO t VALUES(1)";
    let in_transaction = "CREATE TABLE t(a);BEGIN IMMEDIATE";
    let cases = [("DELETE", exclusive), ("DELETE", in_transaction), ("WAL", in_transaction)];
    for backend in backends() {
        for (number, (mode, lock)) in cases.into_iter().enumerate() {
            let directory = directory(&volume, &format!("{backend}{number}"));
            let traced = traced(&volume, backend, TWO_DATABASES, &directory, &[mode, lock]);
            let name = |database: &str| format!("{backend}{number}/{database}.db");
            let found = commits_by_database(&traced);
            // What turns the log on is a commit, too.
            let others = if mode == "WAL" { 11 } else { 10 };
            // An open transaction has written nothing.
            let expected = [(name("held"), 1), (name("other"), others)].into();
            assert_eq!(found, expected, "{backend}, {mode}, {lock}");
        }
    }
}

/// The process has the checkpoint's lock while another of its threads takes the next byte's.
#[test]
fn threads_that_share_a_log_commit_beside_each_others_checkpoints() {
    let Some(volume) = volume_or_skip("ext4") else { return };
    for backend in backends() {
        for round in 0..3 {
            let directory = directory(&volume, &format!("{backend}{round}"));
            let traced = traced(&volume, backend, THREADS, &directory, &[]);
            let commits = &traced.summary["commits"];
            // What turns the log on, the table, and the rows.
            assert_eq!(commits["with_requests"], 102, "{backend}: {commits}");
            // Who took the write lock with an old snapshot gives it back, and tries again.
            let in_vain = commits["total"].as_u64().expect("a number") - 102;
            assert!(in_vain <= 5, "{backend}: {commits}");
        }
    }
}

/// Makes a directory with two subvolumes. The first file of each has the same inode number, and here the same generation.
fn with_subvolumes(volume: &Volume, name: &str) -> PathBuf {
    let directory = directory(volume, name);
    for name in ["one", "two"] {
        run(Command::new("btrfs").args(["subvolume", "create"]).arg(directory.join(name))).expect("btrfs");
    }
    directory
}

/// What a capture did not tell apart, if it says so.
fn says_what_was_confused(traced: &Traced) -> bool {
    let limits = traced.summary["header"]["inferred"].as_array().expect("limits");
    limits.iter().any(|limit| limit.as_str().expect("a text").contains("subvolume"))
}

#[test]
fn databases_of_two_subvolumes_are_two_or_joj_says_that_it_cannot_know() {
    let Some(volume) = volume_or_skip("btrfs") else { return };
    for backend in backends() {
        let traced = traced(&volume, backend, TWO_SUBVOLUMES, &with_subvolumes(&volume, backend), &[]);
        assert_eq!(says_what_was_confused(&traced), backend == "tracefs", "{}", traced.summary["header"]);
        let commits = commits_by_database(&traced);
        if backend == "bpf" {
            let expected = ["one", "two"].map(|name| (format!("bpf/{name}/{name}.db"), 11));
            assert_eq!(commits, expected.into());
        } else {
            // Its process has both open, and locks say a number alone.
            assert_eq!(commits, BTreeMap::new());
        }
    }
}

/// The program has committed so often to `of.db` of each of the subvolumes.
#[track_caller]
fn are_told_apart(program: &str, commits: [usize; 2]) {
    let Some(volume) = volume_or_skip("btrfs") else { return };
    for backend in backends() {
        // tracefs asks the processes, and on a busy machine later than they are there.
        let found = (0..3).find(|again| {
            let name = format!("{backend}{again}");
            let traced = traced(&volume, backend, program, &with_subvolumes(&volume, &name), &[]);
            let names = ["one", "two"].map(|place| format!("{name}/{place}/of.db"));
            let (found, expected) = (commits_by_database(&traced), names.into_iter().zip(commits).collect());
            if !says_what_was_confused(&traced) {
                assert_eq!(found, expected, "{backend}");
            }
            let is_of = |(name, count): (&String, &usize)| expected.get(name).is_some_and(|all| count <= all);
            assert!(found.iter().all(is_of), "{backend}: {found:?}");
            found == expected
        });
        assert!(found.is_some(), "{backend}");
    }
}

#[test]
fn databases_of_two_subvolumes_and_two_processes_are_two() {
    are_told_apart(TWO_PROCESSES, [11, 11]);
}

#[test]
fn databases_of_two_subvolumes_that_a_process_has_one_after_another_are_two() {
    are_told_apart(ONE_AFTER_ANOTHER, [12, 6]);
}

/// Who opens a log first takes the write lock, and commits nothing.
#[test]
fn to_open_a_log_is_no_commit() {
    let Some(volume) = volume_or_skip("ext4") else { return };
    for backend in backends() {
        let directory = directory(&volume, backend);
        let make = "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1] + '/opened.db', isolation_level=None); \
                    c.execute('PRAGMA journal_mode=WAL'); c.execute('CREATE TABLE t(a)'); os._exit(0)";
        run(Command::new("/usr/bin/python3").args(["-c", make]).arg(&directory)).expect("python3");
        let traced = traced(&volume, backend, OPENINGS, &directory, &[]);
        assert_eq!(traced.summary["commits"]["total"], 4, "{backend}");
        assert_eq!(traced.commits.len(), 4, "{backend}");
    }
}

/// What is rolled back counts as a commit, and only deletes its journal.
#[test]
fn steps_are_of_commits_that_had_a_call_or_request() {
    for (kind, backend) in ["ext4", "xfs"].into_iter().flat_map(|kind| backends().map(move |way| (kind, way)))
    {
        let Some(volume) = volume_or_skip(kind) else { return };
        let traced = traced(&volume, backend, ROLLED_BACK, &directory(&volume, backend), &[]);
        let commits = &traced.summary["commits"];
        let counted =
            [&commits["total"], &commits["with_requests"]].map(|number| number.as_u64().expect("a number"));
        assert_eq!((counted, traced.commits.len()), ([11, 6], 6), "{kind}, {backend}");
    }
}

#[test]
fn the_checkpoint_of_the_last_close_is_said_to_be_missing() {
    let Some(volume) = volume_or_skip("ext4") else { return };
    for backend in backends() {
        let traced = traced(&volume, backend, CLOSE, &directory(&volume, backend), &[]);
        // The log, and the database behind the copy.
        assert_eq!(traced.summary["sqlite_syncs_outside"], 2, "{backend}");
        assert_eq!(traced.summary["checkpoints"]["total"], 0, "{backend}");
    }
}
