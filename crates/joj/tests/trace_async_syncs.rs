//! Goal: a sync that has no system call of its own, by io_uring or AIO, is counted once, for the process that asked for it, with its
//! duration or with the word that the kernel does not show it.
//! Method: a program that knows how many it asks for, on each filesystem.

mod trace;

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use trace::volume::{Volume, has_backend, joj, run, volume_or_skip};

fn program(volume: &Volume) -> PathBuf {
    let (source, program) = (volume.beside("async_syncs.c"), volume.beside("async_syncs"));
    std::fs::write(&source, include_str!("trace/async_syncs.c")).expect("a source");
    run(Command::new("cc").arg("-o").arg(&program).arg(&source)).expect("cc");
    program
}

/// Traces one way of asking; `None` where this kernel has it not.
fn traced(volume: &Volume, way: &str) -> Option<Value> {
    let (json, file) = (volume.beside("summary.json"), volume.path().join(way));
    let command = [program(volume).display().to_string(), way.to_owned(), file.display().to_string()];
    let options = ["--backend", "bpf", "--json", &json.display().to_string()];
    let output = joj(volume, &options, &[], &command);
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && said.contains("io_uring_setup") {
        println!("skipped: no io_uring here");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON"))
}

fn check(kind: &str, way: &str, asked: u64) {
    let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("bpf")) else { return };
    let Some(summary) = traced(&volume, way) else { return };
    let number = |value: &Value| value.as_u64().expect("a number");
    let groups = summary["sync_calls"].as_array().expect("calls");
    let file_syncs: Vec<&Value> = groups.iter().filter(|group| group["call"] == "file sync").collect();
    let calls: u64 = file_syncs.iter().map(|group| number(&group["calls"])).sum();
    assert_eq!(calls, asked, "{kind}, {way}: {groups:?}");
    let timed: u64 = file_syncs.iter().map(|group| number(&group["duration_ns"]["values"])).sum();
    let notes = summary["header"]["inferred"].as_array().expect("notes");
    // The end is told on ext4; others may be mounted elsewhere.
    let is_told = kind != "ext4"
        && notes.iter().filter_map(Value::as_str).any(|note| note.contains("the end of a sync"));
    assert_eq!(timed, if is_told { 0 } else { asked }, "{kind}, {way}: {notes:?}");
    assert!(file_syncs.iter().all(|group| is_told || number(&group["duration_ns"]["p50"]) > 0), "{groups:?}");
    let rows = summary["processes"].as_array().expect("processes");
    let own = rows.iter().find(|row| row["name"] == "async_syncs").expect("the program");
    assert!(number(&own["syncs"]) >= asked, "{kind}, {way}: {rows:?}");
    // Other programs may call sync(2) meanwhile; kernel workers call for none of these.
    let is_worker = |row: &&Value| row["name"].as_str().is_some_and(|name| name.starts_with("kworker"));
    assert!(!rows.iter().any(|row| is_worker(&row)), "{kind}, {way}: {rows:?}");
}

#[test]
fn each_sync_of_io_uring_is_counted_for_its_program() {
    for kind in ["ext4", "xfs", "btrfs"] {
        check(kind, "uring", 18);
    }
}

#[test]
fn each_fsync_of_aio_is_counted_for_its_program() {
    for kind in ["ext4", "xfs", "btrfs"] {
        check(kind, "fsync", 7);
    }
}

#[test]
fn each_durable_write_of_aio_is_counted_for_its_program() {
    for kind in ["ext4", "xfs", "btrfs"] {
        check(kind, "aio", 64);
    }
}
