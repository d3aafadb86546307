//! Goal: the lab gives the block counts of today's kernels on five filesystems, and the same rates every time.
//! Method: one plan with traces in the emulated machine, then a part of it again, beside whatever else this machine does.
//!
//! Where QEMU is missing, or Debian's packages cannot be had, what needs them is skipped, and says so.

mod emulated;
mod schema;
mod shards;
mod trace;
mod waldio;

use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use emulated::{TestFiles, is_qemu, missing, qemus_of};
use serde_json::Value;
use trace::runs::read;
use waldio::{extension, skipped};

fn joj() -> Command {
    Command::new(env!("CARGO_BIN_EXE_joj"))
}

fn lab(words: &[&str]) -> Output {
    joj().arg("lab").args(words).output().expect("joj starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Seven cells, one of each kind that the others do not show. A device whose transactions take longer than the kernel's
/// tick: else whether an inode's time changes between two writes is chance.
const PLAN: &str = "
format = 'joj-lab-plan'
version = 2
title = 'block counts'
[[matrix]]
filesystem = ['ext4', 'xfs', 'btrfs', 'nilfs2', 'f2fs']
device = ['transcend-card-s3']
mode = ['wal']
transactions = 12
[[matrix]]
filesystem = ['ext4', 'f2fs']
device = ['transcend-card-s3']
mode = ['delete']
transactions = 12
";

/// One more.
const STEADY_WALDIO: &str = "
[[matrix]]
filesystem = ['ext4']
device = ['transcend-card-s3']
mode = ['waldio']
log = ['steady']
transactions = 12
";

/// Of each cell: data, journal, other in KiB, and sync calls; all medians of a transaction.
///
/// WAL and DELETE of the table of five filesystems, one 100-byte INSERT, Linux 6.1: ext4 28 = 8 + 20 and 56 = 24 + 32; XFS
/// 9.5 = 8 + 1.5; F2FS 12 = 8 + 4 node and 52 = 32 + 20; Btrfs 76 = 8 + 64 log tree + 4 superblock. NILFS2 writes 8 KiB of the log
/// and what else was dirty, SQLite's shared memory too: 60 to 72 KiB in all.
const COUNTS: [(&str, &str, [f64; 3], u64); 7] = [
    ("ext4", "wal", [8.0, 20.0, 0.0], 1),
    ("xfs", "wal", [8.0, 1.5, 0.0], 1),
    ("btrfs", "wal", [8.0, 64.0, 4.0], 1),
    ("f2fs", "wal", [8.0, 0.0, 4.0], 1),
    ("ext4", "delete", [24.0, 32.0, 0.0], 4),
    ("f2fs", "delete", [32.0, 0.0, 20.0], 4),
    ("ext4", "waldio", [8.0, 0.0, 0.0], 1),
];

fn cell<'a>(result: &'a Value, filesystem: &str, mode: &str) -> &'a Value {
    let cells = result["cells"].as_array().expect("cells");
    let found =
        cells.iter().find(|cell| cell["cell"]["filesystem"] == filesystem && cell["cell"]["mode"] == mode);
    let found = found.unwrap_or_else(|| panic!("no cell {filesystem} {mode} in {result}"));
    &found["outcome"]["measured"]
}

fn per_second(measured: &Value) -> f64 {
    let number = |name: &str| measured["run"][name].as_f64().expect("a number");
    number("transactions") * 1e9 / number("elapsed_ns")
}

fn result(path: &str) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a result")).expect("JSON")
}

/// Runs a plan with these further words; its result, which is kept in `json`.
fn measure(plan: &str, json: &str, words: &[&str]) -> Value {
    let output = lab(&[&["run", plan, "--json", json], words].concat());
    assert!(output.status.success(), "{}\n{}", said(&output), String::from_utf8_lossy(&output.stdout));
    let result = result(json);
    schema::holds("lab", &result, &[]);
    result
}

/// Two measurements of a cell agree as the lab promises. Where threads share flushes, one more or less is their share of the time.
fn assert_same_rate(name: &str, cells: [&Value; 2], flushes: [u64; 2]) {
    let rates = cells.map(per_second);
    let off = (rates[1] / rates[0] - 1.0).abs();
    let of_one = if flushes[0].abs_diff(flushes[1]) == 1 { 1.0 / flushes[0] as f64 } else { 0.0 };
    let told = format!("{name}: {rates:?} transactions/s, {flushes:?} flushes");
    assert!(off < 0.005 + of_one, "{told}: they differ by {:.2} %", off * 100.0);
}

