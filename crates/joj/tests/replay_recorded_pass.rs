//! Goal: `joj replay --as MODE --record FILE` gives a recording of the same commits in that mode, and of nothing else.
//! Method: a small recording of two programs, and a published script of MobiGen. Each is recorded in each mode. What the recording
//! holds is what the replay itself counted, and the recordings replayed in each mode cost what the program costs there.

mod replay;
mod waldio;

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use replay::{Scratch, joj, printed, told};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const MODES: [&str; 5] = ["delete", "truncate", "persist", "wal", "waldio"];
/// waldio as it is but for the space ahead of need: how much of that a short run writes is a matter of when its thread runs.
const STRICT: (&str, &str) = ("WALDIO_STRICT", "1");
const COMMITS: u64 = 24;

/// Two programs with a database each, which commit by turns and take `think_us` before each commit: pages that change, pages that are new,
/// and page 1 alone.
fn programs(think_us: u64) -> String {
    let mut text = String::new();
    let mut time_us = 0;
    let mut call = |process: u64, call: &str, after_us: u64| {
        time_us += after_us;
        let (seconds, rest_us) = (1_700_000_000 + time_us / 1_000_000, time_us % 1_000_000);
        let _ = writeln!(text, "{process} {seconds}.{rest_us:06} {call} <0.000001>");
    };
    for (process, name) in [(1, "a"), (2, "b")] {
        call(process, &format!("open(\"/d/{name}.db\", O_RDWR|O_CREAT, 0644) = 3"), 10);
        call(process, "fstat(3, {st_mode=S_IFREG|0644, st_size=81920, ...}) = 0", 10);
    }
    for number in 0..COMMITS {
        let (process, name) = if number % 3 == 2 { (2, "b") } else { (1, "a") };
        // Of these 20 pages are there; later ones come one after the other.
        let pages: &[u64] = match number {
            3 => &[1],
            4 => &[1, 5, 21],
            5 => &[1, 7, 21, 22],
            13 => &[1, 22],
            _ => &[1, 2 + number % 9, 12 + number % 5],
        };
        call(process, &format!("open(\"/d/{name}.db-journal\", O_RDWR|O_CREAT, 0644) = 4"), think_us);
        call(process, "pwrite64(4, \"\"..., 512, 0) = 512", 10);
        for page in pages {
            let place = (page - 1) * 4096;
            call(process, &format!("pwrite64(3, \"\"..., 4096, {place}) = 4096"), 10);
        }
        for end in ["fsync(3) = 0", "close(4) = 0", &format!("unlink(\"/d/{name}.db-journal\") = 0")] {
            call(process, end, 10);
        }
    }
    text
}

fn modes() -> &'static [&'static str] {
    if waldio::extension().is_some() { &MODES } else { &MODES[..4] }
}

/// The command of a replay in a mode.
fn replay_command(recording: &Path, directory: &Path, mode: &str) -> Command {
    let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
    joj.arg("replay").arg(recording).arg(directory).env(STRICT.0, STRICT.1).args(["--as", mode]);
    if mode == "waldio" {
        joj.arg("--waldio").arg(waldio::extension().expect("the extension"));
    }
    joj
}

/// The JSON of a replay in a mode, which is recorded where a file is named.
fn replayed_as(recording: &Path, directory: &Path, mode: &str, recorded: Option<&Path>) -> Value {
    let mut joj = replay_command(recording, directory, mode);
    joj.args(["--order", "fast", "--json", "-"]);
    if let Some(recorded) = recorded {
        joj.arg("--record").arg(recorded);
    }
    serde_json::from_str(&printed(&joj.output().expect("joj"))).expect("JSON")
}

/// Commits, calls for durability, bytes, and pages of a row.
fn cost(row: &Value) -> [Option<u64>; 4] {
    let syncs = row["syncs"].as_object();
    let syncs = syncs.map(|calls| calls.values().map(|calls| calls.as_u64().expect("calls")).sum());
    [row["commits"].as_u64(), syncs, row["written_bytes"].as_u64(), row["pages"].as_u64()]
}

/// The same, and they are equal but for syncs that the kernel does not let joj count.
fn assert_costs(found: &Value, expected: [Option<u64>; 4], case: &str) {
    let mut found = cost(found);
    if found[1].is_none() || expected[1].is_none() {
        waldio::skipped("the kernel counts no calls of the replay");
        found[1] = expected[1];
    }
    assert_eq!(found, expected, "commits, syncs, bytes, pages; {case}");
}

/// In each mode the recordings of the passes, and what the passes cost by the replay's own count.
fn recorded_in_each(scratch: &Scratch, recording: &Path) -> Vec<(PathBuf, [Option<u64>; 4])> {
    let record = |mode: &&str| {
        let recorded = scratch.file(&format!("{mode}.joj"));
        let result = replayed_as(recording, scratch.as_ref(), mode, Some(&recorded));
        (recorded, cost(&result["replayed"]))
    };
    modes().iter().map(record).collect()
}

