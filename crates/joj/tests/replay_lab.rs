//! Goal: `joj replay --lab` makes a recording's calls on emulated disks, with the same figures every time, and says what fails.
//! Method: small recordings in the emulated machine, on two filesystems, one of them twice; then what is refused before one starts.
//!
//! Where QEMU is missing, or Debian's packages cannot be had, what needs them is skipped, and says so.

mod emulated;
mod replay;
mod schema;
mod waldio;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use emulated::missing;
use joj_analysis::bench::key::Word;
use joj_analysis::lab::result::{CellOutcome, LabResult};
use joj_analysis::recording::lab_result::{ReplayLabOutcome, ReplayLabResult, ReplayLabRow, Replayed};
use joj_analysis::recording::outcome::ReplayOutcome;
use replay::{Scratch, record, told};
use waldio::{extension, skipped};

const SYNCS: u64 = 40;

/// A log that grows by a block with each sync, beside a file that is there before and is written in place.
fn appends() -> String {
    let mut text = "1 1700000000.000000 open(\"/d/old\", O_RDWR) = 3 <0.000010>\n\
                    1 1700000000.000010 fstat(3, {st_mode=S_IFREG|0644, st_size=65536, ...}) = 0 <0.000010>\n\
                    1 1700000000.000020 open(\"/d/log\", O_RDWR|O_CREAT|O_EXCL, 0644) = 4 <0.000010>\n"
        .to_owned();
    for number in 0..SYNCS {
        let (at_us, place) = (100 + number * 500, number * 4096);
        let old_place = number % 16 * 4096;
        let _ = write!(
            text,
            "1 1700000000.{:06} pwrite64(4, \"\"..., 4096, {place}) = 4096 <0.000010>\n\
             1 1700000000.{:06} pwrite64(3, \"\"..., 4096, {old_place}) = 4096 <0.000010>\n\
             1 1700000000.{:06} fdatasync(4) = 0 <0.000100>\n",
            at_us,
            at_us + 100,
            at_us + 200,
        );
    }
    text + "1 1700000000.030000 close(4) = 0 <0.000010>\n1 1700000000.030100 close(3) = 0 <0.000010>\n"
}

const COMMITS: u64 = 12;

/// Commits with a rollback journal on a database of two pages.
fn commits() -> String {
    let mut text = "1 1700000000.000000 open(\"/d/a.db\", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n".to_owned();
    for number in 0..COMMITS {
        let calls = [
            "open(\"/d/a.db-journal\", O_RDWR|O_CREAT, 0644) = 4",
            "pwrite64(4, \"\"..., 512, 0) = 512",
            "pwrite64(3, \"\"..., 4096, 0) = 4096",
            "pwrite64(3, \"\"..., 4096, 4096) = 4096",
            "fsync(3) = 0",
            "close(4) = 0",
            "unlink(\"/d/a.db-journal\") = 0",
        ];
        for (call, part) in calls.iter().zip(1..) {
            let _ = writeln!(text, "1 1700000000.{:06} {call} <0.000010>", 1_000 * (number + 1) + 100 * part);
        }
    }
    text
}

fn lab(recording: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_joj"))
        .arg("replay")
        .arg(recording)
        .arg("--lab")
        .args(words)
        .output()
        .expect("joj")
}

/// The result of a replay in the lab with these further words, and its exit code; none where there is no emulated machine.
fn replayed(recording: &Path, words: &[&str]) -> Option<(ReplayLabResult, Option<i32>)> {
    if let Some(reason) = missing() {
        skipped(&reason);
        return None;
    }
    let json = recording.with_extension("json");
    let output = lab(recording, &[&["--json", json.to_str().expect("text")], words].concat());
    let (code, said) = told(&output);
    println!("{}{said}", String::from_utf8_lossy(&output.stdout));
    let text = fs::read(&json).unwrap_or_else(|error| panic!("no result, {error}: {said}"));
    schema::holds_of_text("replay-lab", &text, &[]);
    Some((serde_json::from_slice(&text).expect("a result"), code))
}

