//! Goal: a recording says which pages SQLite wrote into its log, and where its transactions begin and end.
//! Method: Python's SQLite commits, stock and through waldio, and leaves its log, which says the same.

mod record;
mod replay;
mod waldio;

use std::collections::BTreeSet;

use joj_analysis::recording::page_transactions::RecordedMode;
use joj_analysis::recording::page_transactions::derive::derive;
use record::{FIRST_PAGE, LOCK, LOG_FRAME, calls, has, methods, record_command, rows};
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

/// Its files are removed while it is open. It goes on with them, and another connection makes the database anew.
const COMMITS_OF_REMOVED_FILES: &str = "
import os, sqlite3, sys
def connect():
    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    db.execute('PRAGMA journal_mode=WAL')
    db.execute('CREATE TABLE t(a)')
    return db
old = connect()
for ending in ['', '-wal', '-shm']:
    os.unlink(sys.argv[1] + ending)
old.execute('INSERT INTO t VALUES(1)')
new = connect()
old.execute('INSERT INTO t VALUES(2)')
new.execute('INSERT INTO t VALUES(3)')
";

#[test]
fn commits_in_a_log_that_has_no_name_any_more_are_all_there() {
    let scratch = Scratch::new("live-removed");
    let script = scratch.write("commits.py", COMMITS_OF_REMOVED_FILES);
    for method in methods() {
        let (database, recording) = (scratch.file("app.db"), scratch.file(&format!("{method}.joj")));
        let output = record_command(method, &recording, &[&"/usr/bin/python3", &script, &database]);
        let (code, said) = told(&output);
        if code != Some(0) {
            eprintln!("skipped: no Python with SQLite: {said}");
            return;
        }
        let found = derive(&calls(&recording)).expect("commits");
        let modes: Vec<RecordedMode> = found.parts().map(|part| part.mode).collect();
        use RecordedMode::{Delete, Wal};
        assert_eq!(modes, [Delete, Wal, Wal, Delete, Wal, Wal, Wal], "{method}: {:?}", found.notes);
        std::fs::remove_file(&database).expect("a database");
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

/// Transactions that a cache of ten pages cannot hold, so that their frames are written before they end, and some again; with rollbacks.
/// Word 2: the extension or nothing; word 3: a file's parameters; word 4: the locking mode; word 5: synchronous.
const OUTGROWING: &str = "
import os, random, sqlite3, sys
if sys.argv[2]:
    first = sqlite3.connect(':memory:')
    first.enable_load_extension(True)
    first.load_extension(sys.argv[2])
db = sqlite3.connect('file:' + sys.argv[1] + '?' + sys.argv[3], uri=True, isolation_level=None)
run = db.execute
run('PRAGMA locking_mode=' + sys.argv[4])
run('PRAGMA page_size=1024')
run('PRAGMA journal_mode=WAL')
run('PRAGMA wal_autocheckpoint=0')
run('PRAGMA synchronous=' + sys.argv[5])
run('PRAGMA cache_size=10')
run('PRAGMA cache_spill=ON')
run('CREATE TABLE t(a INTEGER PRIMARY KEY, b)')
draw = random.Random(5)
run('BEGIN')
for i in range(300):
    run('INSERT INTO t VALUES(?, ?)', [i, 'x' * 400])
run('COMMIT')
for turn in range(12):
    run('BEGIN')
    for step in range([3, 60, 120][turn % 3]):
        run('UPDATE t SET b=? WHERE a=?', [chr(97 + turn) * 400, draw.randrange(300)])
        if step == 40 and turn % 2:
            run('SAVEPOINT s')
        if step == 80 and turn % 2:
            run('ROLLBACK TO s')
    run('ROLLBACK' if turn % 4 == 2 else 'COMMIT')
os._exit(0)
";

/// Of each commit in a log the pages, by its frames from the first to the last with a mark.
fn commits_of(log: &[u8], page_bytes: usize) -> Vec<Vec<u32>> {
    let long = |at: usize| u32::from_be_bytes([log[at], log[at + 1], log[at + 2], log[at + 3]]);
    let mut commits = Vec::new();
    let mut pages = BTreeSet::new();
    let mut mark = (0, 0);
    for at in (32..log.len() - 24).step_by(24 + page_bytes) {
        // Frames of this log have its salts; what lies behind is of a rollback, or zeros.
        if (long(at + 8), long(at + 12)) != (long(16), long(20)) {
            break;
        }
        // Without powersafe overwrite the last frame is there again, up to the end of a sector.
        if pages.is_empty() && (long(at), long(at + 4)) == mark {
            continue;
        }
        pages.insert(long(at));
        if long(at + 4) > 0 {
            mark = (long(at), long(at + 4));
            commits.push(std::mem::take(&mut pages).into_iter().collect());
        }
    }
    commits
}

#[test]
fn transactions_that_outgrow_their_cache_have_the_pages_of_the_log() {
    let scratch = Scratch::new("live-outgrowing");
    let script = scratch.write("outgrowing.py", OUTGROWING);
    let extension = waldio::extension().map(|path| path.to_string_lossy().into_owned());
    let stock = ["psow=1", "psow=0"].map(|parameters| (String::new(), parameters.to_owned()));
    let through = extension.iter().flat_map(|file| {
        let persist = ["flush", "fua"].map(|how| format!("vfs=waldio&waldio_persist={how}"));
        persist.map(|parameters| (file.clone(), parameters))
    });
    let mut spilled = 0;
    for (extension, parameters) in stock.into_iter().chain(through) {
        for (method, locking, synchronous) in methods().into_iter().flat_map(|method| {
            [(method, "normal", "full"), (method, "normal", "normal"), (method, "exclusive", "full")]
        }) {
            if parameters == "psow=0" && locking == "exclusive" {
                // Nothing tells such a frame from a commit of the same page.
                continue;
            }
            let case = format!("{method} {parameters} {locking} {synchronous}");
            let name = case.replace([' ', '&', '='], "-");
            let database = scratch.file(&name);
            let recording = scratch.file("it.joj");
            let words: [&dyn AsRef<std::ffi::OsStr>; 7] =
                [&"/usr/bin/python3", &script, &database, &extension, &parameters, &locking, &synchronous];
            let (code, said) = told(&record_command(method, &recording, &words));
            let log = scratch.file(&format!("{name}-wal"));
            if code != Some(0) || !log.exists() {
                eprintln!("skipped: no Python with SQLite that loads extensions: {said}");
                return;
            }
            let expected = commits_of(&std::fs::read(log).expect("the log"), 1024);
            assert!(expected.len() >= 11, "{case}: {expected:?}");
            let found = derive(&calls(&recording)).expect("commits");
            let pages: Vec<Vec<u32>> = found.parts().map(|part| part.pages.clone()).collect();
            // The mode's own commit precedes the log.
            let pages = &pages[pages.len().saturating_sub(expected.len())..];
            let of_log = found.parts().filter(|part| part.mode == RecordedMode::Wal).count();
            assert_eq!((of_log, pages), (expected.len(), &*expected), "{case}");
            let rows = rows(&recording).into_iter().filter(|row| row.code == LOG_FRAME).count() as u64;
            spilled += rows - found.parts().map(|part| part.frames).sum::<u64>();
        }
    }
    assert!(spilled > 100, "only {spilled} heads were written again: nothing outgrew its cache");
}
