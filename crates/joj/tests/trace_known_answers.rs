//! Goal: what joj trace says of one INSERT is what was measured of it, to the kilobyte, and to each flush.
//! Method: twelve INSERTs in each journal mode on a fresh filesystem in a loop image; the median of the last nine.
//! Source: SQLite 3.40.1's calls and Linux's ext4, XFS and Btrfs; the same on kernels 6.1 and 6.18.

mod trace;

use serde_json::Value;
use std::path::PathBuf;
use trace::volume::{Volume, has_backend, joj, volume_or_skip};

/// KiB of data, of the filesystem's journal, of that for SQLite's journal; flushes; sync calls.
type Answer = (&'static str, [u64; 5]);

/// With fdatasync, as Debian builds SQLite.
const EXT4: [Answer; 5] = [
    ("OFF", [8, 0, 0, 1, 1]),
    ("WAL", [8, 20, 20, 2, 1]),
    ("DELETE", [24, 32, 32, 4, 4]),
    ("TRUNCATE", [24, 44, 44, 6, 5]),
    ("PERSIST", [28, 12, 12, 6, 5]),
];

/// With fsync, as most bundled builds have it. OFF and WAL are those of the WALDIO paper's Table 1.
const EXT4_FSYNC: [Answer; 5] = [
    ("OFF", [8, 12, 0, 2, 1]),
    ("WAL", [8, 20, 20, 2, 1]),
    ("DELETE", [24, 44, 32, 5, 4]),
    ("TRUNCATE", [24, 56, 44, 7, 5]),
    ("PERSIST", [28, 24, 12, 6, 5]),
];

fn commits(volume: &Volume, backend: &str, mode: &str, fsync: bool) -> (Value, Vec<Value>) {
    let json = volume.beside("summary.json");
    let preload: Vec<(&str, PathBuf)> =
        if fsync { vec![("LD_PRELOAD", volume.fsync_only())] } else { Vec::new() };
    let options = ["--backend", backend, "--steps=100", "--json", json.to_str().expect("UTF-8")];
    let output = joj(volume, &options, &preload, &volume.inserts(mode, 12));
    assert!(output.status.success(), "{mode}: {}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
    let transactions = summary["transactions"].as_array().expect("transactions").clone();
    let commits: Vec<Value> = transactions.into_iter().filter(|one| one["what"] == "commit").collect();
    (summary, commits)
}

/// The median of a quantity over the last nine commits: the journal's own clock may add a commit to one of them.
fn median(commits: &[Value], quantity: &str) -> u64 {
    let mut values: Vec<u64> =
        commits.iter().rev().take(9).map(|one| one[quantity].as_u64().expect("a number")).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

fn answer(commits: &[Value]) -> [u64; 5] {
    let kib = |quantity| median(commits, quantity) / 1024;
    let joj = kib("journal_of_journal_bytes");
    [kib("data_bytes"), kib("journal_bytes"), joj, median(commits, "flushes"), median(commits, "syncs")]
}

/// Nothing is missing, nothing is unplaced: the device's own counters say the same.
fn nothing_is_missing(summary: &Value, mode: &str) {
    assert_eq!(summary["lost"], 0, "{mode}");
    assert_eq!(summary["attributed_share"], 1.0, "{mode}");
    let disk = &summary["disks"][0];
    assert_eq!(disk["written"]["bytes"], disk["counted_written_bytes"], "{mode}: {disk}");
    assert_eq!(disk["flushes"], disk["counted_flushes"], "{mode}: {disk}");
    let seen = |path: &str| summary.pointer(path).and_then(Value::as_u64).expect("a number");
    let writes = seen("/disks/0/written/requests") + seen("/disks/0/empty_flushes");
    assert_eq!(Some(writes), disk["counted_writes"].as_u64(), "{mode}: {disk}");
}

fn check_ext4(backend: &str, fsync: bool, answers: &[Answer]) {
    let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend(backend)) else { return };
    for (mode, expected) in answers {
        let (summary, commits) = commits(&volume, backend, mode, fsync);
        assert_eq!(
            answer(&commits),
            *expected,
            "{backend} {mode}: data, journal, JOJ in KiB, flushes, syncs"
        );
        nothing_is_missing(&summary, mode);
    }
}

#[test]
fn an_insert_on_ext4_writes_what_it_is_known_to_write() {
    check_ext4("bpf", false, &EXT4);
}

#[test]
fn an_insert_on_ext4_with_fsync_writes_what_the_paper_saw() {
    check_ext4("bpf", true, &EXT4_FSYNC);
}

#[test]
fn a_capture_without_ebpf_sees_the_same_on_ext4() {
    check_ext4("tracefs", false, &EXT4);
}

#[test]
fn an_insert_on_xfs_writes_its_data_and_a_few_sectors_of_log() {
    let Some(volume) = volume_or_skip("xfs").filter(|_| has_backend("bpf")) else { return };
    for (mode, data, log) in [
        ("OFF", 8, 0..=0),
        ("WAL", 8, 1..=2),
        ("DELETE", 24, 2..=4),
        ("TRUNCATE", 24, 3..=4),
        ("PERSIST", 28, 1..=2),
    ] {
        let (summary, commits) = commits(&volume, "bpf", mode, false);
        let found = answer(&commits);
        assert!(found[0] == data && log.contains(&found[1]), "{mode}: {found:?}");
        nothing_is_missing(&summary, mode);
    }
}

#[test]
fn an_insert_on_btrfs_writes_its_log_trees_twice_and_the_superblock() {
    let Some(volume) = volume_or_skip("btrfs").filter(|_| has_backend("bpf")) else { return };
    // Two nodes of 16 KiB, each twice, and 4 KiB of superblock for each sync that has something to log.
    for (mode, data, all) in [("OFF", 8, 76), ("WAL", 8, 76), ("DELETE", 24, 296), ("PERSIST", 28, 300)] {
        let (summary, commits) = commits(&volume, "bpf", mode, false);
        let found = answer(&commits);
        let other = median(&commits, "other_bytes") / 1024;
        assert_eq!((found[0], found[0] + found[1] + other), (data, all), "{mode}: {found:?}");
        nothing_is_missing(&summary, mode);
    }
}
