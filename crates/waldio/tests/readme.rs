//! Goal: README's shell session does what README says.
//! Method: its lines behind `sqlite>` go to Debian's shell, with the library under test, and what it prints is compared.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]
#![allow(dead_code, reason = "other tests use the rest of the folder")]

mod real;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use real::place::{Scratch, skipped};
use real::sqlite::extension_path;

const PROMPT: &str = "sqlite> ";

#[test]
fn the_shell_session_is_what_the_shell_prints() {
    let shell = Path::new("/usr/bin/sqlite3");
    if !shell.exists() {
        return skipped("/usr/bin/sqlite3 is not installed");
    }
    let readme = include_str!("../../../README.md");
    let session = readme.split("```").find(|block| block.contains("$ sqlite3\n")).expect("a session");
    let lines = || session.lines().skip_while(|line| *line != "$ sqlite3").skip(1);
    let library = extension_path();
    let library = library.to_str().unwrap().trim_end_matches(".so");
    let typed: String = lines()
        .filter_map(|line| line.strip_prefix(PROMPT))
        .map(|line| format!("{}\n", line.replace("/path/to/joj/target/release/libwaldio", library)))
        .collect();
    let printed: String =
        lines().filter(|line| !line.starts_with(PROMPT)).map(|line| format!("{line}\n")).collect();
    assert!(typed.contains(library) && printed.lines().count() > 1, "{typed}{printed}");
    let scratch = Scratch::new("readme");
    let mut child = Command::new(shell)
        .current_dir(scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), printed);
}
