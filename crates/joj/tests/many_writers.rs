//! Goal: `joj bench --threads` and `--processes` measure what their help says, on either device, and leave nothing behind.
//! Method: the built program, two to four writers, fractions of a second; figures are judged only by what holds on any
//! machine.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

mod waldio;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::{JournalMode, Synchronous};
use joj_analysis::bench::many_writers::{ContendedRow, WriterKind};
use waldio::extension;

/// A fresh directory on the disk that the build uses.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("many-writers-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn joj(place: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.args(["bench", place.to_str().unwrap(), "--builds", "bundled", "--runs", "1"]).args(more);
    command.stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn entries(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn document(place: &Path, output: &Output) -> Document {
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(entries(place), Vec::<PathBuf>::new(), "files left behind");
    Document::parse(&text(&output.stdout)).unwrap()
}

/// What holds for any sound row.
fn check(row: &ContendedRow) {
    assert_eq!(row.failure, None, "{}", row.key);
    let run = &row.runs[0];
    let summary = row.summary.as_ref().unwrap();
    assert_eq!(run.writer_commits.len(), usize::try_from(row.key.writers).unwrap());
    assert_eq!(run.writer_commits.iter().sum::<u64>(), run.run.transactions);
    assert!(run.acknowledged >= run.run.transactions && run.run.transactions > 0, "{}", row.key);
    let fairness = summary.fairness.unwrap().median;
    assert!(fairness <= 1.0 && fairness * f64::from(row.key.writers) >= 0.999, "{}: {fairness}", row.key);
    assert!(summary.latency.max_ns >= summary.latency.p999_ns && summary.errors == 0, "{}", row.key);
    // By it rounds are told apart in which the disk was otherwise; a device made slow has none.
    assert_eq!(run.run.limit_per_s.is_some(), row.key.flush_delay_ns == 0, "{}", row.key);
    // The log went through a checkpoint of 1,000 pages before.
    assert!(run.log_bytes_max.unwrap() > 4_000_000, "{}: {:?}", row.key, run.log_bytes_max);
    assert!(run.log_used_bytes_max.unwrap() <= run.log_bytes_max.unwrap(), "{}", row.key);
    if let Some(flushes) = summary.flushes_per_commit {
        assert!((0.01..1.5).contains(&flushes), "{}: {flushes}", row.key);
    }
}

#[test]
fn threads_and_processes_are_measured_on_stock() {
    let place = directory("stock");
    let page = directory("page").join("page.html");
    let page_name = page.to_str().unwrap();
    let more =
        ["--threads", "2", "--processes", "2", "--modes", "wal", "--seconds", "0.2", "--html", page_name];
    let output = joj(&place, &more).args(["--json", "-"]).output().unwrap();
    let document = document(&place, &output);
    let kinds: Vec<WriterKind> = document.contended.iter().map(|row| row.key.kind).collect();
    assert_eq!(kinds, [WriterKind::Threads, WriterKind::Processes]);
    document.contended.iter().for_each(check);
    assert_eq!((document.rows.len(), document.plan.seconds), (0, Some(0.2)));
    assert!(document.best_limit().is_some());
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("Longest wait of a run</title>").count(), 2);
}

#[test]
fn waldio_stands_beside_stock_where_the_extension_is_built() {
    let Some(extension) = extension() else { return };
    let place = directory("waldio");
    let more = ["--threads", "2", "--processes", "2", "--seconds", "0.2", "--json", "-"];
    let output = joj(&place, &more).args(["--waldio", extension.to_str().unwrap()]).output().unwrap();
    let document = document(&place, &output);
    assert_eq!(document.contended.len(), 4);
    for row in &document.contended {
        check(row);
        assert!(row.summary.as_ref().unwrap().versus_stock_wal.is_some(), "{}", row.key);
        assert_eq!(row.waldio_status.is_empty(), row.key.mode == JournalMode::Wal, "{}", row.key);
    }
}

#[test]
fn under_normal_a_bound_stands_beside_stock_and_waldio() {
    let Some(extension) = extension() else { return };
    let place = directory("bounded");
    let more = ["--threads", "2", "--sync", "normal", "--seconds", "0.2", "--json", "-"];
    let output = joj(&place, &more).args(["--waldio", extension.to_str().unwrap()]).output().unwrap();
    let document = document(&place, &output);
    let rows: Vec<_> = document.contended.iter().map(|row| (row.key.mode, row.key.synchronous)).collect();
    let normal = Synchronous::Normal;
    assert_eq!(
        rows,
        [(JournalMode::Wal, normal), (JournalMode::Waldio, normal), (JournalMode::Bounded, normal)]
    );
    for row in &document.contended {
        let summary = row.summary.as_ref().unwrap_or_else(|| panic!("{}: {:?}", row.key, row.failure));
        // No COMMIT waits for a flush.
        assert!(summary.flushes_per_commit.is_none_or(|flushes| flushes < 0.5), "{}: {summary:?}", row.key);
        let says =
            |name: &str| row.waldio_status.iter().find(|line| line.name == name).map(|line| &*line.value);
        let durability = match row.key.mode {
            JournalMode::Bounded => Some("bounded"),
            JournalMode::Waldio => Some("full"),
            _ => None,
        };
        assert_eq!(says("durability"), durability, "{}", row.key);
    }
}

