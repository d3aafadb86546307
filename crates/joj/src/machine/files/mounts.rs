//! The filesystems that are mounted from disks: /proc/self/mountinfo, and Btrfs's own list of its disks.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::header::{Disk, MountedFilesystem};
use joj_analysis::trace::texts::name_of;
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use thiserror::Error;

use crate::machine::devices::disks::parse_number;

/// A mount's number that no later mount has (Linux 6.8; linux/stat.h).
const STATX_MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// A line of mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number, as `mnt_id` in /proc/self/fdinfo.
    pub identity: u64,
    /// `s_dev` of the filesystem.
    pub device: DeviceNumber,
    /// What of the filesystem is mounted; `/` for all of it.
    pub root: PathBuf,
    /// The directory on which it is mounted.
    pub mount_point: PathBuf,
    /// `ext4`, `xfs`, ..
    pub kind: String,
    /// What was mounted, as the mount command named it.
    pub source: PathBuf,
    /// Options of the mount and of the filesystem, each once.
    pub options: String,
}

impl Mount {
    /// A path below the mount as seen from the filesystem's root; `None` for a path elsewhere.
    pub fn inside(&self, path: &Path) -> Option<String> {
        let rest = path.strip_prefix(&self.mount_point).ok()?;
        Some(name_of(self.root.join(rest).as_os_str().as_bytes()).into_owned())
    }
}

/// The mounts of one filesystem. As long as one of them is there, what its device and its disk hold is that filesystem's.
#[derive(Debug, Clone, Default)]
pub struct MountsOfOne {
    mounts: Vec<(Mount, Option<u64>)>,
}

impl MountsOfOne {
    /// Those of this device among all mounts.
    pub fn of(device: DeviceNumber, mounted: &[Mount]) -> Self {
        let own = mounted.iter().filter(|mount| mount.device == device);
        Self { mounts: own.map(|mount| (mount.clone(), unique(mount))).collect() }
    }

    /// True where one of them is among those.
    pub fn is_among(&self, mounted: &[Mount]) -> bool {
        self.mounts.iter().any(|known| is_there(known, mounted))
    }

    /// True where one of them is there now. What was asked of the filesystem before is then its own answer, and no later one's.
    pub fn is_there(&self) -> bool {
        // Quicker than the list of all.
        let is_seen = |(mount, number): &(Mount, Option<u64>)| number.is_some() && unique(mount) == *number;
        self.mounts.iter().any(is_seen) || list().is_ok_and(|mounted| self.is_among(&mounted))
    }
}

/// True where this mount is among those, and no other lies on top. A number may be given again at once to another mount, which shows where
/// it can be asked: what lies on top may hide that.
fn is_there((known, number): &(Mount, Option<u64>), mounted: &[Mount]) -> bool {
    let same = |mount: &&Mount| (mount.identity, mount.device) == (known.identity, known.device);
    mounted.iter().find(same).is_some_and(|mount| number.is_none() || unique(mount) == *number)
}

/// The number that no later mount has; `None` where the kernel has none, or another mount lies on top.
fn unique(mount: &Mount) -> Option<u64> {
    let on_top = asked(&mount.mount_point, StatxFlags::MNT_ID)?;
    (on_top == mount.identity).then(|| asked(&mount.mount_point, STATX_MNT_ID_UNIQUE))?
}

fn asked(path: &Path, what: StatxFlags) -> Option<u64> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let found: Statx = statx(CWD, path, flags, what).ok()?;
    (found.stx_mask & what.bits() != 0).then_some(found.stx_mnt_id)
}

/// Why a mount is not known.
#[derive(Debug, Error)]
pub enum MountError {
    /// A file of /proc cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The mount is none of those that this process sees.
    #[error("it is on a mount that /proc/self/mountinfo does not list")]
    NotListed,
}

/// All mounts that this process sees, in mountinfo's order.
/// # Errors
/// /proc/self/mountinfo cannot be read.
pub fn list() -> Result<Vec<Mount>, MountError> {
    let path = "/proc/self/mountinfo";
    let text = fs::read(path).map_err(|error| MountError::Unreadable { path: path.to_owned(), error })?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse_line).collect())
}

/// The mounts on a directory and below it, whatever namespace's files they show.
/// # Errors
/// As [`list`]; a directory that is not there has none.
pub fn within(directory: &Path) -> Result<Vec<Mount>, MountError> {
    // mountinfo has whole names without links.
    let Ok(whole) = fs::canonicalize(directory) else { return Ok(Vec::new()) };
    Ok(list()?.into_iter().filter(|mount| mount.mount_point.starts_with(&whole)).collect())
}

