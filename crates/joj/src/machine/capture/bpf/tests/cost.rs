//! A measurement: what a capture costs a commit of SQLite's.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::volume;
use crate::machine::capture::selection::Selection;
use crate::machine::capture::spool::Spool;
use crate::machine::capture::start::Capture;
use crate::machine::sqlite::connection::Connection;
use crate::machine::sqlite::sqlite_api::Api;

/// Inserts a row with a commit of its own 2,000 times, in a new database; how long each took, in nanoseconds.
fn commit_times(directory: &Path, times: &mut Vec<u64>) {
    let api = Api::bundled();
    for name in ["cost.db", "cost.db-wal", "cost.db-shm"] {
        let _ = fs::remove_file(directory.join(name));
    }
    let connection = Connection::open(&api, directory.join("cost.db").to_str().expect("a plain path"))
        .expect("a database");
    for sql in ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE t(a, b)"] {
        connection.run(sql).expect("SQL");
    }
    let sql = "INSERT INTO t VALUES(?1, 'a hundred bytes, more or less, as in the papers')";
    let mut insert = connection.prepare(sql).expect("SQL");
    for number in 0..2000 {
        let start = Instant::now();
        insert.bind_number(1, number).expect("a number");
        insert.run().expect("an insert");
        times.push(u64::try_from(start.elapsed().as_nanos()).expect("short"));
    }
}

/// A measurement, not a promise: what a capture costs SQLite in WAL mode with synchronous=FULL. Alternated; on a machine with
/// other work the lower quantiles are those of commits that nobody disturbed.
#[test]
#[ignore = "takes half a minute, and joj built with --release"]
fn cost_of_a_capture() {
    let Some(mounted) = volume("ext4", 512) else { return };
    let selection = Selection { devices: vec![mounted.disk()], log_contents: false, ..Selection::default() };
    let (mut without, mut with, mut events) = (Vec::new(), Vec::new(), 0);
    commit_times(&mounted.path(), &mut Vec::new());
    for _ in 0..20 {
        commit_times(&mounted.path(), &mut without);
        let spool = Spool::new(&std::env::temp_dir(), 0);
        let mut capture = Capture::bpf(&selection, spool).expect("a capture");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut count = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    capture
                        .poll(Duration::from_millis(100), &mut |_, _| count += 1)
                        .expect("a readable ring");
                }
                assert_eq!(capture.stop().expect("a readable ring"), 0);
                capture.drain(&mut |_| ControlFlow::Continue(()), &mut |_, _| count += 1).expect("records");
                count
            });
            commit_times(&mounted.path(), &mut with);
            done.store(true, Ordering::Relaxed);
            events += reader.join().expect("the reader");
        });
    }
    without.sort_unstable();
    with.sort_unstable();
    println!("{} commits each, {events} events", with.len());
    for percent in [5, 10, 25, 50, 75] {
        let (off, on) = (without[without.len() * percent / 100], with[with.len() * percent / 100]);
        println!("p{percent}: {off} ns without, {on} ns with, {:+} ns", i128::from(on) - i128::from(off));
    }
}
