//! Goal: parts become the result of one run, with its exit code; whatever else is given is refused by its name, and nothing is written.
//! Method: parts of made-up results, given to the built program. Real ones: `shards` of tests/lab.rs, `program_crash_lab.rs`.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

mod emulated;
mod schema;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use emulated::TestFiles;
use joj_analysis::lab::program_crash::{
    BrokenStates, Checked, Finding, PROGRAM_CRASH_FORMAT, PROGRAM_CRASH_VERSION, ProgramCrashResult,
    ProgramState, ProgramVolume,
};
use joj_analysis::lab::result::{CellOutcome, LabMachine, LabResult};
use joj_analysis::lab::shards::plan::{IndexedOutcome, LAB_PART_FORMAT, LAB_PART_VERSION, LabPart};
use joj_analysis::lab::shards::program_crash::{
    PROGRAM_CRASH_PART_FORMAT, PROGRAM_CRASH_PART_VERSION, ProgramCrashPart, StatesPlan,
};
use joj_analysis::lab::shards::shard::Shard;
use joj_analysis::lab::shards::whole::sealed;
use serde::Serialize;

const MADE_UP: &str = include_str!("../../../fixtures/lab/made_up_result.json");

fn joj(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_joj")).args(words).output().unwrap()
}

/// Exit code, what was printed, and what was said of what went wrong.
fn told(words: &[&str]) -> (Option<i32>, String, String) {
    let output = joj(words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn part(result: &LabResult, number: u32, count: u32) -> LabPart {
    let own = Shard::new(number, count).unwrap().indices(result.cells.len());
    let outcome = |index: usize| IndexedOutcome { index, outcome: result.cells[index].outcome.clone() };
    let part = LabPart {
        format: LAB_PART_FORMAT.to_owned(),
        version: LAB_PART_VERSION,
        shard: number,
        shards: count,
        title: result.title.clone(),
        machine: result.machine.clone(),
        made_from: BTreeMap::new(),
        cells: result.cells.iter().map(|one| one.cell.clone()).collect(),
        outcomes: own.map(outcome).collect(),
        checksum: String::new(),
    };
    sealed(part).unwrap()
}

fn write(files: &TestFiles, name: &str, value: &impl Serialize) -> String {
    files.write(name, &(serde_json::to_string_pretty(value).unwrap() + "\n"))
}

#[test]
fn parts_of_a_plan_are_one_result_with_its_exit_code() {
    let files = TestFiles::new("merge");
    let mut result: LabResult = serde_json::from_str(MADE_UP).unwrap();
    result.version = joj_analysis::lab::result::RESULT_VERSION;
    for has_failed in [true, false] {
        if !has_failed {
            result.cells.retain(|cell| matches!(cell.outcome, CellOutcome::Measured(_)));
        }
        let parts = [3, 1, 2].map(|number| write(&files, &number.to_string(), &part(&result, number, 3)));
        let json = files.name("merged.json");
        let words = ["lab", "merge", &parts[0], &parts[1], &parts[2]];
        let (code, printed, said) = told(&[&words[..], &["--json", &json]].concat());
        assert_eq!(code, Some(i32::from(has_failed)), "{said}");
        let expected = serde_json::to_string_pretty(&result).unwrap() + "\n";
        assert_eq!(fs::read_to_string(&json).unwrap(), expected);
        assert!(printed.starts_with(&result.title), "{printed}");
        let (_, printed, _) = told(&[&words[..], &["--json", "-"]].concat());
        assert_eq!(printed, expected, "instead of the table");
    }
}

#[test]
fn what_is_no_whole_is_told_and_nothing_is_written() {
    let files = TestFiles::new("no-merge");
    let result: LabResult = serde_json::from_str(MADE_UP).unwrap();
    let [one, two] = [1, 2].map(|number| write(&files, &format!("{number}.json"), &part(&result, number, 2)));
    let (whole, json) = (files.write("whole.json", MADE_UP), files.name("merged.json"));
    let cut = files.write("cut.json", &fs::read_to_string(&two).unwrap()[..900]);
    let missing = files.name("none.json");
    let crash = write(&files, "crash.json", &crash_part(1, 2));
    for (parts, expected) in [
        (vec![&one], "shard 2/2 is missing; run `--shard 2/2`".to_owned()),
        (vec![&one, &two, &one], format!("{one} and {one} are both shard 1/2")),
        (vec![&one, &whole], format!("{whole} is the result of a whole run")),
        (vec![&one, &cut], format!("{cut} is no part (")),
        (vec![&one, &missing], format!("cannot read {missing}")),
        (vec![&one, &crash], format!("{crash} is a part of another command than {one}")),
    ] {
        let parts: Vec<&str> = parts.into_iter().map(String::as_str).collect();
        let (code, printed, said) = told(&[&["lab", "merge", "--json", &json], &parts[..]].concat());
        assert_eq!((code, printed.as_str()), (Some(1), ""), "{said}");
        assert!(said.contains(&expected), "{said}");
        assert!(!fs::exists(&json).unwrap(), "{parts:?}");
    }
    let (code, _, said) = told(&["lab", "merge", &one, &two, "--json", &two]);
    assert!(code == Some(1) && said.contains("2.json is named twice"), "the parts stay: {said}");
    let (code, _, said) = told(&["lab", "report", &one]);
    assert!(code == Some(1) && said.contains("`joj lab merge PART... --json FILE`"), "{said}");
}

/// A state that lost something, one in a shard.
fn crash_part(number: u32, count: u32) -> ProgramCrashPart {
    let state = ProgramState {
        at_ns: 1_000 + u64::from(number),
        missing: "7:1".to_owned(),
        missing_writes: u64::from(number),
        promised: 1,
        checked: Checked { finding: Finding::Lost, said: format!("line {number} is gone") },
        again: None,
    };
    let broken = BrokenStates {
        states: 1,
        shortest: state.clone(),
        since_start_ns: 9,
        last_line: None,
        left_out: Vec::new(),
        again: None,
    };
    let volume = ProgramVolume {
        filesystem: "ext4".parse().unwrap(),
        device: "ram".to_owned(),
        journal_device: None,
        mount_options: None,
        failure: None,
        run: None,
        changed_files: Vec::new(),
        entries: 9,
        is_systematic: true,
        same: 0,
        states: vec![state],
        broken: vec![broken],
    };
    let result = ProgramCrashResult {
        format: PROGRAM_CRASH_FORMAT.to_owned(),
        version: PROGRAM_CRASH_VERSION,
        command: vec!["./p".to_owned()],
        check: "./c".to_owned(),
        host_words: Vec::new(),
        seed: 1,
        planted: None,
        machine: LabMachine::default(),
        volumes: vec![volume],
    };
    let part = ProgramCrashPart {
        format: PROGRAM_CRASH_PART_FORMAT.to_owned(),
        version: PROGRAM_CRASH_PART_VERSION,
        shard: number,
        shards: count,
        made_from: BTreeMap::from([("joj".to_owned(), "1f".to_owned())]),
        recordings: "kept".to_owned(),
        plans: vec![StatesPlan { recording: Some("1f".to_owned()), states: count as usize }],
        result,
        checksum: String::new(),
    };
    sealed(part).unwrap()
}

#[test]
fn parts_of_joj_crash_are_one_result_with_its_exit_code() {
    let files = TestFiles::new("merge-crash");
    let parts = [2, 3, 1].map(|number| write(&files, &number.to_string(), &crash_part(number, 3)));
    schema::holds_of_text("crash-part", &fs::read(&parts[0]).unwrap(), &[]);
    let json = files.name("merged.json");
    let (code, printed, said) = told(&["lab", "merge", &parts[0], &parts[1], &parts[2], "--json", &json]);
    assert_eq!(code, Some(3), "a promise was broken: {said}");
    assert!(printed.contains("LOST on ext4 ram, 3 states: line 1 is gone"), "{printed}");
    assert!(printed.contains("--recordings kept --state STATE"), "{printed}");
    let text = fs::read(&json).unwrap();
    schema::holds_of_text("crash", &text, &[]);
    let result: ProgramCrashResult = serde_json::from_slice(&text).unwrap();
    assert_eq!((result.volumes[0].states.len(), result.volumes[0].broken.len()), (3, 1));
}

#[test]
fn a_check_that_only_failed_or_is_not_sure_has_another_exit_code() {
    let files = TestFiles::new("merge-unsure");
    for (name, finding, again) in
        [("failed", Finding::CheckFailed, None), ("unsure", Finding::Lost, Some(Finding::Kept))]
    {
        let mut part = crash_part(1, 1);
        let volume = &mut part.result.volumes[0];
        volume.states[0].checked.finding = finding;
        volume.broken[0].shortest.checked.finding = finding;
        volume.broken[0].again = again.map(|finding| Checked { finding, said: String::new() });
        let part = write(&files, name, &sealed(part).unwrap());
        let (code, printed, said) = told(&["lab", "merge", &part]);
        assert_eq!(code, Some(1), "{said}");
        assert_eq!(printed.contains("NOT SURE"), again.is_some(), "{printed}");
    }
}

#[test]
fn a_shard_that_cannot_be_is_told_before_anything_starts() {
    let crash = ["crash", "--check", "true", "--recordings", "kept", "--json", "part.json"];
    for (text, expected) in [
        ("5/4", "shard 5 is none of 4"),
        ("0/4", "shard 0 is none of 4"),
        ("1/0", "N is from 1 to"),
        ("x", "it reads I/N, for example 2/4"),
    ] {
        let of_plan = ["lab", "run", "smoke", "--json", "part.json", "--shard", text];
        for words in [&of_plan[..], &[&crash[..], &["--shard", text, "--", "true"]].concat()] {
            let (code, _, said) = told(words);
            assert!(code == Some(2) && said.contains(expected), "{words:?} {text}: {code:?}, {said}");
        }
    }
    let (code, _, said) = told(&["lab", "run", "smoke", "--shard", "1/2"]);
    assert!(code == Some(2) && said.contains("`--shard 1/2` needs `--json PART`"), "{said}");
    for left_out in ["--recordings", "--json"] {
        let at = crash.iter().position(|word| *word == left_out).unwrap();
        let words = [&crash[..at], &crash[at + 2..], &["--shard", "1/2", "--", "true"]].concat();
        let (code, _, said) = told(&words);
        assert!(code == Some(2) && said.contains(left_out), "{left_out}: {said}");
    }
    let words = [&crash[..], &["--shard", "1/2", "--state", "1/2/nothing", "--", "true"]].concat();
    let (code, _, said) = told(&words);
    assert!(code == Some(2) && said.contains("cannot be used with"), "{said}");
    let (code, _, said) = told(&["crash", "sqlite", "--shard", "1/2"]);
    assert!(code == Some(2) && said.contains("--shard"), "{said}");
}

#[test]
fn a_dry_run_lists_the_cells_of_each_shard() {
    let lines = |more: &[&str]| {
        let (code, printed, said) = told(&[&["lab", "run", "smoke", "--dry-run"], more].concat());
        assert_eq!(code, Some(0), "{said}");
        printed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = lines(&[]);
    let [one, two] = ["1/2", "2/2"].map(|shard| lines(&["--shard", shard]));
    let in_turn: Vec<String> = (0..all.len()).map(|at| [&one, &two][at % 2][at / 2].clone()).collect();
    assert_eq!((in_turn, one.len() + two.len()), (all.clone(), all.len()));
    let beyond = format!("{0}/{0}", all.len() + 1);
    assert!(lines(&["--shard", &beyond]).is_empty());
}
