//! Goal: what is written to a disk once its filesystem is unmounted, or covered by another, is no file's of that filesystem.
//! Method: a traced command writes files whose names begin with `r0`, and does something else with the disk by a program called `anew`.
//! From the first write of that program on, each run is of nobody knows what.

mod trace;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use trace::runs::{self, Line, number};
use trace::volume::{Volume, has_backend, joj, run, volume_or_skip};

/// Files of 64 KiB. Every second one is synced where that is asked for; the others wait for the umount, or for the end.
const WRITE: &str = r#"
exec 3<$0  # keeps the loop device
write() {
    for number in $(seq 30); do
        printf 'FILE %-26s\n' $1_$number{,}{,,,,,,,}{,,,,,,,}{,,,,,,,}{,} > $2/$1_$number
        if [ $3 = synced ] && [ $((number % 2)) = 0 ]; then sync $2/$1_$number; fi
    done
}
write r0 $1 synced
sleep 0.3
"#;

/// What happens to a disk ($0) with its mount point ($1). Beside it ($2): `anew`, and `other`, an image of the same kind.
struct Case {
    name: &'static str,
    kinds: &'static [&'static str],
    /// What `anew` is, where it is no mkfs.
    program: &'static str,
    script: &'static str,
}

const CASES: [Case; 5] = [
    Case {
        name: "made anew twice",
        kinds: &["ext4", "xfs", "btrfs"],
        program: "",
        script: "for again in 1 2; do
            umount $1; $2/anew $3 $0; mount $0 $1; write r$again $1 synced; sleep 0.3; write q$again $1 synced
        done",
    },
    Case {
        name: "made anew, and no call names a file",
        kinds: &["btrfs"],
        program: "",
        script: "umount $1; $2/anew $3 $0; mount $0 $1; chmod 700 $1; sync -f $1
            write r1 $1 unsynced; umount $1",
    },
    Case {
        name: "made anew below a tmpfs",
        kinds: &["xfs"],
        program: "",
        script: "umount $1; $2/anew $3 $0; mount $0 $1; cd $1; mount -t tmpfs none $1; write r1 . synced; sleep 0.3
            umount $1; write q1 . synced; sync -f .",
    },
    Case {
        name: "made anew below another of its kind",
        kinds: &["xfs"],
        program: "",
        script: "umount $1; $2/anew $3 $0; mount $0 $1; cd $1; mount -o loop $2/other $1; write r1 . synced
            write r1 $1 synced; sleep 0.3; umount $1; write q1 . synced; sync -f .",
    },
    Case {
        name: "written to itself",
        kinds: &["ext4", "xfs"],
        program: "dd",
        script: "write r1 $1 unsynced; umount $1; $2/anew if=/dev/zero of=$0 bs=1M count=300 oflag=direct status=none",
    },
];

/// What was written, in order, and the head of the trace.
fn written(volume: &Volume, case: &Case, kind: &str, backend: &str) -> (Vec<Line>, String) {
    let options = match kind {
        "ext4" => "-q -F -t ext4 -b 4096 -E lazy_itable_init=0,nodiscard",
        _ => "-q -f -K",
    };
    let program = if case.program.is_empty() { format!("mkfs.{kind}") } else { case.program.to_owned() };
    let program =
        run(Command::new("/bin/sh").args(["-c", &format!("command -v {program}")])).expect("a program");
    symlink(program.trim(), volume.beside("anew")).expect("another name");
    let other = volume.beside("other");
    std::fs::File::create(&other).and_then(|file| file.set_len(512 << 20)).expect("an image");
    run(Command::new(format!("mkfs.{kind}")).args(options.split(' ')).arg(&other)).expect("mkfs");
    volume.settle();
    let place = volume.path().display().to_string();
    let node = run(Command::new("findmnt").args(["-n", "-o", "SOURCE", &place])).expect("a mount");
    let names = volume.beside("").display().to_string();
    let script = format!("{WRITE}{}", case.script).replace("$3 $0", &format!("{options} $0"));
    let command = ["/bin/bash", "-ec", &script, node.trim(), &place, &names];
    let [table, json] = ["runs.csv", "summary.json"].map(|name| volume.beside(name).display().to_string());
    let export = format!("runs={table}");
    let options =
        ["--backend", backend, "--device", node.trim(), "--export", &export, "--json", json.as_str()];
    let output = joj(volume, &options, &[], &command.map(str::to_owned));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}, {kind}, {backend}: {said}", case.name);
    let mut lines = runs::read(Path::new(&table));
    lines.retain(|line| line["operation"] == "write" && number(line, "byte_length") > 0);
    lines.sort_by_key(|line| number(line, "queued_ns"));
    let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
    (lines, summary["header"]["inferred"].to_string())
}

#[test]
fn what_comes_after_a_filesystem_is_none_of_its_files_with_ebpf() {
    is_none_of_its_files("bpf");
}

#[test]
fn what_comes_after_a_filesystem_is_none_of_its_files_with_tracefs() {
    is_none_of_its_files("tracefs");
}

fn is_none_of_its_files(backend: &str) {
    if !has_backend(backend) {
        return;
    }
    for case in &CASES {
        for kind in case.kinds {
            let Some(volume) = volume_or_skip(kind) else { continue };
            let (lines, inferred) = written(&volume, case, kind, backend);
            let what = format!("{}, {kind}, {backend}", case.name);
            let begins = lines.iter().position(|line| line["queued_by"] == "anew").expect("it writes");
            let (before, after) = lines.split_at(begins);
            assert!(before.iter().any(|line| line["file_path"].starts_with("/r0_")), "{what}: no name");
            let is_known = |line: &&Line| line["class"] != "unattributed" || !line["file_path"].is_empty();
            let known = after.iter().find(is_known);
            assert!(known.is_none(), "{what}: {known:?}");
            assert!(inferred.contains("was unmounted"), "{what}: {inferred}");
        }
    }
}