/// Unmounts all that [`within`] finds, also what is in use: its path leads there no more. Gives the mount points; some stay where this
/// process may not unmount them.
pub fn detach_within(directory: &Path) -> Vec<PathBuf> {
    let mut detached = Vec::new();
    let mut there = within(directory).unwrap_or_default();
    // The outermost first, with what is on it.
    while let Some(mount) =
        there.iter().min_by_key(|mount| (mount.mount_point.components().count(), mount.identity))
    {
        let point = mount.mount_point.clone();
        // A mount may show what the machine itself has mounted (`mount --rbind / here`): without this that would go with it.
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        let gone = mount_change(&point, private)
            .and_then(|()| unmount(&point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW));
        let now = within(directory).unwrap_or_default();
        if gone.is_err() || now.len() >= there.len() {
            break;
        }
        detached.push(point);
        there = now;
    }
    detached
}

/// The filesystems that lie on `disks`, each once, without regions.
pub fn filesystems(mounts: &[Mount], disks: &[Disk]) -> Vec<MountedFilesystem> {
    let mut found: Vec<MountedFilesystem> = Vec::new();
    let mut whole: Vec<bool> = Vec::new();
    for mount in mounts {
        let is_whole = mount.root == Path::new("/");
        // Of several mounts of one filesystem that of its root says most.
        if let Some(known) = found.iter().position(|known| known.device == mount.device) {
            if is_whole && !whole[known] {
                whole[known] = true;
                found[known].mount_point = mount.mount_point.to_string_lossy().into_owned();
            }
            continue;
        }
        let below = disks_below(mount, disks);
        if below.is_empty() {
            continue;
        }
        whole.push(is_whole);
        found.push(MountedFilesystem {
            device: mount.device,
            kind: mount.kind.clone(),
            mount_point: mount.mount_point.to_string_lossy().into_owned(),
            options: mount.options.clone(),
            disks: below,
            ..MountedFilesystem::default()
        });
    }
    found
}

/// `s_dev` of the file at a path, which may be one of a process's descriptors in /proc: what stat says where that `is_known`. On
/// Btrfs each subvolume has a device number of its own, and the mount says more.
pub fn device_of(
    path: &Path,
    process: u32,
    mounts: &[Mount],
    is_known: impl Fn(DeviceNumber) -> bool,
) -> Option<DeviceNumber> {
    let device = fs::metadata(path).ok()?.dev();
    let device = DeviceNumber::new(rustix::fs::major(device), rustix::fs::minor(device))?;
    if is_known(device) {
        return Some(device);
    }
    if let Ok(descriptor) = path.strip_prefix(format!("/proc/{process}/fd")) {
        let facts = fs::read_to_string(format!("/proc/{process}/fdinfo/{}", descriptor.display())).ok()?;
        let number: u64 = facts.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())?;
        return mounts.iter().find(|mount| mount.identity == number).map(|mount| mount.device);
    }
    let path = fs::canonicalize(path).ok()?;
    let holding = mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
    holding.max_by_key(|mount| mount.mount_point.as_os_str().len()).map(|mount| mount.device)
}

/// The mount that `file` was opened through.
/// # Errors
/// The kernel does not say.
pub fn of_open_file(file: &File, mounts: &[Mount]) -> Result<Mount, MountError> {
    let path = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
    let text =
        fs::read_to_string(&path).map_err(|error| MountError::Unreadable { path: path.clone(), error })?;
    let identity = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    let found = mounts.iter().find(|mount| Some(mount.identity) == identity);
    found.cloned().ok_or(MountError::NotListed)
}

/// The disks or partitions that hold a mounted filesystem; none for tmpfs, network filesystems and the like.
pub fn disks_below(mount: &Mount, disks: &[Disk]) -> Vec<DeviceNumber> {
    if disks.iter().any(|disk| disk.number == mount.device) {
        return vec![mount.device];
    }
    if mount.kind == "btrfs" { btrfs_disks(mount) } else { Vec::new() }
}

/// Btrfs has a device number of its own. The kernel lists its disks by its UUID, which the disk that was mounted leads to.
fn btrfs_disks(mount: &Mount) -> Vec<DeviceNumber> {
    let source = device_of_node(&mount.source);
    for filesystem in fs::read_dir("/sys/fs/btrfs").into_iter().flatten().flatten() {
        let mut disks: Vec<DeviceNumber> = fs::read_dir(filesystem.path().join("devices"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| parse_number(&fs::read_to_string(entry.path().join("dev")).ok()?))
            .collect();
        if source.is_some_and(|source| disks.contains(&source)) {
            disks.sort_unstable();
            return disks;
        }
    }
    Vec::new()
}

/// The number of the block device behind a node such as /dev/vda1; `None` for any other file.
pub fn device_of_node(path: impl AsRef<Path>) -> Option<DeviceNumber> {
    let facts = fs::metadata(path).ok().filter(|facts| facts.file_type().is_block_device())?;
    DeviceNumber::new(rustix::fs::major(facts.rdev()), rustix::fs::minor(facts.rdev()))
}

/// `36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/root rw,errors=continue`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let dash = words.iter().skip(6).position(|word| *word == b"-")? + 6;
    let mut options = text(words.get(5)?);
    for option in text(words.get(dash + 3).copied().unwrap_or_default()).split(',') {
        if !option.is_empty() && options.split(',').all(|known| known != option) {
            options = format!("{options},{option}");
        }
    }
    Some(Mount {
        identity: text(words.first()?).parse().ok()?,
        device: parse_number(&text(words.get(2)?))?,
        root: unescape(words.get(3)?),
        mount_point: unescape(words.get(4)?),
        kind: text(words.get(dash + 1)?),
        source: unescape(words.get(dash + 2)?),
        options,
    })
}

