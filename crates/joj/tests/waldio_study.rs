//! Goal: `joj bench --waldio-study` measures what its help says, names what refuses, and leaves nothing behind.
//! Method: the built program, a few operations; no time is judged, only facts. What journal commits show is checked on an
//! ext4 image, which needs root.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

mod waldio;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::{JournalMode, Word, Workload};
use joj_analysis::bench::study::durability::Durability;
use joj_analysis::bench::study::initialisation::{Approach, InitialisationRow};
use joj_analysis::bench::study::pattern::{Pattern, PatternKey};
use joj_analysis::bench::study::table_two::Layout;
use waldio::extension;

/// A fresh directory on the disk that the build uses.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("study-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn joj(place: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.arg("bench").arg(place).args(more).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn entries(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("lost+found"))
        .collect()
}

/// Runs a part of the study in `place`; the parsed JSON.
fn study(place: &Path, part: &str, more: &[&str]) -> Document {
    let part = format!("--waldio-study={part}");
    let output: Output = joj(place, &[&part, "--json", "-"]).args(more).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(entries(place), Vec::<PathBuf>::new(), "files left behind");
    Document::parse(&text(&output.stdout)).unwrap()
}

fn row(document: &Document, approach: Approach, durability: Durability) -> &InitialisationRow {
    let rows = &document.study.as_ref().unwrap().initialisation;
    rows.iter().find(|row| row.key.approach == approach && row.key.durability == durability).unwrap()
}

#[test]
fn every_way_to_initialise_is_measured_or_says_who_refuses_it() {
    let place = directory("init");
    let page = directory("init-page").join("page.html");
    let document =
        study(&place, "init", &["--runs", "2", "--transactions", "24", "--html", page.to_str().unwrap()]);
    assert!(document.is_sound() && document.rows.is_empty(), "{:?}", document.failures());
    for approach in Approach::ALL {
        for durability in [Durability::Fs, Durability::Pd] {
            let row = row(&document, *approach, durability);
            if let Some(reason) = &row.refused {
                assert!(reason.contains("os error") || reason.contains("unsupported"), "{reason}");
                continue;
            }
            for (step, measured) in row.steps() {
                let is_preparation = matches!(step, "create" | "extend");
                let runs = if is_preparation && *approach == Approach::Appended { 0 } else { 2 };
                assert_eq!(measured.runs.len(), runs, "{}, {step}", row.key);
                let operations = if is_preparation { 1 } else { 24 };
                assert!(measured.runs.iter().all(|run| run.transactions == operations), "{}", row.key);
                assert_eq!(measured.summary.is_some(), runs > 0, "{}, {step}", row.key);
            }
        }
    }
    let zeroes = row(&document, Approach::Zeroes, Durability::Fs);
    // Whoever else writes can only add to it.
    if let Some(bytes) = zeroes.create.summary.as_ref().unwrap().device_bytes {
        assert!(bytes >= (4 << 20) as f64, "{bytes}");
    }
    assert!(document.best_limit().is_some());
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Initialising a log") && html.contains("fallocate alone (unwritten)"));
}

#[test]
fn every_log_pattern_is_written_and_read_back() {
    let place = directory("alignment");
    let page = directory("alignment-page").join("page.html");
    let more = ["--runs", "2", "--transactions", "20", "--html", page.to_str().unwrap()];
    let document = study(&place, "alignment", &more);
    assert!(document.is_sound(), "{:?}", document.failures());
    let rows = &document.study.as_ref().unwrap().patterns;
    assert_eq!(rows.len(), Pattern::ALL.len() * Durability::ALL.len() * 2);
    for row in rows {
        if let Some(reason) = &row.refused {
            assert!(row.key.durability == Durability::Pd && !reason.is_empty(), "{}: {reason}", row.key);
            continue;
        }
        assert_eq!(row.commits.runs.len(), 2, "{}", row.key);
        assert!(row.commits.runs.iter().all(|run| run.transactions == 20), "{}", row.key);
        assert!(row.commits.summary.is_some() && row.last_flush.summary.is_some(), "{}", row.key);
        // Whatever is flushed has been written; whoever else writes can only add to it.
        if let Some(bytes) = row.device_bytes_with_last_flush() {
            assert!(bytes >= 4096.0, "{}: {bytes}", row.key);
        }
    }
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("log writes without SQLite")
            && html.contains("Commits per second, each made durable</title>")
    );
}