fn flushes_of(cells: [&Value; 2]) -> [u64; 2] {
    cells.map(|cell| cell["run"]["device"]["flushes"].as_u64().expect("flushes"))
}

#[test]
fn block_counts_are_todays_and_rates_the_same_again_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let files = TestFiles::new("counts");
    let waldio = extension().map(|file| file.display().to_string());
    let (steady, library) = match &waldio {
        Some(file) => (STEADY_WALDIO, vec!["--waldio", file]),
        None => ("", Vec::new()),
    };
    let plan = files.write("plan.toml", &format!("{PLAN}{steady}"));
    let traces = files.name("traces");
    let first = measure(&plan, &files.name("first.json"), &[&library[..], &["--traces", &traces]].concat());
    for (filesystem, mode, expected, syncs) in COUNTS {
        if mode == "waldio" && waldio.is_none() {
            continue;
        }
        let costs = &cell(&first, filesystem, mode)["costs"];
        let kib = |name: &str| costs[name].as_f64().expect("bytes") / 1024.0;
        let found = [kib("data_bytes"), kib("journal_bytes"), kib("other_bytes")];
        assert_eq!(found, expected, "{filesystem} {mode}: {costs}");
        assert_eq!(costs["syncs"], syncs, "{filesystem} {mode}");
    }
    let costs = &cell(&first, "nilfs2", "wal")["costs"];
    assert_nilfs2(costs, 8, 40..=64);
    let cells = first["cells"].as_array().expect("cells").len();
    assert_eq!(cells, if waldio.is_some() { 8 } else { 7 });
    assert_eq!(placed_traces(Path::new(&traces)).len(), cells, "one trace for each cell");
    if is_soak() {
        let mut again = without_ebpf(&files, &plan, &library, &first, Path::new(&traces));
        // One machine at a time instead of several, and without traces.
        let words = [&library[..], &["--only", "WAL", "--only", "ext4", "--jobs", "1"]].concat();
        let second = measure(&plan, &files.name("second.json"), &words);
        assert_eq!(second["cells"].as_array().map(Vec::len), Some(cells - 6), "both WAL cells of ext4");
        again.push(second);
        let cells = again.iter().flat_map(|result| result["cells"].as_array().expect("cells"));
        for again in cells {
            let word = |name: &str| again["cell"][name].as_str().expect("a word");
            let (filesystem, mode) = (word("filesystem"), word("mode"));
            let both = [cell(&first, filesystem, mode), &again["outcome"]["measured"]];
            assert_same_rate(&format!("{filesystem} {mode}"), both, [0; 2]);
        }
    }
}

/// What NILFS2 writes for a commit, in KiB: data that can be told, and the rest.
#[track_caller]
fn assert_nilfs2(costs: &Value, data: u64, other: RangeInclusive<u64>) {
    let kib = |name: &str| costs[name].as_u64().expect("bytes") / 1024;
    assert!(kib("data_bytes") == data && other.contains(&kib("other_bytes")), "{costs}");
    assert_eq!(costs["syncs"], 1, "{costs}");
    assert_eq!(costs["transactions"], 12, "{costs}");
}

/// Measures without eBPF, where F2FS alone says where it writes, and holds it beside `first`; both results.
fn without_ebpf(files: &TestFiles, plan: &str, library: &[&str], first: &Value, traces: &Path) -> Vec<Value> {
    let [directory, nilfs2_directory] = ["f2fs", "nilfs2"].map(|name| files.name(name));
    let without = |only: &str, traces: &str| {
        let words = ["--only", only, "--trace-backend", "tracefs", "--traces", traces];
        measure(plan, &files.name("tracefs.json"), &[library, &words].concat())
    };
    let of_f2fs = without("f2fs", &directory);
    for mode in ["wal", "delete"] {
        let [with, without] = [first, &of_f2fs].map(|result| cell(result, "f2fs", mode));
        assert_eq!(without["costs"], with["costs"], "{mode}: what tracefs says, and eBPF");
        let [with, without] =
            [(with, traces), (without, Path::new(&directory))].map(|(measured, directory)| {
                written_runs(&directory.join(measured["trace"].as_str().expect("a name")))
            });
        assert_eq!(without, with, "{mode}: what tracefs says, and eBPF");
    }
    assert_eq!(placed_traces(Path::new(&directory)).len(), 2, "one trace for each cell");
    // NILFS2 tells nobody where its files lie: what tracefs cannot place it gives to no file.
    // Of its sync calls it sees the descriptors alone; those of a process that has ended by then are told by what it asked before.
    let of_nilfs2 = without("nilfs2", &nilfs2_directory);
    assert_nilfs2(&cell(&of_nilfs2, "nilfs2", "wal")["costs"], 0, 48..=72);
    vec![of_f2fs, of_nilfs2]
}

