//! Goal: `joj mobibench -d` does to databases what Mobibench's options say, and prints what its readers parse.
//! Method: the built program; then the sqlite3 shell looks into the databases. Calls for durability are those that strace shows. No
//! figure of time is judged.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

mod mobibench;
mod waldio;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use mobibench::{
    begun, count, count_lines, figures, interrupt, names, on_small_disk, place, run, stdout, text, traced,
};
use waldio::extension;

/// What the shell answers.
fn ask(place: &Path, file: &str, sql: &str) -> String {
    let output = Command::new("sqlite3").arg(place.join(file)).arg(sql).output().expect("sqlite3");
    assert!(output.status.success(), "{file}: {sql}: {}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

const INSERTED: &str =
    "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhhiiiiiiiiiijjjjjjjjjj";

#[test]
fn inserts_leave_their_rows() {
    let place = place("insert");
    // Twice: the tables are made anew each time.
    for random in ["", "-R x"] {
        stdout(&place, &format!("-d 0 -n 10 -j 3 -T 1 {random}"));
        assert_eq!(names(&place), ["test.db0_0"], "closed");
        let row = "SELECT count(*), min(id), max(id), min(Value), max(Value) FROM tblMyList0";
        assert_eq!(ask(&place, "test.db0_0", row), format!("10|0|9|{INSERTED}|{INSERTED}"));
        let tables = "SELECT group_concat(name) FROM sqlite_master";
        assert_eq!(ask(&place, "test.db0_0", tables), "tblMyList0");
        let facts = "PRAGMA page_size; PRAGMA journal_mode; PRAGMA integrity_check";
        assert_eq!(ask(&place, "test.db0_0", facts), "4096\nwal\nok");
    }
    stdout(&place, "-d 0 -n 10");
    let columns = "SELECT group_concat(name || ' ' || type) FROM pragma_table_info('tblMyList2')";
    assert_eq!(
        ask(&place, "test.db0_0", columns),
        "id INTEGER,Value TEXT,creation_date long",
        "three tables"
    );
    assert_eq!(ask(&place, "test.db0_0", "PRAGMA journal_mode"), "delete", "TRUNCATE is kept nowhere");
}

#[test]
fn threads_databases_and_tables_share_a_transaction() {
    let place = place("many");
    let result = figures(&place, "-d 0 -n 25 -t 2 -D 3 -T 2 -j 3 -s 1");
    let files = ["test.db0_0", "test.db0_1", "test.db0_2", "test.db1_0", "test.db1_1", "test.db1_2"];
    assert_eq!(names(&place), files);
    for file in files {
        let counts = "SELECT (SELECT count(*) FROM tblMyList0), (SELECT count(*) FROM tblMyList1)";
        assert_eq!(ask(&place, file, counts), "12|12", "{file}: a half of 25");
        assert_eq!(ask(&place, file, "PRAGMA journal_mode"), "wal", "{file}");
    }
    assert_eq!(result["result"]["operations"], 24);
    let facts: Vec<String> = result["sqlite"]["databases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|facts| format!("{}|{}", facts["journal_mode"], facts["synchronous"]))
        .collect();
    assert_eq!(facts, ["\"wal\"|\"1\"", "\"wal\"|\"1\"", "\"wal\"|\"1\""]);
    let most = figures(&place, "-d 0 -n 2 -D 11 -T 20 -j 4");
    assert_eq!(most["sqlite"]["databases"].as_array().unwrap().len(), 11, "as many as SQLite attaches");
    assert_eq!(ask(&place, "test.db0_10", "SELECT count(*) FROM tblMyList19"), "2");
}

/// The rows of a table, in the order of their ids.
fn values(place: &Path) -> Vec<String> {
    let list = ask(place, "test.db0_0", "SELECT id || ' ' || Value FROM tblMyList0 ORDER BY id");
    list.lines().map(str::to_owned).collect()
}

#[test]
fn updates_change_rows_each_time() {
    let place = place("update");
    let output = run(&place, "-d 1 -n 20 -T 2");
    assert!(output.status.success());
    assert_eq!(text(&output.stderr).matches("writes a value that was never there").count(), 1, "once");
    let first = values(&place);
    assert_eq!(first.len(), 296, "filled up to Mobibench's smallest table");
    let changed = |before: &[String], after: &[String]| -> BTreeSet<usize> {
        (0..before.len()).filter(|row| before[*row] != after[*row]).collect()
    };
    let new: Vec<String> = (0..296).map(|id| format!("{id} {INSERTED}")).collect();
    let of_first = changed(&new, &first);
    assert!((10..=20).contains(&of_first.len()), "{of_first:?}");
    stdout(&place, "-d 1 -n 20 -T 2");
    let second = values(&place);
    assert_eq!(changed(&first, &second), of_first, "the same rows, which have other values again");
    assert!(second.iter().all(|row| row.split_once(' ').unwrap().1.len() == 100));
    // More rows than there are are filled in, and what was updated stays.
    stdout(&place, "-d 1 -n 400 -T 1 -s 0");
    assert_eq!(values(&place).len(), 400);
}

/// A second name keeps what Mobibench unlinks.
#[test]
fn deletes_remove_rows_and_then_the_files() {
    for (journal_mode, name) in [(1, "truncate"), (2, "persist"), (3, "wal")] {
        let place = place(&format!("delete-{name}"));
        stdout(&place, "-d 1 -n 1 -D 2");
        let kept = place.with_extension("kept");
        let _ = fs::remove_file(&kept);
        fs::hard_link(place.join("test.db0_1"), &kept).unwrap();
        stdout(&place, &format!("-d 2 -n 100 -D 2 -j {journal_mode}"));
        assert_eq!(names(&place), Vec::<String>::new(), "{name}");
        let left = "SELECT count(*), (SELECT count(*) FROM tblMyList2) FROM tblMyList0";
        assert_eq!(ask(&kept, "", left), "196|196", "{name}: 296 without 100");
    }
}

#[test]
fn lines_are_what_readers_of_mobibench_look_for() {
    let place = place("db-lines");
    let latencies = place.with_extension("latencies");
    let _ = fs::remove_file(&latencies);
    let output = run(&place, &format!("-d 0 -n 10 -i 1 -j 2 -s 3 -k /dev/null -L {}", latencies.display()));
    let shown = text(&output.stdout);
    for pattern in [
        r"DB teset mode enabled\.",
        r"DB time interval : 1 ms",
        r"Operation : 0",
        r"Transactions per thread: 10",
        r"# of Tables : 3",
        r"# of Databases : 1",
        r"# of Threads : 1",
        r"\[DB information of db .*/test\.db0_0\]",
        r"sqlite_version=3\.[0-9.]+",
        r"page_size=4096",
        r"journal_mode=persist",
        r"synchronous=3",
        r"\[CPU\] : Active,Idle,IoWait : [0-9]+\.[0-9]{2} [0-9]+\.[0-9]{2} [0-9]+\.[0-9]{2}",
        "\\[TIME\\] : {0,7}[0-9]+ sec [0-9]{6}us\\. \t[0-9]+\\.[0-9]{2} Transactions/sec",
        r"\[CON SWITCHES\] : [0-9]+ [0-9]+",
        r"Err string : No error",
    ] {
        assert_eq!(count_lines(&shown, pattern), 1, "{pattern} in {shown}");
    }
    let list = fs::read_to_string(&latencies).unwrap();
    assert_eq!(count_lines(&list, "[0-9]+\tusec"), 10, "{list}");
    assert_eq!(count_lines(&list, "#In 0 DB mode and 3 synchronous"), 1, "{list}");
    assert!(text(&output.stderr).contains("-k is about files"));
}

#[test]
fn a_pause_is_in_the_time_and_in_no_latency() {
    let result = figures(&place("pause"), "-d 0 -n 5 -i 100 -j 4 -s 0");
    assert!(result["result"]["elapsed_s"].as_f64().unwrap() > 0.5, "{result}");
    assert!(result["result"]["latency_us"]["p50"].as_f64().unwrap() < 100_000.0, "{result}");
}

/// What so many transactions call for durability, as strace shows it; with what made the database ready.
fn calls(name: &str, options: &str) -> Option<usize> {
    let calls = traced(&place(name), options, "fsync,fdatasync")?;
    Some(count(&calls, "fsync(", "") + count(&calls, "fdatasync(", ""))
}

#[test]
fn calls_for_durability_are_those_of_the_kernel() {
    // One commit in WAL mode is one call, the checkpoint two: the log, the database. In DELETE mode a commit is four: the journal
    // twice, its directory, the database.
    for (options, of_one, at_end) in
        [("-j 3 -s 2", 1, 2), ("-j 3 -s 1", 0, 2), ("-j 0", 4, 0), ("-j 5", 1, 0), ("-j 3 -s 0", 0, 0)]
    {
        let options = format!("-d 0 -T 1 {options}");
        let Some(ten) = calls("syncs", &format!("{options} -n 10")) else { return };
        let thirty = calls("syncs", &format!("{options} -n 30")).unwrap();
        assert_eq!(thirty - ten, 20 * of_one as usize, "{options}");
        let counted = |transactions: u32| {
            let result = figures(&place("syncs"), &format!("{options} -n {transactions}"));
            let syncs = result["result"]["syncs"].clone();
            if syncs.is_null() {
                eprintln!("skipped: joj: seccomp is refused here: {}", result["notes"]);
                return None;
            }
            assert_eq!(syncs["operations"], transactions);
            Some(syncs["fsync"].as_u64().unwrap() + syncs["fdatasync"].as_u64().unwrap())
        };
        for transactions in [10, 30] {
            let Some(found) = counted(transactions) else { return };
            assert_eq!(found, u64::from(transactions * of_one + at_end), "{options}, {transactions}");
        }
    }
}

#[test]
fn another_sqlite_and_waldio_are_used_where_they_are_named() {
    let place = place("libraries");
    let Some(extension) = extension() else { return };
    let result = figures(&place, &format!("-d 0 -n 20 -j 3 --waldio {}", extension.display()));
    assert!(result["sqlite"]["waldio"].as_str().unwrap().ends_with("libwaldio.so"), "{result}");
    assert_eq!(result["setup"]["work"]["databases"]["journal_mode"], "waldio");
    assert_eq!(ask(&place, "test.db0_0", "SELECT count(*) FROM tblMyList0"), "20");
    let syncs = &result["result"]["syncs"];
    if !syncs.is_null() {
        assert!(syncs["fdatasync"].as_u64().unwrap() >= 20, "waldio never calls fsync for a commit: {syncs}");
    }
    for (options, parts) in [
        ("--sqlite libc.so.6", ["sqlite3_open_v2", "no SQLite"]),
        ("--waldio /nonexistent.so", ["/nonexistent.so", "right path"]),
    ] {
        let output = run(&place, &format!("-d 0 -j 3 {options}"));
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{options}: {message}");
    }
}

/// A trigger keeps rows that were to be deleted; a file is no database.
#[test]
fn what_is_wrong_with_a_database_is_an_error() {
    let place = place("wrong");
    stdout(&place, "-d 1 -n 1 -T 1");
    let keep = "CREATE TRIGGER keep BEFORE DELETE ON tblMyList0 BEGIN SELECT raise(IGNORE); END";
    ask(&place, "test.db0_0", keep);
    fs::write(place.join("test.db1_0"), "garbage, longer than a header of SQLite's".repeat(99)).unwrap();
    for (options, part) in
        [("", "gives 296, and it should give 196"), ("-t 2", "test.db1_0: file is not a database")]
    {
        let output = run(&place, &format!("-d 2 -n 100 -T 1 {options}"));
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options}: {message}");
        assert!(message.contains(part), "{options}: {message}");
        assert_eq!(names(&place), ["test.db0_0", "test.db1_0"], "they were there before");
    }
}

/// As root, on a tmpfs of 256 KB.
#[test]
fn a_full_disk_is_named_and_left_as_it_was() {
    let place = place("db-full");
    let run = |options| (options, run(&place, &format!("-d 0 -n 20000 {options}")), names(&place));
    for (options, output, names) in
        on_small_disk(&place, || ["-j 1", "-j 3", "-t 2"].map(run)).into_iter().flatten()
    {
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options}: {message}");
        assert!(message.contains("the disk or the quota is full"), "{options}: {message}");
        assert!(message.len() < 400, "the statement is cut: {message}");
        assert_eq!(names, Vec::<String>::new(), "{options}");
    }
}

#[test]
fn ctrl_c_takes_new_databases_away() {
    for options in ["-j 0", "-j 3"] {
        let place = place("db-signal");
        let child = begun(&place, &format!("-d 0 -n 1000000 {options}"));
        let is_running = || {
            fs::metadata(place.join("test.db0_0")).is_ok_and(|facts| facts.len() > 8_192)
                || place.join("test.db0_0-wal").exists()
        };
        assert_eq!(interrupt(child, is_running), Some(130));
        assert!(!place.exists(), "{options}");
    }
}
