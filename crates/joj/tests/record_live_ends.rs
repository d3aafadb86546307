//! Goal: a recording ends as its command or its disk makes it, and what is missing in it is told.
//! Method: commands that fail, signals, a full disk, a buffer that is full, a user without rights.

mod record;
mod replay;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use record::{ENDED, FORK, OPEN, WOKEN, methods, program, record_command, rows};
use replay::{Scratch, replay, told};

#[test]
fn commands_that_fail_fail_in_the_same_way() {
    let scratch = Scratch::new("live-codes");
    let recording = scratch.file("it.joj");
    for method in methods() {
        for (words, code, words_said) in [
            (&["./no-such-program"][..], 127, "cannot run ./no-such-program"),
            (&["/"], 126, "cannot run /"),
            (&["sh", "-c", "cat /etc/passwd > /dev/null; exit 7"], 7, "calls of"),
            (&["sh", "-c", "cat /etc/passwd > /dev/null; kill -KILL $$"], 137, "calls of"),
        ] {
            let words: Vec<&dyn AsRef<std::ffi::OsStr>> = words.iter().map(|word| word as _).collect();
            let output = record_command(method, &recording, &words);
            let (found, said) = told(&output);
            assert!(found == Some(code) && said.contains(words_said), "{method}: {found:?} {said}");
            assert_eq!(recording.exists(), code != 127 && code != 126, "{method}");
            let _ = std::fs::remove_file(&recording);
            assert!(!scratch.file("it.joj.part").exists(), "{method}");
        }
        let nowhere = scratch.file("no-directory/it.joj");
        let (code, said) = told(&record_command(method, &nowhere, &[&"touch", &scratch.file("ran")]));
        assert!(code == Some(1) && said.contains("cannot write"), "{code:?} {said}");
        assert!(!scratch.file("ran").exists(), "the command is not started for nothing");
    }
}

/// After Ctrl-C, sent to joj alone, the command is asked to end, and what there is is written.
#[test]
fn a_signal_ends_the_command_and_the_recording_is_written() {
    let scratch = Scratch::new("live-signal");
    for method in methods() {
        let (recording, ready) =
            (scratch.file(&format!("{method}.joj")), scratch.file(&format!("{method}-ready")));
        let script = format!("echo ready > {}; while :; do sleep 0.05; done", ready.display());
        let child = Command::new(env!("CARGO_BIN_EXE_joj"))
            .args(["record", "--method", method, "-o"])
            .arg(&recording)
            .args(["--", "sh", "-c", &script])
            .stderr(Stdio::piped())
            .spawn()
            .expect("joj");
        let begin = Instant::now();
        while !ready.exists() {
            assert!(begin.elapsed() < Duration::from_secs(60), "the command did not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.expect("kill").success());
        let output = child.wait_with_output().expect("joj ends");
        let (code, said) = told(&output);
        assert_eq!(code, Some(128 + 15), "{method}: {said}");
        assert!(
            rows(&recording).iter().any(|row| row.code == OPEN && row.path.ends_with("-ready")),
            "{method}"
        );
    }
}

/// Many calls while joj is stopped: the kernel's buffer cannot hold them.
const MANY: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int words, char **word) {
    int file = open(word[1], O_RDWR | O_CREAT, 0644);
    char byte;
    puts("ready");
    fflush(stdout);
    if (read(0, &byte, 1) < 0) return 1;
    for (int i = 0; i < 3000; i++) if (pwrite(file, &byte, 1, 0) != 1) return 1;
    puts("done");
    fflush(stdout);
    return read(0, &byte, 1) < 0;
}
"#;

#[test]
fn lost_events_are_counted_and_told() {
    use std::io::{BufRead, BufReader, Write};
    let scratch = Scratch::new("live-lost");
    let Some(program) = program(&scratch, "many", MANY) else { return };
    if !methods().contains(&"bpf") {
        return;
    }
    let recording = scratch.file("it.joj");
    let mut child = Command::new(env!("CARGO_BIN_EXE_joj"))
        .args(["record", "--method", "bpf", "--buffer", "64KiB", "-o"])
        .args([&recording, Path::new("--"), &program, &scratch.file("file")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("joj");
    let id = child.id().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &id]).status();
        assert!(sent.expect("kill").success());
    };
    let (mut input, mut lines) =
        (child.stdin.take().expect("input"), BufReader::new(child.stdout.take().expect("output")).lines());
    assert_eq!(lines.next().expect("a line").expect("text"), "ready");
    signal("-STOP");
    input.write_all(b"x").expect("it reads");
    assert_eq!(lines.next().expect("a line").expect("text"), "done");
    signal("-CONT");
    input.write_all(b"x").expect("it reads");
    let (code, said) = told(&child.wait_with_output().expect("joj ends"));
    assert_eq!(code, Some(0), "{said}");
    let (before, _) = said.split_once(" events were lost").unwrap_or_else(|| panic!("{said}"));
    let lost =
        before.rsplit('\n').next().expect("a number").replace(',', "").parse::<usize>().expect("a number");
    let found = rows(&recording).iter().filter(|row| row.is_write()).count();
    assert!(lost > 0 && found + lost >= 3000 && found + lost < 3010, "{found} and {lost}: {said}");
    let replayed = replay(&recording, scratch.as_ref(), &["--order", "fast"]);
    assert!(replayed["inferred"].to_string().contains("events were lost"), "{}", replayed["inferred"]);
}

