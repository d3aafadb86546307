//! Goal: `joj device probe` measures each range with each record in each order, and leaves nothing behind.
//! Method: the built program, small ranges, a directory of the build tree; no figure is judged, only its presence.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

mod record;
mod replay;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use joj_analysis::bench::io::job::IoJob;
use joj_analysis::bench::io::probe::{JOBS, ProbeDocument};
use joj_analysis::bench::io::way::SyncWay;
use joj_analysis::recording::flags::{O_ACCMODE, O_APPEND, O_RDWR};
use record::{OPEN, record_command, rows};
use replay::Scratch;

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("device-probe-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn command(place: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.args(["device", "probe"]).arg(place).args(more);
    command
}

fn run(place: &Path, more: &[&str]) -> Output {
    command(place, more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const SMALL: [&str; 8] =
    ["--range-min", "1MiB", "--range-max", "3MiB", "--record", "4KiB,128KiB", "--runs", "2"];

#[test]
fn each_range_has_each_record_in_each_order() {
    let place = directory("every");
    let output = run(&place, &[&SMALL[..], &["--requests", "20", "--json", "-"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "files left behind");
    let document: ProbeDocument = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document.plan.range_bytes, [1 << 20, 2 << 20, 3 << 20]);
    assert_eq!(document.cells.len(), 3 * 2 * JOBS.len());
    for cell in &document.cells {
        assert_eq!((cell.refused.as_deref(), cell.records.runs.len()), (None, 2), "{}", cell.key);
        let records = if cell.key.job.is_random() { 20.min(cell.key.records()) } else { cell.key.records() };
        assert_eq!(cell.records.runs[0].transactions, records, "{}", cell.key);
        assert!(cell.bytes_per_s.unwrap().median > 0.0, "{}", cell.key);
        // A run of writes ends with a sync, and reads have none.
        assert_eq!(cell.syncs.fsync, if cell.key.job.is_read() { 0 } else { 2 }, "{}", cell.key);
        let is_direct = cell.key.way == SyncWay::Direct;
        assert_eq!(is_direct, document.notes.is_empty(), "without O_DIRECT it is said");
    }
    assert!(document.cells.iter().any(|cell| cell.key.job == IoJob::RandWrite));
}

/// Goal: a range is measured where a file has all its bytes on the disk, also one that a run does not get through.
/// Method: joj records itself. The file is filled through a descriptor that appends, and measured through one that does not.
#[test]
fn a_range_is_written_as_a_whole_before_it_is_measured() {
    const FSYNC: i64 = 13;
    let (place, scratch) = (directory("filled"), Scratch::new("device-probe-filled"));
    let recording = scratch.file("probe.joj");
    let joj = env!("CARGO_BIN_EXE_joj");
    let words =
        ["--range-min", "1MiB", "--range-max", "2MiB", "--record", "4KiB", "--requests", "1", "--runs", "1"];
    let mut command: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&joj, &"device", &"probe", &place];
    command.extend(words.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>));
    let output = record_command("ptrace", &recording, &command);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (mut filling, mut written, mut synced, mut measured) = (0, 0, 0, Vec::new());
    for row in rows(&recording) {
        let flags = u32::try_from(row.flags).unwrap();
        match row.code {
            OPEN if row.result >= 0 && row.path.ends_with("/records") => {
                if flags & O_APPEND != 0 {
                    filling = row.description;
                } else if flags & O_ACCMODE == O_RDWR {
                    measured.push(synced);
                }
            }
            FSYNC if row.description == filling => synced = written,
            _ if row.is_write() && row.description == filling => written += row.result,
            _ => {}
        }
    }
    let wanted = [[1 << 20; JOBS.len()], [2 << 20; JOBS.len()]].concat();
    assert_eq!(measured, wanted, "bytes on the disk when each run began");
}

#[test]
fn the_tables_have_a_line_for_each_range() {
    let place = directory("tables");
    let output = run(&place, &SMALL);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in ["records of 4 KiB", "records of 128 KiB", "rand write", "\n  1 MiB", "\n  3 MiB", "MB/s are"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn mistakes_are_explained() {
    let place = directory("mistakes");
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["--range-max", "900TiB"], 1, &["does not fit", "smaller --range-max"]),
        (&["--range-min", "64MiB", "--range-max", "32MiB"], 2, &["--range-max is less"]),
        (&["--range-min", "1MiB", "--record", "2MiB"], 2, &["no record of 2 MiB"]),
        (&["--range-max", "some"], 2, &["no size"]),
        (&["--json", "/nonexistent/x.json"], 1, &["/nonexistent/x.json"]),
    ];
    for (arguments, code, parts) in cases {
        let output = run(&place, arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{arguments:?}: {message}");
    }
    let message = text(&run(Path::new("/nonexistent"), &[]).stderr);
    assert!(message.contains("there is no directory /nonexistent"), "{message}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "files left behind");
}

#[test]
fn ctrl_c_leaves_no_file() {
    let place = directory("signal");
    let mut child = command(&place, &["--range-max", "32MiB", "--seconds", "60"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let has_file = || {
        fs::read_dir(&place)
            .unwrap()
            .flatten()
            .any(|work| fs::read_dir(work.path()).is_ok_and(|mut files| files.next().is_some()))
    };
    while !has_file() && began.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(10));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "files left behind");
}

/// Goal: what O_DIRECT refuses is measured all the same, and that is said. Method: most file systems refuse it odd records.
#[test]
fn without_o_direct_the_page_cache_is_measured() {
    let place = directory("cached");
    let output =
        run(&place, &["--range-min", "1MiB", "--range-max", "1MiB", "--record", "1000", "--json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: ProbeDocument = serde_json::from_slice(&output.stdout).unwrap();
    if document.cells[0].key.way == SyncWay::Direct {
        return println!("skipped: {} takes odd records with O_DIRECT", place.display());
    }
    assert!(document.notes[0].contains("O_DIRECT") && document.notes[0].contains("page cache"));
    assert!(document.cells.iter().all(|cell| cell.bytes_per_s.is_some() && cell.key.way == SyncWay::None));
}
