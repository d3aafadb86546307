//! A program leaves the same files as the replay of its recording, and each of its calls has the same result.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{methods, program, record_command};
use crate::replay::{Scratch, joj, printed, told};

/// `DO` is a call that works, `FAILS` one that fails with this error.
const HEAD: &str =
    "#define _GNU_SOURCE\n#include <errno.h>\n#include <fcntl.h>\n#include <pthread.h>\n#include <sched.h>
#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/stat.h>
#include <sys/syscall.h>\n#include <sys/uio.h>\n#include <sys/wait.h>\n#include <unistd.h>
#define DO(call) if ((call) < 0) { perror(#call); exit(1); }
#define FAILS(call, why) if ((call) >= 0 || errno != why) { perror(#call); exit(1); }\n";

/// What is below a directory: of each name the size, or what it is.
fn tree(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![(directory.to_owned(), String::new())];
    while let Some((place, name)) = open.pop() {
        for entry in std::fs::read_dir(&place).expect("a directory") {
            let entry = entry.expect("an entry");
            let name = format!("{name}/{:?}", entry.file_name());
            let status = entry.metadata().expect("a status");
            let what = if status.is_dir() {
                open.push((entry.path(), name.clone()));
                "directory".to_owned()
            } else if status.is_symlink() {
                "link".to_owned()
            } else {
                status.len().to_string()
            };
            found.insert(name, what);
        }
    }
    found
}

/// The same below a replay's directory.
fn below(kept: &serde_json::Value, place: &Path) -> PathBuf {
    let kept = Path::new(kept.as_str().expect("it was kept"));
    kept.join(place.strip_prefix("/").expect("absolute"))
}

/// Records a program in an empty directory, with each method, and replays it. `source` is what main does there.
pub fn comes_out_the_same(name: &str, source: &str) {
    with_files_before(name, |_| {}, source);
}

/// The same in a directory in which something was made before.
pub fn with_files_before(name: &str, prepare: fn(&Path), source: &str) {
    let scratch = Scratch::new(&format!("live-names-{name}"));
    let Some(program) = program(&scratch, "program", &format!("{HEAD}{source}")) else { return };
    for method in methods() {
        let place = scratch.file(method);
        std::fs::create_dir(&place).expect("a directory");
        prepare(&place);
        let mut links = tree(&place);
        links.retain(|_, what| what == "link");
        let recording = scratch.file(&format!("{method}.joj"));
        let (code, said) = told(&record_command(method, &recording, &[&program, &place]));
        if code == Some(77) {
            eprintln!("skipped: {name}: this kernel or filesystem cannot: {said}");
            return;
        }
        assert_eq!(code, Some(0), "{method}: {said}");
        is_the_same(method, &recording, &place, &links, scratch.as_ref());
    }
}

/// The same of strace's text, in an empty directory.
pub fn comes_out_the_same_from_strace(name: &str, source: &str) {
    let scratch = Scratch::new(&format!("strace-names-{name}"));
    let Some(program) = program(&scratch, "program", &format!("{HEAD}{source}")) else { return };
    for words in [&["-f", "-ttt", "-T"] as &[&str], &["-f", "-ttt", "-T", "-y"]] {
        let place = scratch.file(&words.concat());
        std::fs::create_dir(&place).expect("a directory");
        let (text, recording) = (scratch.file("text"), scratch.file("it.joj"));
        let traced = Command::new("strace").args(words).arg("-o").args([&text, &program, &place]).output();
        match traced {
            Ok(output) if output.status.success() => {}
            Ok(output) => panic!("{words:?}: {:?}", told(&output)),
            Err(_) => return eprintln!("skipped: strace is not there"),
        }
        printed(&joj(&[&"record", &"--import", &text, &"-o", &recording]));
        is_the_same("strace", &recording, &place, &BTreeMap::new(), scratch.as_ref());
    }
}

/// Replays a recording, and compares what it leaves with what is in a directory, but `links`, which were there before.
fn is_the_same(
    method: &str,
    recording: &Path,
    place: &Path,
    links: &BTreeMap<String, String>,
    directory: &Path,
) {
    let words = ["--order", "fast", "--check", "--keep", "--json", "-"];
    let mut command: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"replay", &recording, &directory];
    command.extend(words.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>));
    let output = joj(&command);
    let replayed: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{method}: {:?}", told(&output)));
    // Links that were there before are in no recording: its names are those to which they lead.
    let mut left = tree(place);
    left.retain(|name, _| !links.contains_key(name));
    assert_eq!(tree(&below(&replayed["kept"], place)), left, "{method}: {replayed}");
    assert_eq!(replayed["differences"], serde_json::json!([]), "{method}");
    let kinds = replayed["by_call"].as_object().expect("calls");
    let is_same = |kind: &serde_json::Value| kind["differ"] == 0 && kind["not_made"] == 0;
    assert!(kinds.values().all(is_same), "{method}: {replayed:#}");
}
