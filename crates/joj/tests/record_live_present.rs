//! Goal: a replay begins with the files that the program found: a file with two names is one, what is only renamed has its size, and
//! what was deleted before has no name.
//! Method: a program in C changes such files. The replay's directory afterwards is what the program's is.

mod record;
mod replay;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use joj_analysis::recording::call::CallKind;
use record::{calls, methods, program, record_command};
use replay::{Scratch, joj, printed, replay, told};

/// Writes through both names of one file, renames one to the other (nothing happens), and takes a third name away; renames, exchanges
/// and links files that it never opens.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static int add(const char *name, int bytes) {
  char room[100];
  memset(room, 'x', sizeof room);
  int file = open(name, O_WRONLY | O_APPEND);
  return write(file, room, bytes) != bytes || close(file);
}
int main(int count, char **words) {
  if (chdir(words[1])) return 1;
  if (add("one", 100) || add("two", 50) || rename("one", "two") || add("two", 1)) return 2;
  if (add("three", 7) || unlink("three")) return 3;
  if (rename("moved", "moved to") || link("linked", "second") || rename("in", "out")) return 4;
  return renameat2(AT_FDCWD, "left", AT_FDCWD, "right", RENAME_EXCHANGE) ? 5 : 0;
}
"#;

/// By name the size of each file and how many names it has, and directories.
fn tree(directory: &Path) -> Vec<String> {
    let of = |entry: fs::DirEntry| {
        let status = entry.metadata().expect("it is there");
        let name = entry.file_name().to_string_lossy().into_owned();
        if status.is_dir() {
            format!("{name}/")
        } else {
            format!("{name} {} {}", status.len(), status.nlink())
        }
    };
    let mut found: Vec<String> =
        fs::read_dir(directory).expect("a directory").map(|entry| of(entry.expect("an entry"))).collect();
    found.sort();
    found
}

fn make(directory: &Path) {
    fs::create_dir_all(directory.join("in")).expect("a directory");
    for (name, bytes) in [("one", 5), ("moved", 3000), ("linked", 70), ("left", 11), ("right", 22)] {
        fs::write(directory.join(name), vec![b'a'; bytes]).expect("a file");
    }
    for name in ["two", "three"] {
        fs::hard_link(directory.join("one"), directory.join(name)).expect("a second name");
    }
}

#[test]
fn a_file_with_several_names_is_one_and_what_is_only_renamed_has_its_size() {
    let scratch = Scratch::new("live-present");
    let Some(program) = program(&scratch, "present", PROGRAM) else { return };
    for method in methods() {
        let (real, recording) = (scratch.file(method), scratch.file(&format!("{method}.joj")));
        make(&real);
        let (code, said) = told(&record_command(method, &recording, &[&program, &real]));
        assert_eq!(code, Some(0), "{method}: {said}");
        let wanted = [
            "left 22 1",
            "linked 70 2",
            "moved to 3000 1",
            "one 163 2",
            "out/",
            "right 11 1",
            "second 70 2",
            "two 163 2",
        ];
        assert_eq!(tree(&real), wanted, "{method}");
        let place = scratch.file(&format!("{method}-replay"));
        fs::create_dir(&place).expect("a directory");
        printed(&joj(&[&"replay", &recording, &place, &"--check", &"--keep"]));
        let below = real.strip_prefix("/").expect("absolute");
        assert_eq!(tree(&kept(&place).join(below)), wanted, "{method}");
        // Versions that would make two files of it, or that know no ends of threads, refuse the recording.
        assert_eq!(version(&recording), 7, "{method}");
    }
}