fn calls(row: &ReplayLabRow) -> &ReplayOutcome {
    match &row.outcome {
        ReplayLabOutcome::Replayed(Replayed::Calls(calls)) => calls,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_call_is_made_on_each_filesystem_and_takes_as_long_again_in_the_lab() {
    let scratch = Scratch::new("replay-lab-calls");
    let recording = record(&scratch, "appends", appends());
    let words = ["--filesystem", "ext4,f2fs,ext4", "--check"];
    let Some((result, code)) = replayed(&recording, &words) else { return };
    assert_eq!((code, result.rows.len()), (Some(0), 3));
    let names: Vec<_> = result.rows.iter().map(|row| (row.filesystem.word(), &*row.device)).collect();
    assert_eq!(names, ["ext4", "f2fs", "ext4"].map(|name| (name, "galaxy-s5-emmc")));
    for row in &result.rows {
        let made = calls(row);
        assert_eq!(made.calls, 3 * SYNCS + 5, "{made:?}");
        assert_eq!((made.differing(), made.differences.as_deref()), (0, Some(&[][..])), "{made:?}");
        assert_eq!(made.syncs.get("fdatasync"), Some(&SYNCS), "{made:?}");
        let device = made.device.expect("the device's counters");
        assert!(device.flushes.is_some_and(|flushes| flushes >= SYNCS), "{device:?}");
        assert!(device.written_bytes >= SYNCS * 4096, "{device:?}");
        assert!(made.elapsed_ns > made.recorded_elapsed_ns, "an emulated eMMC takes longer: {made:?}");
    }
    let [first, other, again] = [0, 1, 2].map(|row| calls(&result.rows[row]).elapsed_ns as f64);
    assert!((again / first - 1.0).abs() < 0.005, "{first} and {again} ns on ext4");
    assert!((other / first - 1.0).abs() > 0.005, "two filesystems take as long: {first} and {other} ns");
}

#[test]
fn commits_are_made_in_another_journal_mode_and_a_full_disk_is_told_in_the_lab() {
    let scratch = Scratch::new("replay-lab-commits");
    let recording = record(&scratch, "commits", commits());
    let extension = extension().map(|file| file.display().to_string());
    let library = extension.as_ref().map_or(Vec::new(), |file| vec!["--waldio", file]);
    for mode in ["wal", "waldio"].iter().take(1 + library.len() / 2) {
        let words = ["--filesystem", "f2fs", "--as", mode, "--order", "fast", "--sqlite", "system"];
        let Some((result, code)) = replayed(&recording, &[&words[..], &library].concat()) else { return };
        assert_eq!(code, Some(0));
        let ReplayLabOutcome::Replayed(Replayed::Transactions(made)) = &result.rows[0].outcome else {
            panic!("{:?}", result.rows)
        };
        assert_eq!((made.recorded.commits, made.replayed.commits), (COMMITS, COMMITS), "{made:?}");
        assert_eq!((&*made.journal_mode, &*made.order), (*mode, "fast"));
        let file = made.sqlite.file.as_deref().expect("no SQLite of joj's own");
        assert!(file.starts_with("/lib/libsqlite3"), "{file}");
        assert_eq!(made.sqlite.waldio.is_some(), *mode == "waldio");
        let flushes = made.replayed.device.and_then(|device| device.flushes);
        assert!(flushes.is_some_and(|flushes| flushes >= COMMITS), "{made:?}");
    }
    // Three of the device's gigabytes.
    let large = "1 1700000000.000000 open(\"/d/a\", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n\
                 1 1700000000.000100 fallocate(3, 0, 0, 3221225472) = 0 <0.000010>\n";
    let recording = record(&scratch, "large", large);
    let Some((result, code)) = replayed(&recording, &[]) else { return };
    let ReplayLabOutcome::Failed(reason) = &result.rows[0].outcome else { panic!("{:?}", result.rows) };
    assert!(reason.contains("is full"), "{reason}");
    assert_eq!(code, Some(1));
}

/// A plan that replays a recording on two filesystems.
const PLAN: &str = "
format = 'joj-lab-plan'
version = 2
title = 'a recording on two filesystems'
[[matrix]]
filesystem = ['ext4', 'f2fs']
device = ['galaxy-s5-emmc']
task = ['replay']
recording = ['app']
";

#[test]
fn a_plan_replays_the_recording_that_it_is_given_in_the_lab() {
    let scratch = Scratch::new("replay-lab-plan");
    let plan = scratch.write("plan.toml", PLAN);
    let recording = record(&scratch, "appends", appends());
    let json = scratch.file("result.json");
    let run = |plan: &Path, words: &[&str], path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
        command.args(["lab", "run"]).arg(plan).arg("--json").arg(&json).args(words);
        command.env("PATH", path).output().expect("joj")
    };
    // No machine can be started: whoever tries says something else.
    let given = format!("app={}", recording.display());
    let compat = scratch.write("compat.toml", format!("{PLAN}compat = [true]"));
    for (plan, words, message) in [
        (&plan, &[][..], "--recording app=FILE"),
        (&plan, &["--recording", "app=missing.joj"], "missing.joj"),
        (&plan, &["--recording", &given, "--recording", "other=o.joj"], "a recording other"),
        (&compat, &["--recording", &given], "MobiGen"),
    ] {
        let (code, said) = told(&run(plan, words, ""));
        assert_eq!(code, Some(1), "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
    }
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let output = run(&plan, &["--recording", &given], &std::env::var("PATH").expect("a path"));
    assert_eq!(told(&output).0, Some(0), "{output:?}");
    let text = fs::read(&json).expect("a result");
    schema::holds_of_text("lab", &text, &[]);
    let result: LabResult = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(result.cells.len(), 2);
    for cell in &result.cells {
        let CellOutcome::Measured(measured) = &cell.outcome else { panic!("{cell:?}") };
        let replay = measured.replay.as_ref().expect("a replay");
        assert_eq!((replay.calls, replay.differing, replay.syncs), (3 * SYNCS + 5, 0, SYNCS), "{cell:?}");
        // One thread, which waits for its calls, and thinks 30 ms at most.
        let run = &measured.run;
        assert_eq!(run.transactions, 1);
        assert!(run.elapsed_ns <= replay.elapsed_ns, "{cell:?}");
        assert!(replay.elapsed_ns - run.elapsed_ns < 30_000_000, "{cell:?}");
        assert!(run.device.is_some_and(|device| device.written_bytes >= SYNCS * 4096), "{cell:?}");
    }
}

#[test]
fn what_cannot_be_replayed_is_refused_before_a_machine_starts() {
    let scratch = Scratch::new("replay-lab-errors");
    let recording = record(&scratch, "appends", appends());
    let whole = fs::read(&recording).expect("the recording");
    let damaged = scratch.write("damaged.joj", &whole[..whole.len() / 2]);
    let large = "1 1700000000.000000 open(\"/d/a\", O_RDWR) = 3 <0.000010>\n\
                 1 1700000000.000100 fstat(3, {st_mode=S_IFREG|0644, st_size=3221225472, ...}) = 0 <0.000010>\n";
    let large = record(&scratch, "large", large);
    let cases: [(&Path, &[&str], i32, &str); 9] = [
        (&damaged, &[], 1, "damaged.joj"),
        (&large, &[], 1, "3072 MiB"),
        (&recording, &["--device", "galaxy-s4-emmc"], 2, "there is no device galaxy-s4-emmc"),
        (&recording, &["--as", "wal"], 1, "no commit of a SQLite database is in it"),
        (&recording, &["--as", "bounded"], 2, "WALDIO_DURABILITY=bounded"),
        (&recording, &["--filesystem", "ext5"], 2, "ext5"),
        (&recording, &["--keep"], 2, "--keep"),
        (&recording, &["/tmp"], 2, "DIR"),
        (&recording, &["--kernel", "bzImage"], 2, "--modules"),
    ];
    // No machine can be started: whoever tries says something else.
    for (recording, words, code, message) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
        let output = command.arg("replay").arg(recording).arg("--lab").args(words).env("PATH", "").output();
        let (found, said) = told(&output.expect("joj"));
        assert_eq!(found, Some(code), "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
    }
    let without = [
        (&["--device", "ram"][..], "--lab"),
        (&["--filesystem", "xfs"], "--lab"),
        (&["--jobs", "1"], "--lab"),
        (&[], "<DIR>"),
    ];
    for (words, message) in without {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
        let output = command.arg("replay").arg(&recording).args(words).output().expect("joj");
        let (found, said) = told(&output);
        assert_eq!(found, Some(2), "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
    }
}
