//! Goal: waldio takes little of a process and gives all of it back: memory, threads, file descriptors.
//! Method: /proc and the allocator of a process of its own, before and after a thousand openings, by one connection and by
//! several that write at once; peak memory of children, beside stock's.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use real::child::{Running, again, in_own_process, must, no_python, python, role};
use real::heap;
use real::place::{Scratch, skipped};
use real::sqlite::{Connection, ffi, system};
use real::writers::open;

/// Connections that write at once.
const WRITERS: usize = 3;

/// What the process holds now.
#[derive(Debug, Clone, Copy)]
struct Held {
    threads: usize,
    descriptors: usize,
    mappings: usize,
    resident_kib: u64,
    heap_bytes: usize,
}

fn held() -> Held {
    heap::trim();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Held {
        threads: fs::read_dir("/proc/self/task").unwrap().count(),
        descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
        mappings: fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
        resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
        heap_bytes: heap::in_use_bytes(),
    }
}

/// Opened, written, closed; some times enough to grow the log.
fn cycle(name: &str, number: usize) {
    let connection = system().open_with(name, None).unwrap();
    connection.rows("PRAGMA synchronous = NORMAL; PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b)");
    let rows = if number.is_multiple_of(25) { 90 } else { 1 };
    for _ in 0..rows {
        connection.rows("INSERT INTO t(b) VALUES (zeroblob(3000))");
    }
    connection.rows("DELETE FROM t");
}

#[test]
fn a_thousand_openings_leak_nothing() {
    in_own_process("a_thousand_openings_leak_nothing", || {
        system().load(None).unwrap();
        let scratch = Scratch::new("cycles");
        let name = |number: usize| {
            let persist = if number.is_multiple_of(2) { "flush" } else { "fua" };
            format!("file:{}?waldio_persist={persist}", scratch.join(&format!("{}.db", number % 7)).display())
        };
        (0..100).for_each(|number| cycle(&name(number), number));
        let before = held();
        (0..1000).for_each(|number| cycle(&name(number), number));
        let after = held();
        assert_eq!(after.threads, before.threads, "{before:?} {after:?}");
        assert_eq!(after.descriptors, before.descriptors, "{before:?} {after:?}");
        assert!(after.resident_kib < before.resident_kib + 1024, "{before:?} {after:?}");
    });
}

/// Opened by several threads, written by all at once, closed: the line, numbers, the worker and often the barrier are used.
fn contended_cycle(path: &Path, number: usize) {
    let start = Barrier::new(WRITERS);
    // Some times enough to fill the log, so that it grows.
    let commits = if number.is_multiple_of(25) { 30 } else { 1 };
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let connection = open(system(), path);
                connection.rows("SELECT count(*) FROM t");
                start.wait();
                for _ in 0..commits {
                    connection.rows("INSERT INTO t VALUES (1, 1, zeroblob(3000))");
                }
                connection.rows("DELETE FROM t");
            });
        }
    });
}

/// So many cycles, on all databases at once, each alone with its own: most of a cycle is waiting for flushes.
fn contended_cycles(paths: &[PathBuf], number: usize) {
    thread::scope(|scope| {
        for path in paths {
            scope.spawn(move || (0..number / paths.len()).for_each(|number| contended_cycle(path, number)));
        }
    });
}

#[test]
fn a_thousand_openings_by_several_writers_leak_nothing() {
    in_own_process("a_thousand_openings_by_several_writers_leak_nothing", || {
        // Threads get arenas as they come and find others in use: how much each holds back would be chance.
        heap::use_one_arena();
        let scratch = Scratch::new("contended");
        system().load(None).unwrap();
        let paths = [0, 1, 2, 3].map(|number| scratch.join(&format!("{number}.db")));
        for path in &paths {
            open(system(), path).rows("PRAGMA journal_mode=WAL; CREATE TABLE t(writer, number, value)");
        }
        contended_cycles(&paths, 120);
        let before = held();
        contended_cycles(&paths, 1000);
        let after = held();
        let held = format!("{before:?} {after:?}");
        eprintln!("{held}");
        assert_eq!(after.descriptors, before.descriptors, "{held}");
        // The kernel may still list the last of the writers' threads when their scope has ended, and their stacks are
        // kept for the next ones.
        assert!(after.threads < before.threads + WRITERS, "{held}");
        assert!(after.mappings < before.mappings + 40, "{held}");
        // The growing thread keeps some freed blocks of each size. An allocation of 64 bytes that each cycle leaves
        // behind, or a page, is as much as this.
        assert!(after.heap_bytes < before.heap_bytes + (64 << 10), "{held}");
        assert!(after.resident_kib < before.resident_kib + 4096, "{held}");
    });
}

