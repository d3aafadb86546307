//! Goal: the WAL-reset corruption of SQLite before 3.51.3 (sqlite.org/wal.html#walresetbug) cannot happen on waldio.
//! Method: on the system's SQLite, from a shim's `xUnfetch`, which SQLite calls between reading the log's header and
//! working from it, a second connection resets the log. Stock SQLite corrupts its database every time; so does waldio
//! with its guard taken out (feature `planted-bugs`); with the guard the checkpoint does nothing and the next one all.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use real::place::{Scratch, skipped};
use real::sqlite::{Connection, Library, ffi, system};
use real::sqlite_shim::{self, Event};

/// What the shims run in the checkpoint, once. One for the process, as planted bugs are.
static RACE: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

fn spring(event: Event) {
    if event == Event::Unfetch {
        let race = RACE.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(race) = race {
            race();
        }
    }
}

/// The system's SQLite with waldio over it, and a shim above each of the two.
struct Stage {
    library: &'static Library,
    _alone: MutexGuard<'static, ()>,
}

fn stage() -> Option<Stage> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let library = system();
    if library.version_number() >= 3_051_003 {
        skipped("the system's SQLite is 3.51.3 or newer, which has the race no more");
        return None;
    }
    if library.vfs_name(Some("race-stock")).is_none() {
        library.load_linked();
        sqlite_shim::register(library, c"race-stock", Some(c"unix"), false, spring);
        sqlite_shim::register(library, c"race-waldio", Some(c"waldio"), false, spring);
    }
    Some(Stage { library, _alone: alone })
}

/// What the race left.
struct Outcome {
    raced: bool,
    integrity: String,
    rows: String,
    resets_caught: String,
    /// Result, frames, copied: of the checkpoint after the one that was raced.
    next: (i32, i32, i32),
}

const ROWS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
    INSERT INTO t(v) SELECT hex(randomblob(300)) FROM n";

/// The log is full and copied; a checkpoint begins and reads its header; the log is reset and gets a small
/// transaction; the checkpoint goes on. Then writes until the log is longer than it was, another checkpoint.
fn race(stage: &Stage, vfs: &str, path: &Path) -> Outcome {
    let open = || {
        let connection = stage.library.open_with(path.to_str().unwrap(), Some(vfs)).unwrap();
        connection.rows("PRAGMA wal_autocheckpoint = 0");
        connection
    };
    let writer = open();
    writer.rows("PRAGMA journal_mode = WAL; CREATE TABLE t(v); CREATE INDEX i ON t(v)");
    let checkpointer = open();
    checkpointer.rows("SELECT count(*) FROM t");
    for _ in 0..3 {
        writer.rows(ROWS);
    }
    let (_, frames, copied) = writer.checkpoint(ffi::SQLITE_CHECKPOINT_PASSIVE);
    assert_eq!(frames, copied, "nothing reads: all is copied");

    let raced = Arc::new(Mutex::new(None));
    let (result, writer) = (Arc::clone(&raced), Arc::new(Mutex::new(writer)));
    let racing = Arc::clone(&writer);
    *RACE.lock().unwrap() = Some(Box::new(move || {
        let answer = racing.lock().unwrap().run("INSERT INTO t(v) VALUES ('after the reset')").1;
        *result.lock().unwrap() = Some(answer);
    }));
    let (code, _, _) = checkpointer.checkpoint(ffi::SQLITE_CHECKPOINT_PASSIVE);
    assert_eq!(code, ffi::SQLITE_OK, "a passive checkpoint that can do nothing is no error");
    let raced = raced.lock().unwrap().take();

    let writer = writer.lock().unwrap();
    for _ in 0..6 {
        writer.run(ROWS);
    }
    let next = checkpointer.checkpoint(ffi::SQLITE_CHECKPOINT_PASSIVE);
    // Not the writer: its cache still has the pages that the file lacks.
    let reader = open();
    Outcome {
        raced: raced.is_some_and(|error| error.is_none()),
        integrity: first(&reader, "PRAGMA integrity_check"),
        rows: first(&reader, "SELECT count(*) FROM t NOT INDEXED"),
        resets_caught: if vfs == "race-waldio" { writer.status("resets_caught") } else { String::new() },
        next,
    }
}

/// The first value, or the error in words.
fn first(connection: &Connection, sql: &str) -> String {
    match connection.run(sql) {
        (_, Some(error)) => error.to_string(),
        (rows, None) => rows.into_iter().flatten().next().unwrap_or_default(),
    }
}

/// 3 batches of 40, the row after the reset, 6 more batches.
const ALL_ROWS: &str = "361";

fn is_corrupt(outcome: &Outcome) -> bool {
    outcome.integrity != "ok" || outcome.rows != ALL_ROWS
}

#[test]
fn stock_corrupts_its_database() {
    let Some(stage) = stage() else { return };
    let scratch = Scratch::new("reset-stock");
    let outcome = race(&stage, "race-stock", &scratch.join("app.db"));
    assert!(outcome.raced, "the race was not run: SQLite never called xUnfetch");
    assert!(is_corrupt(&outcome), "stock survived with {} rows: this race proves nothing", outcome.rows);
    assert!(outcome.integrity != "ok", "integrity_check says ok of {} rows", outcome.rows);
}

#[test]
fn the_guard_keeps_the_database_whole() {
    let Some(stage) = stage() else { return };
    #[cfg(feature = "planted-bugs")]
    waldio::testing::planted::set(None);
    let scratch = Scratch::new("reset-guard");
    let outcome = race(&stage, "race-waldio", &scratch.join("app.db"));
    assert!(outcome.raced, "the race was not run: SQLite never called xUnfetch");
    assert_eq!(outcome.integrity, "ok");
    assert_eq!(outcome.rows, ALL_ROWS);
    assert_eq!(outcome.resets_caught, "1");
    let (code, frames, copied) = outcome.next;
    assert_eq!(code, ffi::SQLITE_OK);
    assert!(frames > 0 && frames == copied, "the next checkpoint copied {copied} of {frames} frames");
}

#[cfg(feature = "planted-bugs")]
#[test]
fn without_the_guard_waldio_corrupts_it_too() {
    let Some(stage) = stage() else { return };
    waldio::testing::planted::set(Some(waldio::testing::planted::Bug::ResetGuardOff));
    let scratch = Scratch::new("reset-planted");
    let outcome = race(&stage, "race-waldio", &scratch.join("app.db"));
    waldio::testing::planted::set(None);
    assert!(outcome.raced, "the race was not run: SQLite never called xUnfetch");
    assert!(is_corrupt(&outcome), "the guard is not what keeps it whole");
    assert_eq!(outcome.resets_caught, "0");
}
