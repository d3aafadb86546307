//! Goal: no byte is called what lay there before, where a disk gets another filesystem while it is traced, or a program writes to the disk itself.
//! Method: filesystems that are unmounted in the traced command; what the summary says of the bytes that are written then.

mod trace;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use trace::volume::{Volume, has_backend, joj, volume_or_skip};

/// Each test's mounts are told in every capture that runs meanwhile.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What only a layout tells, or the memory of a filesystem that is mounted.
const OF_A_LAYOUT: [&str; 8] = [
    "superblock",
    "journal superblock",
    "inode table",
    "group descriptors",
    "block bitmap",
    "inode bitmap",
    "directory or extents",
    "log record",
];

/// The node of the disk that is mounted at `place`.
fn node_of(place: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").expect("the mounts");
    let of_place = |line: &&str| line.split(' ').nth(1) == place.to_str();
    let line = mounts.lines().find(of_place).expect("a mount");
    line.split(' ').next().unwrap_or_default().to_owned()
}

fn summary(volume: &Volume, backend: &str, script: &str) -> Value {
    let json = volume.beside("summary.json").display().to_string();
    volume.settle();
    let place = volume.path();
    let command = ["/bin/bash", "-ec", script, &node_of(&place), &place.display().to_string()];
    let node = node_of(&place);
    let saved = volume.beside("saved.parquet").display().to_string();
    let options = ["--backend", backend, "--device", &node, "--json", &json, "--save", &saved];
    let output = joj(volume, &options, &[], &command.map(str::to_owned));
    assert!(output.status.success(), "{backend}: {}", String::from_utf8_lossy(&output.stderr));
    let live: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
    let mut again = Command::new(env!("CARGO_BIN_EXE_joj"));
    let read = again.args(["trace", "--read", &saved, "--json", "-"]).output().expect("joj");
    let read: Value = serde_json::from_slice(&read.stdout).expect("JSON");
    assert_eq!(read["counts"], live["counts"], "{backend}, read back");
    live
}

/// The same of a capture that lost nothing. On a busy machine tracefs loses some of so many requests, and says so.
fn whole_summary(kind: &str, backend: &str, script: &str) -> Option<Value> {
    for _ in 0..6 {
        let found = summary(&volume_or_skip(kind)?, backend, script);
        if found["lost"] == 0 {
            return Some(found);
        }
    }
    panic!("{kind}, {backend}: six captures lost something");
}

/// Bytes written of each part.
fn written(summary: &Value, table: &str) -> BTreeMap<String, u64> {
    let lines = summary["counts"][table].as_array().expect("a table").iter();
    let line = |one: &Value| {
        (one["label"].as_str().expect("a label").to_owned(), one["written"]["bytes"].as_u64().expect("bytes"))
    };
    lines.map(line).filter(|(_, bytes)| *bytes > 0).collect()
}

#[test]
fn a_filesystem_that_is_made_meanwhile_is_not_read_with_the_layout_of_the_old_one() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    const ANEW: &str = "
        exec 3<$0  # keeps the loop device
        umount $1
        mkfs.xfs -q -f $0
        mount $0 $1
        dd if=/dev/urandom of=$1/a bs=1M count=300 status=none
        sync -f $1";
    for backend in ["bpf", "tracefs"].into_iter().filter(|backend| has_backend(backend)) {
        let Some(summary) = whole_summary("ext4", backend, ANEW) else { return };
        let parts = written(&summary, "parts");
        let of_ext4: u64 = OF_A_LAYOUT[..7].iter().filter_map(|part| parts.get(*part)).sum();
        // What ext4 wrote when it was unmounted is its own.
        assert!(of_ext4 < 200 << 10, "{backend}: {parts:?}");
        let inferred = summary["header"]["inferred"].to_string();
        let says = |what: &str| inferred.contains(what);
        assert!(says("was unmounted") && says("was mounted meanwhile"), "{backend}: {inferred}");
        // Whose bytes those are nobody knows, and no file has a name.
        let classes = written(&summary, "classes");
        assert!(classes["unattributed"] >= 300 << 20, "{backend}: {classes:?}");
        assert_eq!(summary["files"].as_array().map(Vec::len), Some(0), "{backend}: {}", summary["files"]);
        let calls = summary["sync_calls"].to_string();
        assert!(backend == "tracefs" || calls.contains("syncfs"), "{calls}");
    }
}

#[test]
fn what_a_program_writes_to_a_disk_is_no_metadata() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    const OVER: &str = "
        exec 3<$0  # keeps the loop device
        umount $1
        sleep 0.3
        dd if=/dev/urandom of=$0 bs=1M count=8 conv=fsync status=none";
    for kind in ["ext4", "xfs", "btrfs"] {
        for backend in ["bpf", "tracefs"].into_iter().filter(|backend| has_backend(backend)) {
            let Some(volume) = volume_or_skip(kind) else { continue };
            let summary = summary(&volume, backend, OVER);
            let inferred = summary["header"]["inferred"].to_string();
            // Other tests mount filesystems of theirs.
            let mounted = format!("{} was mounted meanwhile", volume.path().display());
            assert!(!inferred.contains(&mounted), "{backend}: {inferred}");
            let classes = written(&summary, "classes");
            assert!(classes["unattributed"] >= 8 << 20, "{kind}, {backend}: {classes:?}");
        }
    }
}