fn version(recording: &Path) -> u64 {
    let bytes = fs::read(recording).expect("a recording");
    let text = String::from_utf8_lossy(&bytes);
    let after = text.split("{\"version\":").nth(1).expect("a header");
    after.split(',').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Nobody opens them, asks for their size or renames them.
#[test]
fn what_is_only_asked_for_or_changed_is_what_it_was() {
    let scratch = Scratch::new("live-named");
    let source = r#"
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>
int main(int count, char **words) {
  return chdir(words[1]) || access("in", R_OK) || access("moved", R_OK) || chmod("left", 0600) || utime("one", 0)
      || chown("right", -1, -1) || mkdir("out", 0700) || access("out", R_OK) || utime("linked", 0)
      || rename("linked", "renamed") || utime("renamed", 0);
}
"#;
    let Some(program) = program(&scratch, "named", source) else { return };
    for method in methods() {
        let (real, recording) = (scratch.file(method), scratch.file(&format!("{method}.joj")));
        make(&real);
        for name in ["two", "three"] {
            fs::remove_file(real.join(name)).expect("a name");
        }
        let (code, said) = told(&record_command(method, &recording, &[&program, &real]));
        assert_eq!(code, Some(0), "{method}: {said}");
        let place = scratch.file(&format!("{method}-replay"));
        fs::create_dir(&place).expect("a directory");
        printed(&joj(&[&"replay", &recording, &place, &"--check", &"--keep"]));
        let below = real.strip_prefix("/").expect("absolute");
        assert_eq!(tree(&kept(&place).join(below)), tree(&real), "{method}");
    }
}

/// It is gone before anybody saw its size.
#[test]
fn a_file_that_was_renamed_and_removed_is_told() {
    let scratch = Scratch::new("live-unseen");
    let source = r#"
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) { return chdir(words[1]) || rename("a", "b") || unlink("b"); }
"#;
    let Some(program) = program(&scratch, "unseen", source) else { return };
    for method in methods() {
        fs::write(scratch.file("a"), "12345").expect("a file");
        let recording = scratch.file("it.joj");
        let words: [&dyn AsRef<std::ffi::OsStr>; 2] = [&program, &scratch.file("")];
        let (code, said) = told(&record_command(method, &recording, &words));
        assert_eq!(code, Some(0), "{method}: {said}");
        assert!(said.contains("nobody saw their size: 1"), "{method}: {said}");
        let rows = calls(&recording).calls;
        let name = scratch.file("a");
        let texts = calls(&recording).texts;
        let is_it = |path| Path::new(texts.get(path)) == name;
        assert!(!rows.iter().any(|row| row.kind == CallKind::Present && is_it(row.path)), "{method}");
    }
}

/// The one directory that a replay kept.
fn kept(place: &Path) -> std::path::PathBuf {
    fs::read_dir(place).expect("it").next().expect("kept").expect("an entry").path()
}

/// With O_CREAT alone: one file is new, one was there. The program writes one byte far behind their ends.
#[test]
fn a_file_that_the_program_makes_is_as_sparse_in_a_replay() {
    let scratch = Scratch::new("live-sparse");
    let source = r#"
#include <fcntl.h>
#include <unistd.h>
static int far(const char *name) {
  int file = open(name, O_RDWR | O_CREAT, 0600);
  return pwrite(file, "x", 1, 40000000) != 1 || close(file);
}
int main(int count, char **words) { return chdir(words[1]) || far("new") || far("old"); }
"#;
    let Some(program) = program(&scratch, "sparse", source) else { return };
    for method in methods() {
        let (real, recording) = (scratch.file(method), scratch.file(&format!("{method}.joj")));
        fs::create_dir(&real).expect("a directory");
        fs::write(real.join("old"), [b'a'; 5000]).expect("a file");
        let (code, said) = told(&record_command(method, &recording, &[&program, &real]));
        assert_eq!(code, Some(0), "{method}: {said}");
        let place = scratch.file(&format!("{method}-replay"));
        fs::create_dir(&place).expect("a directory");
        printed(&joj(&[&"replay", &recording, &place, &"--check", &"--keep"]));
        let below = kept(&place).join(real.strip_prefix("/").expect("absolute"));
        assert_eq!(tree(&below), ["new 40000001 1", "old 40000001 1"], "{method}");
        for (name, bytes) in [("new", 0), ("old", 5000)] {
            let status = fs::metadata(below.join(name)).expect("it");
            let blocks = fs::metadata(real.join(name)).expect("it").blocks();
            assert_eq!(status.blocks(), blocks, "{method}: {name}, which had {bytes} bytes");
        }
    }
}