/// The summary of each trace, in the order of the cells: every byte belongs to something, and no event was lost.
fn placed_traces(directory: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory).expect("traces").flatten().map(|file| file.path()).collect();
    files.sort();
    let mut summaries = Vec::new();
    for name in files {
        let output = joj().args(["trace", "--read"]).arg(&name).args(["--json", "-"]).output().expect("joj");
        assert!(output.status.success(), "{}", said(&output));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let (name, disk) = (name.display(), &summary["disks"][0]);
        let placed = summary["attributed_share"].as_f64().expect("a share");
        assert!(summary["lost"] == 0 && placed >= 0.995, "{name}: {placed} of the bytes are placed");
        let counted = &disk["counted_written_bytes"];
        assert_eq!(&disk["written"]["bytes"], counted, "{name}: the disk counted other bytes");
        summaries.push(summary);
    }
    summaries
}

/// Every run of blocks that was written: where, what, and of which file.
fn written_runs(trace: &Path) -> Vec<String> {
    let csv = trace.with_extension("csv");
    let output = joj()
        .args(["trace", "--read", &trace.display().to_string()])
        .args(["--export", &format!("runs={}", csv.display())])
        .output()
        .expect("joj");
    assert!(output.status.success(), "{}", said(&output));
    let wanted = ["first_sector", "byte_length", "class", "part", "file_inode", "file_path", "file_deleted"];
    let lines = read(&csv);
    let writes = lines.iter().filter(|run| run["operation"] == "write");
    let runs: Vec<String> = writes.map(|run| wanted.map(|name| run[name].as_str()).join(" ")).collect();
    assert!(runs.len() > 24, "{runs:?}");
    fs::remove_file(csv).expect("gone");
    runs
}

/// True under `make soak`: each cell takes a quarter of a minute of processor time, and more.
fn is_soak() -> bool {
    std::env::var_os("JOJ_SOAK_SECONDS").is_some()
}

/// The same SQLite with a journal and without.
const ATOMIC_PLAN: &str = "
format = 'joj-lab-plan'
version = 2
title = 'atomic writes'
[[matrix]]
filesystem = ['f2fs']
device = ['galaxy-s5-emmc']
mode = ['delete']
sync_call = ['fsync']
batch_atomic = [false, true]
transactions = 12
";

/// And without syncs of the journal's directory.
const NO_DIRECTORY_PLAN: &str = "
[[matrix]]
filesystem = ['f2fs']
device = ['galaxy-s5-emmc']
mode = ['delete']
sync_call = ['fsync']
directory_sync = [false]
feature = ['none', 'out_of_place']
transactions = 12
";

/// Bytes that a trace's summary has for files of a type.
fn bytes_of_type(summary: &Value, label: &str) -> u64 {
    let types = summary["counts"]["file_types"].as_array().expect("file types");
    let bytes = types.iter().filter(|one| one["label"] == label).map(|one| &one["written"]["bytes"]);
    bytes.map(|bytes| bytes.as_u64().expect("bytes")).sum()
}

