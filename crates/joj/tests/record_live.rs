//! Goal: a recording made live has the calls that the program made, no more and no fewer, and no contents.
//! Method: programs in C whose calls are known: by strace, by the kernel's own counters, by what they leave on the disk.

mod record;
mod replay;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use record::{ENDED, HELD, OPEN, PRESENT, Row, compile, has, methods, program, record_command, rows};
use replay::{Scratch, replay, told};

/// The program with every call that a recording has, and the directory that it works in.
fn every_call(scratch: &Scratch) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/program.c");
    compile(&scratch.file("program"), &source)
}

fn place(scratch: &Scratch, name: &str) -> PathBuf {
    let place = scratch.file(name);
    std::fs::create_dir(&place).expect("a directory");
    std::fs::write(place.join("old"), "PLANTED-SECRET ".repeat(2000)).expect("a file");
    place
}

/// Calls by code, without those that are no call of the program.
fn counts(rows: &[Row]) -> BTreeMap<i64, u64> {
    let mut counts = BTreeMap::new();
    for row in rows.iter().filter(|row| row.code <= 30 || (40..=42).contains(&row.code)) {
        *counts.entry(row.code).or_default() += 1;
    }
    counts
}

fn moved(rows: &[Row], is_one: fn(&Row) -> bool) -> i64 {
    rows.iter().filter(|row| is_one(row) && row.result > 0).map(|row| row.result).sum()
}

#[test]
fn a_recording_has_the_calls_that_strace_sees_and_replays_without_a_difference() {
    let scratch = Scratch::new("live-calls");
    let Some(program) = every_call(&scratch) else { return };
    let by_strace = by_strace(&scratch, &program);
    for method in methods() {
        let place = place(&scratch, method);
        let recording = scratch.file(&format!("{method}.joj"));
        let output = record_command(method, &recording, &[&program, &place]);
        let (code, said) = told(&output);
        assert_eq!((code, output.stdout.len()), (Some(0), 0), "{method}: {said}");
        assert!(said.contains("calls of 4 threads"), "{method}: {said}");
        let found = rows(&recording);
        if let Some((counts_of_strace, bytes)) = &by_strace {
            assert_eq!(&counts(&found), counts_of_strace, "{method}");
            assert_eq!([moved(&found, Row::is_read), moved(&found, Row::is_write)], *bytes, "{method}");
        }
        let old =
            found.iter().find(|row| row.code == PRESENT && row.path.ends_with("/old")).expect("it was there");
        assert_eq!((old.bytes, old.flags), (30_000, 0o100_000));
        let made = ["done", "half-done", "calls", "folder/link"].map(|name| format!("/{name}"));
        assert!(
            found.iter().all(|row| row.code != PRESENT || made.iter().all(|name| !row.path.ends_with(name))),
            "{method}: what the program made was not there"
        );
        let replayed = replay(&recording, scratch.as_ref(), &["--order", "fast", "--check"]);
        assert_eq!(replayed["differences"], serde_json::json!([]), "{method}: {replayed}");
        let kinds = replayed["by_call"].as_object().expect("calls");
        assert!(
            kinds.values().all(|kind| kind["differ"] == 0 && kind["not_made"] == 0),
            "{method}: {replayed}"
        );
        assert!(!has(&recording, "PLANTED"), "{method}: contents");
    }
}

/// Calls and bytes of the same program under strace, as `joj record --import` has them; tested apart.
fn by_strace(scratch: &Scratch, program: &Path) -> Option<(BTreeMap<i64, u64>, [i64; 2])> {
    let text = scratch.file("text");
    let place = place(scratch, "strace");
    let ran =
        Command::new("strace").args(["-f", "-ttt", "-T", "-y", "-o"]).args([&text, program, &place]).output();
    if !ran.is_ok_and(|ran| ran.status.success()) {
        eprintln!("not compared with strace, which is not there");
        return None;
    }
    let recording = scratch.file("strace.joj");
    replay::printed(&replay::joj(&[&"record", &"--import", &text, &"-o", &recording]));
    let found = rows(&recording);
    Some((counts(&found), [moved(&found, Row::is_read), moved(&found, Row::is_write)]))
}

