//! Goal: a commit has its own process's requests, whoever else commits on the same disk; and a trace says whose the others are.
//! Method: two processes insert into two databases on one filesystem, whose journal they share, at the same time.

mod trace;

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use trace::runs::{Line, number, read};
use trace::volume::{Volume, has_backend, joj, volume_or_skip};

/// Inserts into a database in DELETE mode until told to end, and says how many times.
const INSERTS: &str = "
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute('PRAGMA synchronous=FULL')
connection.execute('CREATE TABLE t(a INTEGER PRIMARY KEY, b)')
print('ready', flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    connection.execute('INSERT INTO t(b) VALUES(?)', ('x' * 100,))
";
const COMMITS: u64 = 40;

/// A process that waits to be told to insert.
struct Writer(Child);

impl Writer {
    fn start(volume: &Volume, name: &str) -> Self {
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", INSERTS]).arg(volume.path().join(name)).arg(COMMITS.to_string());
        let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn begin(&mut self) {
        // Closing its input is the word that it waits for.
        drop(self.0.stdin.take());
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Each commit's data are those of one database, and of its journal.
fn assert_apart(lines: &[Line], context: &str) {
    let mut files: HashMap<i64, BTreeSet<String>> = HashMap::new();
    for line in lines.iter().filter(|line| line["operation"] == "write" && line["class"] == "data") {
        if number(line, "sqlite_work") >= 0 {
            let name = line["file_path"].trim_end_matches("-journal").to_owned();
            files.entry(number(line, "sqlite_work")).or_default().insert(name);
        }
    }
    let mixed: Vec<_> = files.values().filter(|files| files.len() != 1).collect();
    assert!(mixed.is_empty() && !files.is_empty(), "{context}: {mixed:?}");
}

fn row(summary: &Value, process: u32) -> &Value {
    let rows = summary["processes"].as_array().expect("processes");
    rows.iter().find(|row| row["process"] == process).unwrap_or_else(|| panic!("no {process}: {rows:?}"))
}

fn check_pid(backend: &str) {
    let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend(backend)) else { return };
    let (mut traced, mut other) = (Writer::start(&volume, "traced.db"), Writer::start(&volume, "other.db"));
    let (table, json) = (volume.beside("runs.csv"), volume.beside("summary.json"));
    let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
    joj.args(["trace", "--backend", backend, "--steps=1000", "--pid", &traced.0.id().to_string()]);
    joj.arg("--device").arg(volume.path()).arg("--json").arg(&json);
    joj.args(["--export", &format!("runs={}", table.display())]).stderr(Stdio::piped());
    let mut tracer = joj.spawn().expect("joj");
    // Nothing is inserted before the capture runs.
    let mut errors = BufReader::new(tracer.stderr.take().expect("a pipe"));
    let mut told = String::new();
    while !told.contains("joj: captures until process") {
        assert_ne!(errors.read_line(&mut told).expect("a line"), 0, "it ended too early: {told}");
    }
    other.begin();
    traced.begin();
    // It ends with the process.
    traced.0.wait().expect("python3");
    errors.read_to_string(&mut told).expect("text");
    assert!(tracer.wait().expect("joj").success(), "{told}");
    let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
    assert_eq!(summary["header"]["process"], traced.0.id(), "{backend}");
    assert_eq!(summary["commits"]["total"], COMMITS, "{backend}: of the traced process alone");
    let [own, others] = [traced.0.id(), other.0.id()].map(|process| row(&summary, process));
    assert_eq!(own["commits"], COMMITS, "{backend}");
    assert!(others["commits"].as_u64() > Some(0), "{backend}: {others}");
    let bytes = |row: &Value| row["written"]["bytes"].as_u64().expect("a number");
    assert!(bytes(own) > 0 && bytes(others) > 0, "{backend}: {own} {others}");
    let all = summary["processes"].as_array().expect("processes").iter().map(bytes).sum::<u64>();
    assert_eq!(summary["counts"]["writes"]["bytes"], all, "{backend}: every byte is of one line");
    for transaction in summary["transactions"].as_array().expect("transactions") {
        let file = transaction["file"].as_str().expect("a file");
        assert!(!file.contains("other"), "{backend}: {transaction}");
    }
    assert_apart(&read(&table), backend);
}

#[test]
fn a_traced_process_has_its_own_commits_and_others_their_share_with_ebpf() {
    check_pid("bpf");
}

#[test]
fn a_traced_process_has_its_own_commits_and_others_their_share_with_tracefs() {
    check_pid("tracefs");
}

#[test]
fn a_commands_commits_and_its_childrens_count_and_with_everybody_all() {
    for (backend, everybody) in [("bpf", false), ("bpf", true), ("tracefs", false), ("tracefs", true)] {
        let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend(backend)) else { return };
        let mut other = Writer::start(&volume, "other.db");
        let script = volume.beside("both.py");
        std::fs::write(&script, INSERTS).expect("a script");
        let (table, json) = (volume.beside("runs.csv"), volume.beside("summary.json"));
        let (table_option, json_text) = (format!("runs={}", table.display()), json.display().to_string());
        let saved = volume.beside("trace.parquet").display().to_string();
        let mut options = vec!["--backend", backend, "--json", &json_text, "--export", &table_option];
        options.extend(["--steps=1000", "--save", &saved]);
        options.extend(everybody.then_some("--everybody"));
        // The command says by a file that the capture runs, and waits for the other process behind its own inserts.
        let database = volume.path().join("traced.db").display().to_string();
        let inserts = ["/usr/bin/python3", &script.display().to_string(), &database, &COMMITS.to_string()];
        let inserts = inserts.map(str::to_owned);
        let (runs, is_over) = (volume.beside("runs"), volume.beside("over"));
        let files = [&runs, &is_over].map(|path| path.display().to_string());
        let begin = std::thread::spawn(move || {
            while !runs.exists() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            other.begin();
            other.0.wait().expect("python3");
            std::fs::write(is_over, "").expect("a file");
        });
        let shell =
            format!("touch {}; \"$@\" < /dev/null; until [ -e {} ]; do sleep 0.1; done", files[0], files[1]);
        let words = ["sh", "-c", &shell, "sh"].map(str::to_owned);
        let command: Vec<String> = words.into_iter().chain(inserts).collect();
        let output = joj(&volume, &options, &[], &command);
        begin.join().expect("the other process");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        // CREATE TABLE of the command is a commit, too. It is a child's of the shell that is the command.
        let (own, others) = (COMMITS + 1, COMMITS);
        let counted = if everybody { own + others } else { own };
        assert_eq!(summary["commits"]["total"], counted, "{backend}, everybody: {everybody}");
        let left_out = if everybody { Value::Null } else { others.into() };
        assert_eq!(summary["own"]["commits_of_others"], left_out, "{backend}");
        let transactions = summary["transactions"].as_array().expect("transactions");
        let of_other = transactions.iter().filter(|one| one["file"].to_string().contains("other")).count();
        assert_eq!(of_other > 0, everybody, "{backend}");
        // A child's sync calls that are no commit's are there, too.
        assert!(transactions.len() >= usize::try_from(counted).expect("few"), "{backend}");
        assert_apart(&read(&table), backend);
        let again = |more: &[&str]| {
            let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
            let output =
                joj.args(["trace", "--read", &saved, "--json", "-"]).args(more).output().expect("joj");
            let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            summary["commits"]["total"].as_u64().expect("a number")
        };
        assert_eq!(again(&[]), counted, "{backend}: a saved trace says the same");
        assert_eq!(again(&["--everybody"]), own + others, "{backend}: it has all of them");
    }
}

/// What it says, and that it ends at once.
fn refusal(joj: &mut Command) -> String {
    let output = joj.stdin(Stdio::null()).output().expect("joj");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

#[test]
fn a_thread_is_not_traced_as_a_process() {
    let own = std::process::id();
    // A test runs in a thread of its own.
    let thread = std::fs::read_link("/proc/thread-self").expect("this thread");
    let thread = thread.file_name().expect("a number").display().to_string();
    let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
    let said = refusal(joj.args(["trace", "--for", "1s", "--pid", &thread]));
    assert!(said.contains(&format!("a thread of process {own}; `--pid {own}`")), "{said}");
}

/// The kernel's records have other numbers than those in a container.
#[test]
fn a_process_of_a_pid_namespace_is_not_traced_by_its_number_there() {
    let unshare = |words: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--mount-proc"]).args(words);
        unshare
    };
    if !unshare(&["true"]).status().is_ok_and(|status| status.success()) {
        return println!("skipped: no pid namespace to be had");
    }
    let joj = env!("CARGO_BIN_EXE_joj");
    let said = refusal(&mut unshare(&[joj, "trace", "--for", "1s", "--pid", "1"]));
    assert!(said.contains("pid namespace of its own (a container)"), "{said}");
    // A command has its own numbers there, too: none of its transactions is missing, and the head says whose numbers those are.
    for backend in ["bpf", "tracefs"] {
        let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend(backend)) else { return };
        let json = volume.beside("summary.json");
        let mut traced = unshare(&[joj, "trace", "--backend", backend, "--steps=3", "--json"]);
        let inserts = volume.inserts("DELETE", 2);
        traced.arg(&json).arg("--device").arg(volume.path()).arg("--").args(&inserts);
        assert!(traced.status().expect("joj").success(), "{backend}");
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        assert_eq!(summary["transactions"].as_array().map(Vec::len), Some(3), "{backend}");
        assert_eq!(summary["header"]["command_process"], Value::Null, "{backend}");
        assert_eq!(summary["own"], Value::Null, "{backend}: everybody's are counted, and it says so");
        assert!(summary["header"]["inferred"].to_string().contains("are everybody's"), "{backend}");
        let inferred = summary["header"]["inferred"].to_string();
        assert!(inferred.contains("pid namespace"), "{backend}: {inferred}");
    }
}

#[test]
fn a_capture_that_is_stopped_before_its_process_ends_says_so() {
    for backend in ["bpf", "tracefs"] {
        let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend(backend)) else { return };
        let mut traced = Writer::start(&volume, "traced.db");
        let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
        joj.args(["trace", "--backend", backend, "--pid", &traced.0.id().to_string(), "--device"]);
        let mut tracer =
            joj.arg(volume.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("joj");
        let mut errors = BufReader::new(tracer.stderr.take().expect("a pipe"));
        let mut told = String::new();
        while !told.contains("joj: captures until process") {
            assert_ne!(errors.read_line(&mut told).expect("a line"), 0, "it ended too early: {told}");
        }
        // Somebody writes; the traced process waits.
        let mut file = std::fs::File::create(volume.path().join("file")).expect("a file");
        std::io::Write::write_all(&mut file, b"text").and_then(|()| file.sync_all()).expect("a synced file");
        let process = tracer.id().to_string();
        assert!(Command::new("kill").args(["-INT", &process]).status().expect("kill").success());
        errors.read_to_string(&mut told).expect("text");
        let status = tracer.wait().expect("joj");
        assert_eq!(traced.0.try_wait().expect("python3"), None, "it waits for its word");
        assert_eq!(status.code(), Some(130), "{backend}: {told}");
    }
}
