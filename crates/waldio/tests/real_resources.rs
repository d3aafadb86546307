//! Goal: waldio takes little of a process and gives all of it back: memory, threads, file descriptors.
//! Method: /proc of a process of its own, before and after a thousand openings; peak memory of children, beside stock's.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::fs;
use std::path::Path;

use real::child::{Running, in_own_process, no_python, python};
use real::place::{Scratch, skipped};
use real::sqlite::system;

/// What the process holds now: threads, descriptors, resident KiB.
#[derive(Debug, Clone, Copy)]
struct Held {
    threads: usize,
    descriptors: usize,
    resident_kib: u64,
}

fn held() -> Held {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Held {
        threads: fs::read_dir("/proc/self/task").unwrap().count(),
        descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
        resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
    }
}

/// Opened, written, closed; some times enough to keep and take a spare, and to grow the log.
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