/// An image with a file system, mounted for as long as the value lives.
struct Image {
    folder: PathBuf,
}

impl Image {
    /// ext4, whose journal tells its commits; `None`, with the reason said, where it cannot be mounted.
    fn ext4(name: &str) -> Option<Image> {
        let image = Image { folder: directory(name) };
        fs::create_dir(image.point()).unwrap();
        let file = image.folder.join("image");
        fs::File::create(&file).unwrap().set_len(128 << 20).unwrap();
        let make = ["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        let made = Command::new("mkfs.ext4").args(make).arg(&file).output();
        let mounted = Command::new("mount").args(["-o", "loop"]).arg(&file).arg(image.point()).output();
        match (made, mounted) {
            (Ok(made), Ok(mounted)) if made.status.success() && mounted.status.success() => Some(image),
            (made, mounted) => {
                eprintln!("skipped: no ext4 image can be mounted: {made:?}, {mounted:?}");
                None
            }
        }
    }

    fn point(&self) -> PathBuf {
        self.folder.join("mounted")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Fails where nothing is mounted, which is as good.
        let _ = Command::new("umount").arg(self.point()).output();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn only_unwritten_and_missing_blocks_make_the_journal_commit() {
    let Some(image) = Image::ext4("journal") else { return };
    let document = study(&image.point(), "init", &["--runs", "1", "--transactions", "64"]);
    let commits = |approach, durability| {
        let row = row(&document, approach, durability);
        let passes = [&row.first_pass, &row.second_pass];
        passes.map(|pass| pass.summary.as_ref().unwrap().journal_commits.unwrap())
    };
    // The journal also commits every five seconds: once or twice in a pass on a very slow machine.
    const FEW: f64 = 0.1;
    for durability in [Durability::Fs, Durability::Pd] {
        for approach in [Approach::Appended, Approach::Unwritten] {
            let [first, second] = commits(approach, durability);
            assert!(first > 0.5 && second < FEW, "{approach:?} {durability:?}: {first}, then {second}");
        }
        for approach in [Approach::Zeroes, Approach::FallocateZeroes] {
            let [first, second] = commits(approach, durability);
            assert!(first < FEW && second < FEW, "{approach:?} {durability:?}: {first}, then {second}");
        }
    }
}

#[test]
fn a_commit_writes_the_blocks_that_its_pattern_touches_and_nothing_else() {
    let Some(image) = Image::ext4("patterns") else { return };
    let document = study(&image.point(), "alignment", &["--runs", "1", "--transactions", "100"]);
    let kib = |pattern, durability, prepared| {
        let key = PatternKey { pattern, durability, prepared };
        let rows = &document.study.as_ref().unwrap().patterns;
        let summary = rows.iter().find(|row| row.key == key).unwrap().commits.summary.clone().unwrap();
        (summary.device_bytes.unwrap() / 1024.0, summary.journal_commits.unwrap())
    };
    for durability in [Durability::Fs, Durability::Pd] {
        for (pattern, blocks) in [
            (Pattern::Wal, 8.0..8.2),
            (Pattern::Page, 8.0..8.1),
            (Pattern::Page8k, 8.0..8.1),
            (Pattern::Embedded, 4.0..4.1),
        ] {
            let (bytes, commits) = kib(pattern, durability, true);
            // The journal also commits every five seconds.
            let slack = blocks.start..blocks.end + 1.0;
            assert!(
                slack.contains(&bytes) && commits < 0.1,
                "{pattern:?} {durability:?}: {bytes}, {commits}"
            );
            let (growing_bytes, growing_commits) = kib(pattern, durability, false);
            assert!(growing_bytes > bytes && growing_commits > 0.5, "{pattern:?} {durability:?}");
        }
    }
    assert!(kib(Pattern::Embedded, Durability::Ns, true).0 < 4.0, "nothing was to be flushed");
}

#[test]
fn table_two_has_each_mode_that_the_extension_has() {
    let place = directory("table2");
    let Some(extension) = extension() else { return };
    let page = directory("table2-page").join("page.html");
    let (extension, page_name) = (extension.to_str().unwrap(), page.to_str().unwrap());
    let more = ["--runs", "1", "--transactions", "20", "--builds", "bundled"];
    let document =
        study(&place, "table2", &[&more[..], &["--waldio", extension, "--html", page_name]].concat());
    assert!(document.is_sound(), "{:?}", document.failures());
    let rows = &document.study.as_ref().unwrap().table_two;
    for workload in [Workload::Insert, Workload::Update, Workload::Delete] {
        // Its bound is the paper's group synchronization: `waldio_group` with each workload.
        for mode in JournalMode::ALL.iter().filter(|mode| **mode != JournalMode::Bounded) {
            let mut found =
                rows.iter().filter(|row| (row.key.row.workload, row.key.row.mode) == (workload, *mode));
            assert!(found.next().is_some(), "no {workload:?} on {mode:?}");
        }
    }
    assert!(rows.iter().any(|row| row.key.layout == Layout::Embedded), "the extension knows it");
    for row in rows {
        assert!(row.transactions.summary.is_some() && row.versus_stock_wal.is_some(), "{}", row.key);
        assert_eq!(row.checkpoint.runs.len(), usize::from(row.key.row.mode.has_log()), "{}", row.key);
        let said = |name: &str| row.waldio_status.iter().find(|line| line.name == name);
        match (row.key.row.mode, row.key.durability) {
            (JournalMode::Waldio, Durability::Fs) => {
                assert_eq!(said("persist").unwrap().value, "flush", "{}", row.key)
            }
            (JournalMode::Waldio, _) => assert!(said("persist").is_some(), "{}", row.key),
            _ => assert_eq!(row.waldio_status, [], "{}", row.key),
        }
        if row.key.row.mode == JournalMode::Waldio {
            assert_eq!(said("layout").unwrap().value, row.key.layout.word(), "{}", row.key);
        }
        // Whoever else writes can only add to it.
        let (log, all) = (row.log_bytes(), row.all_bytes());
        if let Some(all) = all {
            assert!(all > 0.0 && log.is_none_or(|log| log < all), "{}: {log:?} of {all}", row.key);
        }
    }
    assert!(fs::read_to_string(&page).unwrap().contains("Table 2 of the WALDIO paper: delete"));
}

#[test]
fn mistakes_are_explained() {
    let place = directory("mistakes");
    let cases: &[(&Path, &str, i32, &[&str])] = &[
        (Path::new("/nonexistent/place"), "--waldio-study=init", 1, &["/nonexistent/place", "mkdir"]),
        (Path::new("/proc"), "--waldio-study=alignment", 1, &["cannot write in /proc", "another directory"]),
        (&place, "--waldio-study=innit", 2, &["innit", "choose from: init, alignment, table2"]),
        (&place, "--waldio-study=", 2, &["choose from: init, alignment, table2"]),
    ];
    for (place, option, code, parts) in cases {
        let output = joj(place, &[option]).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{option}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{option}: {message}");
        assert!(!message.contains("panicked"), "{option}: {message}");
    }
    let missing = joj(&place, &["--waldio-study=table2", "--waldio", "/nonexistent.so"]).output().unwrap();
    let message = text(&missing.stderr);
    assert!(message.contains("/nonexistent.so") && message.contains("right path"), "{message}");
    let output = joj(&place, &["--waldio-study", "--threads", "2"]).output().unwrap();
    assert!(text(&output.stderr).contains("cannot be used with"), "{}", text(&output.stderr));
    assert_eq!(entries(&place), Vec::<PathBuf>::new(), "files left behind");
}

#[test]
fn ctrl_c_leaves_no_file() {
    let place = directory("signal");
    let mut child = joj(&place, &["--waldio-study=init", "--runs", "1000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let is_running = || entries(&place).iter().any(|work| work.join("log").exists());
    while !is_running() && began.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(entries(&place), Vec::<PathBuf>::new(), "files left behind");
}
