//! Goal: the commits and pages that joj finds in a recording are those of the program, and a replay in a journal mode makes as many calls
//! for durability and writes as many bytes as the program does in that mode, whichever mode it was recorded in.
//! Method: a program in Python runs under strace in each mode. It looks itself at its database's pages before and after each commit. It
//! is recorded in each mode, also through waldio, and each recording is replayed in each mode. Besides the two published scripts of
//! MobiGen, with counts known from elsewhere.

mod record;
mod replay;
mod waldio;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use joj_analysis::recording::import::{mobigen, strace};
use joj_analysis::recording::page_transactions::derive::derive;
use joj_analysis::recording::page_transactions::plan::{PlannedPart, TransactionPlan};
use joj_analysis::recording::page_transactions::{PageTransactions, RecordedMode};
use record::{methods, record_command};
use replay::{Scratch, joj, printed, told};
use serde_json::Value;

/// Makes a database, or commits to one, and ends without closing, so that no checkpoint follows. With the workload `known` it prints the
/// pages of each commit as its file tells them.
const PROGRAM: &str = r#"
import os, random, sqlite3, sys
database, mode, workload, extension, make = sys.argv[1:6]
if extension:
    loader = sqlite3.connect(":memory:")
    loader.enable_load_extension(True)
    loader.load_extension(extension)
connection = sqlite3.connect("file:" + database + ("?vfs=waldio" if extension else ""), uri=True, isolation_level=None)
run = connection.execute
if make:
    run("PRAGMA journal_mode=" + mode)
    run("BEGIN")
    run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
    run("CREATE TABLE u(a INTEGER PRIMARY KEY, b TEXT)")
    for number in range(80):
        run("INSERT INTO t VALUES(?, ?)", (number, "a" * 3000))
    for number in range(1000):
        run("INSERT INTO u VALUES(?, ?)", (number, "a" * 300))
    run("COMMIT")
    connection.close()
    sys.exit()
run("PRAGMA synchronous=FULL")
assert run("PRAGMA journal_mode=" + mode).fetchone()[0] == mode

def pages():
    with open(database, "rb") as file:
        data = file.read()
    return [data[at:at + 4096] for at in range(0, len(data), 4096)]

def commit(statements):
    tells = workload == "known" and mode != "wal"
    before = pages() if tells else None
    run("BEGIN")
    for statement in statements:
        run(*statement)
    run("COMMIT")
    if tells:
        after = pages()
        print([at + 1 for at, page in enumerate(after) if at >= len(before) or before[at] != page], len(before), len(after))

draw = random.Random(7)
def mixed(number, deleted):
    if number % 4 == 0:
        return [("UPDATE t SET b=? WHERE a=?", (chr(66 + number) * 3000, draw.randrange(80))) for step in range(1 + number % 5)]
    if number % 4 == 1:
        return [("INSERT INTO u VALUES(?, ?)", (2000 + number * 9 + step, "n" * 300)) for step in range(1 + number % 7)]
    if number % 4 == 2:
        return [("DELETE FROM " + deleted + " WHERE a=?", (draw.randrange(80),)) for step in range(1 + number % 3)]
    return [("UPDATE u SET b=? WHERE a=?", (chr(66 + number) * 300, draw.randrange(1000))),
            ("INSERT INTO t VALUES(?, ?)", (1000 + number, "n" * 3000))]

if workload == "known":
    for number in range(8):
        commit([("UPDATE t SET b=? WHERE a=?", (chr(66 + number) * 3000, number * 7 + step)) for step in range(number + 1)])
    for number in range(4):
        commit([("INSERT INTO t VALUES(?, ?)", (1000 + number * 4 + step, "n" * 3000)) for step in range(number + 1)])
for number in range(20):
    if workload == "insert":
        commit([("INSERT INTO t VALUES(?, ?)", (1000 + number, "n" * 100))])
    elif workload == "mixed":
        commit(mixed(number, "u"))
    elif workload == "freeing":
        commit(mixed(number, "t"))
sys.stdout.flush()
os._exit(0)
"#;

