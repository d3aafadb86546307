//! The memory of a guest that has booted and waits for a job: booting costs an emulated processor 20 s, going on from here one.
//!
//!   CACHE/snapshots/KEY    QEMU's migration stream; KEY is a hash of all that made it
//!   CACHE/snapshots/lock   flock(2) on it while one is made
//!
//! Every guest begins with the same memory, so what a unit measures does not depend on which units went before it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::lab::error::SessionError;
use crate::lab::file_hash::add_file;
use crate::lab::image::packages;
use crate::lab::job::{GuestLine, marked};
use crate::lab::life::{SessionEnd, said};
use crate::lab::turn::turn;
use crate::machine::proc::clock::{pause, shared_ns};
use crate::machine::proc::signal::is_stopped;
use crate::machine::qemu::process::{Heard, KEEP_MEMORY, Machine, MachineStart, Qemu};

/// Held by who makes a snapshot.
const LOCK: &str = "lock";
/// Snapshots that are kept: those of the build at hand and of a few before, 300 MB each.
const KEPT: usize = 3;
/// The longest boot.
const BOOT_SECONDS: u64 = 300;
/// Between two looks at what QEMU or its console said.
const NAP: Duration = Duration::from_millis(100);

/// A guest's memory, in a file that is open: another joj may remove its name.
#[derive(Debug)]
pub struct Snapshot(File);

impl Snapshot {
    /// The one of `machine`, from the cache or made now; `say` is told what takes long, `console` is a file to write to meanwhile.
    /// # Errors
    /// [`SessionEnd`]; nothing is left in the cache.
    pub fn of(
        machine: &Machine,
        version: &str,
        console: &Path,
        say: &dyn Fn(&str),
    ) -> Result<Snapshot, SessionEnd> {
        let directory = packages::cache_directory()?.join("snapshots");
        let file = directory.join(key(machine, version)?);
        if let Some(kept) = Snapshot::kept(&file) {
            return Ok(kept);
        }
        fs::create_dir_all(&directory).map_err(SessionError::cache("make", &directory))?;
        // Several that need the same one wait for the first instead of booting beside it.
        let lock = directory.join(LOCK);
        let _turn = turn(&lock, |error| SessionError::cache("lock", &lock)(error), || {})?;
        if let Some(kept) = Snapshot::kept(&file) {
            return Ok(kept);
        }
        say("booting the emulated machine; its memory is kept for next time (half a minute, 300 MB)");
        let part = PartFile(file.with_extension(format!("part-{}", std::process::id())));
        prepare(machine, console, &part.0)?;
        fs::rename(&part.0, &file).map_err(SessionError::cache("make", &file))?;
        remove_old(&directory);
        Ok(Snapshot(File::open(&file).map_err(SessionError::cache("open", &file))?))
    }

    fn kept(file: &Path) -> Option<Snapshot> {
        let open = File::options().read(true).write(true).open(file).ok()?;
        // Its time of last use decides which are removed.
        let _ = open.set_modified(SystemTime::now());
        Some(Snapshot(open))
    }

    /// Where QEMU finds it, as long as this joj runs.
    pub fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }
}

/// A file that is gone unless it got its name.
struct PartFile(PathBuf);