#[test]
fn without_rights_a_tracer_records_and_the_time_ends_a_command() {
    let scratch = Scratch::new("live-rights");
    let recording = scratch.file("it.joj");
    let output = Command::new("unshare")
        .args(["-r", env!("CARGO_BIN_EXE_joj"), "record", "--for", "300ms", "-o"])
        .arg(&recording)
        .args(["--", "sh", "-c", "echo alive; sleep 60"])
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: unshare is not there");
        return;
    };
    let (code, said) = told(&output);
    if said.contains("unshare failed") {
        eprintln!("skipped: {said}");
        return;
    }
    assert!(
        code == Some(128 + 15) && said.contains("records by a tracer, without eBPF: "),
        "{code:?} {said}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "alive\n");
    assert!(rows(&recording).iter().any(|row| row.code == OPEN));
}

/// The recording lies on a disk of 32 KiB, in a namespace where a user may mount one.
#[test]
fn a_full_disk_is_told_and_leaves_no_part() {
    let scratch = Scratch::new("live-full");
    let small = scratch.file("small");
    std::fs::create_dir(&small).expect("a directory");
    let script = "mount -t tmpfs -o size=32k none \"$1\" || exit 99; \"$2\" record --method \"$3\" -o \"$1/it.joj\" -- \
                  sh -c 'i=0; while [ $i -lt 4000 ]; do : > \"$0/$i\"; i=$((i+1)); done' \"$4\"; code=$?; ls -A \"$1\"; exit $code";
    for method in methods() {
        let files = scratch.file(&format!("files-{method}"));
        std::fs::create_dir(&files).expect("a directory");
        let output = Command::new("unshare")
            .args(["-rm", "sh", "-c", script, "sh"])
            .arg(&small)
            .arg(env!("CARGO_BIN_EXE_joj"))
            .arg(method)
            .arg(&files)
            .output();
        let Some(output) = output.ok().filter(|output| !matches!(output.status.code(), Some(99) | None))
        else {
            eprintln!("skipped: no namespace to mount a small disk in");
            return;
        };
        let (code, said) = told(&output);
        if said.contains("unshare failed") || said.contains("eBPF") {
            eprintln!("skipped: {said}");
            continue;
        }
        assert!(code == Some(1) && said.contains("No space left"), "{method}: {code:?} {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{method}: nothing is left");
    }
}

