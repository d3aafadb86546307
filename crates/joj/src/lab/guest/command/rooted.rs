//! What a command of the host's stands in: a root with the host's files, and in it the filesystem at /data and what is a run's own.
//!
//! ```text
//! ROOT          the host's files (host_files.rs), and over them the run's own changes: to read only, until the run mounts it otherwise
//!   proc sys    the guest's
//!   dev         the guest's devices, and over them the run's own
//!   tmp run     memory
//!   data        the filesystem on the emulated device
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::lab::guest::command::host_files::{below_root, look_like};
use crate::lab::guest::command::left_mounts::FirstMounts;
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::job::guest_path;
use crate::machine::proc::clock::pause;
use crate::machine::qemu::guest_kernel;
use crate::machine::qemu::own_namespaces::OwnNamespaces;

/// The working directory, below the command's root.
const DATA: &str = "/data";
/// Its HOME.
const HOME: &str = "/tmp";
/// Memory.
const MEMORY: [&str; 2] = [HOME, "/run"];
/// What the command sees of the guest instead of the host's.
const OF_GUEST: [&str; 2] = ["/proc", "/sys"];
const DEVICES: &str = "/dev";
/// Terminals are the guest's: one is the program's standard output.
const TERMINALS: &str = "/dev/pts";
const SHARED_MEMORY: &str = "/dev/shm";
/// Memory for what a run changes of the host's files and in /dev.
const CHANGES: &str = "/changes";
/// Between two looks whether all that was ended is gone.
const LOOK: Duration = Duration::from_millis(1);
/// Who is there after so many waits for another filesystem, which the run has frozen.
const LOOKS_BEFORE_THAW: u64 = 100;

/// Where the guest finds the working directory of a command.
pub fn data_directory() -> PathBuf {
    below_root(DATA)
}

/// A run's own: the filesystem at /data, empty memory at /tmp, /run and /dev/shm, and a /dev that has the guest's devices. So are what it
/// changes of the host's files, SysV IPC, a host name, and whatever it mounts. The first thread has this value and stands in it, and what
/// it starts. All of it goes with the value.
#[derive(Debug)]
pub struct RunPlace {
    /// What may be mounted until the namespaces go.
    first: FirstMounts,
    is_left: bool,
    _namespaces: OwnNamespaces,
}

impl RunPlace {
    /// Enters a new one, with the filesystem that is mounted for measuring.
    /// # Errors
    /// As unshare(2) and mount(2); nothing is left of it.
    pub fn enter() -> Result<RunPlace, GuestError> {
        fs::create_dir_all(CHANGES).map_err(cannot(format!("make {CHANGES}")))?;
        let namespaces = OwnNamespaces::enter().map_err(cannot("give a run namespaces of its own"))?;
        let place = |path: &str| below_root(path).to_string_lossy().into_owned();
        guest_kernel::mount_memory(CHANGES)?;
        mount_changes(guest_path::ROOT, "files", guest_path::ROOT)?;
        guest_kernel::let_change(guest_path::ROOT, false)?;
        for of_guest in OF_GUEST {
            guest_kernel::mount_again(of_guest, &place(of_guest))?;
        }
        guest_kernel::mount_again(guest_path::VOLUME, &place(DATA))?;
        for memory in MEMORY {
            guest_kernel::mount_memory(&place(memory))?;
        }
        mount_changes(DEVICES, "devices", &place(DEVICES))?;
        guest_kernel::mount_again(TERMINALS, &place(TERMINALS))?;
        guest_kernel::mount_memory(&place(SHARED_MEMORY))?;
        let first = FirstMounts::but_for(&[Path::new(guest_path::VOLUME), &data_directory()])?;
        Ok(RunPlace { first, is_left: false, _namespaces: namespaces })
    }

    /// Leaves it when its processes have ended ([`end_all`]), with all that they mounted; and says whether nothing uses the filesystem there
    /// any more.
    /// # Errors
    /// As umount(2): something uses it still.
    pub fn leave(mut self) -> Result<(), GuestError> {
        self.is_left = true;
        self.first.unmount_others()
    }
}

impl Drop for RunPlace {
    /// After an error: what the run mounted would hold the device.
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        end_all();
        if let Err(reason) = self.first.unmount_others() {
            println!("{reason}");
        }
    }
}

/// Shows the files below `lower` in `path`; what a run changes there goes to memory of this name.
fn mount_changes(lower: &str, name: &str, path: &str) -> Result<(), GuestError> {
    let directories = ["upper", "work"].map(|kind| format!("{CHANGES}/{name}-{kind}"));
    for directory in &directories {
        fs::create_dir(directory).map_err(cannot(format!("make {directory}")))?;
    }
    let [upper, work] = &directories;
    // What is told of the directory itself is told of the upper one.
    look_like(Path::new(upper), Path::new(lower)).map_err(cannot(format!("make {upper}")))?;
    Ok(guest_kernel::mount_overlay(lower, upper, work, path)?)
}

/// Ends whatever runs in the root still, and waits until it has ended: what a command started and left behind would hold its filesystem.
pub fn end_all() {
    // Who waits to write to a frozen filesystem cannot be ended, and one that is unmounted comes back frozen.
    let _ = guest_kernel::thaw(Path::new(guest_path::VOLUME));
    let mut looks = 0_u64;
    loop {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten().filter(is_of_run);
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let left: Vec<Pid> = numbers.filter_map(Pid::from_raw).collect();
        if left.is_empty() {
            return;
        }
        for process in left {
            // It may have ended by itself meanwhile.
            let _ = kill_process(process, Signal::KILL);
        }
        looks += 1;
        if looks.is_multiple_of(LOOKS_BEFORE_THAW) {
            guest_kernel::thaw_all();
        }
        pause(LOOK);
    }
}

/// True of a process in the root or with mounts that a run made for it, or of one that is about to end: its files and mounts go after its root has.
fn is_of_run(entry: &fs::DirEntry) -> bool {
    match fs::read_link(entry.path().join("root")) {
        Ok(root) => root.starts_with(guest_path::ROOT) || has_own_mounts(&entry.path()),
        Err(_) => {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
        }
    }
}

/// True of a program that has other mounts than the run. The kernel's own threads, which have no file, have others, too.
fn has_own_mounts(process: &Path) -> bool {
    let mounts = |process: &Path| fs::read_link(process.join("ns/mnt")).ok();
    fs::read_link(process.join("exe")).is_ok() && mounts(process) != mounts(Path::new("/proc/thread-self"))
}

/// A command of these words, with this environment, in the root; it has no standard input.
pub fn command(words: &[String], environment: &[(String, String)]) -> Command {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("HOME", HOME)
        .env("PWD", DATA)
        .stdin(Stdio::null());
    guest_kernel::run_below(&mut command, guest_path::ROOT, DATA);
    command
}