#[test]
fn names_are_hidden_when_asked() {
    let scratch = Scratch::new("live-hidden");
    let Some(program) = every_call(&scratch) else { return };
    for method in methods() {
        let place = place(&scratch, &format!("PLANTED-{method}"));
        let recording = scratch.file("hidden.joj");
        let output = Command::new(env!("CARGO_BIN_EXE_joj"))
            .args(["record", "--hide-names", "--method", method, "-o"])
            .arg(&recording)
            .arg("--")
            .args([&program, &place])
            .output()
            .expect("joj");
        assert_eq!(told(&output).0, Some(0), "{:?}", told(&output));
        for name in ["PLANTED", "half-done", "folder", "moved"] {
            assert!(!has(&recording, name), "{method}: {name}");
        }
        let replayed = replay(&recording, scratch.as_ref(), &["--order", "fast", "--check"]);
        assert_eq!(replayed["differences"], serde_json::json!([]), "{method}");
    }
}

/// Reads and writes of files, between two looks at the kernel's counters of all that it reads and writes.
const COUNTED: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static char block[70000], io[4096];
static ssize_t counters(char *room) {
    int told = open("/proc/self/io", O_RDONLY);
    ssize_t length = read(told, room, 2048);
    close(told);
    return length;
}
int main(int words, char **word) {
    ssize_t before = counters(io);
    int file = open(word[1], O_RDWR | O_CREAT, 0644);
    for (int i = 0; i < 300; i++) if (pwrite(file, block, 1000 + i, i * 4096L) < 0) return 1;
    struct iovec parts[2] = {{block, 500}, {block, 70000}};
    if (pwritev(file, parts, 2, 7) < 0 || write(file, block, 60000) < 0) return 1;
    lseek(file, 0, SEEK_SET);
    while (read(file, block, 7000) > 0) {}
    if (pread(file, block, 9, 4) < 0 || readv(file, parts, 2) < 0 || preadv(file, parts, 2, 100000) < 0) return 1;
    ssize_t length = before + counters(io + before);
    close(file);
    file = open(word[2], O_WRONLY | O_CREAT, 0644);
    return write(file, io, length) == length ? 0 : 1;
}
"#;

#[test]
fn bytes_are_those_of_the_kernels_own_counters() {
    let scratch = Scratch::new("live-bytes");
    let Some(program) = program(&scratch, "counted", COUNTED) else { return };
    for method in methods() {
        let (file, told_file) =
            (scratch.file(&format!("{method}-file")), scratch.file(&format!("{method}-io")));
        let recording = scratch.file(&format!("{method}.joj"));
        let output = record_command(method, &recording, &[&program, &file, &told_file]);
        assert_eq!(told(&output).0, Some(0), "{:?}", told(&output));
        let text = std::fs::read_to_string(&told_file).expect("the counters");
        let change = |name: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name));
            let values: Vec<i64> = lines.map(|word| word.trim().parse().expect("a number")).collect();
            values[1] - values[0]
        };
        let found = rows(&recording);
        // The kernel's counters are read as text, too, the first time between its own two answers.
        let (all, first) = (text.len(), text[1..].find("rchar:").expect("again") + 1);
        let [all, first] = [all, first].map(|bytes| i64::try_from(bytes).expect("short"));
        assert_eq!(moved(&found, Row::is_read), change("rchar:") - first, "{method}");
        assert_eq!(moved(&found, Row::is_write), change("wchar:") + all, "{method}");
    }
}

