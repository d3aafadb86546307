//! Which disks lie below a file, a directory or a device node.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::header::Disk;
use rustix::fs::OFlags;

use crate::machine::capture::error::DiskError;
use crate::machine::devices::disks;
use crate::machine::files::mounts;

/// What lies below a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// The filesystem's device number (`s_dev`); for a device node the node's own.
    pub filesystem: DeviceNumber,
    /// Disks or partitions that hold it; more than one for Btrfs.
    pub devices: Vec<DeviceNumber>,
    /// The whole disks of those.
    pub disks: Vec<DeviceNumber>,
    /// Which of several disks is meant, where one lies above another.
    pub notes: Vec<String>,
}

/// Finds the disks below `path`, which must exist.
/// # Errors
/// There is no such file, or it lies on no disk (tmpfs, network).
pub fn disk_of_path(path: &Path) -> Result<Below, DiskError> {
    let all_disks = disks::list();
    let problem = |error: io::Error| DiskError::Unreadable { path: path.to_owned(), error };
    let facts = fs::metadata(path).map_err(problem)?;
    let (filesystem, devices) = if facts.file_type().is_block_device() {
        let number = mounts::device_of_node(path).ok_or_else(|| DiskError::NoDevice(path.to_owned()))?;
        (number, vec![number])
    } else {
        let mounts = mounts::list()?;
        // O_PATH needs no right to read the file, and does not wait at a FIFO.
        let flag = OFlags::PATH.bits().cast_signed();
        let file = File::options().read(true).custom_flags(flag).open(path).map_err(problem)?;
        let mount = mounts::of_open_file(&file, &mounts)
            .map_err(|error| DiskError::Mount { path: path.to_owned(), error })?;
        let devices = mounts::disks_below(&mount, &all_disks);
        if devices.is_empty() {
            let (kind, mount_point) = (mount.kind, mount.mount_point);
            return Err(DiskError::NoDisk { path: path.to_owned(), kind, mount_point });
        }
        (mount.device, devices)
    };
    let mut whole = Vec::new();
    let mut notes = Vec::new();
    for device in &devices {
        let Some(disk) = all_disks.iter().find(|disk| disk.number == *device) else {
            return Err(DiskError::NoSize { path: path.to_owned(), device: *device });
        };
        if !whole.contains(&disk.whole) {
            whole.push(disk.whole);
            notes.extend(note(disk));
        }
    }
    Ok(Below { filesystem, devices, disks: whole, notes })
}

/// A loop device's requests become reads and writes of a file, and so requests of the disk below; device mapper's and
/// RAID's requests go to other disks.
fn note(disk: &Disk) -> Option<String> {
    let name = &disk.name;
    if let Some(file) = &disk.behind {
        return Some(format!(
            "{name} is a loop over {file}: its requests are meant, not those of the disk that has that file"
        ));
    }
    let (major, minor) = disk.whole.major_minor();
    let entries =
        fs::read_dir(format!("/sys/dev/block/{major}:{minor}/slaves")).into_iter().flatten().flatten();
    let mut others: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    others.sort();
    (!others.is_empty()).then(|| {
        format!("{name} lies above {}: its own requests are meant, not those of these", others.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_no_disk_says_so() {
        let error = disk_of_path(Path::new("/proc/self/status")).unwrap_err().to_string();
        assert!(error.contains("proc on /proc lies on no disk"), "{error}");
        let missing = disk_of_path(Path::new("/no/such/file")).unwrap_err();
        assert!(missing.to_string().contains("/no/such/file"), "{missing}");
        assert!(disk_of_path(Path::new("/dev/null")).is_err(), "a character device lies on devtmpfs");
    }

    #[test]
    fn a_device_node_and_a_file_on_it_lead_to_the_same_disk() {
        let Ok(below) = disk_of_path(Path::new(env!("CARGO_MANIFEST_DIR"))) else {
            return println!("skipped: the source tree lies on no disk");
        };
        let name = disks::list().into_iter().find(|disk| disk.number == below.devices[0]).unwrap().name;
        let node = Path::new("/dev").join(name);
        if mounts::device_of_node(&node) != Some(below.devices[0]) {
            return println!("skipped: {} is not there", node.display());
        }
        assert_eq!(disk_of_path(&node).unwrap().disks, below.disks);
    }
}