/// The reader sleeps until the writer, which waits for a child meanwhile, hands it a word.
#[test]
fn who_woke_a_thread_is_in_a_recording_of_ebpf() {
    let scratch = Scratch::new("live-woken");
    let script = "{ sleep 0.3; echo one > $0/first; echo word; } | { read word; echo $word > $0/second; }";
    for method in methods() {
        let recording = scratch.file(&format!("{method}.joj"));
        let place = scratch.as_ref();
        let (code, said) = told(&record_command(method, &recording, &[&"sh", &"-c", &script, &place]));
        assert_eq!(code, Some(0), "{method}: {said}");
        let rows = rows(&recording);
        if method == "ptrace" {
            assert!(rows.iter().all(|row| row.code != WOKEN), "a tracer does not see it");
            continue;
        }
        let opens = |name: &str| {
            let is_it = |row: &&_| row_opens(row, &place.join(name));
            rows.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {rows:#?}"))
        };
        let (first, second) = (opens("first"), opens("second"));
        let woken: Vec<(i64, i64)> = rows
            .iter()
            .filter(|row| row.code == WOKEN && row.thread == second.thread)
            .map(|row| (row.begin_ns, row.result))
            .filter(|(begin_ns, _)| (first.begin_ns..second.begin_ns).contains(begin_ns))
            .collect();
        assert!(matches!(woken[..], [(_, waker)] if waker == first.thread), "{rows:#?}");
        let by_child = rows.iter().rfind(|row| row.code == WOKEN && row.begin_ns < first.begin_ns);
        let by_child = by_child.expect("the end of sleep");
        assert_eq!(by_child.thread, first.thread);
        assert!(![first.thread, second.thread].contains(&by_child.result), "{by_child:?}");
    }
}

/// A thread works for 0.1 s, and waits for its child, which needs longer. Another one waits for nobody when the program ends, which is 0.2 s
/// after its last call on a file.
const WAITS: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void make(const char *name) { int file = open(name, O_CREAT | O_WRONLY, 0644); if (file < 0) abort(); close(file); }
static void *idle(void *arg) { make("idle"); pause(); return arg; }
int main(int count, char **words) {
  pthread_t thread; char word; int ends[2];
  if (count != 2 || chdir(words[1])) return 1;
  if (pipe(ends) || pthread_create(&thread, 0, idle, 0)) return 1;
  if (!fork()) { make("child"); usleep(300000); if (write(ends[1], "x", 1) != 1) abort(); _exit(0); }
  usleep(100000);
  if (read(ends[0], &word, 1) != 1) return 1;
  make("last"); usleep(200000);
  return 0;
}
"#;

#[test]
fn how_long_a_thread_waited_and_which_ended_by_themselves_is_told() {
    let scratch = Scratch::new("live-waits");
    let Some(binary) = program(&scratch, "waits", WAITS) else { return };
    let place: &Path = scratch.as_ref();
    for method in methods() {
        let recording = scratch.file(&format!("{method}.joj"));
        let (code, said) = told(&record_command(method, &recording, &[&binary, &place]));
        assert_eq!(code, Some(0), "{method}: {said}");
        let rows = rows(&recording);
        let thread_of = |name: &str| rows.iter().find(|row| row.path.ends_with(name)).expect(name).thread;
        let (main, child) = (thread_of("/last"), thread_of("/child"));
        let mut ended: Vec<i64> = rows.iter().filter(|row| row.code == ENDED).map(|row| row.thread).collect();
        ended.sort_unstable();
        let last_ns = rows.iter().rfind(|row| row.path.ends_with("/last")).map_or(0, |row| row.begin_ns);
        let end = rows.iter().find(|row| row.code == ENDED && row.thread == main).expect("the program's end");
        assert!(end.begin_ns - last_ns >= 200_000_000, "{method}: {rows:#?}");
        if method == "ptrace" {
            assert_eq!(ended, [main], "a tracer does not see what the others waited for");
            continue;
        }
        assert_eq!(ended, [main, child], "{rows:#?}");
        let forked = rows.iter().find(|row| row.code == FORK && row.result == child).expect("a fork");
        let is_it = |row: &&record::Row| row.code == WOKEN && row.thread == main && row.result == child;
        let woken = rows.iter().find(is_it).expect("a wake-up");
        let since_fork_ns = woken.begin_ns - forked.begin_ns;
        assert!((1..=since_fork_ns - 100_000_000).contains(&woken.bytes), "{since_fork_ns}: {woken:?}");
    }
}

/// A program sleeps, and its child makes a file and sends it a signal twice. `on`: it sleeps on, and makes a file when its time is over.
/// `work`: it makes the file as soon as the second signal comes. `select`: as `on`, by another call. `until`: as `on`, for an absolute time.
const SLEEPS: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile int signals;
static void on_signal(int number) { (void)number; signals++; }
static void make(const char *name) { int file = open(name, O_CREAT | O_WRONLY, 0644); if (file < 0) abort(); close(file); }
int main(int count, char **words) {
  if (count != 3 || chdir(words[2])) return 1;
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGUSR1, &action, 0);
  make("first");
  pid_t parent = getpid();
  if (!fork()) {
    for (int round = 0; round < 2; round++) { usleep(100000); make("child"); kill(parent, SIGUSR1); }
    _exit(0);
  }
  struct timespec left = {words[1][0] == 'w' ? 20 : 0, 400000000};
  struct timeval time = {0, 150000};
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec++;
  if (words[1][0] == 'u')
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0) == EINTR) {}
  else if (words[1][0] == 's')
    while (signals < 2 && select(0, 0, 0, 0, &time) < 0 && errno == EINTR) {}
  else
    while (nanosleep(&left, words[1][0] == 'o' ? &left : 0) && (words[1][0] == 'o' || signals < 2)) {}
  make("last");
  wait(0);
  return 0;
}
"#;