const MODES: [&str; 5] = ["delete", "truncate", "persist", "wal", "waldio"];
/// Of the workload `known`.
const COMMITS: usize = 12;
/// waldio as it is but for the space ahead of need: how much of that a short run writes is a matter of when its thread runs.
const STRICT: (&str, &str) = ("WALDIO_STRICT", "1");

/// The interpreter itself: strace need not see what finds it.
fn python() -> Option<PathBuf> {
    let ask = "import sys, sqlite3; print(sys.executable)";
    let said = Command::new("/usr/bin/python3").args(["-c", ask]).output().ok()?;
    said.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
}

/// The words that run the program on a database that is there, empty but for its rows.
fn program(scratch: &Scratch, python: &Path, mode: &str, workload: &str) -> Vec<OsString> {
    let script = scratch.write("program.py", PROGRAM);
    let extension =
        if mode == "waldio" { waldio::extension().expect("the extension") } else { PathBuf::new() };
    let database = scratch.file(&format!("{workload}-{mode}.db"));
    let mode = if mode == "waldio" { "wal" } else { mode };
    let words = |make: &str| -> Vec<OsString> {
        vec![
            python.into(),
            script.clone().into(),
            database.clone().into(),
            mode.into(),
            workload.into(),
            extension.clone().into(),
            make.into(),
        ]
    };
    let make = words("make");
    let made = Command::new(&make[0]).args(&make[1..]).output().expect("python3");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    words("")
}

/// Runs the program in a mode under strace: strace's text, and what the program says of its commits.
fn traced(scratch: &Scratch, mode: &str) -> Option<(PathBuf, String)> {
    let (Some(python), Ok(_)) = (python(), Command::new("strace").arg("--version").output()) else {
        waldio::skipped("strace or python3 with sqlite3 is not there");
        return None;
    };
    let words = program(scratch, &python, mode, "known");
    let text = scratch.file(&format!("{mode}.strace"));
    let mut strace = Command::new("strace");
    let run = strace.args(["-f", "-ttt", "-T", "-y", "-o"]).arg(&text).args(words).output().expect("strace");
    if !run.status.success() {
        waldio::skipped(&format!("strace: {}", String::from_utf8_lossy(&run.stderr)));
        return None;
    }
    Some((text, String::from_utf8(run.stdout).expect("text")))
}

fn derived(text: &Path) -> PageTransactions {
    let text = BufReader::new(File::open(text).expect("the text"));
    derive(&strace::import(text).expect("a recording")).expect("commits")
}

#[test]
fn the_commits_of_a_program_under_strace_are_those_that_it_says_it_made() {
    let scratch = Scratch::new("transactions");
    for mode in ["delete", "truncate", "persist", "wal"] {
        let Some((text, said)) = traced(&scratch, mode) else { return };
        let found = derived(&text);
        assert_eq!(found.commits.len(), COMMITS, "{mode}");
        assert!(found.parts().all(|part| part.mode.word() == mode), "{mode}");
        if mode == "wal" {
            // strace's text has no frame heads.
            assert!(found.parts().all(|part| !part.pages_known && part.frames > 0));
            continue;
        }
        let parts = found.parts();
        let parts = parts.map(|part| format!("{:?} {} {}", part.pages, part.pages_before, part.pages_after));
        assert_eq!(parts.collect::<Vec<_>>(), said.lines().collect::<Vec<_>>(), "{mode}");
    }
}

/// The program in a mode, recorded as it runs.
fn recorded(scratch: &Scratch, python: &Path, mode: &str, workload: &str) -> PathBuf {
    let recording = scratch.file(&format!("{workload}-{mode}.joj"));
    let (name, value) = STRICT;
    let words =
        [vec!["env".into(), format!("{name}={value}").into()], program(scratch, python, mode, workload)];
    let words = words.concat();
    let words: Vec<&dyn AsRef<OsStr>> = words.iter().map(|word| word as &dyn AsRef<OsStr>).collect();
    let method = methods().pop().expect("a way to record");
    let (code, said) = told(&record_command(method, &recording, &words));
    assert_eq!(code, Some(0), "{said}");
    recording
}