/// A transaction with a journal is 32 KiB of data, 28 of nodes and checkpoint, and 4 syncs. Without, the two pages that an INSERT
/// changes, a node of the commit ioctl and one of the fsync behind it.
#[test]
fn atomic_writes_of_f2fs_leave_the_rollback_journal_out_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let files = TestFiles::new("atomic");
    let more = if is_soak() { NO_DIRECTORY_PLAN } else { "" };
    let plan = files.write("plan.toml", &format!("{ATOMIC_PLAN}{more}"));
    let (json, traces) = (files.name("result.json"), files.name("traces"));
    let result = measure(&plan, &json, &["--traces", &traces]);
    let cells = result["cells"].as_array().expect("cells");
    let is_atomic: Vec<&Value> = cells.iter().map(|cell| &cell["cell"]["batch_atomic"]).collect();
    assert_eq!(is_atomic[..2], [false, true]);
    let measured = |index: usize| &cells[index]["outcome"]["measured"];
    let [journal, atomic] = [0, 1].map(measured);
    let costs = |measured: &Value| {
        let kib = |name: &str| measured["costs"][name].as_u64().expect("bytes") / 1024;
        (kib("data_bytes"), kib("journal_bytes"), kib("other_bytes"), measured["costs"]["syncs"].clone())
    };
    assert_eq!(costs(journal), (32, 0, 28, 4.into()));
    assert_eq!(costs(atomic), (8, 0, 8, 2.into()));
    if is_soak() {
        // Without the block of the directory, and the checkpoint that F2FS writes to sync one.
        assert_eq!(costs(measured(2)), (28, 0, 8, 3.into()));
        // Of database pages with a new place a node block has to tell.
        assert_eq!(costs(measured(3)), (28, 0, 12, 3.into()));
    }
    assert!(per_second(atomic) > 2.0 * per_second(journal), "{result}");
    let summaries = placed_traces(Path::new(&traces));
    assert_eq!(summaries.len(), cells.len(), "one trace for each cell");
    let written = |label: &str| [0, 1].map(|index: usize| bytes_of_type(&summaries[index], label));
    let [with_journal, without] = written("rollback-journal");
    assert!(with_journal >= 12 * 12 * 1024 && without == 0, "{with_journal} {without}");
    let database = written("sqlite-database");
    assert!(database.iter().all(|bytes| *bytes >= 12 * 8 * 1024), "{database:?}");
}

/// Two cells, of threads that share a database.
const WRITERS_PLAN: &str = "
format = 'joj-lab-plan'
version = 2
title = 'writers'
[[matrix]]
filesystem = ['ext4']
device = ['galaxy-s5-emmc']
mode = ['wal', 'waldio']
log = ['steady']
threads = [4]
transactions = 200
";

#[test]
fn threads_that_share_a_database_are_as_fast_again_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let Some(waldio) = extension().map(|file| file.display().to_string()) else { return };
    let files = TestFiles::new("writers");
    let plan = files.write("plan.toml", WRITERS_PLAN);
    let results = [("first.json", "2"), ("second.json", "1")]
        .map(|(name, jobs)| measure(&plan, &files.name(name), &["--waldio", &waldio, "--jobs", jobs]));
    for mode in ["wal", "waldio"] {
        let measured = [&results[0], &results[1]].map(|result| cell(result, "ext4", mode));
        assert_same_rate(mode, measured, flushes_of(measured));
        assert_eq!(measured[0]["run"]["transactions"], 200, "{mode}");
        let flushes = measured[0]["run"]["device"]["flushes"].as_u64().expect("flushes");
        // Stock WAL has one for each commit; waldio's writers share them.
        assert_eq!(flushes >= 200, mode == "wal", "{mode}: {flushes} flushes of 200 commits");
    }
}

#[test]
fn what_is_no_plan_is_told_before_anything_starts() {
    let files = TestFiles::new("plans");
    let wrong = [
        ("ext5.toml", PLAN.replace("'ext4', 'f2fs'", "'ext5'"), "ext5"),
        ("device.toml", PLAN.replace("transcend-card-s3", "no-such-card"), "no-such-card"),
        ("newer.toml", PLAN.replace("version = 2", "version = 99"), "newer joj"),
        ("key.toml", PLAN.replace("transactions", "transaktions"), "transaktions"),
        ("empty.toml", String::new(), "format"),
    ];
    for (name, text, expected) in wrong {
        let file = files.write(name, &text);
        let output = lab(&["run", &file]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(said(&output).contains(expected), "{name}: {}", said(&output));
    }
    let output = lab(&["run", "no-such-plan"]);
    assert!(said(&output).contains("smoke"), "it names the plans: {}", said(&output));
    let output = lab(&["run", "smoke", "--only", "no such cell"]);
    assert!(said(&output).contains("--dry-run"), "{}", said(&output));
}

/// Cells that take a few seconds each.
const QUICK_PLAN: &str = "
format = 'joj-lab-plan'
version = 2
title = 'quick cells'
[[matrix]]
filesystem = ['ext4']
device = ['ram']
task = ['append', 'write_sequential', 'write_random', 'insert', 'update', 'delete']
sync_call = ['fdatasync', 'fsync']
transactions = 10
";

#[test]
fn ctrl_c_turns_the_machines_off_and_keeps_what_was_measured_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let files = TestFiles::new("stop");
    let temporary = TestFiles::new("stop-temporary");
    let (plan, json) = (files.write("plan.toml", QUICK_PLAN), files.name("result.json"));
    let mut child = joj()
        .args(["lab", "run", &plan, "--json", &json])
        .env("TMPDIR", &temporary.path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("joj starts");
    let mut lines = BufReader::new(child.stderr.take().expect("its stderr")).lines();
    let first = lines.find_map(|line| line.ok().filter(|line| line.starts_with("1 of 12: ")));
    let machines = qemus_of(&child);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().expect("an end").code(), Some(130), "{first:?} {rest:?}");
    assert!(!machines.is_empty(), "no QEMU was seen to run");
    let left: Vec<_> = fs::read_dir(&temporary.path).expect("a directory").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let still: Vec<u32> = machines.into_iter().filter(|pid| is_qemu(*pid)).collect();
    assert!(still.is_empty(), "QEMU still runs: {still:?}");
    let result = result(&json);
    let cells = result["cells"].as_array().expect("cells");
    let measured = cells.iter().filter(|cell| cell["outcome"]["measured"].is_object()).count();
    let stopped = |cell: &&Value| {
        cell["outcome"]["failed"].as_str().is_some_and(|reason| reason.contains("stopped by a signal"))
    };
    assert_eq!(cells.len(), 12);
    assert!((1..12).contains(&measured), "{measured} of 12 were measured");
    assert_eq!(measured + cells.iter().filter(stopped).count(), 12, "{result}");
}