/// The command inherits what was deleted, and what is called as if it were. A new file has the name of the deleted one.
#[test]
fn what_was_deleted_before_gets_no_name() {
    let scratch = Scratch::new("live-deleted");
    let source = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  char room[10];
  if (pread(7, room, 10, 0) != 10 || write(7, room, 10) != 10 || lseek(7, 0, SEEK_END) != 20) return 1;
  int file = open("gone", O_WRONLY | O_APPEND);
  return write(file, room, 1) != 1 || rename("gone", "here") || write(8, room, 2) != 2 || write(9, room, 1) != -1;
}
"#;
    let Some(program) = program(&scratch, "deleted", source) else { return };
    for method in methods() {
        let (real, recording) = (scratch.file(method), scratch.file(&format!("{method}.joj")));
        fs::create_dir(&real).expect("a directory");
        let before = r#"exec 7<>gone 8>>"x (deleted)" 9<gone
            printf 0123456789 >&7; rm gone; printf new >gone; exec "$@""#;
        let mut shell = Command::new("sh");
        shell.args(["-c", before, "sh", env!("CARGO_BIN_EXE_joj"), "record", "--method", method, "-o"]);
        shell.arg(&recording).arg("--").arg(&program).current_dir(&real);
        let (code, said) = told(&shell.output().expect("sh"));
        assert_eq!(code, Some(0), "{method}: {said}");
        let wanted = ["here 4 1", "x (deleted) 2 1"];
        assert_eq!(tree(&real), wanted, "{method}");
        let place = scratch.file(&format!("{method}-replay"));
        fs::create_dir(&place).expect("a directory");
        let outcome = replay(&recording, &place, &["--check", "--keep"]);
        assert_eq!(tree(&kept(&place).join(real.strip_prefix("/").expect("absolute"))), wanted, "{method}");
        for call in ["pread", "write", "lseek"] {
            let told = &outcome["by_call"][call];
            assert_eq!(
                (&told["differ"], &told["not_made"]),
                (&0.into(), &0.into()),
                "{method}: {call} {outcome}"
            );
        }
    }
}

/// Records a part of the life of a program, which begins when `ready` is there; false where the program cannot do what is asked.
fn record_running(method: &str, program: &Path, real: &Path, ready: &Path, recording: &Path) -> bool {
    let mut running = Command::new(program).arg(real).spawn().expect("the program");
    let begin = Instant::now();
    while !ready.exists() {
        if running.try_wait().expect("its state").is_some_and(|status| status.code() == Some(77)) {
            eprintln!("skipped: the program may not do that");
            return false;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "it did not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
    let process = running.id().to_string();
    let words: [&dyn AsRef<std::ffi::OsStr>; 9] =
        [&"record", &"--method", &method, &"--for", &"300ms", &"--pid", &process, &"-o", &recording];
    let recorded = joj(&words);
    running.kill().expect("a signal");
    running.wait().expect("its end");
    let (code, said) = told(&recorded);
    assert_eq!(code, Some(0), "{method}: {said}");
    true
}

/// It runs in a directory that is gone, and writes to a file that is gone.
#[test]
fn a_program_whose_files_were_deleted_makes_none() {
    let scratch = Scratch::new("live-deleted-pid");
    let source = r#"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
  if (chdir(words[1]) || mkdir("sub", 0700) || chdir("sub")) return 1;
  int file = open("../gone", O_RDWR | O_CREAT, 0600);
  if (unlink("../gone") || rmdir("../sub") || mkdir("../ready", 0700)) return 2;
  for (;;) {
    if (write(file, "12345", 5) != 5) return 3;
    open("made", O_RDWR | O_CREAT, 0600);
    usleep(1000);
  }
}
"#;
    let Some(program) = program(&scratch, "deleted", source) else { return };
    for method in methods() {
        let (real, recording) = (scratch.file(method), scratch.file(&format!("{method}.joj")));
        fs::create_dir(&real).expect("a directory");
        if !record_running(method, &program, &real, &real.join("ready"), &recording) {
            return;
        }
        let place = scratch.file(&format!("{method}-replay"));
        fs::create_dir(&place).expect("a directory");
        let outcome = replay(&recording, &place, &["--check", "--keep", "--order", "fast"]);
        assert_eq!(tree(&kept(&place).join(real.strip_prefix("/").expect("absolute"))), [""; 0], "{method}");
        assert!(outcome["written_bytes"].as_u64() > Some(0), "{method}: {outcome}");
        assert_eq!(outcome["by_call"]["write"]["differ"], 0, "{method}: {outcome}");
    }
}

/// Its names are relative and absolute, and it had a file open before it changed its root.
#[test]
fn all_names_of_a_program_that_is_found_behind_a_chroot_stand_below_it() {
    let scratch = Scratch::new("live-chroot-pid");
    let source = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
  if (chdir(words[1]) || mkdir("root", 0700) || mkdir("root/d", 0700)) return 1;
  int before = open("root/before", O_RDWR | O_CREAT, 0600);
  if (chroot("root") || chdir("/")) return 77;
  if (mkdir("/ready", 0700)) return 2;
  for (;;) {
    int file = open("/d/f", O_RDWR | O_APPEND | O_CREAT, 0600);
    if (write(file, "123", 3) != 3 || close(file) || write(before, "1", 1) != 1) return 3;
    if (rename("d", "e") || rename("/e/f", "f") || rename("/f", "/e/f") || rename("/e", "d")) return 4;
    usleep(1000);
  }
}
"#;
    let Some(program) = program(&scratch, "chroot", source) else { return };
    for method in methods() {
        let (real, recording) = (scratch.file(method), scratch.file(&format!("{method}.joj")));
        fs::create_dir(&real).expect("a directory");
        if !record_running(method, &program, &real, &real.join("root/ready"), &recording) {
            return;
        }
        let place = scratch.file(&format!("{method}-replay"));
        fs::create_dir(&place).expect("a directory");
        let outcome = replay(&recording, &place, &["--check", "--keep", "--order", "fast"]);
        let first = real.components().nth(1).expect("a directory").as_os_str().to_string_lossy();
        assert_eq!(tree(&kept(&place)), [format!("{first}/")], "{method}: {outcome}");
        let kinds = outcome["by_call"].as_object().expect("calls");
        let is_same = |kind: &serde_json::Value| kind["differ"] == 0 && kind["not_made"] == 0;
        assert!(kinds.values().all(is_same), "{method}: {outcome}");
        assert!(kinds["rename"]["calls"].as_u64() > Some(3), "{method}: {outcome}");
        assert_eq!(outcome["differences"], serde_json::json!([]), "{method}");
    }
}

