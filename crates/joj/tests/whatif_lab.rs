//! Goal: `joj whatif` measures all its configurations on emulated disks, and says how far their rounds differ.
//! Method: a recording of commits and other files on two filesystems, one of them twice; a row beside others and without them; two rounds,
//! in which a machine does not start; then what is refused before one starts. One round where rounds do not matter: each takes seconds.
//!
//! Where QEMU is missing, or Debian's packages cannot be had, what needs them is skipped, and says so.

mod emulated;
mod replay;
mod schema;
mod waldio;

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use emulated::missing;
use joj_analysis::bench::key::Word;
use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::lab_result::{WhatifLabOutcome, WhatifLabResult};
use joj_analysis::recording::whatif::outcome::{WhatifFigures, WhatifOutcome, WhatifResult};
use replay::{Scratch, record, told};
use waldio::{extension, skipped};

const COMMITS: u64 = 20;
/// Of 20, two cards take longer than one (1.23 s for 0.88 s in storage); of 100, 2.29 s for 3.30 s.
const COMMITS_OF_PILOTS: u64 = 100;
const THINK_NS: u64 = 100_000_000;

/// Commits with a rollback journal that is deleted, and a cache that is made durable.
fn application(commits: u64) -> String {
    let mut now_us = 0;
    let mut text = String::new();
    let mut line = |call: &str, after_us: u64| {
        let (seconds, micros) = (1_700_000_000 + now_us / 1_000_000, now_us % 1_000_000);
        let _ = writeln!(text, "1 {seconds}.{micros:06} {call} <0.000010>");
        now_us += after_us;
    };
    line(r#"mkdir("/d/Cache", 0777) = 0"#, 100);
    line(r#"open("/d/app.db", O_RDWR|O_CREAT|O_EXCL, 0644) = 3"#, 100);
    for number in 0..commits {
        let place = 4096 * (1 + number % 3);
        line(r#"open("/d/app.db-journal", O_RDWR|O_CREAT, 0644) = 4"#, 100);
        line(r#"pwrite64(4, ""..., 512, 0) = 512"#, 100);
        line("fdatasync(4) = 0", 100);
        line(r#"pwrite64(3, ""..., 4096, 0) = 4096"#, 100);
        line(&format!(r#"pwrite64(3, ""..., 4096, {place}) = 4096"#), 100);
        line("fdatasync(3) = 0", 100);
        line("close(4) = 0", 100);
        line(r#"unlink("/d/app.db-journal") = 0"#, 100);
    }
    line(r#"open("/d/Cache/a", O_RDWR|O_CREAT, 0644) = 5"#, THINK_NS / 1000);
    line(r#"write(5, ""..., 20000) = 20000"#, 100);
    line("fsync(5) = 0", 100);
    line("close(5) = 0", 100);
    text
}

fn whatif(recording: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.arg("whatif").arg(recording).args(words);
    command
}

fn figures(result: &WhatifResult, configuration: Configuration) -> &WhatifFigures {
    let row = result.rows.iter().find(|row| row.configuration == configuration).expect("a row");
    match &row.outcome {
        WhatifOutcome::Measured(figures) => figures,
        WhatifOutcome::Unavailable(reason) => panic!("{configuration:?}: {reason}"),
    }
}

fn measured(result: &WhatifLabResult, disk: usize) -> &WhatifResult {
    match &result.disks[disk].outcome {
        WhatifLabOutcome::Measured(found) => found,
        WhatifLabOutcome::Failed(reason) => panic!("{reason}"),
    }
}

/// The rows of a disk are what their names say.
fn check(found: &WhatifResult, has_extension: bool) {
    assert!(found.emulated && found.rounds == 1);
    let recorded = figures(found, Configuration::Recorded);
    for configuration in Configuration::ALL.iter().copied() {
        let has_waldio = matches!(configuration, Configuration::Waldio | Configuration::Bounded);
        // Nothing is temporary.
        if has_waldio && !has_extension || configuration == Configuration::ByClass {
            continue;
        }
        let figures = figures(found, configuration);
        assert!(figures.elapsed_ns.median >= THINK_NS as f64, "{configuration:?}: {figures:?}");
        assert_eq!(figures.differing, 0, "{configuration:?}");
        let syncs = figures.syncs.expect("the guest's kernel counts them");
        match configuration {
            Configuration::NoSync => assert_eq!(syncs, 0),
            Configuration::CachesNoSync => assert_eq!(syncs, 2 * COMMITS),
            Configuration::Wal | Configuration::Waldio => assert!(syncs > COMMITS, "{syncs}"),
            Configuration::Normal | Configuration::Bounded => assert!(syncs < COMMITS, "{syncs}"),
            _ => assert_eq!(syncs, 2 * COMMITS + 1, "{configuration:?}"),
        }
        // A commit's time is mostly processor time here: SQLite is not optimized in a debug build.
        let is_as_recorded = matches!(
            configuration,
            Configuration::Recorded | Configuration::CachesInMemory | Configuration::CachesNoSync
        );
        let is_faster = !is_as_recorded && !configuration.has_commits();
        if is_faster {
            assert!(figures.blocked_ns.median < recorded.blocked_ns.median, "{configuration:?}: {found:#?}");
        }
    }
    assert!(found.advice.iter().any(|said| said.starts_with("Fewer than 3 rounds ")), "{:?}", found.advice);
    let in_memory = figures(found, Configuration::AllInMemory).device_bytes.expect("a device").median;
    assert!(in_memory < recorded.device_bytes.expect("a device").median / 4.0, "{in_memory}");
}

#[test]
fn all_configurations_are_measured_on_each_disk_and_take_as_long_again_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("whatif-lab");
    let recording = record(&scratch, "app", application(COMMITS));
    let files = ["w.json", "w.md", "w.html"].map(|name| scratch.file(name).display().to_string());
    let mut words = vec![
        "--filesystem",
        "ext4,f2fs,ext4",
        "--rounds",
        "1",
        "--json",
        &files[0],
        "--markdown",
        &files[1],
        "--html",
        &files[2],
    ];
    let extension = extension().map(|file| file.display().to_string());
    words.extend(extension.iter().flat_map(|file| ["--waldio", file]));
    let output = whatif(&recording, &words).output().expect("joj");
    let (code, said) = told(&output);
    assert_eq!(code, Some(0), "{said}");
    let rows = Configuration::ALL.len() - if extension.is_some() { 0 } else { 2 };
    let last = format!("joj: {0} of {0}, ", 3 * rows);
    assert!(said.contains(&last), "progress: {said}");
    assert!(said.contains(", f2fs galaxy-s5-emmc, WAL: "), "progress: {said}");
    let text = String::from_utf8(output.stdout).expect("text");
    println!("{text}");
    let [json, markdown, page] = files.map(|file| std::fs::read_to_string(file).expect("a file"));
    schema::holds_of_text("whatif-lab", json.as_bytes(), &[]);
    let result: WhatifLabResult = serde_json::from_str(&json).expect("JSON");
    let disks: Vec<_> = result.disks.iter().map(|disk| (disk.filesystem.word(), &*disk.device)).collect();
    assert_eq!(disks, ["ext4", "f2fs", "ext4"].map(|name| (name, "galaxy-s5-emmc")));
    (0..3).for_each(|disk| check(measured(&result, disk), extension.is_some()));
    for configuration in [Configuration::Recorded, Configuration::Wal, Configuration::NoSync] {
        let elapsed = |disk| figures(measured(&result, disk), configuration).elapsed_ns.median;
        assert!((elapsed(2) / elapsed(0) - 1.0).abs() < 0.005, "{configuration:?} twice on ext4");
    }
    for form in [&text, &markdown, &page] {
        assert!(form.contains("one round; another may differ"), "{form}");
        assert!(!form.contains("low to high"), "{form}");
    }
    assert!(markdown.contains("\n## f2fs galaxy-s5-emmc\n") && page.matches("<svg").count() == 3);
}

#[test]
fn a_row_depends_on_no_row_before_it_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("whatif-lab-alone");
    // A cache that is not made durable: the row without its syncs makes the calls of the first one.
    let open = "1 1699999999.990000 open(\"/d/a.thumbs\", O_RDWR|O_CREAT, 0644) = 7 <0.000010>";
    let recording = record(&scratch, "app", format!("{open}\n{}", application(COMMITS)));
    let json = scratch.file("w.json").display().to_string();
    let measure = |only: &str| {
        let disk = ["--device", "kingston", "--rounds", "1", "--class", "cache:*.thumbs"];
        let words = [&disk[..], &["--only", only, "--json", &json]].concat();
        let (code, said) = told(&whatif(&recording, &words).output().expect("joj"));
        assert_eq!(code, Some(0), "{said}");
        let text = std::fs::read_to_string(&json).expect("a file");
        let result: WhatifLabResult = serde_json::from_str(&text).expect("JSON");
        measured(&result, 0).clone()
    };
    let (many, few) = (measure("no-sync,caches-no-sync,wal"), measure("wal"));
    let elapsed = |result, row| figures(result, row).elapsed_ns.median;
    let is_same = |one: f64, other: f64, by: f64| (one / other - 1.0).abs() < by;
    // Rows before it made one up to 160 times as slow. A merge more or less is chance on this card: 45.8 s for 43.0, and 40 % for others.
    for (row, by) in [(Configuration::Recorded, 0.01), (Configuration::Wal, 0.5)] {
        let (among, alone) = (elapsed(&many, row), elapsed(&few, row));
        assert!(is_same(among, alone, by), "{row:?}: {among} ns among others, {alone} ns alone");
    }
    let recorded = elapsed(&many, Configuration::Recorded);
    let same_calls = figures(&many, Configuration::CachesNoSync);
    assert!(is_same(same_calls.elapsed_ns.median, recorded, 0.01), "{recorded} ns recorded, {same_calls:?}");
    assert!((same_calls.ratio.median - same_calls.elapsed_ns.median / recorded).abs() < 1e-9);
    let rows: Vec<&str> = many.rows.iter().map(|row| row.configuration.word()).collect();
    assert_eq!(rows, ["recorded", "no-sync", "caches-no-sync", "wal"]);
    assert!(many.sqlite.is_some() && !many.parts.is_empty() && !many.databases.is_empty());
}

/// A QEMU whose second and fifth machine do not start.
const FAILING_QEMU: &str = r#"#!/bin/sh
case "$*" in *-incoming*)
    n=1
    while ! mkdir "$0.$n" 2>/dev/null; do n=$((n + 1)); done
    case $n in 2 | 5) exit 1 ;; esac
esac
PATH=${PATH#*:} exec qemu-system-x86_64 "$@"
"#;

#[test]
fn rounds_are_told_apart_and_a_machine_that_does_not_start_costs_its_row_alone_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("whatif-lab-rounds");
    let recording = record(&scratch, "app", application(COMMITS));
    let qemu = scratch.write("qemu-system-x86_64", FAILING_QEMU);
    std::fs::set_permissions(&qemu, Permissions::from_mode(0o755)).expect("a program");
    let place = qemu.parent().expect("a directory").display().to_string();
    let path = format!("{place}:{}", std::env::var("PATH").expect("a PATH"));
    let json = scratch.file("w.json").display().to_string();
    // In each round the second row is that of the machine that does not start.
    let rows = ["--only", "recorded,all-in-ram,no-sync", "--jobs", "1"];
    let words = [&rows[..], &["--device", "galaxy-s5-emmc", "--rounds", "2", "--json", &json]].concat();
    let output = whatif(&recording, &words).env("PATH", path).output().expect("joj");
    let (code, said) = told(&output);
    assert_eq!(code, Some(1), "{said}");
    let failed =
        "joj: 5 of 6, ext4 galaxy-s5-emmc, all in RAM, round 2: FAILED: its guest ended while it started";
    assert!(
        said.contains(failed) && said.contains("joj: 6 of 6, ext4 galaxy-s5-emmc, no sync, round 2: "),
        "{said}"
    );
    let table = String::from_utf8_lossy(&output.stdout);
    for text in
        [", 2 rounds", "low to high", "all in RAM: cannot be had: its guest ended while it started", "(-j)"]
    {
        assert!(table.contains(text), "{text}: {table}");
    }
    let text = std::fs::read_to_string(&json).expect("a file");
    schema::holds_of_text("whatif-lab", text.as_bytes(), &[]);
    let result: WhatifLabResult = serde_json::from_str(&text).expect("JSON");
    let found = measured(&result, 0);
    assert_eq!((found.emulated, found.rounds), (true, 2));
    for configuration in [Configuration::Recorded, Configuration::NoSync] {
        let elapsed = figures(found, configuration).elapsed_ns;
        assert!(elapsed.samples == 2 && elapsed.high < 1.01 * elapsed.low, "{configuration:?}: {elapsed:?}");
    }
    assert!(found.advice.iter().any(|said| said.starts_with("Fewer than 3 rounds ")), "{:?}", found.advice);
}

#[test]
fn two_cards_and_a_write_buffer_are_measured_beside_one_card_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("whatif-lab-pilots");
    // Another process syncs before it and after it: without think time joj says that their syncs meet more often.
    let sync = |at: &str| format!("2 {at} fsync(7) = 0 <0.000010>\n");
    let open = r#"2 1699999999.990000 open("/d/other", O_RDWR|O_CREAT, 0644) = 7 <0.000010>"#;
    let application = application(COMMITS_OF_PILOTS);
    let text = format!("{open}\n{}{application}{}", sync("1699999999.995000"), sync("1700000000.500000"));
    let recording = record(&scratch, "app", text);
    let json = scratch.file("w.json").display().to_string();
    let pilots = ["--device", "wintec", "--raid0", "2", "--write-buffer", "pcm-16mb"];
    let words = [&pilots[..], &["--only", "recorded", "--rounds", "1", "--json", &json]].concat();
    let (code, said) = told(&whatif(&recording, &words).output().expect("joj"));
    assert_eq!(code, Some(0), "{said}");
    let text = std::fs::read_to_string(&json).expect("a file");
    schema::holds_of_text("whatif-lab", text.as_bytes(), &[]);
    let result: WhatifLabResult = serde_json::from_str(&text).expect("JSON");
    let disks: Vec<&str> = result.disks.iter().map(|disk| &*disk.device).collect();
    assert_eq!(disks, ["wintec", "2xwintec", "pcm-16mb+wintec"]);
    let blocked = |disk| figures(measured(&result, disk), Configuration::Recorded).blocked_ns.median;
    assert!(blocked(1) < 0.9 * blocked(0), "one {} ns, two {} ns", blocked(0), blocked(1));
    assert!(blocked(2) < 0.2 * blocked(0), "one {} ns, behind a buffer {} ns", blocked(0), blocked(2));
    let notes = (0..3).flat_map(|disk| &measured(&result, disk).notes);
    assert_eq!(notes.filter(|note| note.contains("--think-time")).count(), 0, "it passes at once there");
}

#[test]
fn what_makes_waldios_commits_less_durable_takes_its_rows_alone_in_the_lab() {
    let (None, Some(extension)) = (missing(), extension()) else {
        return skipped("there is no emulated machine, or no waldio");
    };
    let scratch = Scratch::new("whatif-lab-durability");
    let recording = record(&scratch, "app", application(COMMITS));
    let [json, extension] = [scratch.file("w.json"), extension].map(|file| file.display().to_string());
    let words = ["--lab", "--only", "recorded,waldio", "--waldio", &extension, "--json", &json];
    let (code, said) =
        told(&whatif(&recording, &words).env("WALDIO_DURABILITY", "bounded").output().expect("joj"));
    assert_eq!(code, Some(0), "{said}");
    let text = std::fs::read_to_string(&json).expect("a file");
    let result: WhatifLabResult = serde_json::from_str(&text).expect("JSON");
    let found = measured(&result, 0);
    figures(found, Configuration::Recorded);
    let WhatifOutcome::Unavailable(reason) = &found.rows[1].outcome else { panic!("{found:?}") };
    assert!(reason.contains("WALDIO_DURABILITY is set: ") && reason.contains("--only"), "{reason}");
}

#[test]
fn what_cannot_be_measured_is_refused_before_a_machine_starts() {
    let scratch = Scratch::new("whatif-lab-errors");
    let recording = record(&scratch, "app", application(COMMITS));
    let whole = std::fs::read(&recording).expect("the recording");
    let damaged = scratch.write("damaged.joj", &whole[..whole.len() / 2]);
    let large = "1 1700000000.000000 open(\"/d/a\", O_RDWR) = 3 <0.000010>\n\
                 1 1700000000.000100 fstat(3, {st_mode=S_IFREG|0644, st_size=3221225472, ...}) = 0 <0.000010>\n";
    let large = record(&scratch, "large", large);
    let cases: [(&Path, &[&str], i32, &str); 10] = [
        (&damaged, &["--lab"], 1, "damaged.joj"),
        (&large, &["--lab"], 1, "3072 MiB"),
        (&recording, &["--device", "galaxy-s4-emmc"], 2, "there is no device galaxy-s4-emmc"),
        (&recording, &["--device", "2xgalaxy-s4-emmc"], 2, "there is no device galaxy-s4-emmc"),
        (&recording, &["--write-buffer", "galaxy-s5-emmc"], 1, "has a volatile cache"),
        (&recording, &["--raid0", "1"], 2, "from 2 to 16"),
        (&recording, &["--filesystem", "ext5"], 2, "ext5"),
        (&recording, &["--lab", "--waldio", "none.so"], 1, "none.so"),
        (&recording, &["--lab", "--sqlite", "none.so"], 1, "none.so"),
        (&recording, &["/tmp", "--device", "ram"], 2, "[DIR]"),
    ];
    // No machine can be started: whoever tries says something else.
    let told = |output: std::io::Result<Output>| told(&output.expect("joj"));
    for (recording, words, code, message) in cases {
        let (found, said) = told(whatif(recording, words).env("PATH", "").output());
        assert_eq!(found, Some(code), "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
    }
    for words in [&["--jobs", "1"][..], &["--replay-seconds", "9"], &["--kernel", "k", "--modules", "m"]] {
        let (found, said) = told(whatif(&recording, words).output());
        assert!(found == Some(2) && said.contains("--lab"), "{words:?}: {found:?} {said}");
    }
    let words: [&OsStr; 4] = ["--lab", "--", "/no/such/command", "a"].map(OsStr::new);
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    let (found, said) = told(command.arg("whatif").args(words).output());
    assert_eq!(found, Some(127), "{said}");
}

#[test]
fn ctrl_c_ends_the_machine_and_leaves_nothing_of_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("whatif-lab-stop");
    let recording = record(&scratch, "app", application(COMMITS));
    let temporary = scratch.file("tmp");
    std::fs::create_dir(&temporary).expect("a directory");
    let mut command = whatif(&recording, &["--lab"]);
    command.env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("joj");
    let began = Instant::now();
    let left = || std::fs::read_dir(&temporary).expect("a directory").count();
    while left() == 0 && began.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().expect("kill").success());
    let (code, said) = told(&child.wait_with_output().expect("its end"));
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("stopped by a signal before anything was measured"), "{said}");
    assert_eq!(left(), 0, "what it made is gone");
}
