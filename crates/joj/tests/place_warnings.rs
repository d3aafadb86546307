//! Goal: what is measured in memory is not taken for a disk: joj says so first, wherever it measures.
//! Method: the built program in /dev/shm, and in a directory of the build tree, which is on a disk.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory in memory; `None` where there is none.
fn in_memory(name: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    if !mounts.lines().any(|line| line.split(' ').skip(1).take(2).eq(["/dev/shm", "tmpfs"])) {
        eprintln!("skipped: /dev/shm is no tmpfs here");
        return None;
    }
    let path = PathBuf::from(format!("/dev/shm/joj-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    Some(path)
}

fn on_disk(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&path).unwrap();
    path
}

/// What a command printed: standard output, then standard error.
fn told(arguments: &[&str]) -> [String; 2] {
    let output =
        Command::new(env!("CARGO_BIN_EXE_joj")).args(arguments).stdin(Stdio::null()).output().unwrap();
    let told = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{arguments:?}: {told:?}");
    told
}

const WARNING: &str = "is in memory: nothing there survives a power cut";

#[test]
fn bench_warns_first_and_calls_no_memory_a_disk() {
    let Some(place) = in_memory("bench") else { return };
    let rows = ["--modes", "wal,off", "--workloads", "insert", "--schemas", "waldio", "--sync", "full"];
    let of = |place: &Path| {
        let common =
            ["bench", place.to_str().unwrap(), "--transactions", "20", "--runs", "3", "--builds", "bundled"];
        let [shown, _] = told(&[&common[..], &rows].concat());
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let shown = of(&place);
    let (warning, disk) = (shown.find(WARNING).unwrap(), shown.find("Your disk: there is none").unwrap());
    assert!(warning < disk, "{shown}");
    assert!(shown.contains("What to change: name a directory on a disk"), "{shown}");
    let shown = of(&on_disk("place-bench"));
    assert!(!shown.contains(WARNING) && shown.contains("Your disk: makes "), "{shown}");
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn whatif_says_the_same_in_its_result() {
    let Some(place) = in_memory("whatif") else { return };
    let of = |place: &Path| {
        let common =
            ["whatif", "launch-twitter", place.to_str().unwrap(), "--rounds", "1", "--only", "recorded"];
        let [shown, _] = told(&common);
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let shown = of(&place);
    assert!(shown.contains(WARNING) && shown.contains("RAM changes little here"), "{shown}");
    let shown = of(&on_disk("place-whatif"));
    assert!(!shown.contains(WARNING) && !shown.contains("RAM changes little"), "{shown}");
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn the_other_measuring_commands_warn_too() {
    let Some(place) = in_memory("others") else { return };
    let disk = on_disk("place-others");
    let of = |place: &Path, command: &[&str]| {
        let here = place.to_str().unwrap();
        let words: Vec<&str> = command.iter().map(|word| if *word == "DIR" { here } else { word }).collect();
        told(&words)[1].clone()
    };
    let probe = ["device", "probe", "DIR", "--range-min", "1MiB", "--range-max", "1MiB", "--runs", "1"];
    let mobibench = ["mobibench", "-p", "DIR", "-f", "64", "-r", "4", "-a", "0"];
    let replay = ["replay", "launch-twitter", "DIR"];
    let whatif = ["whatif", "launch-twitter", "DIR", "--rounds", "1", "--only", "recorded"];
    for command in [&probe[..], &mobibench, &replay, &whatif] {
        assert!(of(&place, command).contains(WARNING), "{command:?}");
        assert!(!of(&disk, command).contains("WARNING"), "{command:?}");
    }
    fs::remove_dir_all(place).unwrap();
}
