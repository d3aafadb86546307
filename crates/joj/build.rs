//! Tells the program which commit it was built from, so that a result names what measured it.

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed = git(&["status", "--porcelain", "--", "."]).is_some_and(|list| !list.is_empty());
    println!("cargo::rustc-env=JOJ_COMMIT={commit}{}", if changed { "+changes" } else { "" });
    println!("cargo::rerun-if-changed=src");
    // Every commit and checkout writes a line there.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}
