//! The shared libraries that a program needs, as this machine's dynamic loader finds them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::image::error::ImageError;

/// The loader of glibc on x86-64 (System V ABI, AMD64 supplement).
pub const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// Files of all libraries that the `programs` (or libraries) need, themselves not among them. `besides`: directories to
/// look into first.
/// # Errors
/// Where a library is not on this machine, or the loader does not run.
pub fn needed_by(programs: &[PathBuf], besides: &[PathBuf]) -> Result<BTreeSet<PathBuf>, ImageError> {
    let mut found = BTreeSet::new();
    for program in programs {
        list(program, besides, &mut found)?;
    }
    Ok(found)
}

/// The file of an installed library, by the name that programs ask for.
/// # Errors
/// Where it is not installed.
pub fn installed(name: &str) -> Result<PathBuf, ImageError> {
    let listed = ["/sbin/ldconfig", "ldconfig"].iter().find_map(|program| {
        let output = Command::new(program).arg("-p").output().ok()?;
        // libsqlite3.so.0 (libc6,x86-64) => /lib/x86_64-linux-gnu/libsqlite3.so.0
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let of_name =
            |line: &&str| line.trim_start().starts_with(&format!("{name} (")) && line.contains("x86-64");
        let line = text.lines().find(of_name)?.rsplit_once("=> ")?.1.to_owned();
        Some(PathBuf::from(line))
    });
    listed.ok_or_else(|| ImageError::NotInstalled(name.to_owned()))
}

fn list(program: &Path, besides: &[PathBuf], found: &mut BTreeSet<PathBuf>) -> Result<(), ImageError> {
    let paths = std::env::join_paths(besides).unwrap_or_default();
    let mut command = Command::new(LOADER);
    command.arg("--list").arg(program).env_remove("LD_PRELOAD");
    if besides.is_empty() {
        command.env_remove("LD_LIBRARY_PATH");
    } else {
        command.env("LD_LIBRARY_PATH", paths);
    }
    let output = command.output().map_err(|error| ImageError::NoLoader { loader: LOADER, error })?;
    let text = String::from_utf8_lossy(&output.stdout);
    // A program without libraries is not an error here.
    if !output.status.success() && !text.contains("statically linked") {
        let reason = String::from_utf8_lossy(&output.stderr);
        if reason.contains("statically linked") || reason.contains("not a dynamic executable") {
            return Ok(());
        }
        return Err(ImageError::Libraries { program: program.to_owned(), said: reason.trim().to_owned() });
    }
    for line in text.lines() {
        let Some((name, rest)) = line.split_once("=>") else { continue };
        let path = rest.split_whitespace().next().unwrap_or_default();
        if !path.starts_with('/') {
            let (program, library) = (program.to_owned(), name.trim().to_owned());
            return Err(ImageError::NoLibrary { program, library });
        }
        found.insert(PathBuf::from(path));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_needs_libc() {
        if !Path::new(LOADER).exists() {
            println!("skipped: no {LOADER}");
            return;
        }
        let found = needed_by(&[std::env::current_exe().unwrap()], &[]).unwrap();
        assert!(found.iter().any(|path| path.ends_with("libc.so.6")), "{found:?}");
    }
}
