//! Where a directory stands: its file system and the device below, as the kernel describes them.

use std::fs;
use std::path::{Path, PathBuf};

use joj_analysis::bench::environment::{DeviceFacts, FilesystemFacts};
use joj_analysis::bench::promise::Reservation;
use rustix::fs::{major, minor, stat};

/// The file system and the device of a directory.
#[derive(Debug, Clone, Default)]
pub struct Place {
    pub filesystem: FilesystemFacts,
    /// The device, where there is one.
    pub device: Option<DeviceFacts>,
}

impl Place {
    /// Of `directory`, which must exist; what cannot be read stays empty.
    pub fn of(directory: &Path) -> Place {
        let Ok(facts) = stat(directory) else { return Place::default() };
        let number = format!("{}:{}", major(facts.st_dev), minor(facts.st_dev));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let real = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        let mut filesystem = find_mount(&mounts, &number, &real).unwrap_or_default();
        let device = device_number(&filesystem, &number).and_then(|number| device_facts(&number));
        if let Some(device) = &device {
            filesystem.journal = find_journal(&device.name);
        }
        Place { filesystem, device }
    }
}

/// Says on standard error where a COMMIT in `directory` is not worth what it is on a disk.
pub fn warn(directory: &Path) {
    let place = Place::of(directory);
    if let Some(reservation) = Reservation::of(&place.filesystem, place.device.as_ref()) {
        let what = reservation.what(&directory.display().to_string());
        eprintln!("WARNING: {what}. Remedy: {}.", reservation.remedy());
    }
}

/// Undoes the octal escapes of mountinfo (space, tab, newline, backslash).
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// The line of mountinfo that covers `path`: same device number, longest mount point; Btrfs subvolumes have a
/// number of their own in stat, so without an equal one the longest mount point alone decides.
fn find_mount(mounts: &str, number: &str, path: &Path) -> Option<FilesystemFacts> {
    let covering = mounts.lines().filter_map(|line| {
        // 36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/root rw,errors=continue
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let mut right = right.split(' ');
        let facts = FilesystemFacts {
            kind: right.next()?.to_owned(),
            source: unescape(right.next()?),
            mount_point: unescape(left.get(4)?),
            mount_options: format!("{},{}", left.get(5)?, right.next().unwrap_or_default()),
            journal: None,
        };
        path.starts_with(&facts.mount_point).then_some((*left.get(2)? == number, facts))
    });
    // Of two equal mount points the later line lies on top; max_by_key keeps the last of equals.
    covering
        .max_by_key(|(same, facts)| (*same, Path::new(&facts.mount_point).components().count()))
        .map(|found| found.1)
}

/// The number of the block device: the file system's own, or that of what is mounted (Btrfs).
fn device_number(filesystem: &FilesystemFacts, number: &str) -> Option<String> {
    if Path::new(&format!("/sys/dev/block/{number}")).exists() {
        return Some(number.to_owned());
    }
    let facts = stat(filesystem.source.as_str()).ok()?;
    let is_block = rustix::fs::FileType::from_raw_mode(facts.st_mode).is_block_device();
    is_block.then(|| format!("{}:{}", major(facts.st_rdev), minor(facts.st_rdev)))
}

fn device_facts(number: &str) -> Option<DeviceFacts> {
    let directory = fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?;
    let is_partition = directory.join("partition").exists();
    let disk: PathBuf = if is_partition { directory.parent()?.to_owned() } else { directory.clone() };
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let read = |file: &str| {
        let text = fs::read_to_string(disk.join(file)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let flag = |file: &str| read(file).map(|text| text != "0");
    let scheduler = read("queue/scheduler").map(|line| chosen(&line));
    // A loop device has no model, but the file behind it tells which disk is meant.
    let model =
        read("device/model").or_else(|| read("loop/backing_file").map(|file| format!("loop over {file}")));
    Some(DeviceFacts {
        name: name(&directory)?,
        number: number.to_owned(),
        disk: name(&disk)?,
        model,
        write_cache: read("queue/write_cache"),
        fua: flag("queue/fua"),
        rotational: flag("queue/rotational"),
        scheduler,
        logical_block_bytes: read("queue/logical_block_size").and_then(|text| text.parse().ok()),
    })
}

/// `none [mq-deadline] kyber` -> `mq-deadline`
fn chosen(line: &str) -> String {
    let inside = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or_else(|| line.to_owned(), |(word, _)| word.to_owned())
}

/// jbd2 names a journal `<device>-<inode>`, or `<device>` alone where it has a device to itself.
fn find_journal(device: &str) -> Option<String> {
    let entries = fs::read_dir("/proc/fs/jbd2").ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut ours = names.filter(|name| {
        let inode = name.strip_prefix(device).map(|rest| rest.trim_start_matches('-'));
        inode.is_some_and(|inode| inode.chars().all(|character| character.is_ascii_digit()))
    });
    ours.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 7:0 / /mnt/with\\040space rw,noatime - xfs /dev/loop0 rw,attr2
31 22 0:40 /sub /mnt/b rw - btrfs /dev/loop1 rw,nodatacow
32 22 0:25 / /dev/shm rw - tmpfs tmpfs rw
";

    #[test]
    fn the_mount_that_covers_a_path_is_found() {
        for (number, path, kind, source) in [
            ("254:0", "/home/someone", "ext4", "/dev/vda"),
            ("7:0", "/mnt/with space/x", "xfs", "/dev/loop0"),
            ("0:41", "/mnt/b/subvolume", "btrfs", "/dev/loop1"),
            ("0:25", "/dev/shm", "tmpfs", "tmpfs"),
        ] {
            let found = find_mount(MOUNTS, number, Path::new(path)).unwrap();
            assert_eq!((found.kind.as_str(), found.source.as_str()), (kind, source));
        }
        assert_eq!(find_mount("nonsense", "1:1", Path::new("/")), None);
    }

    #[test]
    fn the_scheduler_in_brackets_is_the_one_in_use() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }
}
