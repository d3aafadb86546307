//! Goal: syncs that no system call of a program surrounds are counted as many times as they were asked for, and what the kernel does
//! not tell of them is not made up.
//! Method: fio asks for a known number of fsyncs and durable writes through io_uring and AIO, on each filesystem, seen by tracefs.

mod trace;

use std::process::Command;

use serde_json::Value;
use trace::volume::{Volume, has_backend, joj, or_skip, volume_or_skip};

/// The sync calls of a run of fio, but for those that it makes itself by fsync(2).
fn calls(volume: &Volume, options: &[&str]) -> Vec<Value> {
    let json = volume.beside("summary.json");
    let place = format!("--directory={}", volume.path().display());
    let output = format!("--output={}", volume.beside("fio").display());
    let mut command = vec!["fio", "--name=job", "--rw=write", "--bs=4k", "--size=256k", &place, &output];
    command.extend(options);
    let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
    let options = ["--backend", "tracefs", "--json", &json.display().to_string()];
    let output = joj(volume, &options, &[], &command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
    let mut calls = summary["sync_calls"].as_array().expect("calls").clone();
    // sync(2) means every filesystem, and any program may call it.
    calls.retain(|call| call["call"] != "sync");
    calls
}

/// (call, how many, how many failed, of how many nobody told the end)
fn counts(calls: &[Value]) -> Vec<(&str, u64, u64, u64)> {
    let number = |call: &Value, field: &str| call[field].as_u64().expect("a number");
    let of = |call: &Value| (number(call, "calls"), number(call, "failed"), number(call, "ends_not_told"));
    calls
        .iter()
        .map(|call| {
            let (calls, failed, not_told) = of(call);
            (call["call"].as_str().expect("a call"), calls, failed, not_told)
        })
        .collect()
}

#[test]
fn syncs_by_io_uring_and_aio_are_counted_and_their_ends_are_not_made_up() {
    if Command::new("fio").arg("--version").output().is_err() {
        return println!("skipped: there is no fio");
    }
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("tracefs")) else { return };
        // 64 writes, an fsync behind every tenth.
        let found = calls(&volume, &["--ioengine=io_uring", "--fsync=10"]);
        let name = if kind == "xfs" { "sync (call unknown)" } else { "fsync" };
        let not_told = if kind == "ext4" { 0 } else { 6 };
        assert_eq!(counts(&found), [(name, 6, 0, not_told)], "{kind}: {found:?}");
        for engine in ["io_uring", "libaio"] {
            let engine = format!("--ioengine={engine}");
            let found = calls(&volume, &[&engine, "--direct=1", "--sync=dsync", "--iodepth=4"]);
            // Several are under way at once in one thread. Btrfs makes them buffered ones.
            let found = counts(&found);
            assert!(
                found.iter().all(|(.., failed, not_told)| *failed == 0 && *not_told > 0),
                "{kind}: {found:?}"
            );
            assert_eq!(
                found.iter().map(|(_, calls, ..)| calls).sum::<u64>(),
                64,
                "{kind}, {engine}: {found:?}"
            );
        }
    }
}

/// Calls whose file no filesystem names. When joj looks, their descriptor is another file's, or their thread has ended.
const RANGES: &str = "
import ctypes, os, sys, threading, time
file = os.open(sys.argv[1] + '/file', os.O_RDWR | os.O_CREAT, 0o600)
libc = ctypes.CDLL(None)
def calls():
    for _ in range(5):
        os.write(file, b'x' * 4096)
        assert libc.sync_file_range(file, ctypes.c_long(0), ctypes.c_long(0), 7) == 0
    for _ in range(3):
        assert libc.syncfs(file) == 0
if sys.argv[3] == 'thread':
    thread = threading.Thread(target=calls)
    thread.start()
    thread.join()
else:
    calls()
    os.dup2(os.open(sys.argv[1] + '/app.db-wal', os.O_RDWR | os.O_CREAT, 0o600), file)
time.sleep(float(sys.argv[2]))
os._exit(0)
";

#[test]
fn calls_that_no_filesystem_tells_are_counted_or_said_to_be_left_out() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("tracefs")) else { return };
        for (seconds, who) in [("0.4", "main"), ("0", "main"), ("0.4", "thread")] {
            let json = volume.beside("summary.json");
            let place = volume.path().display().to_string();
            let command = ["/usr/bin/python3", "-c", RANGES, &place, seconds, who].map(str::to_owned);
            let [json, saved, again] = [json, volume.beside("saved"), volume.beside("again.json")]
                .map(|path| path.display().to_string());
            let options = ["--backend", "tracefs", "--json", &json, "--save", &saved];
            let output = joj(&volume, &options, &[], &command);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let summary: Value =
                serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
            let mut read = Command::new(env!("CARGO_BIN_EXE_joj"));
            let read = read.args(["trace", "--read", &saved, "--json", &again]).output().expect("joj");
            assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
            let of_saved: Value =
                serde_json::from_slice(&std::fs::read(&again).expect("a summary")).expect("JSON");
            assert_eq!(
                summary["header"], of_saved["header"],
                "what was learned during the capture is kept, too"
            );
            let mut calls = summary["sync_calls"].as_array().expect("calls").clone();
            calls.retain(|call| call["call"] != "sync");
            let is_of_unknown = |call: &Value| call["file_type"] == "other";
            assert!(calls.iter().all(is_of_unknown), "{kind}: no call of the log: {calls:?}");
            let found = counts(&calls);
            let expected = [("sync_file_range", 5, 0, 0), ("syncfs", 3, 0, 0)];
            let inferred = summary["header"]["inferred"].to_string();
            let is_said = seconds == "0" && inferred.contains("sync_file_range and syncfs");
            assert!(found == expected || is_said, "{kind}, {who}, {seconds} s: {found:?}, {inferred}");
        }
    }
}

/// Durable by their own flags: into a new file, and once more over what is there.
const DURABLE_WRITES: &str = "
import os, sys
file = os.open(sys.argv[1] + '/file', os.O_RDWR | os.O_CREAT, 0o600)
for turn in range(2):
    for block in range(20):
        flag = os.RWF_DSYNC if block % 2 else os.RWF_SYNC
        assert os.pwritev(file, [b'x' * 4096], block * 4096, flag) == 4096
";

#[test]
fn a_write_that_is_durable_by_its_own_flags_is_one_call_of_its_file() {
    for (kind, options) in [
        ("ext4", "noatime"),
        ("ext4", "noatime,nodelalloc"),
        ("ext4", "noatime,data=journal"),
        ("xfs", "noatime"),
        ("btrfs", "noatime"),
    ] {
        let volume = or_skip(Volume::create_with(kind, &[], options)).filter(|_| has_backend("tracefs"));
        let Some(volume) = volume else { return };
        let json = volume.beside("summary.json");
        let command = ["/usr/bin/python3", "-c", DURABLE_WRITES, &volume.path().display().to_string()];
        let trace = ["--backend", "tracefs", "--json", &json.display().to_string()];
        let output = joj(&volume, &trace, &[], &command.map(str::to_owned));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        let mut calls = summary["sync_calls"].as_array().expect("calls").clone();
        calls.retain(|call| call["call"] != "sync");
        assert_eq!(counts(&calls), [("pwritev2", 40, 0, 0)], "{kind}, {options}: {calls:?}");
    }
}
