//! What the tests of `joj whatif --rerun` share: a directory, programs run in copies of it, and what came of them.

#![allow(dead_code, reason = "each test program uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::outcome::{WhatifRerun, WhatifResult};

use crate::replay::{Scratch, told};

/// A script, run by joj in this directory with these words.
pub fn whatif(directory: &Path, words: &[&str], script: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.current_dir(directory).args(["whatif", "--rounds", "1", "--rerun"]).args(words);
    command.args(["--", "sh", "-c", script]).output().expect("joj")
}

/// The result of a script, which must be there.
pub fn result(directory: &Path, script: &str) -> WhatifResult {
    let file = directory.with_extension("json");
    let output = whatif(directory, &["--json", &file.display().to_string()], script);
    let (code, said) = told(&output);
    assert_eq!(code, Some(0), "{said}");
    println!("{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&std::fs::read(&file).expect("a result")).expect("JSON")
}

/// How long the runs of a row took, or why there are none.
pub fn rerun(result: &WhatifResult, configuration: Configuration) -> Result<f64, &str> {
    let row = result.rows.iter().find(|row| row.configuration == configuration).expect("a row");
    match row.rerun.as_ref().expect("it was asked for") {
        WhatifRerun::Measured(elapsed_ns) => Ok(elapsed_ns.median),
        WhatifRerun::Unavailable(reason) => Err(reason),
    }
}

/// A directory in which programs run, below the one that a test has.
pub fn place(scratch: &Scratch) -> PathBuf {
    let place = scratch.file("place");
    std::fs::create_dir(&place).expect("a directory");
    std::fs::write(place.join("given"), "text").expect("a file");
    place
}

/// A script in a mount namespace of its own; `None`, and a line that says so, where this user can have none.
pub fn with_own_mounts(directory: &Path, script: &str) -> Option<(Option<i32>, String)> {
    let run = |script: &str| {
        let mut command = Command::new("unshare");
        command.current_dir(directory).args(["-m", "--propagation", "private", "sh", "-c"]);
        command.args([script, "sh", env!("CARGO_BIN_EXE_joj")]).output()
    };
    if !run("mkdir -p probe && mount --bind probe probe").is_ok_and(|output| output.status.success()) {
        println!("skipped: no mounts here (not root)");
        return None;
    }
    Some(told(&run(script).expect("unshare")))
}
