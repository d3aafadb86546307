//! Goal: `joj mobibench` does to files what Mobibench's options say, and prints what its readers parse.
//! Method: the built program; its system calls as strace shows them, the files that it leaves. No figure of time is judged.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

mod mobibench;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use mobibench::{
    begun, count, count_lines, figures, interrupt, names, on_small_disk, place, run, stdout, text, traced,
};

const CALLS: &str = "openat,pwrite64,pread64,fsync,fdatasync,msync,unlink";

/// 16 records. What fills the file ends with an fsync, and every test that writes with a sync of the whole file.
#[test]
fn each_sync_mode_makes_its_calls() {
    // Mode, flags of open, pwrite64, fsync, fdatasync, msync of a record with MS_ASYNC and MS_SYNC, of the whole mapping.
    let cases: [(u32, &str, [usize; 6]); 9] = [
        (0, "O_RDWR|O_CREAT|O_CLOEXEC", [16, 2, 0, 0, 0, 0]),
        (1, "O_RDWR|O_CREAT|O_SYNC|O_CLOEXEC", [16, 2, 0, 0, 0, 0]),
        (2, "O_RDWR|O_CREAT|O_CLOEXEC", [16, 18, 0, 0, 0, 0]),
        (3, "O_RDWR|O_CREAT|O_DIRECT|O_CLOEXEC", [16, 2, 0, 0, 0, 0]),
        (4, "O_RDWR|O_CREAT|O_SYNC|O_DIRECT|O_CLOEXEC", [16, 2, 0, 0, 0, 0]),
        (5, "O_RDWR|O_CREAT|O_CLOEXEC", [0, 1, 0, 0, 0, 1]),
        (6, "O_RDWR|O_CREAT|O_CLOEXEC", [0, 1, 0, 16, 0, 1]),
        (7, "O_RDWR|O_CREAT|O_CLOEXEC", [0, 1, 0, 0, 16, 1]),
        (8, "O_RDWR|O_CREAT|O_CLOEXEC", [16, 2, 16, 0, 0, 0]),
    ];
    for (mode, flags, expected) in cases {
        let place = place(&format!("sync-{mode}"));
        let Some(calls) = traced(&place, &format!("-f 64 -r 4 -a 1 -y {mode}"), CALLS) else { return };
        let found = [
            count(&calls, "pwrite64(", ", 4096, "),
            count(&calls, "fsync(", ""),
            count(&calls, "fdatasync(", ""),
            count(&calls, "msync(", ", 4096, MS_ASYNC)"),
            count(&calls, "msync(", ", 4096, MS_SYNC)"),
            count(&calls, "msync(", ", 65536, MS_SYNC)"),
        ];
        assert_eq!(found, expected, "-y {mode}: {calls:#?}");
        let opened = calls.iter().rfind(|call| call.contains("test.dat0\"")).unwrap();
        assert!(opened.contains(&format!(", {flags}, ")), "-y {mode}: {opened}");
        assert_eq!(fs::metadata(place.join("test.dat0")).unwrap().len(), 65_536, "-y {mode}");
    }
}

/// Offsets of the calls that begin so, in KB.
fn offsets_kb(calls: &[String], begin: &str) -> Vec<u64> {
    let offset = |call: &String| -> u64 {
        let behind = call.rsplit_once(" = ").unwrap().0.trim_end().trim_end_matches(')');
        behind.rsplit_once(", ").unwrap().1.parse().unwrap()
    };
    calls.iter().filter(|call| call.starts_with(begin)).map(|call| offset(call) / 1024).collect()
}

#[test]
fn each_access_mode_touches_each_record_once() {
    let in_order: Vec<u64> = (0..16).map(|record| record * 4).collect();
    for (mode, call) in
        [(0, "pwrite64("), (1, "pwrite64("), (2, "pread64("), (3, "pread64("), (4, "pwrite64(")]
    {
        let place = place(&format!("access-{mode}"));
        let Some(calls) = traced(&place, &format!("-f 64 -a {mode} -y 0"), CALLS) else { return };
        // The dynamic loader reads its libraries with the same call.
        let own: Vec<String> = calls.into_iter().filter(|call| call.contains("\"\\376\\376")).collect();
        let offsets = offsets_kb(&own, call);
        let other = if call == "pread64(" { "pwrite64(" } else { "pread64(" };
        assert_eq!(count(&own, other, ""), 0, "-a {mode}");
        if [1, 3].contains(&mode) {
            assert_ne!(offsets, in_order, "-a {mode}");
            assert_eq!(offsets.iter().copied().collect::<BTreeSet<_>>(), in_order.iter().copied().collect());
            let again = traced(&place, &format!("-f 64 -a {mode}"), CALLS).unwrap();
            let own: Vec<String> = again.into_iter().filter(|call| call.contains("\"\\376\\376")).collect();
            assert_eq!(offsets_kb(&own, call), offsets, "-a {mode} again");
        }
        assert_eq!(offsets.len(), 16, "-a {mode}");
    }
}