/// A QEMU whose third machine does not start.
const FAILING_QEMU: &str = r#"#!/bin/sh
case "$*" in *-incoming*)
    n=1
    while ! mkdir "$0.$n" 2>/dev/null; do n=$((n + 1)); done
    [ "$n" -lt 3 ] || exit 1
esac
PATH=${PATH#*:} exec qemu-system-x86_64 "$@"
"#;

#[test]
fn a_machine_that_does_not_start_ends_the_others_without_blaming_their_cells_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let (files, temporary) = (TestFiles::new("failing"), TestFiles::new("failing-temporary"));
    // The first is at work when the one behind the second does not start.
    let (head, matrix) = QUICK_PLAN.split_once("[[matrix]]").expect("a matrix");
    let endless = matrix.replace("transactions = 10\n", "transactions = 1000000\n");
    let endless = endless
        .replace("'append', 'write_sequential', 'write_random', 'insert', 'update', 'delete'", "'append'");
    let endless = endless.replace("['fdatasync', 'fsync']", "['fsync']");
    let plan = files.write("plan.toml", &format!("{head}[[matrix]]{endless}[[matrix]]{matrix}"));
    let json = files.name("result.json");
    let qemu = files.write("qemu-system-x86_64", FAILING_QEMU);
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", files.path.display(), std::env::var("PATH").expect("a PATH"));
    let output = joj()
        .args(["lab", "run", &plan, "--jobs", "2", "--json", &json])
        .envs([("PATH", path), ("TMPDIR", temporary.name(""))])
        .output()
        .expect("joj starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("the guest did not go on"), "{}", said(&output));
    let result = result(&json);
    let cells = result["cells"].as_array().expect("cells");
    let measured = cells.iter().filter(|cell| cell["outcome"]["measured"].is_object()).count();
    let reasons: Vec<&str> = cells.iter().filter_map(|cell| cell["outcome"]["failed"].as_str()).collect();
    assert_eq!((measured, reasons.len()), (1, 12), "{result}");
    assert!(reasons.iter().all(|reason| reason.starts_with("not begun: ")), "{reasons:?}");
    let left: Vec<_> = fs::read_dir(&temporary.path).expect("a directory").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_cell_that_takes_too_long_costs_that_cell_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let files = TestFiles::new("long");
    let matrix = QUICK_PLAN.split_once("[[matrix]]").expect("a matrix").1;
    let endless = matrix.replace("transactions = 10\n", "transactions = 1000000\n");
    let plan = files.write("plan.toml", &format!("{QUICK_PLAN}[[matrix]]{endless}"));
    let json = files.name("result.json");
    let output = lab(&["run", &plan, "--only", "append, fsync", "--cell-seconds", "30", "--json", &json]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let result = result(&json);
    assert_eq!(result["cells"].as_array().expect("cells").len(), 2);
    for cell in result["cells"].as_array().expect("cells") {
        let is_endless = cell["cell"]["transactions"] == 1_000_000;
        let reason = cell["outcome"]["failed"].as_str();
        assert_eq!(reason.is_some_and(|reason| reason.contains("it took longer than")), is_endless, "{cell}");
    }
}
