//! Goal: a recording ends as its command or its disk makes it, and what is missing in it is told.
//! Method: commands that fail, signals, a full disk, a buffer that is full, a user without rights.

mod record;
mod replay;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use record::{ENDED, OPEN, methods, program, record_command, rows};
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
        let opened = rows.iter().find(|row| row.opens(&made)).expect("a file");
        let is_its_end = |row: &&record::Row| row.code == ENDED && row.thread == opened.thread;
        let end = rows.iter().find(is_its_end).unwrap_or_else(|| panic!("{method}: {rows:#?}"));
        assert!(end.begin_ns - opened.begin_ns >= 200_000_000, "{method}: {rows:#?}");
    }
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
