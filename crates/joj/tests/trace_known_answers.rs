//! Goal: what joj trace says of one INSERT is what was measured of it, to the kilobyte, and to each flush.
//! Method: twelve INSERTs in each journal mode on a fresh filesystem in a loop image; one of the last nine, or their median.
//! Source: SQLite 3.40.1's calls and Linux's ext4, XFS and Btrfs; the same on kernels 6.1 and 6.18.

mod trace;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use trace::inserts::{Traced, written_parts};
use trace::volume::{Volume, has_backend, joj, or_skip, volume_or_skip};

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

/// `mkfs.ext4 -O fast_commit`: 4 KiB instead of 20 say that a file grew.
const EXT4_FAST_COMMIT: [Answer; 2] = [("WAL", [8, 4, 4, 2, 1]), ("DELETE", [24, 36, 36, 6, 4])];

/// Mounted with data=journal: the log has the data too.
const EXT4_JOURNAL_OF_DATA: [Answer; 1] = [("WAL", [8, 36, 36, 3, 1])];

/// In DELETE mode a block of metadata is logged in one commit more or less; the mean over many is 83 KiB.
const EXT4_JOURNAL_OF_DATA_DELETE: [[u64; 5]; 2] = [[24, 80, 60, 11, 4], [24, 84, 64, 11, 4]];

/// The log on another disk: as many bytes, and a flush more, of the filesystem's disk before the log's commit.
const EXT4_JOURNAL_ELSEWHERE: [Answer; 2] = [("WAL", [8, 20, 20, 3, 1]), ("DELETE", [24, 32, 32, 5, 4])];