#[test]
fn reads_and_overwrites_find_a_file_and_appends_make_one() {
    let place = place("fill");
    fs::create_dir(&place).unwrap();
    let file = place.join("test.dat0");
    for mode in 0..4 {
        fs::write(&file, [7; 5_000]).unwrap();
        stdout(&place, &format!("-f 64 -a {mode}"));
        let content = fs::read(&file).unwrap();
        assert_eq!(content.len(), 65_536, "-a {mode}");
        // A read leaves what was there, and fills only what is missing.
        let begin = if mode < 2 { 0xfe } else { 7 };
        assert!(content[..5_000].iter().all(|byte| *byte == begin), "-a {mode}");
        assert!(content[5_000..].iter().all(|byte| *byte == 0xfe), "-a {mode}");
    }
    fs::write(&file, [7; 100_000]).unwrap();
    stdout(&place, "-f 64 -a 0");
    assert_eq!(fs::metadata(&file).unwrap().len(), 100_000, "a longer file keeps its end");
    stdout(&place, "-f 64 -a 4");
    assert_eq!(fs::read(&file).unwrap(), [0xfe; 65_536], "an append begins a new file");
    assert_eq!(names(&place), ["test.dat0"], "the file stays, and no other");
}

#[test]
fn threads_share_the_bytes() {
    let place = place("threads");
    let result = figures(&place, "-f 1024 -r 4 -a 4 -y 8 -t 3");
    assert_eq!(names(&place), ["test.dat0", "test.dat1", "test.dat2"]);
    for name in names(&place) {
        assert_eq!(fs::metadata(place.join(name)).unwrap().len(), 340 * 1024, "85 records of 341 KB");
    }
    assert_eq!((&result["format"], &result["version"]), (&"joj-mobibench".into(), &1.into()));
    assert_eq!(result["setup"]["work"]["files"]["file_kb"], 341);
    let result = &result["result"];
    assert_eq!((&result["operations"], &result["bytes"]), (&255.into(), &(255 * 4096).into()));
    let syncs = &result["syncs"];
    assert_eq!(
        (&syncs["operations"], &syncs["fdatasync"], &syncs["fsync"]),
        (&255.into(), &255.into(), &3.into())
    );
    assert!(result["context_switches"].is_null(), "of one thread alone");
    let latency = ["p50", "p99", "max"].map(|name| result["latency_us"][name].as_f64().unwrap());
    assert!(latency[0] > 0.0 && latency[0] <= latency[1] && latency[1] <= latency[2], "{latency:?}");
    let rate = result["bytes_per_s"].as_f64().unwrap() * result["elapsed_s"].as_f64().unwrap();
    assert!((rate - 255.0 * 4096.0).abs() < 1.0, "{rate}");
}

#[test]
fn lines_are_what_readers_of_mobibench_look_for() {
    let place = place("lines");
    let random = stdout(&place, "-f 64 -r 4 -a 1 -y 2");
    for pattern in [
        r"\[mobibench measurement setup\]",
        r"File size per thread : 64 KB",
        r"IO size : 4 KB",
        r"IO count : 16 ",
        r"Access Mode 1, Sync Mode 2",
        r"# of Threads : 1",
        r"\[Messurement Result\]",
        r"\[CPU\] : Active,Idle,IoWait : [0-9]+\.[0-9]{2} [0-9]+\.[0-9]{2} [0-9]+\.[0-9]{2}",
        "\\[TIME\\] : {0,7}[0-9]+ sec [0-9]{6}us\\. \t[0-9]+ B/sec, \t[0-9]+\\.[0-9]{2} KB/sec, \t[0-9]+\\.[0-9]{2} MB/sec\\. [0-9]+\\.[0-9]{2} IOPS\\(4KB\\) ",
        r"\[CON SWITCHES\] : [0-9]+ [0-9]+",
        r"Err string : No error",
    ] {
        assert_eq!(count_lines(&random, pattern), 1, "{pattern} in {random}");
    }
    assert_eq!(count_lines(&random, "-----------------------------------------"), 4, "{random}");
    let order = stdout(&place, "-f 64 -r 4 -a 0 -t 2");
    assert!(!order.contains("IOPS") && !order.contains("CON SWITCHES"), "{order}");
    assert_eq!(count_lines(&order, r"\[TIME\].* MB/sec\."), 1, "{order}");
}