/// The JSON of a replay of its commits in a mode.
fn replayed_as(recording: &Path, directory: &Path, mode: &str) -> Value {
    let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
    joj.arg("replay").arg(recording).arg(directory).env(STRICT.0, STRICT.1);
    joj.args(["--as", mode, "--order", "fast", "--sqlite", "system", "--json", "-"]);
    if mode == "waldio" {
        joj.arg("--waldio").arg(waldio::extension().expect("the extension"));
    }
    serde_json::from_str(&printed(&joj.output().expect("joj"))).expect("JSON")
}

/// A workload, recorded in each mode and replayed in each: calls for durability are those of the program in that mode, and its bytes
/// are no further off than this.
fn each_mode_as_each(workload: &str, kib_off_max: f64) {
    let Some(python) = python() else { return waldio::skipped("python3 with sqlite3 is not there") };
    let scratch = Scratch::new(&format!("transactions-{workload}"));
    let modes = if waldio::extension().is_some() { &MODES[..] } else { &MODES[..4] };
    let recordings: Vec<PathBuf> =
        modes.iter().map(|mode| recorded(&scratch, &python, mode, workload)).collect();
    let replays = |recording: &PathBuf| -> Vec<Value> {
        modes.iter().map(|mode| replayed_as(recording, scratch.as_ref(), mode)).collect()
    };
    let rows: Vec<Vec<Value>> = recordings.iter().map(replays).collect();
    for (from, row) in modes.iter().zip(&rows) {
        for ((to, made), own) in modes.iter().zip(row).zip(&rows) {
            let (made, own) = (&made["replayed"], &own[0]["recorded"]);
            let case = format!("{workload}, {from} as {to}: {made:#}, the program: {own:#}");
            assert_eq!(made["commits"], own["commits"], "{case}");
            assert!(own["commits"].as_u64().is_some_and(|commits| commits >= 15), "{case}");
            match (made["syncs_per_commit"].as_f64(), own["syncs_per_commit"].as_f64()) {
                (Some(found), Some(own)) => assert!((found - own).abs() < 1e-9, "{case}"),
                _ => waldio::skipped("the kernel counts no calls of the replay"),
            }
            let [found, own] = [made, own].map(|row| row["kib_per_commit"].as_f64().expect("bytes"));
            println!("{workload}, {from} as {to}: {found:.2} KiB a commit, the program {own:.2}");
            assert!((found / own - 1.0).abs() <= kib_off_max, "{case}");
        }
    }
    let left = scratch.names().into_iter().filter(|name| name.starts_with("joj-replay")).count();
    assert_eq!(left, 0, "what the replays made is gone");
}

#[test]
fn inserts_cost_in_each_mode_what_they_cost_the_program_there() {
    each_mode_as_each("insert", 0.001);
}

#[test]
fn a_mixed_workload_costs_in_each_mode_what_it_costs_the_program_there() {
    each_mode_as_each("mixed", 0.001);
}

/// SQLite keeps no copy of a freed page that it uses again, and leaves out freed pages in the rollback modes: a replay, which frees none,
/// writes a bit more there.
#[test]
fn a_workload_that_frees_pages_costs_nearly_what_it_costs_the_program() {
    each_mode_as_each("freeing", 0.05);
}

/// One commit with a journal in a small recording; `{}` is what follows.
const SMALL: &str = r#"1 1700000000.000000 open("/d/a.db", O_RDWR|O_CREAT, 0644) = 3 <0.000010>
1 1700000000.000100 open("/d/a.db-journal", O_RDWR|O_CREAT, 0644) = 4 <0.000010>
1 1700000000.000200 pwrite64(4, ""..., 512, 0) = 512 <0.000010>
1 1700000000.000300 pwrite64(3, ""..., 4096, 0) = 4096 <0.000010>
1 1700000000.000400 pwrite64(3, ""..., 4096, 4096) = 4096 <0.000010>
1 1700000000.000500 fsync(3) = 0 <0.000010>
1 1700000000.000600 unlink("/d/a.db-journal") = 0 <0.000010>
"#;

