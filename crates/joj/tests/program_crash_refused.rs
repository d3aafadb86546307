//! Goal: what `joj crash` cannot do is told before a machine starts, with what to do instead.
//! Method: command lines that cannot be, the built program, and what it says.

mod replay;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Output};

use replay::{Scratch, told};

/// A file below /tmp, where the guest has files of its own.
struct Hidden(String);

impl Hidden {
    fn new() -> Hidden {
        let name = format!("/tmp/joj-crash-hidden-{}", std::process::id());
        fs::write(&name, "exit 0\n").expect("a file");
        Hidden(name)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn crash(words: &[&str]) -> Output {
    crash_in(".", words)
}

fn crash_in(directory: impl AsRef<Path>, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.current_dir(directory).arg("crash").args(words).output().expect("joj")
}

/// A directory that the emulated machine sees, which has a /tmp of its own.
fn seen_by_guests() -> &'static Path {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if own.starts_with("/tmp") { Path::new("/var/tmp") } else { own }
}

#[test]
fn what_is_named_twice_or_cannot_be_told_or_written_ends_joj_before_anything_starts() {
    let cases: [(&[&str], &str, i32); 6] = [
        (&["--check", "true", "--filesystems", "ext4,xfs,ext4", "--", "true"], "names `ext4` twice", 2),
        (&["--check", "true", "--device", "ram,ram", "--", "true"], "`--device` names `ram` twice", 2),
        (&["sqlite", "--mode", "wal,WAL"], "`--modes` names `wal` twice", 2),
        (&["merge", "1.json", "--json", "all.json"], "`joj lab merge PART... --json FILE`", 2),
        (&["--check", "true", "--json", "/proc/x.json", "--", "true"], "cannot write /proc/x.json", 1),
        (&["sqlite", "--json", "/proc/x.json"], "cannot write /proc/x.json", 1),
    ];
    for (words, expected, exit) in cases {
        let (code, said) = told(&crash(words));
        assert!(said.contains(expected) && code == Some(exit), "{words:?}: {code:?}, {said}");
        assert!(!said.contains("booting"), "{said}");
    }
    let number = std::process::id().to_string();
    let name = OsString::from_vec([b"crash-\xff-", number.as_bytes()].concat());
    let directory = seen_by_guests().join(name);
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("check.sh"), "exit 0\n").expect("a file");
    let answers = [["sh check.sh", "true"], ["true", "./check.sh"]]
        .map(|[check, program]| told(&crash_in(&directory, &["--check", check, "--", program])));
    fs::remove_dir_all(&directory).expect("removed");
    for (code, said) in answers {
        assert!(said.contains("whose path is no UTF-8; copy it") && code == Some(2), "{code:?}, {said}");
    }
}

#[test]
fn what_cannot_be_is_told_before_anything_starts() {
    let cases: [(&[&str], &str); 11] = [
        (&["sqlite", "--mode", "memory"], "delete, truncate, persist, wal and waldio"),
        (&["--check", " ", "--", "true"], "is empty"),
        (&["--", "true"], "--check"),
        (&["--check", "true"], "PROGRAM"),
        (&["--check", "true", "--mount", " ", "--", "true"], "`--mount` has no options"),
        (&["--check", "true", "--mount", "ro,logdev=/dev/x", "--", "true"], "--journal-device NAME"),
        (
            &["--check", "true", "--filesystems", "xfs,f2fs", "--journal-device", "ram", "--", "true"],
            "only ext4 and XFS have external journals, not f2fs",
        ),
        (&["--check", "true", "--state", "1/2/nothing", "--", "true"], "--recordings"),
        (
            &["--check", "true", "--recordings", ".", "--state", "2/2/nothing", "--", "true"],
            "as `joj crash` named it",
        ),
        (
            &["--check", "true", "--recordings", ".", "--state", "1/2/x", "--", "true"],
            "as `joj crash` named it",
        ),
        (
            &["--check", "true", "--recordings", "none", "--state", "1/2/nothing", "--", "true"],
            "has no recording",
        ),
    ];
    let place = Hidden::new();
    let (hidden, check) = (place.0.as_str(), format!("sh {}", place.0));
    let quoted = format!("\"{}\" --all", place.0);
    let of_this_machine: [(&[&str], &str); 3] = [
        (&["--check", "true", "--", hidden], "PROGRAM names /tmp/"),
        (&["--check", &check, "--", "true"], "--check names /tmp/"),
        (&["--check", &quoted, "--", "true"], "--check names /tmp/"),
    ];
    for (words, expected) in cases.into_iter().chain(of_this_machine) {
        let (code, said) = told(&crash(words));
        assert!(said.contains(expected) && code == Some(2), "{words:?}: {code:?}, {said}");
    }
    let scratch = Scratch::new("crash-outputs");
    let recordings = scratch.file("kept/recordings");
    fs::create_dir_all(&recordings).expect("a directory");
    let check = seen_by_guests().join(format!("crash-check-{}.sh", std::process::id()));
    fs::write(&check, "exit 0\n").expect("a file");
    let [check, kept, log] =
        [check, scratch.file("kept"), recordings.join("00.log")].map(|file| file.display().to_string());
    let shell = format!("sh {check}");
    for (words, expected, exit) in [
        (["--json", &check, "--check", &shell, "--", "true"].as_slice(), "is named twice", 1),
        (
            &["--json", &log, "--recordings", &kept, "--check", "true", "--", "true"],
            "is for recordings alone",
            2,
        ),
    ] {
        let (code, said) = told(&crash(words));
        assert!(said.contains(expected) && code == Some(exit), "{words:?}: {code:?}, {said}");
    }
    assert_eq!(fs::read_to_string(&check).expect("the check"), "exit 0\n");
    fs::remove_file(&check).expect("removed");
    let (code, said) = told(&crash(&["--check", "true", "--device", "nothing-like-it", "--", "true"]));
    assert!(said.contains("nothing-like-it") && code == Some(2), "{code:?}, {said}");
}
