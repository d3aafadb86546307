//! Goal: a recording says which pages SQLite wrote into its log, and where its transactions begin and end.
//! Method: Python's SQLite commits, stock and through waldio, and leaves its log, which says the same.

mod record;
mod replay;
mod waldio;

use record::{FIRST_PAGE, LOCK, LOG_FRAME, has, methods, record_command, rows};
use replay::{Scratch, told};

/// Commits in WAL mode, one of several pages; then the log stays as it is.
const COMMITS: &str = "
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('PRAGMA journal_mode=WAL')
db.execute('PRAGMA synchronous=FULL')
db.execute('CREATE TABLE t(a)')
for i in range(5):
    db.execute('INSERT INTO t VALUES(?)', ['PLANTED-SECRET' + 'x' * (20000 if i == 3 else 10)])
os._exit(0)
";

#[test]
fn heads_of_log_frames_are_those_of_the_log() {
    let scratch = Scratch::new("live-frames");
    let script = scratch.write("commits.py", COMMITS);
    for method in methods() {
        let database = scratch.file(&format!("{method}.db"));
        let recording = scratch.file(&format!("{method}.joj"));
        let output = record_command(method, &recording, &[&"/usr/bin/python3", &script, &database]);
        let (code, said) = told(&output);
        let log = scratch.file(&format!("{method}.db-wal"));
        if code != Some(0) || !log.exists() {
            eprintln!("skipped: no Python with SQLite: {said}");
            return;
        }
        let log = std::fs::read(log).expect("the log");
        let long =
            |at: usize| i64::from(u32::from_be_bytes([log[at], log[at + 1], log[at + 2], log[at + 3]]));
        let step = 24 + usize::try_from(long(8)).expect("a page");
        let written: Vec<_> = (32..log.len())
            .step_by(step)
            .map(|at| (i64::try_from(at).expect("short"), long(at), long(at + 4)))
            .collect();
        let found = rows(&recording);
        let frames: Vec<_> = found
            .iter()
            .filter(|row| row.code == LOG_FRAME)
            .map(|row| (row.offset, row.bytes, row.flags))
            .collect();
        assert_eq!(frames, written, "{method}");
        assert!(written.iter().filter(|(_, _, commit)| *commit > 0).count() >= 6, "{written:?}");
        let locks: Vec<_> = found.iter().filter(|row| row.code == LOCK).collect();
        // SQLite's locks of the database begin at 2^30, those of the log's index at 120.
        assert!(locks.iter().any(|row| row.offset >= 1 << 30) && locks.iter().any(|row| row.offset == 120));
        let page = found.iter().find(|row| row.code == FIRST_PAGE).expect("page 1 is written");
        assert_eq!((page.offset, page.flags & 0xff), (4096, 0), "{method}: {page:?}");
        assert!(!has(&recording, "PLANTED"), "{method}");
    }
}

/// The same through waldio, which writes several frames at once: alone, as whole blocks, and in its other layout.
const COMMITS_OF_WALDIO: &str = "
import os, sqlite3, sys
first = sqlite3.connect(':memory:')
first.enable_load_extension(True)
first.load_extension(sys.argv[2])
db = sqlite3.connect('file:' + sys.argv[1] + '?vfs=waldio&' + sys.argv[3], uri=True, isolation_level=None)
db.execute('PRAGMA journal_mode=WAL')
db.execute('CREATE TABLE t(a)')
for i in range(5):
    db.execute('INSERT INTO t VALUES(?)', ['x' * (20000 if i == 3 else 10)])
os._exit(0)
";

#[test]
fn frames_that_waldio_writes_at_once_are_all_there() {
    let Some(extension) = waldio::extension() else { return };
    let scratch = Scratch::new("live-waldio");
    let script = scratch.write("commits.py", COMMITS_OF_WALDIO);
    for (method, option) in methods()
        .into_iter()
        .flat_map(|method| ["persist=flush", "persist=fua", "layout=embedded"].map(|option| (method, option)))
    {
        let database = scratch.file(&format!("{method}-{option}.db"));
        let recording = scratch.file("it.joj");
        let option_word = format!("waldio_{option}");
        let words: [&dyn AsRef<std::ffi::OsStr>; 5] =
            [&"/usr/bin/python3", &script, &database, &extension, &option_word];
        let (code, said) = told(&record_command(method, &recording, &words));
        let log = scratch.file(&format!("{method}-{option}.db-wal"));
        if code != Some(0) || !log.exists() {
            eprintln!("skipped: no Python with SQLite that loads extensions: {said}");
            return;
        }
        let log = std::fs::read(log).expect("the log");
        let mut found: Vec<_> = rows(&recording)
            .into_iter()
            .filter(|row| row.code == LOG_FRAME)
            .map(|row| (row.offset, row.bytes, row.flags))
            .collect();
        if option == "layout=embedded" {
            assert!(found.is_empty() && said.contains("heads of frames"), "{method}: {found:?} {said}");
            continue;
        }
        // A block that is written again has its heads again.
        found.dedup();
        let long = |at: usize| u32::from_be_bytes([log[at], log[at + 1], log[at + 2], log[at + 3]]);
        let heads = (32..log.len() - 24).step_by(24 + 4096).take_while(|at| long(*at) != 0);
        let written: Vec<_> = heads
            .map(|at| (i64::try_from(at).expect("short"), long(at).into(), long(at + 4).into()))
            .collect();
        assert_eq!(found, written, "{method} {option}");
        assert!(!said.contains("heads of frames"), "{method} {option}: {said}");
    }
}