fn check_ext4(backend: &str, fsync: bool, answers: &[Answer]) {
    let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend(backend)) else { return };
    for (mode, expected) in answers {
        let preload = if fsync { vec![("LD_PRELOAD", volume.fsync_only())] } else { Vec::new() };
        let traced = Traced::inserts(&volume, backend, mode, &preload);
        traced.has_answer(*expected, if fsync { 3 } else { 0 }, &format!("{backend} {mode}"));
        traced.nothing_is_missing(mode);
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

fn check_xfs(backend: &str) {
    let Some(volume) = volume_or_skip("xfs").filter(|_| has_backend(backend)) else { return };
    for (mode, data, log) in [
        ("OFF", 8, 0..=0),
        ("WAL", 8, 1..=2),
        ("DELETE", 24, 2..=4),
        ("TRUNCATE", 24, 3..=4),
        ("PERSIST", 28, 1..=2),
    ] {
        let traced = Traced::inserts(&volume, backend, mode, &[]);
        let found = ["data_bytes", "journal_bytes"].map(|quantity| traced.kib(quantity));
        assert!(found[0] == data && log.contains(&found[1]), "{backend} {mode}: {found:?}");
        assert_eq!(traced.journal_parts, names(&["log record"]), "{backend} {mode}");
        traced.nothing_is_missing(mode);
    }
}

#[test]
fn an_insert_on_xfs_writes_its_data_and_a_few_sectors_of_log() {
    check_xfs("bpf");
}

#[test]
fn a_capture_without_ebpf_sees_the_same_on_xfs() {
    check_xfs("tracefs");
}

#[test]
fn an_insert_on_btrfs_writes_its_log_trees_twice_and_the_superblock() {
    check_btrfs("bpf");
}

#[test]
fn a_capture_without_ebpf_sees_the_same_on_btrfs() {
    check_btrfs("tracefs");
}

fn check_btrfs(backend: &str) {
    let Some(volume) = volume_or_skip("btrfs").filter(|_| has_backend(backend)) else { return };
    // Two nodes of 16 KiB, each twice, and 4 KiB of superblock for each sync that has something to log. SQLite syncs the directory
    // whenever it opens its journal: with PERSIST nothing was made there, which Btrfs logs only once its own transaction, of 30 s,
    // has ended since the directory was last changed.
    for (mode, data, syncs) in
        [("OFF", 8, 1..=1), ("WAL", 8, 1..=1), ("DELETE", 24, 4..=4), ("PERSIST", 28, 4..=5)]
    {
        let traced = Traced::inserts(&volume, backend, mode, &[]);
        let found = ["data_bytes", "journal_bytes", "other_bytes"].map(|quantity| traced.kib(quantity));
        let logged = found[2] / 4;
        assert!(syncs.contains(&logged), "{mode}: {logged} syncs that had something to log: {found:?}");
        assert_eq!(found, [data, 64 * logged, 4 * logged], "{mode}: data, log trees, superblock in KiB");
        assert_eq!(traced.journal_parts, names(&["log tree"]), "{mode}");
        traced.nothing_is_missing(mode);
    }
}

#[test]
fn a_commit_of_btrfs_names_the_trees_that_it_writes() {
    for backend in ["bpf", "tracefs"] {
        check_btrfs_trees(backend);
    }
}

fn check_btrfs_trees(backend: &str) {
    let Some(volume) = volume_or_skip("btrfs").filter(|_| has_backend(backend)) else { return };
    let (mounted, runs) = (volume.path().display().to_string(), volume.beside("runs.csv"));
    let command = format!("mkdir {mounted}/a && cp /bin/sh {mounted}/a/ && sync -f {mounted}");
    let export = format!("runs={}", runs.display());
    let command = ["/bin/sh", "-c", &command].map(str::to_owned);
    let output = joj(&volume, &["--backend", backend, "--export", &export], &[], &command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = names(&["checksum tree", "extent tree", "file tree", "root tree"]);
    assert_eq!(written_parts(&runs, "metadata"), expected, "{backend}");
}

fn check_variant(volume: &Volume, answers: &[Answer], parts: &[&str]) {
    for (mode, expected) in answers {
        let traced = Traced::inserts(volume, "bpf", mode, &[]);
        traced.has_answer(*expected, 0, mode);
        let missing: Vec<_> = parts.iter().filter(|part| !traced.journal_parts.contains(**part)).collect();
        assert!(missing.is_empty(), "{mode}: {missing:?} not in {:?}", traced.journal_parts);
        traced.nothing_is_missing(mode);
    }
}

#[test]
fn fast_commits_of_ext4_have_a_part_of_their_own() {
    let volume = or_skip(Volume::create_with("ext4", &["-O", "fast_commit"], "noatime"));
    let Some(volume) = volume.filter(|_| has_backend("bpf")) else { return };
    check_variant(&volume, &EXT4_FAST_COMMIT, &["fast commit"]);
}

#[test]
fn a_journal_of_data_holds_copies_of_files() {
    let volume = or_skip(Volume::create_with("ext4", &[], "noatime,data=journal"));
    let Some(volume) = volume.filter(|_| has_backend("bpf")) else { return };
    check_variant(&volume, &EXT4_JOURNAL_OF_DATA, &["log of data", "log of inode table"]);
    let traced = Traced::inserts(&volume, "bpf", "DELETE", &[]);
    let found = traced.answers();
    assert!(found.iter().any(|one| EXT4_JOURNAL_OF_DATA_DELETE.contains(one)), "DELETE: {found:?}");
    traced.nothing_is_missing("DELETE");
}

/// The volume frees a deleted journal's blocks by a discard, whose bytes nobody writes.
#[test]
fn discarded_blocks_are_not_written_whoever_captures() {
    let volume = or_skip(Volume::create_with("ext4", &[], "noatime,discard"));
    let Some(volume) = volume else { return };
    for backend in ["bpf", "tracefs"].into_iter().filter(|backend| has_backend(backend)) {
        for (mode, expected) in EXT4.into_iter().filter(|(mode, _)| ["DELETE", "TRUNCATE"].contains(mode)) {
            let traced = Traced::inserts(&volume, backend, mode, &[]);
            traced.has_answer(expected, 0, &format!("{backend} {mode}, discard"));
            traced.nothing_is_missing(mode);
            // What is in a block of the journal only eBPF sees.
            let share = &traced.summary["persistence"]["control_share"];
            assert_eq!(
                share.as_f64().is_some_and(|share| share > 0.1),
                backend == "bpf",
                "{backend}: {share}"
            );
            assert_eq!(share.is_null(), backend == "tracefs", "{backend}: {share}");
            let discards = &traced.summary["counts"]["discards"]["requests"];
            assert!(
                discards.as_u64().is_some_and(|count| count > 0),
                "{backend} {mode}: {discards} discards"
            );
        }
    }
}

#[test]
fn a_journal_on_another_disk_is_captured_with_its_filesystem() {
    let Some(volume) = or_skip(Volume::with_journal_elsewhere("ext4")).filter(|_| has_backend("bpf")) else {
        return;
    };
    check_variant(&volume, &EXT4_JOURNAL_ELSEWHERE, &["descriptor", "commit", "log of inode table"]);
}

#[test]
fn a_command_that_is_not_there_ends_as_in_a_shell() {
    if !has_backend("bpf") {
        return;
    }
    let joj = std::process::Command::new(env!("CARGO_BIN_EXE_joj"))
        .args(["trace", "--", "/no/such program"])
        .output();
    let output = joj.expect("joj");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(127) && said.contains("cannot run /no/such program"), "{said}");
}

#[test]
fn a_capture_of_nothing_is_an_error() {
    // Nothing of it is made later, in the background.
    let make = ["-E", "lazy_itable_init=0,lazy_journal_init=0"];
    let volume = or_skip(Volume::create_with("ext4", &make, "noatime"));
    let Some(volume) = volume.filter(|_| has_backend("bpf")) else { return };
    let files = ["nothing.json", "nothing.parquet", "nothing.csv"].map(|name| volume.beside(name));
    let [json, save, runs] = files.each_ref().map(|file| file.display().to_string());
    let options = ["--json", &json, "--save", &save, "--export", &format!("runs={runs}")];
    // What mounting wrote may still be on its way.
    let mut captures = (0..5).map(|_| {
        volume.settle();
        files.iter().for_each(|file| drop(std::fs::remove_file(file)));
        joj(&volume, &options, &[], &["true".to_owned()])
    });
    let output = captures.find(|output| !output.status.success()).expect("a capture of nothing");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("nothing was captured"), "{said}");
    assert!(!files.iter().any(|file| file.exists()), "no result of nothing");
    // A command that fails is the better reason.
    volume.settle();
    let failing = ["sh", "-c", "exit 3"].map(str::to_owned);
    assert_eq!(joj(&volume, &[], &[], &failing).status.code(), Some(3));
}

