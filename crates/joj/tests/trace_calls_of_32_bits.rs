//! Goal: sync calls of 32 bits are told as what they are.
//! Method: a program makes a known number of each by the kernel's own door for them; the summary counts them.
#![cfg(target_arch = "x86_64")]

mod trace;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use trace::volume::{Volume, has_backend, joj, run, volume_or_skip};

/// The program; `None` where this kernel runs no calls of 32 bits.
fn program(volume: &Volume) -> Option<PathBuf> {
    let (source, program) = (volume.beside("calls.c"), volume.beside("calls"));
    std::fs::write(&source, include_str!("trace/calls_of_32_bits.c")).expect("a source");
    run(Command::new("cc").args(["-O1", "-mno-red-zone", "-o"]).arg(&program).arg(&source)).expect("cc");
    let tried = Command::new(&program).arg(volume.beside("tried")).status().expect("the program");
    if tried.code() == Some(77) {
        println!("skipped: this kernel has no calls of 32 bits");
        return None;
    }
    assert!(tried.success(), "{tried}");
    Some(program)
}

#[test]
fn calls_of_32_bits_are_counted_by_their_kinds() {
    for kind in ["ext4", "xfs", "btrfs"] {
        if !has_backend("bpf") {
            return;
        }
        let Some(volume) = volume_or_skip(kind) else { continue };
        let Some(program) = program(&volume) else { return };
        volume.settle();
        let (json, file) = (volume.beside("summary.json"), volume.path().join("file"));
        let command = [program, file].map(|path| path.display().to_string());
        let options = ["--backend", "bpf", "--json", &json.display().to_string()];
        let output = joj(&volume, &options, &[], &command);
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        let calls = summary["sync_calls"].as_array().expect("calls").iter();
        let count = |call: &Value| {
            let name = call["call"].as_str().expect("a name").to_owned();
            (name, call["calls"].as_u64().expect("a count"))
        };
        let mut counted: BTreeMap<String, u64> = calls.map(count).collect();
        // Somebody else's is in the trace, too.
        counted.remove("sync");
        let made = [
            ("fdatasync", 7),
            ("fsync", 9),
            ("msync", 2),
            ("pwrite64", 4),
            ("pwritev2", 6),
            ("sync_file_range", 5),
            ("syncfs", 3),
        ];
        let made: BTreeMap<String, u64> =
            made.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        assert_eq!(counted, made, "{kind}");
    }
}
