//! The filesystem to measure on: made, mounted, unmounted.

use std::fs;
use std::process::{Command, Stdio};

use joj_analysis::bench::key::Word;
use joj_analysis::filesystem::Filesystem;
use joj_analysis::lab::cell::Feature;

use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::job::{LabVolume, guest_path};
use crate::machine::qemu::guest_kernel::{mount_volume, unmount_volume};

/// A mounted filesystem; dropping it unmounts it.
#[derive(Debug)]
pub struct Volume;

impl Volume {
    /// Makes the filesystem that `wanted` names on `device` and mounts it.
    /// # Errors
    /// What mkfs or mount said.
    pub fn make(wanted: &LabVolume, device: &str, journal: Option<&str>) -> Result<Volume, GuestError> {
        if let (Filesystem::Ext4, Some(journal)) = (wanted.filesystem, journal) {
            run("mkfs.ext4", &["-q", "-F", "-b", "4096", "-O", "journal_dev", journal])?;
        }
        let (program, mut words) = made_with(wanted);
        let external = match (wanted.filesystem, journal) {
            (Filesystem::Ext4, Some(journal)) => vec!["-J".to_owned(), format!("device={journal}")],
            (Filesystem::Xfs, Some(journal)) => vec!["-l".to_owned(), format!("logdev={journal}")],
            _ => Vec::new(),
        };
        words.extend(external.iter().map(String::as_str));
        if wanted.feature == Feature::FastCommit {
            words.extend(["-O", "fast_commit"]);
        }
        words.push(device);
        run(program, &words)?;
        Volume::mount(wanted, device, journal)
    }

    /// Mounts the filesystem that is on `device` already, as that of `wanted` is mounted.
    /// # Errors
    /// What mount said.
    pub fn mount(wanted: &LabVolume, device: &str, journal: Option<&str>) -> Result<Volume, GuestError> {
        let options = mounted_with(wanted, journal);
        mount_volume(device, guest_path::VOLUME, wanted.filesystem.word(), &options)?;
        let volume = Volume;
        if wanted.feature == Feature::OutOfPlace {
            write_out_of_place(device)?;
        }
        Ok(volume)
    }

    /// Unmounts it, and says whether that went well.
    /// # Errors
    /// As umount(2); it is mounted still.
    pub fn unmount(self) -> Result<(), GuestError> {
        std::mem::forget(self);
        Ok(unmount_volume(guest_path::VOLUME)?)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Err(reason) = unmount_volume(guest_path::VOLUME) {
            println!("{reason}");
        }
    }
}

/// Everything is initialised now: else a kernel thread would do it beside the measurement.
const OF_EXT4: &str = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
/// The same, and with the number of which, and of its name, comes the group of blocks that a directory of the root is in.
const OF_EXT4_IN_SAME_PLACES: &str =
    "nodiscard,lazy_itable_init=0,lazy_journal_init=0,hash_seed=00000000-0000-4000-8000-000000000001";

/// The program, and its words: quiet, by force, and without discarding the device first, which an SD card takes for 20 s.
fn made_with(wanted: &LabVolume) -> (&'static str, Vec<&'static str>) {
    match wanted.filesystem {
        Filesystem::Ext4 => {
            let extended = if wanted.same_places { OF_EXT4_IN_SAME_PLACES } else { OF_EXT4 };
            ("mkfs.ext4", vec!["-q", "-F", "-E", extended])
        }
        Filesystem::Xfs => ("mkfs.xfs", vec!["-q", "-f", "-K"]),
        Filesystem::Btrfs => ("mkfs.btrfs", vec!["-q", "-f", "-K"]),
        Filesystem::Nilfs2 => ("mkfs.nilfs2", vec!["-q", "-f", "-K"]),
        Filesystem::F2fs => ("mkfs.f2fs", vec!["-q", "-f", "-t", "0"]),
    }
}

fn mounted_with(wanted: &LabVolume, journal: Option<&str>) -> String {
    let mut options: Vec<String> = Vec::new();
    match wanted.feature {
        Feature::None | Feature::FastCommit | Feature::OutOfPlace => {}
        Feature::DataJournal => options.push("data=journal".to_owned()),
        Feature::JournalAsyncCommit => options.push("journal_async_commit,data=writeback".to_owned()),
        Feature::NoBarrier => options.push("nobarrier".to_owned()),
        Feature::Discard => options.push("discard".to_owned()),
    }
    match (wanted.filesystem, journal) {
        (Filesystem::Xfs, Some(journal)) => options.push(format!("logdev={journal}")),
        // Its superblock has the number of the device that mkfs saw.
        (Filesystem::Ext4, Some(journal)) => options.push(format!("journal_path={journal}")),
        _ => {}
    }
    options.extend(wanted.mount_options.clone());
    options.join(",")
}

/// Takes from F2FS every reason to write a page where it is (Documentation/ABI/testing/sysfs-fs-f2fs).
fn write_out_of_place(device: &str) -> Result<(), GuestError> {
    let name = device.trim_start_matches("/dev/");
    let file = format!("/sys/fs/f2fs/{name}/ipu_policy");
    fs::write(&file, "0\n").map_err(cannot(format!("write {file}")))
}

fn run(program: &str, words: &[&str]) -> Result<(), GuestError> {
    let path = format!("{}/{program}", guest_path::PROGRAMS);
    let output = Command::new(&path)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(cannot(format!("run {program}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // What follows the first line is most often the whole of the program's help.
    let first = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    Err(GuestError::Program {
        command: format!("{program} {}", words.join(" ")),
        status: output.status,
        said: first.to_owned(),
    })
}