#[test]
fn latencies_are_appended_and_seconds_too() {
    let place = place("lists");
    let (latencies, seconds) = (place.with_extension("latencies"), place.with_extension("seconds"));
    for file in [&latencies, &seconds] {
        let _ = fs::remove_file(file);
    }
    let options = format!("-f 64 -a 4 -y 2 -L {} -k {}", latencies.display(), seconds.display());
    for run in 1..=2 {
        stdout(&place, &options);
        let list = fs::read_to_string(&latencies).unwrap();
        assert_eq!(count_lines(&list, "[0-9]+\tusec"), 16 * run, "{list}");
        assert_eq!(count_lines(&list, "#In 4 IO mode and 2 sync mode"), run, "{list}");
        assert_eq!(count_lines(&list, r"\[TIME\] :.*"), run, "{list}");
        // No second passed, most likely; its line is shown by a test of the lines themselves.
        let list = fs::read_to_string(&seconds).unwrap();
        assert_eq!(count_lines(&list, "#In 4 IO mode and 2 sync mode"), run, "{list}");
    }
}

#[test]
fn repeats_leave_some_records_out() {
    let place = place("repeats");
    let Some(calls) = traced(&place, "-f 400 -a 1 -v 30", CALLS) else { return };
    let offsets = offsets_kb(&calls, "pwrite64(");
    assert_eq!((offsets.len(), offsets.iter().collect::<BTreeSet<_>>().len()), (100, 70));
}

/// What a user may get wrong: the exit code, and a message that says what, and how to mend it.
#[test]
fn mistakes_are_refused_before_anything_is_made() {
    let place = place("mistakes");
    let cases: &[(&str, &[&str])] = &[
        ("-y 9", &["BarrierFS", "2 (fsync)"]),
        ("-y 10", &["BarrierFS", "synced nothing"]),
        ("-y 11", &["-y", "0 to 8"]),
        ("-a 5", &["-a", "0 to 4"]),
        ("-a x", &["-a", "0 to 4"]),
        ("-t 0", &["-t", "1..=100"]),
        ("-t 101", &["-t", "1..=100"]),
        ("-f 3", &["no record", "larger -f"]),
        ("-f 64 -t 20", &["no record", "20 threads"]),
        ("-f 64k", &["64k"]),
        ("-r 0", &["-r"]),
        ("-v 100", &["-v", "0..=99"]),
        ("-y 7 -r 1", &["msync", "whole pages", "-r 4"]),
        ("-y 6 -r 6", &["msync", "whole pages"]),
        ("-d 3", &["-d", "0 to 2"]),
        ("-d 0 -j 6", &["-j", "0 to 5"]),
        ("-d 0 -s 4", &["-s", "0..=3"]),
        ("-d 0 -n 0", &["-n"]),
        ("-d 0 -n 3 -t 4", &["no transaction", "larger -n"]),
        ("-d 0 -i 10001", &["-i", "0..=10000"]),
        ("-d 0 -T 21", &["-T", "1..=20"]),
        ("-d 0 -D 12", &["attaches 10 databases", "11 at most"]),
        ("-d 0 -D 0", &["-D", "1 to 11"]),
        ("-d 0 -R", &["-R"]),
        ("-g script.out", &["joj replay", "leave -g out"]),
        ("-p /dev", &["below /dev", "overwrites"]),
        ("-p /dev/no-such-disk", &["below /dev", "a directory of a file system on it"]),
        ("-p /dev/null", &["below /dev"]),
        ("-p /proc/version", &["is no directory"]),
        ("-d 0 --waldio libwaldio.so", &["--waldio", "-j 3"]),
        ("--waldio libwaldio.so", &["-d"]),
        ("--sqlite system", &["-d"]),
        ("-x", &["-x"]),
    ];
    for (options, parts) in cases {
        let output = run(&place, options);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options}: {message}");
        for part in *parts {
            assert!(message.contains(part), "{options} should say `{part}`: {message}");
        }
        assert!(output.stdout.is_empty() && !place.exists(), "{options}");
    }
}

#[test]
fn what_the_machine_refuses_is_said_and_leaves_nothing() {
    let place = place("refused");
    for (options, parts) in [
        ("-p /nonexistent/place", ["/nonexistent/place", "-p"]),
        ("-p /proc/joj", ["/proc/joj", "-p"]),
        ("-L /nonexistent/x", ["/nonexistent/x", "another FILE"]),
        ("-k /proc/x", ["/proc/x", "another FILE"]),
        ("--json /nonexistent/x.json", ["/nonexistent/x.json", "another FILE"]),
        ("-a 4 -f 4 -r 1 -y 3 -p /proc/self", ["/proc/self/test.dat0", "-p"]),
    ] {
        let output = run(&place, options);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{options}: {message}");
        assert!(!message.contains("panicked") && !place.exists(), "{options}: {message}");
    }
}

