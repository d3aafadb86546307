//! The command, a directory for its files, and the system calls that it makes, for the tests of `joj mobibench`.

#![allow(dead_code, reason = "no test uses all of them")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A directory that is not there yet, on the disk that the build uses.
pub fn place(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mobibench-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

/// `joj mobibench -p PLACE` with these options, between blanks.
pub fn command(place: &Path, options: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.args(["mobibench", "-p"]).arg(place).args(options.split_whitespace()).stdin(Stdio::null());
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn run(place: &Path, options: &str) -> Output {
    command(place, options).output().expect("joj")
}

/// A test that runs on.
pub fn begun(place: &Path, options: &str) -> Child {
    command(place, options).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("joj")
}

/// What a test prints that has to go well.
pub fn stdout(place: &Path, options: &str) -> String {
    let output = run(place, options);
    assert!(output.status.success(), "{options}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The figures of a test as JSON.
pub fn figures(place: &Path, options: &str) -> serde_json::Value {
    serde_json::from_str(&stdout(place, &format!("{options} --json -"))).expect("JSON")
}

pub fn names(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).expect("a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<String> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs a test on a tmpfs of 256 KB; `None`, and a word about it, where none can be mounted.
pub fn on_small_disk<T>(place: &Path, test: impl FnOnce() -> T) -> Option<T> {
    fs::create_dir(place).expect("a directory");
    let mount = ["-t", "tmpfs", "-o", "size=256k", "none"];
    let mounted = Command::new("mount").args(mount).arg(place).stderr(Stdio::null()).status();
    if !mounted.is_ok_and(|status| status.success()) {
        let _ = writeln!(std::io::stderr(), "skipped: joj: a tmpfs cannot be mounted here");
        return None;
    }
    let result = test();
    assert!(Command::new("umount").arg(place).status().expect("umount").success());
    Some(result)
}

/// Waits until this is so, and sends SIGINT; the exit code.
pub fn interrupt(mut child: Child, is_running: impl Fn() -> bool) -> Option<i32> {
    let began = Instant::now();
    while !is_running() && began.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(10));
    }
    let kill = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    child.wait().expect("it ends").code()
}

/// How many lines are the pattern, which is grep's.
pub fn count_lines(text: &str, pattern: &str) -> usize {
    let mut grep = Command::new("grep");
    let mut grep = grep
        .args(["-cEx", "-e", pattern])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("grep");
    grep.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("grep reads");
    let counted = grep.wait_with_output().expect("grep ends").stdout;
    String::from_utf8_lossy(&counted).trim().parse().expect("a number")
}

/// Calls that strace shows, each as `name(arguments) = result`; `None`, and a word about it, where it is not installed.
pub fn traced(place: &Path, options: &str, calls: &str) -> Option<Vec<String>> {
    let log = place.with_extension("strace");
    let joj = command(place, options);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-e", "signal=none", "-o"]).arg(&log);
    let Ok(output) = strace.arg(joj.get_program()).args(joj.get_args()).output() else {
        let _ = writeln!(std::io::stderr(), "skipped: joj: strace is not installed");
        return None;
    };
    assert!(output.status.success(), "{options}: {}", text(&output.stderr));
    let lines = fs::read_to_string(&log).expect("strace's file");
    fs::remove_file(&log).expect("it is there");
    Some(joined(&lines))
}

/// Each call in a line, without the thread's number; one that another thread's interrupted is put together.
fn joined(lines: &str) -> Vec<String> {
    let mut begun: Vec<(String, String)> = Vec::new();
    let mut calls = Vec::new();
    for line in lines.lines() {
        let (thread, call) = line.split_once(' ').unwrap_or(("", line));
        let call = call.trim_start();
        if let Some(first) = call.strip_suffix(" <unfinished ...>") {
            begun.push((thread.to_owned(), first.to_owned()));
        } else if let Some((_, rest)) = call.split_once(" resumed>") {
            let at = begun.iter().position(|(other, _)| other == thread).expect("it began");
            calls.push(format!("{}{rest}", begun.swap_remove(at).1));
        } else {
            calls.push(call.to_owned());
        }
    }
    calls
}

/// How many of the calls begin so and have this, too.
pub fn count(calls: &[String], begin: &str, part: &str) -> usize {
    calls.iter().filter(|call| call.starts_with(begin) && call.contains(part)).count()
}
