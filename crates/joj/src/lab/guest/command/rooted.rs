//! What a command of the host's stands in: a root with the host's files, the filesystem at /data, memory at /tmp.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::lab::guest::command::host_files::below_root;
use crate::lab::guest::error::GuestError;
use crate::lab::job::guest_path;
use crate::machine::proc::clock::pause;
use crate::machine::qemu::guest_kernel;

/// The working directory, below the command's root.
const DATA: &str = "/data";
/// Memory, new for each run, and its HOME.
const MEMORY: &str = "/tmp";
/// Between two looks whether all that was ended is gone.
const LOOK: Duration = Duration::from_millis(1);

/// Where the guest finds the working directory of a command.
pub fn data_directory() -> PathBuf {
    below_root(DATA)
}

/// The filesystem and an empty /tmp in the root; they are taken out with the value.
#[derive(Debug)]
pub struct DataMount {
    places: Vec<String>,
}

impl DataMount {
    /// Shows the filesystem that is mounted for measuring.
    /// # Errors
    /// As mount(2); nothing is left mounted.
    pub fn mount() -> Result<DataMount, GuestError> {
        let [data, memory] = [DATA, MEMORY].map(|path| below_root(path).to_string_lossy().into_owned());
        let mut mounted = DataMount { places: Vec::new() };
        guest_kernel::mount_again(guest_path::VOLUME, &data)?;
        mounted.places.push(data);
        guest_kernel::mount_memory(&memory)?;
        mounted.places.push(memory);
        Ok(mounted)
    }

    /// Takes them out, and says whether that went well.
    /// # Errors
    /// As umount(2): something uses them still.
    pub fn unmount(mut self) -> Result<(), GuestError> {
        while let Some(place) = self.places.pop() {
            guest_kernel::unmount_volume(&place)?;
        }
        Ok(())
    }
}

impl Drop for DataMount {
    fn drop(&mut self) {
        for place in self.places.iter().rev() {
            if let Err(reason) = guest_kernel::unmount_volume(place) {
                println!("{reason}");
            }
        }
    }
}

/// Ends whatever runs in the root still: what a command started and left behind would hold its filesystem.
pub fn end_all() {
    let is_in_root = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("root")).is_ok_and(|root| root == Path::new(guest_path::ROOT))
    };
    loop {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten().filter(is_in_root);
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let left: Vec<Pid> = numbers.filter_map(Pid::from_raw).collect();
        if left.is_empty() {
            return;
        }
        for process in left {
            // It may have ended by itself meanwhile.
            let _ = kill_process(process, Signal::KILL);
        }
        pause(LOOK);
    }
}

/// A command of these words, with this environment, in the root; it has no standard input.
pub fn command(words: &[String], environment: &[(String, String)]) -> Command {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("HOME", MEMORY)
        .env("PWD", DATA)
        .stdin(Stdio::null());
    guest_kernel::run_below(&mut command, guest_path::ROOT, DATA);
    command
}
