//! What a run mounts and leaves, which would hold the filesystem at /data: unmounted, and what keeps it busy let go.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::lab::guest::error::GuestError;
use crate::lab::job::guest_path;
use crate::machine::files::mounts::{self, Mount};
use crate::machine::proc::clock::{pause, shared_ns};
use crate::machine::qemu::error::GuestKernelError;
use crate::machine::qemu::guest_kernel;

/// The kernel may close files of a process some time after its end; it has so long.
const UNMOUNTING: Duration = Duration::from_secs(5);
/// Between two tries.
const NAP: Duration = Duration::from_millis(20);
/// The list of files and devices that are swapped to: a line that names the columns, then one for each, its path first.
const SWAPS: &str = "/proc/swaps";
/// A directory for each block device; a loop device that has a file has `loop/backing_file` in it.
const BLOCK_DEVICES: &str = "/sys/block";

/// The mounts with which a run begins, but for those of the filesystem at /data.
#[derive(Debug)]
pub struct FirstMounts(Vec<Mount>);

impl FirstMounts {
    /// Those that the first thread has now.
    /// # Errors
    /// The kernel does not list them.
    pub fn but_for(filesystem: &[&Path]) -> Result<FirstMounts, GuestError> {
        let mut first = mounts::list()?;
        first.retain(|mount| !filesystem.contains(&mount.mount_point.as_path()));
        Ok(FirstMounts(first))
    }

    /// Unmounts all others, what was mounted last first. No process of the run's may be left.
    /// # Errors
    /// As umount(2); some are mounted still.
    pub fn unmount_others(&self) -> Result<(), GuestError> {
        let end_ns = shared_ns() + u64::try_from(UNMOUNTING.as_nanos()).unwrap_or(u64::MAX);
        loop {
            let others = self.others(&mounts::list()?);
            if others.is_empty() {
                return Ok(());
            }
            // What another one covers is found when that one is gone.
            let refused: Vec<GuestKernelError> =
                others.iter().rev().filter_map(|mount| unmount(mount).err()).collect();
            if refused.len() < others.len() {
                continue;
            }
            if let Some(reason) = refused.into_iter().next().filter(|_| shared_ns() > end_ns) {
                return Err(as_seen(reason).into());
            }
            let_go();
            pause(NAP);
        }
    }

    /// Which of `now` are none of the first, or are so elsewhere.
    fn others(&self, now: &[Mount]) -> Vec<Mount> {
        let is_first = |mount: &&Mount| {
            self.0.iter().any(|first| {
                (first.identity, first.device) == (mount.identity, mount.device)
                    && (&first.root, &first.mount_point) == (&mount.root, &mount.mount_point)
            })
        };
        now.iter().filter(|mount| !is_first(mount)).cloned().collect()
    }
}

/// A filesystem on a disk that is unmounted while it is frozen keeps its disk.
fn unmount(mount: &Mount) -> Result<(), GuestKernelError> {
    if mount.device.0 >> 20 != 0 || mount.kind == "btrfs" {
        // What is no directory cannot have been frozen by it.
        let _ = guest_kernel::thaw(&mount.mount_point);
    }
    guest_kernel::unmount_volume(&mount.mount_point)
}

/// Takes from the kernel the files that it uses itself: those that it swaps to, and those of loop devices, which a frozen filesystem would keep.
fn let_go() {
    guest_kernel::thaw_all();
    let swaps = fs::read(SWAPS).unwrap_or_default();
    for line in swaps.split(|byte| *byte == b'\n').skip(1) {
        let path = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let _ = guest_kernel::swap_off(&mounts::unescape(path));
    }
    let devices = fs::read_dir(BLOCK_DEVICES).into_iter().flatten().flatten();
    for device in devices.filter(|device| device.path().join("loop/backing_file").exists()) {
        let _ = guest_kernel::detach_loop(&Path::new("/dev").join(device.file_name()));
    }
}

/// The same, with the path that the run has for the place.
fn as_seen(reason: GuestKernelError) -> GuestKernelError {
    match reason {
        GuestKernelError::Unmount { path, error } => {
            let below = path.strip_prefix(guest_path::ROOT).map(|below| Path::new("/").join(below));
            GuestKernelError::Unmount { path: below.unwrap_or(path), error }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use joj_analysis::trace::event::DeviceNumber;
    use rustix::io::Errno;

    use super::*;

    fn mount(identity: u64, minor: u32, at: &str) -> Mount {
        Mount {
            identity,
            device: DeviceNumber(minor),
            root: PathBuf::from("/"),
            mount_point: PathBuf::from(at),
            kind: "tmpfs".to_owned(),
            source: PathBuf::from("none"),
            options: String::new(),
        }
    }

    #[test]
    fn what_was_mounted_moved_or_got_the_number_of_another_is_none_of_the_first() {
        let first = FirstMounts(vec![mount(1, 1, "/a"), mount(2, 2, "/b"), mount(3, 3, "/c")]);
        let now = [mount(1, 1, "/a"), mount(2, 2, "/moved"), mount(3, 4, "/c"), mount(5, 5, "/a")];
        let others: Vec<u64> = first.others(&now).iter().map(|mount| mount.identity).collect();
        assert_eq!(others, [2, 3, 5]);
    }

    #[test]
    fn what_cannot_be_unmounted_is_named_as_the_run_sees_it() {
        let reason = |path: &str| GuestKernelError::Unmount { path: path.into(), error: Errno::BUSY };
        let said = |path: &str| as_seen(reason(path)).to_string();
        assert!(said("/root-of-command/data/m").starts_with("cannot unmount /data/m: "));
        assert!(said("/volume").starts_with("cannot unmount /volume: "));
    }
}