#[test]
fn a_trim_is_told_and_counted() {
    let volume = or_skip(Volume::create("ext4")).filter(|_| has_backend("bpf"));
    let Some(volume) = volume else { return };
    volume.settle();
    let trim = ["fstrim".to_owned(), volume.path().display().to_string()];
    let output = joj(&volume, &[], &[], &trim);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && told.contains("KiB discarded or zeroed in"), "{told}");
    let line = told.lines().find(|line| line.contains(" discards ")).expect("what the disk counted");
    assert!(line.trim_end().ends_with(" 0"), "{line}");
}

/// A process that stands still between two readings, on a busy machine, has no exact moment. One that never has one fails each time.
const TRIES_OF_ONE_MOMENT: usize = 4;

#[test]
fn a_capture_and_the_disks_counters_begin_and_end_at_one_moment() {
    let Some(volume) = volume_or_skip("ext4") else { return };
    for backend in ["bpf", "tracefs"].into_iter().filter(|backend| has_backend(backend)) {
        let mut differ = Vec::new();
        while differ.len() < TRIES_OF_ONE_MOMENT {
            let [seen, counted] = beside_an_endless_sync(&volume, backend);
            assert!(counted[0] > 20, "{backend}: {counted:?} is not busy");
            // A sync's write and commit may be under way at either end, and are then in one of the two alone.
            if seen.iter().zip(&counted).all(|(seen, counted)| seen.abs_diff(*counted) <= 2) {
                break;
            }
            differ.push([seen, counted]);
        }
        assert!(
            differ.len() < TRIES_OF_ONE_MOMENT,
            "{backend}: flushes and writes, seen and counted: {differ:?}"
        );
    }
}

/// Flushes and writes that a capture saw, and those that the disk counted. Before the capture, meanwhile and afterwards there is
/// always one thread whose fsync is under way, and never two.
fn beside_an_endless_sync(volume: &Volume, backend: &str) -> [[u64; 2]; 2] {
    let is_over = AtomicBool::new(false);
    let json = volume.beside("summary.json");
    let _ = std::fs::remove_file(&json);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = std::fs::File::create(volume.path().join("busy")).expect("a file");
            while !is_over.load(Ordering::Relaxed) {
                file.write_all(&[7; 4096]).and_then(|()| file.sync_all()).expect("a sync");
            }
        });
        let options = ["--backend", backend, "--json", json.to_str().expect("UTF-8")];
        let output = joj(volume, &options, &[], &["sleep".to_owned(), "0.3".to_owned()]);
        is_over.store(true, Ordering::Relaxed);
        output
    });
    assert!(output.status.success(), "{backend}: {}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
    let disk = &summary["disks"][0];
    let number = |path: &str| disk.pointer(path).and_then(Value::as_u64).expect("a number");
    let seen = [number("/flushes"), number("/written/requests") + number("/empty_flushes")];
    [seen, [number("/counted_flushes"), number("/counted_writes")]]
}

#[test]
fn a_process_that_is_not_there_is_not_traced() {
    // Above the most that Linux gives out.
    let joj = std::process::Command::new(env!("CARGO_BIN_EXE_joj"))
        .args(["trace", "--pid", "4194305", "--for", "1s"])
        .output();
    let output = joj.expect("joj");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("no process 4194305"), "{said}");
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
