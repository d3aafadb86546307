//! A trace buffer of our own: a directory below tracefs's `instances`, which no other tracer sees and which goes with us.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::machine::capture::error::TracefsError;
use crate::machine::files::mounts::{self, Mount};
use crate::machine::proc::clock;

/// Where tracefs usually is, newest place first.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PREFIX: &str = "joj-";
/// Of this process's instances.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The directory; dropping it stops the tracing and removes it.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
}

impl Instance {
    /// Makes one with this process's number in its name. Those of processes that are gone are removed first.
    /// # Errors
    /// Why not, and what to grant.
    pub fn create() -> Result<Self, TracefsError> {
        let instances = place()?.join("instances");
        remove_stale(&instances);
        for _ in 0..100 {
            // Never a number twice, so that nobody takes the next one for the one that went.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = instances.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(TracefsError::NoInstance { path, error }),
            }
        }
        Err(TracefsError::Full { instances, prefix: PREFIX })
    }

    /// One of its files or directories.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a setting.
    /// # Errors
    /// What was refused, and why.
    pub fn set(&self, name: &str, value: &str) -> Result<(), TracefsError> {
        let path = self.path(name);
        let written =
            File::options().write(true).open(&path).and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|error| TracefsError::Setting { path, value: value.to_owned(), error, advice: "" })
    }

    /// Reads one of its texts.
    /// # Errors
    /// What cannot be read, and why.
    pub fn text(&self, name: &str) -> Result<String, TracefsError> {
        let path = self.path(name);
        let unreadable = TracefsError::unreadable(&path);
        let mut file = File::open(&path).map_err(&unreadable)?;
        // Large pieces: header_page gives one piece, however small, and nothing behind it (seen on Linux 6.18).
        let (mut text, mut piece) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut piece).map_err(&unreadable)? {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                bytes => text.extend_from_slice(&piece[..bytes]),
            }
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.set("tracing_on", "0");
        let _ = self.set("events/enable", "0");
        // rmdir of an instance removes what is in it, as its files are the kernel's. A program that another thread is just
        // starting has our open files until it runs (fork, exec): the instance is busy so long.
        for _ in 0..100 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    clock::pause(Duration::from_millis(10))
                }
                _ => break,
            }
        }
        if self.path.exists() {
            eprintln!("joj: cannot remove {0}: remove it with `rmdir {0}`", self.path.display());
        }
    }
}

/// Where it may be: its usual places, then wherever it is mounted.
fn places(mounts: &[Mount]) -> Vec<PathBuf> {
    let mounted =
        mounts.iter().filter(|mount| mount.kind == "tracefs").map(|mount| mount.mount_point.clone());
    PLACES.iter().map(PathBuf::from).chain(mounted).collect()
}

fn place() -> Result<PathBuf, TracefsError> {
    let places = places(&mounts::list().unwrap_or_default());
    if let Some(place) = places.iter().find(|place| place.join("instances").is_dir()) {
        return Ok(place.clone());
    }
    // Without search permission nobody sees what is mounted there.
    let hidden = places
        .iter()
        .any(|place| fs::read_dir(place).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied));
    if hidden {
        return Err(TracefsError::Closed);
    }
    Err(TracefsError::NotMounted)
}

/// Those of joj processes that were killed.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        // A process that is alive may be another program that was given the number: its buffer waits for its end.
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefs_is_found_wherever_it_is_mounted() {
        let mount = |kind: &str, mount_point: &str| Mount {
            identity: 1,
            device: joj_analysis::trace::event::DeviceNumber(1),
            root: "/".into(),
            mount_point: mount_point.into(),
            kind: kind.to_owned(),
            source: "nodev".into(),
            options: String::new(),
        };
        let mounts = [mount("tmpfs", "/tmp"), mount("tracefs", "/mnt/a trace")];
        assert_eq!(places(&mounts), [PLACES[0], PLACES[1], "/mnt/a trace"].map(PathBuf::from));
    }

    #[test]
    fn instances_of_dead_processes_go_and_ours_goes_with_the_value() {
        let Ok(instance) = Instance::create() else {
            println!(
                "skipped: {}",
                Instance::create().map_or_else(|reason| reason.to_string(), |_| String::new())
            );
            return;
        };
        let path = instance.path("");
        // Beyond any process number (PID_MAX_LIMIT is 2^22).
        let stale = path.parent().unwrap().join("joj-4194999-0");
        fs::create_dir(&stale).unwrap();
        let other = Instance::create().unwrap();
        assert!(!stale.exists() && path.exists());
        let second = other.path("");
        assert_ne!(path, second);
        drop((instance, other));
        assert!(!path.exists() && !second.exists());
    }
}
