//! Goal: `joj bench --io` measures each job in each way that this place takes, counts its syncs right, and leaves nothing behind.
//! Method: the built program, small files, a directory of the build tree; no figure is judged, only its presence.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use joj_analysis::bench::document::Document;
use joj_analysis::bench::io::job::IoJob;
use joj_analysis::bench::io::way::SyncWay;
use joj_analysis::bench::key::Word;

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-io-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn run(place: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.args(["bench", "--io"]).arg(place).args(["--runs", "2"]).args(more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn each_job_in_each_way_has_figures_or_a_reason() {
    let place = directory("every");
    let output = run(&place, &["--file", "64KiB", "--json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "files left behind");
    let document = Document::parse(&text(&output.stdout)).unwrap();
    for job in IoJob::ALL {
        for way in SyncWay::ALL.iter().filter(|way| job.takes(**way)) {
            let found = document.io.iter().find(|row| (row.key.job, row.key.way) == (*job, *way));
            let row = found.unwrap_or_else(|| panic!("no row for {job:?} {way:?}"));
            assert_eq!(row.failure, None, "{}", row.key);
            if let Some(reason) = &row.refused {
                println!("skipped: {}: {reason}", row.key);
                assert!(row.bytes_per_s.is_none() && row.records.runs.is_empty(), "{}", row.key);
                continue;
            }
            assert_eq!(row.records.runs.len(), 2, "{}", row.key);
            assert_eq!(row.syncs.transactions, 32, "{}", row.key);
            let calls = row.syncs.fsync + row.syncs.fdatasync + row.syncs.durable_writes + row.syncs.other;
            let expected = match (job.is_read(), way.is_durable()) {
                (true, _) => 0,
                (false, true) => 34,
                (false, false) => 2,
            };
            assert_eq!(calls, expected, "{}", row.key);
            assert!(row.bytes_per_s.unwrap().median > 0.0 && row.latency.max_ns >= row.latency.p50_ns);
            assert_eq!(row.latency_quantiles_ns.len(), document.quantile_parts.len());
        }
    }
    assert!(document.builds.is_empty() && document.rows.is_empty());
}

#[test]
fn jobs_ways_and_sizes_are_chosen_and_shown() {
    let place = directory("chosen");
    let page = place.join("page.html");
    let options = ["--file", "1MiB", "--jobs", "randread,append", "--ways", "none", "--record", "4k,64KiB"];
    let output = run(&place, &[&options[..], &["--html", page.to_str().unwrap()]].concat());
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in [
        "append, records of 4 KiB in a file of 1 MiB",
        "random read, records of 64 KiB in a file of 1 MiB",
        "page cache",
        "2 runs of 2 s at most",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("sequential write") && !shown.contains("fsync "), "{shown}");
    assert!(fs::read_to_string(&page).unwrap().contains("KiB per second"));
}

#[test]
fn mistakes_are_explained() {
    let place = directory("mistakes");
    let cases: &[(&[&str], &[&str])] = &[
        (&["--jobs", "reed"], &["reed", "randread"]),
        (&["--ways", "fsnyc"], &["fsnyc", "fdatasync"]),
        (&["--jobs", "read", "--ways", "fsync"], &["none, direct, polled and mmap"]),
        (&["--file", "4KiB", "--record", "8KiB"], &["no record", "larger --file"]),
        (&["--record", "0"], &["no size"]),
        (&["--modes", "wal"], &["cannot be used with"]),
    ];
    for (arguments, parts) in cases {
        let output = run(&place, arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{arguments:?}: {message}");
    }
    let alone = Command::new(env!("CARGO_BIN_EXE_joj")).args(["bench", "--jobs", "read"]).output().unwrap();
    assert!(text(&alone.stderr).contains("--io"), "{}", text(&alone.stderr));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "files left behind");
}