/// Peak resident memory of a process that wrote 2,000 rows, in KiB.
fn peak_kib(path: &Path, side: &str) -> u64 {
    let arguments = ["write", path.to_str().unwrap(), side, "writer", "2000", "NORMAL"];
    let (lines, well) = Running::start(&mut python("worker.py", &arguments)).finish();
    assert!(well, "{side} failed");
    let (_, peak) = lines.last().unwrap().split_once("\"peak_rss_kib\": ").unwrap();
    peak.trim_end_matches('}').parse().unwrap()
}

#[test]
fn an_open_database_takes_less_than_8_mib_more_than_with_stock() {
    if let Some(why) = no_python() {
        return skipped(&why);
    }
    let scratch = Scratch::new("memory");
    let [stock, buffered, direct] =
        ["stock", "waldio", "waldio-fua"].map(|side| peak_kib(&scratch.join(&format!("{side}.db")), side));
    for (side, kib) in [("buffered", buffered), ("direct", direct)] {
        assert!(kib < stock + (8 << 10), "{side}: {kib} KiB, and stock {stock}");
    }
    eprintln!("peak KiB: stock {stock}, buffered {buffered}, direct {direct}");
}

/// Databases that are open at once, with so many rows each: what the process holds before and with them, and the longest log.
fn many_small(directory: &Path, options: &str, rows: usize) -> (Held, Held, u64) {
    fs::create_dir(directory).unwrap();
    let name = |number: usize| format!("file:{}?{options}", directory.join(format!("{number}.db")).display());
    // What the first one takes is the process's.
    let _first = small(&name(SMALL), rows);
    let before = held();
    let open: Vec<_> = (0..SMALL).map(|number| small(&name(number), rows)).collect();
    let after = held();
    let logs =
        (0..SMALL).map(|number| fs::metadata(directory.join(format!("{number}.db-wal"))).unwrap().len());
    let largest = logs.max().unwrap();
    drop(open);
    (before, after, largest)
}

const SMALL: usize = 40;

fn small(name: &str, rows: usize) -> Connection {
    let connection = system().open_with(name, None).unwrap();
    connection.rows("PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
    (0..rows).for_each(|_| drop(connection.rows("INSERT INTO t VALUES (zeroblob(100))")));
    connection
}

#[test]
fn of_forty_small_databases_each_costs_little() {
    in_own_process("of_forty_small_databases_each_costs_little", || {
        system().load(None).unwrap();
        let scratch = Scratch::new("small");
        for (rows, log_kib_max) in [(1, 32), (20, 512)] {
            let [stock, ours] = ["off", "on"].map(|on| {
                let options = if on == "off" { "waldio=off" } else { "waldio_durability=full" };
                let (before, after, log_bytes) =
                    many_small(&scratch.join(&format!("{on}{rows}")), options, rows);
                eprintln!("{on}, {rows} rows: log of {log_bytes} bytes, {before:?} {after:?}");
                let each_kib = (after.resident_kib - before.resident_kib) / SMALL as u64;
                (each_kib, after.descriptors - before.descriptors, log_bytes >> 10)
            });
            assert!(
                ours.0 < stock.0 + 100,
                "{rows} rows: {} KiB of memory each, and stock {}",
                ours.0,
                stock.0
            );
            assert_eq!(ours.1, stock.1, "{rows} rows: descriptors");
            assert!(ours.2 <= log_kib_max, "{rows} rows: a log of {} KiB", ours.2);
        }
    });
}

const STARVED: &str = "a_process_without_memory_is_told_so_and_goes_on";

/// Commits as long as there is memory, and when there is none; opens once more.
fn starve(path: &str, options: &str, kib: usize) {
    system().load(None).unwrap();
    let name = format!("file:{path}?{options}");
    let db = system().open_with(&name, None).unwrap();
    db.rows(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a, b); INSERT INTO t VALUES(0, 0)",
    );
    println!("began");
    heap::exhaust(kib);
    let mut acknowledged = 0;
    for number in 1..60 {
        let sql = match number % 8 {
            7 => "PRAGMA wal_checkpoint(TRUNCATE)",
            4 => "INSERT INTO t VALUES(2, zeroblob(60000))",
            _ => "INSERT INTO t VALUES(2, 1)",
        };
        let error = db.run(sql).1;
        acknowledged += usize::from(error.is_none() && sql.starts_with("INSERT"));
        let code = error.map_or(0, |error| error.primary());
        assert!([0, ffi::SQLITE_NOMEM, ffi::SQLITE_IOERR].contains(&code), "{sql}: {code}");
    }
    // Whether it can be had is all the same.
    drop(system().open_with(&name, None));
    println!("acknowledged {acknowledged}");
}