impl Drop for PartFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Of all that the memory depends on; QEMU's options are those of joj, which is in the archive.
fn key(machine: &Machine, version: &str) -> Result<String, SessionError> {
    let mut hasher = DefaultHasher::new();
    (version, machine.memory_mib).hash(&mut hasher);
    for path in [&machine.kernel, &machine.image] {
        add_file(path, &mut hasher)
            .map_err(|error| SessionError::Unreadable { path: path.clone(), error })?;
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Boots, waits until the guest does, and has its memory written to `memory`.
fn prepare(machine: &Machine, console: &Path, memory: &Path) -> Result<(), SessionEnd> {
    let mut qemu = Qemu::start(machine, &MachineStart::Prepare(console.to_owned(), memory.to_owned()))?;
    let deadline_ns = shared_ns() + BOOT_SECONDS * 1_000_000_000;
    wait_for_guest(&mut qemu, console, deadline_ns)?;
    command(&mut qemu, "qmp_capabilities", &json!({}), deadline_ns)?;
    // It is meant for networks that others use, too.
    command(
        &mut qemu,
        "migrate-set-parameters",
        &json!({"max-bandwidth": 100_000_000_000_u64}),
        deadline_ns,
    )?;
    command(&mut qemu, "migrate", &json!({"uri": KEEP_MEMORY}), deadline_ns)?;
    loop {
        let told = command(&mut qemu, "query-migrate", &json!({}), deadline_ns)?;
        match told["status"].as_str() {
            Some("completed") => return Ok(()),
            Some("failed" | "cancelled") => {
                let reason = told["error-desc"].as_str().unwrap_or("it does not say why");
                let (file, reason) = (memory.to_owned(), reason.to_owned());
                return Err(SessionError::NotKept { file, reason }.into());
            }
            _ => pause(NAP),
        }
    }
}

fn wait_for_guest(qemu: &mut Qemu, console: &Path, deadline_ns: u64) -> Result<(), SessionEnd> {
    loop {
        let ended = qemu.hear(NAP) == Heard::End;
        if is_stopped() {
            return Err(SessionEnd::Signal);
        }
        let text = fs::read(console).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        for line in text.lines().filter_map(marked) {
            match serde_json::from_str(line) {
                Ok(GuestLine::Prepared) => return Ok(()),
                Ok(GuestLine::Broken(reason)) => {
                    return Err(SessionError::Broken(reason).into());
                }
                _ => {}
            }
        }
        if ended || shared_ns() > deadline_ns {
            let said = said(text.lines());
            return Err(SessionError::NotStarted { said }.into());
        }
    }
}

/// Has QEMU do something, and gives its answer (QEMU Machine Protocol Specification).
fn command(qemu: &mut Qemu, name: &str, arguments: &Value, deadline_ns: u64) -> Result<Value, SessionEnd> {
    qemu.say(&json!({"execute": name, "arguments": arguments}).to_string());
    loop {
        if is_stopped() {
            return Err(SessionEnd::Signal);
        }
        let line = match qemu.hear(NAP) {
            Heard::Line(line) => line,
            Heard::Nothing if shared_ns() < deadline_ns => continue,
            Heard::Nothing | Heard::End => {
                return Err(SessionError::Silent(name.to_owned()).into());
            }
        };
        let answer: Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(told) = answer.get("return") {
            return Ok(told.clone());
        }
        if let Some(error) = answer.get("error") {
            let (command, reason) = (name.to_owned(), error["desc"].clone());
            return Err(SessionError::Refused { command, reason }.into());
        }
    }
}

/// Removes what was not used for longest, parts of a joj that was killed among them.
fn remove_old(directory: &Path) {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut aged: Vec<(SystemTime, PathBuf)> = files
        .filter(|entry| entry.file_name() != LOCK)
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    aged.sort();
    for (_, path) in aged.iter().rev().skip(KEPT) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_archive_has_another_key() {
        let directory = std::env::temp_dir().join(format!("joj-snapshot-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = |name: &str, text: &str| {
            fs::write(directory.join(name), text).unwrap();
            directory.join(name)
        };
        let machine = |kernel: &str, image: &str| Machine {
            kernel: file("kernel", kernel),
            image: file("image", image),
            share: (directory.clone(), "share".to_owned()),
            host: "host".to_owned(),
            memory_mib: 64,
        };
        let first = key(&machine("k", "ab"), "7.2").unwrap();
        assert_eq!(first, key(&machine("k", "ab"), "7.2").unwrap());
        assert_ne!(first, key(&machine("ka", "b"), "7.2").unwrap(), "bytes moved from one file to the other");
        assert_ne!(first, key(&machine("k", "ac"), "7.2").unwrap());
        assert_ne!(first, key(&machine("k", "ab"), "8.0").unwrap());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn those_not_used_for_longest_go_first() {
        let directory = std::env::temp_dir().join(format!("joj-snapshots-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        for age in 0..6_u64 {
            let file = File::create(directory.join(age.to_string())).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(60 * age)).unwrap();
        }
        fs::write(directory.join(LOCK), "").unwrap();
        remove_old(&directory);
        let mut left: Vec<String> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["0", "1", "2", LOCK]);
        fs::remove_dir_all(&directory).unwrap();
    }
}
