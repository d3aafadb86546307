//! Goal: a thread that is cancelled in a commit, or in its wait for one, takes nothing with it: no process, no lock, no row.
//! Method: a program in C, whose threads can be cancelled; each is, fifty times, while it commits beside three others. SQLite's
//! own VFS is no oracle here: there the cancelled thread's connection, and what it held, is lost.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::{Path, PathBuf};
use std::process::Command;

use real::child::must;
use real::place::{Scratch, skipped};
use real::sqlite::{extension_path, system};

/// Builds the program; why it cannot be had.
fn build(scratch: &Scratch) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/cancelled.c");
    let program = scratch.join("cancelled");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source);
    compiler.args(["-l:libsqlite3.so.0", "-lpthread"]);
    let output = compiler.output().map_err(|error| format!("cc: {error}"))?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(program)
}

#[test]
fn a_cancelled_thread_takes_nothing_with_it() {
    let scratch = Scratch::new("cancelled");
    let program = match build(&scratch) {
        Ok(program) => program,
        Err(reason) => return skipped(&reason),
    };
    let plain = ("WALDIO_LAYOUT", "stock");
    let ways = [
        ("own", plain),
        ("none", plain),
        ("none", ("WALDIO_GROUP", "64KiB,5ms")),
        ("none", ("WALDIO_PERSIST", "fua")),
        ("asynchronous", plain),
    ];
    for (points, environment) in ways {
        let path = scratch.join(&format!("{points}-{}.db", environment.0));
        let mut run = Command::new(&program);
        run.arg(&path).arg(points).arg(extension_path()).env(environment.0, environment.1);
        assert_eq!(must(&mut run), "cancelled 204, lost 0, failed 0", "{points}, {environment:?}");
        let db = system().open(&path);
        assert_eq!(db.one("PRAGMA integrity_check"), "ok", "{environment:?}");
        assert_ne!(db.one("SELECT count(*) FROM t"), "0");
    }
}