/// SQLite answers `SQLITE_NOMEM`; what it acknowledged is there.
#[test]
fn a_process_without_memory_is_told_so_and_goes_on() {
    if let Some(given) = role(STARVED) {
        return starve(&given[0], &given[1], given[2].parse().unwrap());
    }
    // A log in the embedded layout stays where the close had no memory to copy it.
    system().load(None).unwrap();
    for options in ["waldio_layout=stock", "waldio_layout=embedded", "waldio_persist=fua"] {
        for kib in [0, 4, 10, 24, 48, 100] {
            let scratch = Scratch::new("starved");
            let path = scratch.join("a.db");
            let told = must(&mut again(STARVED, &[path.to_str().unwrap(), options, &kib.to_string()]));
            let acknowledged = told.lines().find_map(|line| line.strip_prefix("acknowledged ")).unwrap();
            let acknowledged: usize = acknowledged.parse().unwrap();
            let db = system().open(&path);
            assert_eq!(db.one("PRAGMA integrity_check"), "ok", "{options}, {kib} KiB");
            let rows: usize = db.one("SELECT count(*) FROM t").parse().unwrap();
            assert!(rows > acknowledged, "{options}, {kib} KiB: {rows} rows of {acknowledged} and one");
        }
    }
}

/// A copy of the log's newest frames is a convenience: where there is no memory for it, commits go on without.
#[test]
fn a_process_with_little_memory_left_goes_on() {
    if let Some(reason) = no_python() {
        return skipped(&reason);
    }
    system().load(None).unwrap();
    for options in ["waldio_layout=stock", "waldio_persist=fua", "waldio_persist=fua&waldio_layout=embedded"]
    {
        for kib in ["2500", "5000", "6000"] {
            let scratch = Scratch::new("narrow");
            let path = scratch.join("a.db");
            let told = must(&mut python("little_memory.py", &[path.to_str().unwrap(), options, kib]));
            let acknowledged: u32 = told.trim().strip_prefix("acknowledged ").unwrap().parse().unwrap();
            assert!(acknowledged > 0, "{options}, {kib} KiB");
            let db = system().open(&path);
            assert_eq!(db.one("PRAGMA integrity_check"), "ok", "{options}, {kib} KiB");
            let rows: u32 = db.one("SELECT count(*) FROM t").parse().unwrap();
            assert!(rows >= acknowledged, "{options}, {kib} KiB: {rows} rows of {acknowledged}");
        }
    }
}

/// SQLite closes a database that it opened at a descriptor below 3, and with that gives back all locks of the process.
#[test]
fn closed_standard_streams_are_filled_before_a_database_can_take_their_place() {
    if let Some(reason) = no_python() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("streams");
    let path = scratch.join("a.db");
    let told = must(&mut python("closed_streams.py", &[path.to_str().unwrap()]));
    assert_eq!(told, "/dev/null, another process is refused, /dev/null");
    assert_eq!(system().open(&path).one("SELECT group_concat(a) FROM t"), "1");
}

/// A thread of waldio's own opens nothing: at a descriptor that the program has just closed, what it prints would go to the log.
#[test]
fn what_a_program_prints_beside_its_commits_goes_to_no_file_of_ours() {
    if let Some(reason) = no_python() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("talkative");
    let path = scratch.join("a.db");
    let told = must(&mut python("talkative.py", &[path.to_str().unwrap(), "3000"]));
    assert_eq!(told, "spoiled 0, written for it 0");
    assert_eq!(system().open(&path).one("PRAGMA integrity_check"), "ok");
}

/// Its threads end when they have nothing to do.
#[test]
fn a_program_whose_main_thread_ends_first_ends() {
    if let Some(reason) = no_python() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("leaving");
    let path = scratch.join("a.db");
    let threads = must(&mut python("leaving.py", &[path.to_str().unwrap()]));
    assert_eq!(threads, "waldio-flush waldio-grow", "they ran");
    assert_eq!(system().open(&path).one("SELECT count(*) FROM t"), "200");
}
