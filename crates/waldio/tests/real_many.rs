//! Goal: 64 connections that write at once all get their turn, in one process and in several, and the log stays small.
//! Method: each commits a bounded number of rows with a busy timeout of a minute; no COMMIT may fail.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use real::child::in_own_process;
use real::crew::{Crew, Orders, at_work};
use real::place::Scratch;
use real::promises::{self, check};
use real::sqlite::system;
use real::writers::{all_there, number, prepare, write};

/// Twice the working size (`waldio_log_bytes`).
const LOG_BYTES_MAX: u64 = 2 * (4 << 20);

/// What the log of 64 writers of this process grew to.
fn log_bytes_of_one_process() -> u64 {
    const COMMITS: usize = 150;
    let scratch = Scratch::new("many");
    let path = scratch.join("a.db");
    let db = prepare(system(), &path);
    write(system(), &path, 64, COMMITS);
    all_there(&db, 64, COMMITS);
    let largest = number(&db, "largest_group");
    assert!(largest > 8, "at most {largest} of 64 shared a flush");
    number(&db, "log_file_bytes")
}

#[test]
fn sixty_four_connections_of_one_process_get_their_turn() {
    in_own_process("sixty_four_connections_of_one_process_get_their_turn", || {
        // Beside other programs a barrier may open again before 64 threads had the processor once.
        let log_bytes = (0..3).map(|_| log_bytes_of_one_process()).find(|bytes| *bytes <= LOG_BYTES_MAX);
        assert!(log_bytes.is_some(), "the log grew to more than {LOG_BYTES_MAX} bytes three times");
    });
}

/// What the log of 16 writers in each of four processes grew to.
fn log_bytes_of_four_processes(test: &str) -> u64 {
    const COMMITS: u64 = 150;
    let scratch = Scratch::new("many-processes");
    let database = scratch.join("app.db");
    let db = promises::prepare(&database);
    let crews = ["a", "b", "c", "d"]
        .map(|name| Orders { writers: 16, commits: COMMITS, ..Orders::new(&database, name) }.start(test));
    let gone: Vec<_> = crews.into_iter().flat_map(Crew::finish).collect();
    assert!(gone.iter().all(|gone| gone.acknowledged == COMMITS), "{gone:?}");
    assert_eq!(db.one("SELECT count(*) FROM rows"), (64 * COMMITS).to_string());
    let log_bytes = number(&db, "log_file_bytes");
    drop(db);
    check(&database, &gone, 0, true);
    log_bytes
}

#[test]
fn sixty_four_connections_of_four_processes_get_their_turn() {
    const NAME: &str = "sixty_four_connections_of_four_processes_get_their_turn";
    if at_work(NAME) {
        return;
    }
    // As above; and a process knows nothing of another one's barrier. All frames are 40 MB; beside eight busy loops on two
    // processors the log was 8 to 17.
    let log_bytes_max = 2 * LOG_BYTES_MAX;
    let log_bytes = (0..3).map(|_| log_bytes_of_four_processes(NAME)).find(|bytes| *bytes <= log_bytes_max);
    assert!(log_bytes.is_some(), "the log grew to more than {log_bytes_max} bytes three times");
}