/// All together make no more flushes than fit into the time. Stock's commits exclude each other anyway; that flushes do is
/// held by the unit tests of `slow_device` and `sync_count`.
#[test]
fn a_slow_device_is_common_to_all_writers() {
    let place = directory("slow");
    let more = ["--threads", "2", "--processes", "4", "--modes", "wal", "--seconds", "0.5", "--json", "-"];
    let output = joj(&place, &more).args(["--flush-delay", "10ms"]).output().unwrap();
    if text(&output.stderr).contains("seccomp")
        || text(&output.stdout).contains("calls for durability: seccomp")
    {
        eprintln!("skipped: seccomp is refused here");
        return;
    }
    let document = document(&place, &output);
    assert_eq!((document.limits.len(), document.contended.len()), (0, 2));
    for row in &document.contended {
        check(row);
        let syncs = row.syncs.as_ref().unwrap();
        let calls = syncs.fsync + syncs.fdatasync + syncs.durable_writes;
        // 50 in the time, and one under way at each of its ends.
        assert!((1..=52).contains(&calls), "{}: {syncs:?}", row.key);
        assert!(row.runs[0].run.latency.p50_ns >= 10_000_000, "{}", row.key);
    }
}

#[test]
fn mistakes_are_explained() {
    let place = directory("mistakes");
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["--threads", "0"], 2, &["--threads"]),
        (&["--threads", "2", "--transactions", "10"], 2, &["--transactions"]),
        (&["--processes", "2", "--workloads", "insert"], 2, &["--workloads"]),
        (&["--threads", "2", "--seconds", "0"], 2, &["0.05"]),
        (&["--threads", "2", "--flush-delay", "2"], 2, &["2ms"]),
        (&["--flush-delay", "2ms"], 2, &["--threads"]),
        (&["--threads", "2", "--modes", "delete"], 2, &["delete", "wal,waldio"]),
        (&["--threads", "2", "--modes", "wal", "--schemas", "mobibench"], 2, &["mobibench", "atc13"]),
    ];
    for (arguments, code, parts) in cases {
        let output = joj(&place, arguments).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {message}");
        for part in *parts {
            assert!(message.contains(part), "{arguments:?} should say `{part}`: {message}");
        }
    }
    assert_eq!(entries(&place), Vec::<PathBuf>::new(), "files left behind");
}

/// Processes whose work directory is below `place`, by their open files.
fn processes_with_files_in(place: &Path) -> usize {
    let is_inside = |entry: &fs::DirEntry| {
        let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| target.starts_with(place))
    };
    fs::read_dir("/proc").unwrap().flatten().filter(is_inside).count()
}

/// Waits until `is_so`, at most half a minute.
fn within_half_a_minute(is_so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() && began.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(20));
    }
    is_so()
}

#[track_caller]
fn leaves_nothing(mut child: Child, signal: &str, place: &Path) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130), "after SIG{signal}");
    assert_eq!(entries(place), Vec::<PathBuf>::new(), "files left behind by SIG{signal}");
    assert!(
        within_half_a_minute(|| processes_with_files_in(place) == 0),
        "processes left behind by SIG{signal}"
    );
}

#[test]
fn ctrl_c_ends_every_writing_process_and_leaves_no_file() {
    let place = directory("signal");
    let more = ["--processes", "4", "--modes", "wal", "--seconds", "60"];
    for signal in ["INT", "TERM"] {
        let child = joj(&place, &more).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        within_half_a_minute(|| processes_with_files_in(&place) >= 4);
        leaves_nothing(child, signal, &place);
    }
}

/// What waldio's processes share for the database that is measured (docs/log_format.md).
fn shared_page(place: &Path) -> Option<PathBuf> {
    let database = entries(place).first()?.join("bench.db");
    let status = fs::metadata(database).ok()?;
    Some(format!("/dev/shm/waldio-line-{:x}-{}", status.dev(), status.ino()).into())
}

#[test]
fn ctrl_c_leaves_no_page_of_the_killed_processes_in_memory() {
    let Some(extension) = extension() else { return };
    let place = directory("signal-waldio");
    let more = ["--processes", "4", "--modes", "waldio", "--seconds", "60", "--waldio"];
    for signal in ["INT", "TERM"] {
        let mut command = joj(&place, &more);
        command.arg(&extension).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let is_there = within_half_a_minute(|| shared_page(&place).is_some_and(|page| page.exists()));
        let page = shared_page(&place);
        leaves_nothing(child, signal, &place);
        if !is_there {
            return eprintln!("skipped: the processes shared no page here");
        }
        let page = page.unwrap();
        assert!(!page.exists(), "{} left behind by SIG{signal}", page.display());
    }
}