#[test]
fn signals_stops_and_children_go_on_as_without_joj() {
    let scratch = Scratch::new("live-signals");
    let script = "trap 'echo caught >> told' USR1; kill -USR1 $$; (sleep 0.3; kill -CONT $$) & kill -STOP $$; \
                  (echo child > from_child; exec cat from_child) ; wait; echo done >> told; kill -TERM $$";
    for method in methods() {
        let place = scratch.file(method);
        std::fs::create_dir(&place).expect("a directory");
        let recording = scratch.file(&format!("{method}.joj"));
        let script = format!("cd {}; {script}", place.display());
        let output = record_command(method, &recording, &[&"sh", &"-c", &script]);
        let (code, said) = told(&output);
        assert_eq!(code, Some(128 + 15), "{method}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "child\n", "{method}");
        assert_eq!(std::fs::read_to_string(place.join("told")).expect("it"), "caught\ndone\n", "{method}");
        let opened = |name: &str| {
            rows(&recording)
                .iter()
                .filter(|row| row.code == OPEN && row.path.ends_with(name) && row.result >= 0)
                .count()
        };
        assert_eq!((opened("/told"), opened("/from_child")), (2, 2), "{method}: {said}");
    }
}

/// The shell makes everything but a process: descriptors, directories, names.
const ALONE: &str = "cd $0; exec 5> a; echo one >&5; echo two >&5; exec 6>&5 5>&-; echo three >&6; exec 6>&-; read x < a; \
     echo more >> a; cd /; : > /dev/null; test -e no-such-file; umask 22; cd $0/..; read y < $1/a; exec 7<> $1/a; read z <&7; echo w >&7";

#[test]
fn both_ways_see_the_same_calls() {
    let scratch = Scratch::new("live-same");
    let seen: Vec<Vec<Row>> = methods()
        .into_iter()
        .map(|method| {
            let place = scratch.file("place");
            std::fs::create_dir(&place).expect("a directory");
            let recording = scratch.file(&format!("{method}.joj"));
            let (code, said) =
                told(&record_command(method, &recording, &[&"sh", &"-c", &ALONE, &place, &"place"]));
            assert_eq!(code, Some(0), "{method}: {said}");
            std::fs::remove_dir_all(&place).expect("it goes");
            let mut rows: Vec<Row> = rows(&recording).into_iter().map(Row::without_its_run).collect();
            let end = rows.iter_mut().rfind(|row| row.code == ENDED).expect("the program's end");
            // A tracer says by it that it knows nothing of others.
            assert_eq!(std::mem::take(&mut end.result), if method == "ptrace" { 2 } else { 1 });
            rows
        })
        .collect();
    for (number, row) in seen[0].iter().enumerate() {
        assert_eq!(Some(row), seen[seen.len() - 1].get(number), "row {number}");
    }
    assert_eq!(seen[0].len(), seen[seen.len() - 1].len());
    assert!(seen[0].len() > 40, "{}", seen[0].len());
}

/// Writes through a descriptor that a child shares, in a thread, and to new files, for ever.
const SERVER: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int file;
static char block[512];
static void *writer(void *nothing) {
    for (long i = 0;; i++) { if (pwrite(file, block, 512, i % 100 * 512) < 0) _exit(1); usleep(1000); }
    return nothing;
}
int main(int words, char **word) {
    pthread_t thread;
    file = open(word[1], O_RDWR | O_CREAT, 0644);
    if (pwrite(file, block, 100, 100000) < 0 || lseek(file, 60000, SEEK_SET) < 0) return 1;
    pthread_create(&thread, NULL, writer, NULL);
    pid_t parent = getpid();
    if (fork() == 0) while (getppid() == parent) { if (write(file, block, 10) < 0) return 1; usleep(1000); }
    for (int i = 0;; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s.%d", word[1], i % 10);
        int other = open(name, O_WRONLY | O_CREAT, 0644);
        if (write(other, block, 7) < 0) return 1;
        close(other);
        unlink(name);
        usleep(1000);
    }
}
"#;

#[test]
fn a_program_that_runs_is_recorded_with_what_it_has_open_and_goes_on() {
    let scratch = Scratch::new("live-pid");
    let Some(program) = program(&scratch, "server", SERVER) else { return };
    let file = scratch.file("file");
    let mut server = Command::new(&program).arg(&file).spawn().expect("the program");
    let begin = Instant::now();
    while !scratch.file("file.0").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it did not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut failures = Vec::new();
    for method in methods() {
        let recording = scratch.file(&format!("{method}.joj"));
        let words = ["record", "--method", method, "--for", "300ms", "--pid", &server.id().to_string(), "-o"]
            .map(str::to_owned);
        let output =
            Command::new(env!("CARGO_BIN_EXE_joj")).args(words).arg(&recording).output().expect("joj");
        let (code, said) = told(&output);
        if code != Some(0) || server.try_wait().expect("a status").is_some() {
            failures.push(format!("{method}: {code:?} {said}"));
            continue;
        }
        let found = rows(&recording);
        let held: Vec<&Row> =
            found.iter().filter(|row| row.code == HELD && row.path.ends_with("/file")).collect();
        let is_known = found
            .iter()
            .any(|row| row.code == PRESENT && row.path.ends_with("/file") && row.bytes >= 100_100);
        let threads = said.contains("calls of 3 threads");
        // One open file description of two processes, which stands behind the bytes that the child wrote.
        if held.len() != 1 || held[0].offset < 60_000 || !is_known || !threads {
            failures.push(format!("{method}: {held:?} {is_known} {said}"));
            continue;
        }
        let through = |kind: i64| {
            found.iter().filter(|row| row.code == kind && row.description == held[0].description).count()
        };
        if through(8) == 0 || through(9) == 0 {
            failures.push(format!("{method}: nothing was written through it"));
        }
        let replayed = replay(&recording, scratch.as_ref(), &["--order", "fast", "--check"]);
        if replayed["differences"] != serde_json::json!([]) {
            failures.push(format!("{method}: {replayed}"));
        }
    }
    let _ = server.kill();
    let _ = server.wait();
    assert!(failures.is_empty(), "{failures:#?}");
}

/// 64-bit code that makes a call of 32 bits, as a 32-bit program would.
const FOREIGN: &str = r#"
#include <fcntl.h>
#include <unistd.h>
int main(int words, char **word) {
    int file = open(word[1], O_WRONLY | O_CREAT, 0644);
    long result = 20; /* getpid; in 64 bits: writev */
    __asm__ volatile("int $0x80" : "+a"(result) : "b"((long)file), "c"(0L), "d"(1L) : "memory", "r8", "r9", "r10", "r11");
    return result > 0 ? 0 : 1;
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_of_32_bits_are_counted_and_not_misread() {
    let scratch = Scratch::new("live-foreign");
    let Some(program) = program(&scratch, "foreign", FOREIGN) else { return };
    let file = scratch.file("file");
    if !Command::new(&program).arg(&file).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this kernel runs no 32-bit calls");
        return;
    }
    for method in methods() {
        let recording = scratch.file(&format!("{method}.joj"));
        let (code, said) = told(&record_command(method, &recording, &[&program, &file]));
        assert_eq!(code, Some(0), "{method}: {said}");
        assert!(said.contains("1 a call of a 32-bit program"), "{method}: {said}");
        assert!(rows(&recording).iter().all(|row| !row.is_write()), "{method}");
    }
}

/// Standard output and error are one open file description here: what is written through one stands behind what the other wrote,
/// and a close of one does not close the other.
#[test]
fn what_the_command_inherits_shares_its_position() {
    let scratch = Scratch::new("live-inherited");
    for method in methods() {
        let (log, recording) =
            (scratch.file(&format!("{method}.log")), scratch.file(&format!("{method}.joj")));
        let script = format!(
            "exec > {} 2>&1; exec {} record --method {method} -o {} -- sh -c 'echo one; echo two >&2; exec 2>&-; echo 3'",
            log.display(),
            env!("CARGO_BIN_EXE_joj"),
            recording.display()
        );
        let (code, said) = told(&Command::new("sh").args(["-c", &script]).output().expect("sh"));
        assert_eq!(code, Some(0), "{said}");
        let found = rows(&recording);
        let held: Vec<&Row> =
            found.iter().filter(|row| row.code == HELD && row.path.ends_with(".log")).collect();
        assert_eq!(held.len(), 1, "{method}: {held:?}");
        let written = found.iter().filter(|row| row.is_write() && row.description == held[0].description);
        assert_eq!(written.map(|row| row.result).sum::<i64>(), 10, "{method}");
        let replayed = replay(&recording, scratch.as_ref(), &["--order", "fast", "--check"]);
        assert_eq!(replayed["differences"], serde_json::json!([]), "{method}");
    }
}