#[test]
fn a_link_to_a_device_is_no_file_of_the_test() {
    let place = place("link");
    fs::create_dir(&place).unwrap();
    std::os::unix::fs::symlink("/dev/null", place.join("test.dat0")).unwrap();
    for mode in [0, 3, 4] {
        let output = run(&place, &format!("-f 64 -a {mode}"));
        assert_eq!(output.status.code(), Some(1), "-a {mode}");
        assert!(text(&output.stderr).contains("test.dat0 is no file"), "-a {mode}");
        assert_eq!(names(&place), ["test.dat0"]);
    }
}

/// As root, on a tmpfs of 256 KB.
#[test]
fn a_full_disk_is_named_and_left_as_it_was() {
    let place = place("full");
    let run = |options| (options, run(&place, &format!("-f 4096 {options}")), names(&place));
    let runs = on_small_disk(&place, || ["-a 0", "-a 4", "-a 4 -y 5", "-a 4 -t 2"].map(run));
    for (options, output, names) in runs.into_iter().flatten() {
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options}: {message}");
        assert!(message.contains("the disk or the quota is full"), "{options}: {message}");
        assert_eq!(count_lines(&text(&output.stdout), "Err string : .*full.*"), 1, "{options}");
        assert_eq!(names, Vec::<String>::new(), "{options}");
    }
}

#[test]
fn ctrl_c_takes_new_files_away_and_leaves_others() {
    for (name, has_file) in [("new", false), ("old", true)] {
        let place = place(&format!("signal-{name}"));
        if has_file {
            fs::create_dir(&place).unwrap();
            fs::write(place.join("test.dat0"), [1; 4096]).unwrap();
        }
        let child = begun(&place, "-f 4000000 -r 4 -a 4 -y 2");
        let is_running = || fs::metadata(place.join("test.dat0")).is_ok_and(|facts| facts.len() > 100_000);
        assert_eq!(interrupt(child, is_running), Some(130));
        assert_eq!(place.join("test.dat0").exists(), has_file, "{name}");
        assert_eq!(place.exists(), has_file, "the directory, {name}");
    }
}

/// As root, who becomes somebody else.
#[test]
fn who_may_not_drop_the_caches_is_told_before_a_read() {
    let place = std::env::temp_dir().join(format!("joj-mobibench-{}", std::process::id()));
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    let program = place.join("joj");
    fs::copy(env!("CARGO_BIN_EXE_joj"), &program).unwrap();
    let run = |options: &str| {
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        let output = other.args(["mobibench", "-p"]).arg(&place).args(options.split(' ')).output();
        output.ok().filter(|output| output.status.success()).map(|output| text(&output.stderr))
    };
    let told = ["-a 2", "-a 3 -y 5", "-a 2 -y 3", "-a 1"].map(run);
    fs::remove_dir_all(&place).unwrap();
    let [Some(read), Some(mapped), Some(direct), Some(write)] = told else {
        eprintln!("skipped: joj: not root, or without setpriv or O_DIRECT: {told:?}");
        return;
    };
    for message in [read, mapped] {
        assert!(message.contains("which root may; those of the test's files alone were"), "{message}");
    }
    assert_eq!([direct, write], ["", ""], "nothing comes from the cache there");
}

#[test]
fn options_are_read_as_getopt_reads_them() {
    let place = place("getopt");
    // The last one counts, values may stand right behind the letter, and -R takes a word.
    let shown = stdout(&place, "-f 64 -f128 -a1 -y2 -a 4 -q -R x");
    assert!(
        shown.contains("File size per thread : 128 KB\n") && shown.contains("Access Mode 4, Sync Mode 2\n")
    );
    let bare = Command::new(env!("CARGO_BIN_EXE_joj")).arg("mobibench").current_dir(&place).output().unwrap();
    assert_eq!(bare.status.code(), Some(2), "as Mobibench without options: help, and no test");
    assert!(text(&bare.stderr).contains("Usage: joj mobibench") && names(&place) == ["test.dat0"]);
    for help in ["-h", "--help"] {
        let output = run(&place, help);
        assert!(
            output.status.success()
                && text(&output.stdout).contains("joj mobibench -p DIR -f 1024 -r 4 -a 1 -y 2")
        );
    }
}