/// None of these is opened but `one` and `linked`; what a mkdir found in its way is a file that another one replaces.
#[test]
fn names_of_one_file_are_one_where_calls_only_use_the_names() {
    let scratch = Scratch::new("live-one-file");
    let source = r#"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
  struct stat status;
  if (chdir(words[1]) || stat("three", &status) || rename("four", "five") || unlink("four")) return 1;
  int file = open("one", O_WRONLY | O_APPEND);
  if (write(file, "0123456789", 10) != 10 || unlink("one") || unlink("two")) return 2;
  if (rename("six", "seven") || mkdir("left", 0700) != -1 || errno != EEXIST) return 3;
  return rename("right", "left") || mkdir("right", 0700);
}
"#;
    let Some(program) = program(&scratch, "one", source) else { return };
    for method in methods() {
        let (real, recording) = (scratch.file(method), scratch.file(&format!("{method}.joj")));
        make(&real);
        for (name, other) in [("four", "five"), ("six", "seven")] {
            fs::write(real.join(name), [b'a'; 40]).expect("a file");
            fs::hard_link(real.join(name), real.join(other)).expect("a second name");
        }
        let (code, said) = told(&record_command(method, &recording, &[&program, &real]));
        assert_eq!(code, Some(0), "{method}: {said}");
        assert!(!said.contains("not as the recorded calls leave them"), "{method}: {said}");
        let place = scratch.file(&format!("{method}-replay"));
        fs::create_dir(&place).expect("a directory");
        printed(&joj(&[&"replay", &recording, &place, &"--check", &"--keep"]));
        let found = tree(&kept(&place).join(real.strip_prefix("/").expect("absolute")));
        // What no call names is in no recording.
        let wanted: Vec<String> = tree(&real)
            .into_iter()
            .filter(|name| !["in/", "linked 70 1", "moved 3000 1"].contains(&&**name))
            .collect();
        assert_eq!(found, wanted, "{method}");
        assert!(
            wanted.contains(&"three 15 1".to_owned()) && wanted.contains(&"six 40 2".to_owned()),
            "{wanted:?}"
        );
    }
}

/// Of `two` no call says that it is `one`, which is gone at the end.
#[test]
fn files_that_the_calls_do_not_explain_are_told() {
    let scratch = Scratch::new("live-unexplained");
    let source = r#"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
  struct stat status;
  return chdir(words[1]) || stat("two", &status) || truncate("one", 3) || unlink("one") || unlink("three");
}
"#;
    let Some(program) = program(&scratch, "unexplained", source) else { return };
    for method in methods() {
        let (real, recording) = (scratch.file(method), scratch.file("it.joj"));
        make(&real);
        let (code, said) = told(&record_command(method, &recording, &[&program, &real]));
        let note = said
            .lines()
            .find(|line| line.contains("not as the recorded calls leave them"))
            .unwrap_or_default();
        assert!(code == Some(0) && note.ends_with("two (3 bytes, not 5)"), "{method}: {said}");
    }
}
