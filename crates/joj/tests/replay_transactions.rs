//! Goal: the commits and pages that joj finds in a recording are those of the program, and a replay in a journal mode makes as many calls
//! for durability and writes as many bytes as the program does in that mode.
//! Method: a program in Python runs under strace in each mode. It looks itself at its database's pages before and after each commit.
//! Besides the two published scripts of MobiGen, with counts known from elsewhere.

mod replay;
mod waldio;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use joj_analysis::recording::import::{mobigen, strace};
use joj_analysis::recording::page_transactions::derive::derive;
use joj_analysis::recording::page_transactions::plan::{PlannedPart, TransactionPlan};
use joj_analysis::recording::page_transactions::{PageTransactions, RecordedMode};
use replay::{Scratch, joj, printed, record, replay, told};

/// Makes a database, or commits to one: prints the pages of each commit as its file tells them, and ends without closing, so that no
/// checkpoint follows.
const PROGRAM: &str = r#"
import os, sqlite3, sys
database, mode, make = sys.argv[1], sys.argv[2], len(sys.argv) > 3
connection = sqlite3.connect(database, isolation_level=None)
run = connection.execute
if make:
    run("PRAGMA journal_mode=" + mode)
    run("BEGIN")
    run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
    for number in range(80):
        run("INSERT INTO t VALUES(?, ?)", (number, "a" * 3000))
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
    before = pages() if mode != "wal" else None
    run("BEGIN")
    for statement in statements:
        run(*statement)
    run("COMMIT")
    if mode != "wal":
        after = pages()
        print([at + 1 for at, page in enumerate(after) if at >= len(before) or before[at] != page], len(before), len(after))

for number in range(8):
    commit([("UPDATE t SET b=? WHERE a=?", (chr(66 + number) * 3000, number * 7 + step)) for step in range(number + 1)])
for number in range(4):
    commit([("INSERT INTO t VALUES(?, ?)", (1000 + number * 4 + step, "n" * 3000)) for step in range(number + 1)])
sys.stdout.flush()
os._exit(0)
"#;

const MODES: [&str; 4] = ["delete", "truncate", "persist", "wal"];
const COMMITS: usize = 12;

/// The interpreter itself: strace need not see what finds it.
fn python() -> Option<PathBuf> {
    let said =
        Command::new("python3").args(["-c", "import sys, sqlite3; print(sys.executable)"]).output().ok()?;
    said.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
}

/// Runs the program in a mode under strace: strace's text, and what the program says of its commits.
fn traced(scratch: &Scratch, mode: &str) -> Option<(PathBuf, String)> {
    let (Some(python), Ok(_)) = (python(), Command::new("strace").arg("--version").output()) else {
        waldio::skipped("strace or python3 with sqlite3 is not there");
        return None;
    };
    let program = scratch.write("program.py", PROGRAM);
    let database = scratch.file(&format!("{mode}.db"));
    let made =
        Command::new(&python).arg(&program).arg(&database).args([mode, "make"]).output().expect("python3");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let text = scratch.file(&format!("{mode}.strace"));
    let run = Command::new("strace")
        .args(["-f", "-ttt", "-T", "-y", "-o"])
        .arg(&text)
        .arg(&python)
        .arg(&program)
        .arg(&database)
        .arg(mode)
        .output()
        .expect("strace");
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

/// What joj finds in a program's run: the commits are those that the program says it made.
fn checked(text: &Path, said: &str, mode: &str) -> PageTransactions {
    let found = derived(text);
    assert_eq!(found.commits.len(), COMMITS, "{mode}");
    assert!(found.parts().all(|part| part.mode.word() == mode), "{mode}");
    if mode == "wal" {
        // strace's text has no frame heads.
        assert!(found.parts().all(|part| !part.pages_known && part.frames > 0));
    } else {
        let parts = found.parts();
        let parts = parts.map(|part| format!("{:?} {} {}", part.pages, part.pages_before, part.pages_after));
        assert_eq!(parts.collect::<Vec<_>>(), said.lines().collect::<Vec<_>>(), "{mode}");
    }
    found
}

#[test]
fn a_replay_costs_what_the_program_costs_in_that_mode() {
    let scratch = Scratch::new("transactions");
    let mut recording = None;
    for mode in MODES {
        let Some((text, said)) = traced(&scratch, mode) else { return };
        let own = checked(&text, &said, mode);
        // One made in DELETE mode is replayed in all of them.
        let recording = recording
            .get_or_insert_with(|| record(&scratch, "delete", std::fs::read(&text).expect("the text")));
        let words = ["--as", mode, "--order", "fast", "--sqlite", "system"];
        let made = replay(recording, scratch.as_ref(), &words);
        let row = &made["replayed"];
        assert_eq!(row["commits"], COMMITS, "{mode}: {made:#}");
        if mode != "wal" {
            assert_eq!(row["pages"], made["recorded"]["pages"], "{mode}: {made:#}");
        }
        let commits = own.commits.len() as f64;
        if let Some(found) = row["syncs_per_commit"].as_f64() {
            let syncs = own.syncs.all() as f64 / commits;
            assert!((found - syncs).abs() < 1e-9, "{mode}: {found} syncs a commit, the program {syncs}");
        } else {
            waldio::skipped(&made["notes"].to_string());
        }
        let found = row["kib_per_commit"].as_f64().expect("bytes");
        let kib = own.written_bytes as f64 / 1024.0 / commits;
        assert!((found / kib - 1.0).abs() < 0.02, "{mode}: {found} KiB a commit, the program {kib}");
    }
    if let (Some(extension), Some(recording)) = (waldio::extension(), &recording) {
        let words = ["--as", "waldio", "--order", "fast", "--waldio", &*extension.to_string_lossy()];
        let made = replay(recording, scratch.as_ref(), &words);
        assert_eq!(made["replayed"]["commits"], COMMITS, "{made:#}");
    }
    let left = scratch.names().into_iter().filter(|name| name.starts_with("joj-replay")).count();
    assert_eq!(left, 0, "what the replays made is gone");
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
    let small = record(&scratch, "small", SMALL);
    let files = record(&scratch, "files", "1 1700000000.000000 unlink(\"/d/a\") = 0 <0.000010>\n");
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