/// Undoes `\040`: space, tab, newline, backslash and `#` are three octal digits in the kernel's lists of mounts and swaps.
pub fn unescape(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = word;
    while let [first, after @ ..] = rest {
        let digits =
            after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 /sub /bound rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 7:0 / /mnt/with\\040space\\134 rw,noatime master:1 propagate_from:2 - xfs /dev/loop0 rw,attr2
32 22 0:25 / /dev/shm rw - tmpfs tmpfs rw
nonsense
";

    fn mounts() -> Vec<Mount> {
        MOUNTS.split('\n').filter_map(|line| parse_line(line.as_bytes())).collect()
    }

    #[test]
    fn lines_are_read_with_their_escapes_and_optional_fields() {
        let mounts = mounts();
        assert_eq!(mounts.len(), 4);
        assert_eq!(mounts[2].mount_point, Path::new("/mnt/with space\\"));
        assert_eq!((mounts[2].kind.as_str(), mounts[2].options.as_str()), ("xfs", "rw,noatime,attr2"));
        assert_eq!(unescape(b"a\\0"), Path::new("a\\0"), "too short for an escape");
        assert_eq!(unescape(b"\\999\\777"), Path::new("\\999\\777"), "no octal digits, no byte");
    }

    #[test]
    fn a_mount_names_paths_as_its_filesystem_does() {
        let line = b"26 1 254:3 /data /mnt/a\\040b rw,relatime shared:1 - ext4 /dev/vda3 rw";
        let mount = parse_line(line).unwrap();
        assert_eq!((mount.identity, mount.device.to_string().as_str()), (26, "254:3"));
        assert_eq!(mount.inside(Path::new("/mnt/a b/app.db")).as_deref(), Some("/data/app.db"));
        assert_eq!(mount.inside(Path::new("/mnt/app.db")), None);
    }

    #[test]
    fn each_filesystem_on_a_disk_is_listed_once_by_the_mount_of_its_root() {
        let disk = |text: &str| Disk { number: parse_number(text).unwrap(), ..Disk::default() };
        let found = filesystems(&mounts(), &[disk("254:0"), disk("7:0")]);
        let points: Vec<&str> = found.iter().map(|filesystem| filesystem.mount_point.as_str()).collect();
        assert_eq!(points, ["/", "/mnt/with space\\"]);
        assert_eq!(found[0].disks, [DeviceNumber(254 << 20)]);
    }

    #[test]
    fn an_open_file_leads_to_its_mount() {
        let file = File::open("/proc/self/status").unwrap();
        let mount = of_open_file(&file, &list().unwrap()).unwrap();
        assert_eq!((mount.kind.as_str(), mount.mount_point.as_path()), ("proc", Path::new("/proc")));
    }

    fn at_no_place(identity: u64, minor: u32) -> Mount {
        Mount {
            identity,
            device: DeviceNumber(minor),
            root: PathBuf::from("/"),
            mount_point: PathBuf::from("/nowhere/at/all"),
            kind: "ext4".to_owned(),
            source: PathBuf::from("/dev/vda"),
            options: String::new(),
        }
    }

    #[test]
    fn a_mount_is_there_as_long_as_its_number_stands_for_it() {
        let known = MountsOfOne::of(DeviceNumber(1), &[at_no_place(5, 2), at_no_place(7, 1)]);
        assert!(known.is_among(&[at_no_place(6, 2), at_no_place(7, 1)]));
        assert!(!known.is_among(&[at_no_place(6, 1), at_no_place(7, 2)]) && !known.is_there());
        let covered = MountsOfOne { mounts: vec![(at_no_place(7, 1), Some(70))] };
        assert!(!covered.is_among(&[at_no_place(7, 1)]), "what lies on top may hide another");
        let root = list().unwrap().into_iter().find(|mount| mount.mount_point == Path::new("/"));
        let root = root.expect("a root");
        let mounted = std::slice::from_ref(&root);
        let known = MountsOfOne::of(root.device, mounted);
        assert!(known.is_among(mounted) && known.is_there());
        if let Some(number) = unique(&root) {
            let later = MountsOfOne { mounts: vec![(root.clone(), Some(number + 1))] };
            assert!(!later.is_among(mounted) && !later.is_there(), "the number was given again");
        }
    }
}
