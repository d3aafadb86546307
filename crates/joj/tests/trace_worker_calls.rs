//! Goal: syncs that no system call of a program surrounds are counted as many times as they were asked for, and what the kernel does
//! not tell of them is not made up.
//! Method: fio asks for a known number of fsyncs and durable writes through io_uring and AIO, on each filesystem, seen by tracefs.

mod trace;

use std::process::Command;

use serde_json::Value;
use trace::volume::{Volume, has_backend, joj, volume_or_skip};

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