#[test]
fn a_pass_recorded_in_each_mode_costs_in_each_what_the_program_costs_there() {
    let scratch = Scratch::new("recorded-pass");
    let program = replay::record(&scratch, "programs", programs(100));
    let recorded = recorded_in_each(&scratch, &program);
    for (from, (recording, _)) in modes().iter().zip(&recorded) {
        for (to, (_, expected)) in modes().iter().zip(&recorded) {
            let result = replayed_as(recording, scratch.as_ref(), to, None);
            let case = format!("{from} as {to}: {result:#}");
            assert_eq!(expected[0], Some(COMMITS), "{case}");
            assert_costs(&result["replayed"], *expected, &case);
            if from == to {
                // The recording's own row: no commit, call or byte of joj's before or behind the pass.
                assert_costs(&result["recorded"], *expected, &case);
                let mode = if *from == "waldio" { "wal" } else { from };
                let modes = &result["recorded"]["journal_modes"];
                assert_eq!(modes[mode].as_u64(), Some(COMMITS), "{case}");
                assert_eq!(modes.as_object().expect("modes").len(), 1, "{case}");
                assert_eq!(result["databases"].as_array().expect("databases").len(), 2, "{case}");
            }
        }
    }
    let left: Vec<String> = scratch.names().into_iter().filter(|name| !name.ends_with(".joj")).collect();
    assert_eq!(left, ["programs.txt"], "what the replays made is gone");
}

/// A published application, where its script is there (`tests/replay_modes.py` does both, each mode as each). It makes an interior page
/// full, which writes two pages more, and its recording has them as pages of the application: bytes within half a percent.
#[test]
fn a_published_application_costs_in_each_mode_what_it_costs_recorded_in_the_next() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/mobigen.out.twitter");
    if !script.exists() {
        return waldio::skipped(&format!("{} is not there", script.display()));
    }
    let scratch = Scratch::new("recorded-application");
    let application = scratch.file("application.joj");
    printed(&joj(&[&"record", &"--import", &script, &"-o", &application]));
    let recorded = recorded_in_each(&scratch, &application);
    let next = recorded.iter().cycle().skip(1);
    for ((to, (_, expected)), (recording, own)) in modes().iter().zip(&recorded).zip(next) {
        let result = replayed_as(recording, scratch.as_ref(), to, None);
        let case = format!("as {to}: {result:#}");
        assert_costs(&result["recorded"], *own, &case);
        let found = cost(&result["replayed"]);
        assert_eq!((found[0], expected[0]), (Some(130), Some(130)), "{case}");
        assert_eq!(found[1], expected[1], "syncs, {case}");
        let [found, own] = [found[2], expected[2]].map(|bytes| bytes.expect("bytes") as f64);
        assert!((found / own - 1.0).abs() < 0.005, "bytes, {found} and {own}, {case}");
    }
}

#[test]
fn what_cannot_be_recorded_says_why_and_leaves_nothing() {
    let scratch = Scratch::new("recorded-pass-errors");
    let directory: &Path = scratch.as_ref();
    let program = replay::record(&scratch, "programs", programs(100));
    let output = scratch.file("out.joj");
    let output = output.to_str().expect("text");
    let elsewhere = scratch.file("missing/out.joj");
    let own = program.to_str().expect("text");
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--record", output], 2, "--as"),
        (&["--as", "wal", "--compat", "--record", output], 2, "--compat"),
        (&["--as", "wal", "--record", own], 1, "is named twice"),
        (&["--as", "wal", "--record", output, "--json", output], 1, "is named twice"),
        (&["--as", "wal", "--record", elsewhere.to_str().expect("text")], 1, "its directory is missing"),
    ];
    for (words, code, message) in cases {
        let mut command: Vec<&dyn AsRef<OsStr>> = vec![&"replay", &program, &directory];
        command.extend(words.iter().map(|word| word as &dyn AsRef<OsStr>));
        let (found, said) = told(&joj(&command));
        assert_eq!(found, Some(code), "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
    }
    let emulated = joj(&[&"replay", &program, &"--lab", &"--as", &"wal", &"--record", &output]);
    let (code, said) = told(&emulated);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--lab"), "{said}");
    assert_eq!(scratch.names(), ["programs.joj", "programs.txt"]);
}

/// The program thinks for a minute before each commit, so the signal comes while the pass is recorded; or for 0.2 s, and it comes behind,
/// in the run with a clock.
#[test]
fn ctrl_c_while_the_pass_is_recorded_or_behind_it_leaves_nothing() {
    let scratch = Scratch::new("recorded-pass-stopped");
    for (think_us, awaited) in [(60_000_000, "out.joj.part"), (200_000, "out.joj")] {
        let program = replay::record(&scratch, "programs", programs(think_us));
        let mut joj = replay_command(&program, scratch.as_ref(), "wal");
        let joj =
            joj.arg("--record").arg(scratch.file("out.joj")).stderr(Stdio::piped()).stdout(Stdio::null());
        let joj = joj.spawn().expect("joj");
        while !scratch.names().contains(&awaited.to_owned()) {
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&joj), Signal::INT).expect("a signal");
        let (code, said) = told(&joj.wait_with_output().expect("joj"));
        assert_eq!(code, Some(130), "{awaited}: {said}");
        assert!(said.contains("stopped by a signal"), "{awaited}: {said}");
        assert_eq!(scratch.names(), ["programs.joj", "programs.txt"]);
    }
}

/// The worker that is recorded answers by its exit code: its standard output is joj's.
#[test]
fn a_worker_with_a_task_in_a_file_says_on_standard_error_what_failed() {
    let scratch = Scratch::new("recorded-pass-worker");
    let task = scratch.write("task.json", "[\"no such task\", null]");
    let output = joj(&[&"bench-worker", &task]);
    let (code, said) = told(&output);
    assert_eq!((code, output.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("no such task"), "{said}");
}
