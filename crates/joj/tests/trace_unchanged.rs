//! Goal: a capture changes nothing of what it captures: joj itself writes nothing to the files that it looks at, nor makes the kernel
//! write them earlier than their program wants, nor keeps a filesystem mounted.
//! Method: a program empties a file, fills it again and takes SQLite's lock of it, so that joj looks for its place; its fsync comes
//! later, and must find everything still to be written. Closing such a file makes ext4, XFS and Btrfs write it.
//! Another program unmounts the filesystem while it is captured.

mod trace;

use serde_json::Value;
use trace::volume::{has_backend, joj, volume_or_skip};

const PROGRAM: &str = "
import fcntl, os, sys, time
name = '/'.join(sys.argv[1:])
file = os.open(name, os.O_RDWR | os.O_TRUNC)
os.write(file, os.urandom(1 << 20))
fcntl.lockf(file, fcntl.LOCK_EX, 1, 120)
time.sleep(0.5)
os.fsync(file)
os._exit(0)
";
const BYTES: u64 = 1 << 20;
/// Who syncs all disks meanwhile, as other tests do, writes the bytes before the program's fsync. What joj does itself it does each time.
const TRIES: u32 = 4;

fn check(kind: &str, backend: &str) {
    let Some(volume) = volume_or_skip(kind).filter(|_| has_backend(backend)) else { return };
    let (script, json) = (volume.beside("fill.py"), volume.beside("summary.json"));
    std::fs::write(&script, PROGRAM).expect("a script");
    // One is in a directory that joj looks at when it starts, perhaps when it is emptied already; one is not.
    std::fs::create_dir(volume.path().join("below")).expect("a directory");
    for name in ["file", "below/file"] {
        let case = format!("{kind}, {backend}, {name}");
        let mut tries = (0..TRIES).map(|_| {
            std::fs::write(volume.path().join(name), vec![1; 1 << 20]).expect("a file");
            volume.settle();
            let place = volume.path().display().to_string();
            let command = ["/usr/bin/python3", &script.display().to_string(), &place, name];
            let options = ["--backend", backend, "--json", &json.display().to_string()];
            let output = joj(&volume, &options, &[], &command.map(str::to_owned));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let summary = std::fs::read(&json).expect("a summary");
            let summary: Value = serde_json::from_slice(&summary).expect("JSON");
            let processes = summary["processes"].as_array().expect("processes");
            let by_joj = processes.iter().find(|process| process["name"] == "joj");
            assert!(by_joj.is_none_or(|joj| joj["written"]["bytes"] == 0), "{case}: {by_joj:?}");
            synced(&summary)
        });
        assert!(tries.any(|bytes| bytes >= BYTES), "{case}: the fsync had nothing to write, {TRIES} times");
    }
}

/// Bytes that the one fsync wrote.
fn synced(summary: &Value) -> u64 {
    let calls = summary["sync_calls"].as_array().expect("calls");
    calls.iter().filter_map(|call| call["bytes"]["data"].as_u64()).sum()
}

#[test]
fn a_file_that_is_looked_at_is_written_by_its_own_program() {
    for kind in ["ext4", "xfs", "btrfs"] {
        for backend in ["tracefs", "bpf"] {
            check(kind, backend);
        }
    }
}

#[test]
fn a_filesystem_is_unmounted_while_it_is_captured() {
    for (kind, backend) in
        ["ext4", "xfs", "btrfs"].into_iter().flat_map(|kind| [(kind, "bpf"), (kind, "tracefs")])
    {
        for seconds in ["0", "0.3"] {
            let Some(volume) = volume_or_skip(kind).filter(|_| has_backend(backend)) else { return };
            std::fs::write(volume.path().join("file"), "before").expect("a file");
            let program = "echo after >\"$1\"/file; echo new >\"$1\"/new; sleep \"$2\"; umount \"$1\"";
            let place = volume.path().display().to_string();
            let command = ["sh", "-c", program, "sh", &place, seconds];
            let output = joj(&volume, &["--backend", backend], &[], &command.map(str::to_owned));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{kind}, {backend}, {seconds} s: {said}");
            let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
            assert!(!mounts.contains(&place), "{kind}, {backend}, {seconds} s: {said}");
        }
    }
}
