//! Goal: no file of a filesystem has the name of a file that was on its disk before it.
//! Method: a traced command makes a filesystem of the same kind on the disk again and again. Its files say in their names, and in what
//! they hold, of which time they are. Each time mkfs is called otherwise, so that the trace shows when a time begins.

mod trace;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, symlink};
use std::process::Command;

use trace::runs::{self, Line, number};
use trace::volume::{Volume, has_backend, joj, run, volume_or_skip};

/// How often a filesystem is made.
const ROUNDS: usize = 4;

/// Files of 64 KiB that repeat their name. Half of them are synced; the others wait for the umount, or for the end.
const WRITE: &str = r#"
write() {
    for number in $(seq 30); do
        name=r$1_$number
        printf 'FILE %-26s\n' $name{,}{,,,,,,,}{,,,,,,,}{,,,,,,,}{,} > $2/$name
        if [ $((number % 2)) = 0 ]; then sync $2/$name; fi
    done
}
"#;

/// The disk, the directory, mkfs's options, the directory of its other names, how often. The last one is there until joj knows it.
const AGAIN: &str = r#"
exec 3<$0  # keeps the loop device
write 0 $1
for round in $(seq $4); do
    umount $1
    $3/make$round $2 $0
    mount $0 $1
    write $round $1
    sleep 0.$((round % 3 * 2))
    write $round $1
done
sleep 2
write $round $1
sync -f $1
"#;

/// The runs that were written, in order, while `rounds` filesystems were made on the volume.
fn written(volume: &Volume, kind: &str, backend: &str) -> Vec<Line> {
    let options = match kind {
        "ext4" => "-q -F -t ext4 -b 4096 -E lazy_itable_init=0,nodiscard",
        _ => "-q -f -K",
    };
    let program =
        run(Command::new("/bin/sh").args(["-c", &format!("command -v mkfs.{kind}")])).expect("mkfs");
    for round in 1..=ROUNDS {
        symlink(program.trim(), volume.beside(&format!("make{round}"))).expect("a name for mkfs");
    }
    let place = volume.path().display().to_string();
    let text = format!("{WRITE} write 0 $0");
    run(Command::new("/bin/bash").args(["-ec", &text, &place])).expect("files from before");
    volume.settle();
    let node = run(Command::new("findmnt").args(["-n", "-o", "SOURCE", &place])).expect("a mount");
    let names = volume.beside("").display().to_string();
    let (script, rounds) = (format!("{WRITE}{AGAIN}"), ROUNDS.to_string());
    let command = ["/bin/bash", "-ec", &script, node.trim(), &place, options, &names, &rounds];
    let table = volume.beside("runs.csv");
    let export = format!("runs={}", table.display());
    let options = ["--backend", backend, "--device", node.trim(), "--export", &export];
    let output = joj(volume, &options, &[], &command.map(str::to_owned));
    assert!(output.status.success(), "{kind}, {backend}: {}", String::from_utf8_lossy(&output.stderr));
    let mut lines = runs::read(&table);
    lines.retain(|line| line["operation"] == "write" && number(line, "byte_length") > 0);
    lines.sort_by_key(|line| number(line, "queued_ns"));
    lines
}

/// The time of which a file is, by its name.
fn round_of(line: &Line) -> Option<usize> {
    line["file_path"].strip_prefix("/r")?.split('_').next()?.parse().ok()
}

/// Which time begins with a program of this name.
fn begins(line: &Line) -> Option<usize> {
    line["queued_by"].strip_prefix("make")?.parse().ok()
}

/// What a file of the last time holds is its name, where a block was written by a run last.
fn holds_what_it_is_called(volume: &Volume, newest: &HashMap<i64, &Line>) {
    let image = volume.beside("image");
    run(Command::new("sync").arg("-f").arg(&image)).expect("the disk is written");
    let image = File::open(image).expect("the disk");
    for (sector, line) in newest.iter().filter(|(_, line)| round_of(line) == Some(ROUNDS)) {
        let mut found = [0; 31];
        image.read_exact_at(&mut found, sector.cast_unsigned() * 512).expect("the disk");
        let found = String::from_utf8_lossy(&found);
        let name = found.strip_prefix("FILE ").map(|name| format!("/{}", name.trim_end()));
        assert_eq!(name.as_ref(), Some(&line["file_path"]), "{line:?}");
    }
}

#[test]
fn no_file_has_the_name_of_one_that_was_on_the_disk_before() {
    for kind in ["ext4", "xfs", "btrfs"] {
        for backend in ["bpf", "tracefs"].into_iter().filter(|backend| has_backend(backend)) {
            let Some(volume) = volume_or_skip(kind) else { continue };
            let lines = written(&volume, kind, backend);
            let (mut now, mut named, mut newest) = (0, [0; ROUNDS + 1], HashMap::new());
            for line in &lines {
                now = begins(line).map_or(now, |round| now.max(round));
                let (first, bytes) = (number(line, "first_sector"), number(line, "byte_length"));
                newest.extend((0..bytes / 4096).map(|block| (first + block * 8, line)));
                if let Some(round) = round_of(line) {
                    assert!(round >= now, "{kind}, {backend}: in round {now} {line:?}");
                    named[round] += 1;
                }
            }
            holds_what_it_is_called(&volume, &newest);
            assert_eq!(now, ROUNDS, "{kind}, {backend}: each mkfs writes");
            assert!(named[0] > 0 && named[ROUNDS] > 0, "{kind}, {backend}: {named:?}");
            assert!(backend != "bpf" || named.iter().all(|runs| *runs > 0), "{kind}, {backend}: {named:?}");
            println!("{kind}, {backend}: runs with a name, by round: {named:?}");
        }
    }
}