#[test]
fn what_cannot_be_replayed_says_why() {
    let scratch = Scratch::new("transactions-errors");
    let directory: &Path = scratch.as_ref();
    let small = replay::record(&scratch, "small", SMALL);
    let files = replay::record(&scratch, "files", "1 1700000000.000000 unlink(\"/d/a\") = 0 <0.000010>\n");
    let missing = scratch.file("missing.so");
    let missing = missing.to_string_lossy();
    let cases: [(&PathBuf, &[&str], i32, &str); 7] = [
        (&small, &["--as", "wall"], 2, "memory, off, wal, waldio\n"),
        (&files, &["--as", "wal"], 1, "no commit of a SQLite database is in it"),
        (
            &small,
            &["--as", "bounded"],
            2,
            "WALDIO_DURABILITY=bounded in the environment; choose from: delete, ",
        ),
        (&small, &["--synchronous", "off"], 2, "--as"),
        (&small, &["--as", "wal", "--check"], 2, "--check"),
        (&small, &["--as", "waldio", "--waldio", &missing], 1, "cannot find the waldio extension"),
        (&small, &["--as", "wal", "--sqlite", &missing], 1, "cannot use"),
    ];
    for (recording, words, code, message) in cases {
        let mut command: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"replay", recording, &directory];
        command.extend(words.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>));
        let (found, said) = told(&joj(&command));
        assert_eq!(found, Some(code), "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
    }
    let text = printed(&joj(&[&"replay", &small, &directory, &"--as", &"persist", &"--synchronous", &"off"]));
    assert!(text.contains("1 commits on 1 databases"), "{text}");
    assert!(text.contains("/d/a.db: pages of 4096 bytes, 0 to 2;"), "{text}");
    let left = scratch.names().into_iter().filter(|name| name.starts_with("joj-replay")).count();
    assert_eq!(left, 0, "what the replays made is gone");
}

/// A published script of MobiGen's, where it is there.
fn script(name: &str) -> Option<PageTransactions> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    let Ok(file) = File::open(&path) else {
        waldio::skipped(&format!("{} is not there", path.display()));
        return None;
    };
    let recording = mobigen::import(BufReader::new(file)).expect("a script");
    Some(derive(&recording).expect("commits"))
}

/// Commits, pages, pages without page 1, the most of one commit, commits without a journal, syncs, databases.
fn counts(found: &PageTransactions) -> [u64; 7] {
    let parts: Vec<_> = found.parts().collect();
    let pages: u64 = parts.iter().map(|part| part.page_count()).sum();
    let first = parts.iter().filter(|part| part.has_page_one()).count() as u64;
    [
        found.commits.len() as u64,
        pages,
        pages - first,
        parts.iter().map(|part| part.page_count()).max().expect("a commit"),
        parts.iter().filter(|part| part.mode == RecordedMode::None).count() as u64,
        found.syncs.all(),
        found.databases.len() as u64,
    ]
}

#[test]
fn the_published_scripts_have_their_known_commits() {
    if let Some(facebook) = script("mobigen.out.facebook") {
        assert_eq!(counts(&facebook), [365, 1_106, 741, 7, 49, 997, 3]);
    }
    if let Some(twitter) = script("mobigen.out.twitter") {
        assert_eq!(counts(&twitter), [130, 720, 590, 54, 53, 284, 2]);
    }
}

/// Pages that a replay in a rollback mode writes: page 1, updated leaves, new leaves and their parent.
fn planned_pages(part: &PlannedPart) -> u64 {
    let parent = u64::from(part.inserts > 0);
    1 + part.updates.len() as u64 + u64::from(part.inserts) + parent
}

#[test]
fn a_plan_has_as_many_pages_as_the_recording_in_each_commit() {
    for name in ["mobigen.out.facebook", "mobigen.out.twitter"] {
        let Some(found) = script(name) else { return };
        let plan = TransactionPlan::of(&found).expect("a plan");
        for (commit, planned) in found.commits.iter().zip(&plan.commits) {
            let pages: u64 = planned.parts.iter().map(planned_pages).sum();
            assert_eq!(pages, commit.parts[0].page_count(), "{commit:?} became {planned:?}");
        }
    }
}