#[test]
fn a_sleep_that_a_signal_breaks_and_that_goes_on_is_no_wait() {
    let scratch = Scratch::new("live-sleeps");
    let Some(binary) = program(&scratch, "sleeps", SLEEPS) else { return };
    if !methods().contains(&"bpf") {
        return;
    }
    let place: &Path = scratch.as_ref();
    for (how, wakers) in [("on", 0), ("select", 0), ("until", 0), ("work", 2)] {
        let recording = scratch.file(&format!("{how}.joj"));
        let (code, said) = told(&record_command("bpf", &recording, &[&binary, &how, &place]));
        assert_eq!(code, Some(0), "{how}: {said}");
        let rows = rows(&recording);
        let last = rows.iter().find(|row| row_opens(row, &place.join("last"))).expect("the last file");
        let woken: Vec<_> = rows
            .iter()
            .filter(|row| row.code == WOKEN && row.thread == last.thread && row.begin_ns < last.begin_ns)
            .collect();
        assert_eq!(woken.len(), wakers, "{how}: {rows:#?}");
        // As long as its own sleep, not the one before.
        let is_one = |row: &&record::Row| (1..190_000_000).contains(&row.bytes);
        assert!(woken.iter().all(is_one), "{how}: {rows:#?}");
    }
}

/// Its first thread uses a file all the time, and another one, which uses none, runs the next program.
const RUNS: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static void *runs(void *arg) { usleep(200000); execl("/bin/true", "true", (char *)0); return arg; }
int main(int count, char **words) {
  pthread_t thread; int file = open(words[count - 1], O_CREAT | O_RDWR, 0644);
  if (file < 0 || pthread_create(&thread, 0, runs, 0)) return 1;
  for (;;) { if (pwrite(file, "x", 1, 0) != 1) return 1; usleep(10000); }
}
"#;

#[test]
fn a_new_program_begins_when_the_thread_that_runs_it_has_done_its_work() {
    let scratch = Scratch::new("live-runs");
    let Some(binary) = program(&scratch, "runs", RUNS) else { return };
    for method in methods() {
        let (recording, file) = (scratch.file(&format!("{method}.joj")), scratch.file(method));
        let (code, said) = told(&record_command(method, &recording, &[&binary, &file]));
        assert_eq!(code, Some(0), "{method}: {said}");
        let rows = rows(&recording);
        let opened = rows.iter().find(|row| row_opens(row, &file)).expect("a file");
        let forked = rows.iter().find(|row| row.code == FORK).expect("a thread");
        let runs = |row: &&record::Row| {
            row.code == WOKEN && row.thread == opened.thread && row.result == forked.result
        };
        let woken = rows.iter().find(runs).unwrap_or_else(|| panic!("{method}: {rows:#?}"));
        assert!(woken.begin_ns - forked.begin_ns >= 200_000_000, "{method}: {woken:?}");
    }
}

/// It sleeps for 0.2 s behind its last call, and its output is no file.
#[test]
fn a_program_lasts_until_a_signal_ends_it() {
    let scratch = Scratch::new("live-killed");
    for method in methods() {
        let (recording, made) = (scratch.file(&format!("{method}.joj")), scratch.file(method));
        let script = "echo made > $0; sleep 0.2; kill -TERM $$";
        let (code, said) = told(&record_command(method, &recording, &[&"sh", &"-c", &script, &made]));
        assert_eq!(code, Some(143), "{method}: {said}");
        let rows = rows(&recording);
        let opened = rows.iter().find(|row| row_opens(row, &made)).expect("a file");
        let is_its_end = |row: &&record::Row| row.code == ENDED && row.thread == opened.thread;
        let end = rows.iter().find(is_its_end).unwrap_or_else(|| panic!("{method}: {rows:#?}"));
        assert!(end.begin_ns - opened.begin_ns >= 200_000_000, "{method}: {rows:#?}");
    }
}

fn row_opens(row: &record::Row, path: &Path) -> bool {
    row.code == OPEN && Path::new(&row.path) == path
}

/// A program that has ended stays as a zombie until its parent waits for it.
#[test]
fn a_program_that_has_ended_ends_its_recording_before_it_is_waited_for() {
    let scratch = Scratch::new("live-zombie");
    for method in methods() {
        let recording = scratch.file(&format!("{method}.joj"));
        let (made, go) = (scratch.file(&format!("{method}-made")), scratch.file(&format!("{method}-go")));
        let script =
            format!("while ! test -e {}; do sleep 0.05; done; echo made > {}", go.display(), made.display());
        let mut program = Command::new("sh").args(["-c", &script]).spawn().expect("sh");
        let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"))
            .args(["record", "--method", method, "--pid", &program.id().to_string(), "-o"])
            .arg(&recording)
            .stderr(Stdio::piped())
            .spawn()
            .expect("joj");
        std::thread::sleep(Duration::from_secs(2));
        std::fs::write(&go, "").expect("a file");
        let begin = Instant::now();
        while joj.try_wait().expect("joj").is_none() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let is_over = joj.try_wait().expect("joj").is_some();
        program.wait().expect("sh");
        let (code, said) = told(&joj.wait_with_output().expect("joj"));
        assert!(is_over && code == Some(0), "{method}: {is_over} {code:?} {said}");
        assert!(rows(&recording).iter().any(|row| row.path.ends_with("-made")), "{method}");
    }
}
