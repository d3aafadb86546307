//! What the kernel tells of a file's file system and device, and where each fact was read.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{AtFlags, StatFs, StatxFlags};

use crate::disk::{Facts, Filesystem};

/// (name, value, where it was read).
type Described = (&'static str, String, String);

/// The file system kinds by statfs(2)'s `f_type`.
const MAGIC: [(u64, Filesystem, &str); 17] = [
    (0xef53, Filesystem::Ext4, "ext4"),
    (0x5846_5342, Filesystem::Xfs, "xfs"),
    (0x9123_683e, Filesystem::Btrfs, "btrfs"),
    (0xf2f5_2010, Filesystem::F2fs, "f2fs"),
    (0x3434, Filesystem::Nilfs2, "nilfs2"),
    (0x0102_1994, Filesystem::Tmpfs, "tmpfs"),
    (0x8584_58f6, Filesystem::Tmpfs, "ramfs"),
    (0x794c_7630, Filesystem::Overlay, "overlay"),
    (0x6573_5546, Filesystem::Fuse, "fuse"),
    (0x6969, Filesystem::Network, "nfs"),
    (0xff53_4d42, Filesystem::Network, "cifs"),
    (0xfe53_4d42, Filesystem::Network, "smb2"),
    (0x517b, Filesystem::Network, "smb"),
    (0x00c3_6400, Filesystem::Network, "ceph"),
    (0x5346_414f, Filesystem::Network, "afs"),
    (0x6b41_4653, Filesystem::Network, "afs"),
    (0x0102_1997, Filesystem::Network, "9p"),
];

/// The kind of file system and its direct I/O alignment; `Other` and none where nobody can tell.
pub(crate) fn facts(file: BorrowedFd<'_>) -> Facts {
    let filesystem = kind_of(magic_of(file).unwrap_or(0));
    Facts { filesystem, direct_align_bytes: direct_align_bytes(file) }
}

fn kind_of(magic: u64) -> Filesystem {
    MAGIC.iter().find(|row| row.0 == magic).map_or(Filesystem::Other, |row| row.1)
}

/// The file system that `path` lies on.
/// # Errors
/// As statfs(2).
pub(crate) fn filesystem_of(path: &Path) -> io::Result<Filesystem> {
    Ok(kind_of(magic_in(rustix::fs::statfs(path)?)))
}

fn magic_of(file: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(magic_in(rustix::fs::fstatfs(file)?))
}

fn magic_in(status: StatFs) -> u64 {
    // The type of f_type differs between platforms; its 32 bits do not.
    u64::try_from(status.f_type).unwrap_or(0) & 0xffff_ffff
}

/// From statx(2), `STATX_DIOALIGN` (Linux 6.1); 0 where unknown or where the file takes no direct I/O.
fn direct_align_bytes(file: BorrowedFd<'_>) -> u32 {
    match rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(facts) if facts.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            facts.stx_dio_offset_align.max(facts.stx_dio_mem_align)
        }
        _ => 0,
    }
}

/// Everything; a fact that cannot be read is left out.
pub(crate) fn describe(file: BorrowedFd<'_>) -> Vec<Described> {
    let mut facts = Vec::new();
    if let Ok(magic) = magic_of(file) {
        let name = MAGIC.iter().find(|row| row.0 == magic).map_or("unknown", |row| row.2);
        facts.push(("filesystem", name.to_owned(), format!("statfs f_type {magic:#x}")));
    }
    facts.push((
        "direct_align_bytes",
        direct_align_bytes(file).to_string(),
        "statx STATX_DIOALIGN".to_owned(),
    ));
    if let Ok(status) = rustix::fs::fstat(file) {
        let (major, minor) = (rustix::fs::major(status.st_dev), rustix::fs::minor(status.st_dev));
        describe_device(&format!("/sys/dev/block/{major}:{minor}"), &mut facts);
    }
    facts
}

fn describe_device(sysfs: &str, facts: &mut Vec<Described>) {
    let Ok(target) = fs::canonicalize(sysfs) else {
        // Btrfs, overlayfs, tmpfs and network file systems have device numbers of their own.
        facts.push(("device", "not a single block device".to_owned(), format!("{sysfs} is absent")));
        return;
    };
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    facts.push(("device", name, format!("{sysfs} (link)")));
    // A partition has no queue of its own: its disk has.
    let disk =
        if target.join("queue").exists() { target.as_path() } else { target.parent().unwrap_or(&target) };
    let queue_facts = [
        ("device_write_cache", "queue/write_cache"),
        ("device_fua", "queue/fua"),
        ("device_logical_block_bytes", "queue/logical_block_size"),
        ("device_physical_block_bytes", "queue/physical_block_size"),
        ("device_rotational", "queue/rotational"),
        ("device_scheduler", "queue/scheduler"),
        ("device_write_zeroes_max_bytes", "queue/write_zeroes_max_bytes"),
        ("device_model", "device/model"),
    ];
    for (name, file) in queue_facts {
        push_file(name, &disk.join(file), facts);
    }
}

fn push_file(name: &'static str, path: &Path, facts: &mut Vec<Described>) {
    if let Ok(text) = fs::read_to_string(path) {
        facts.push((name, text.trim().to_owned(), path.display().to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of linux/magic.h, of what no test machine has mounted.
    #[test]
    fn a_network_filesystem_is_known_by_its_number() {
        for magic in [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x00c3_6400, 0x6b41_4653, 0x0102_1997] {
            assert_eq!(kind_of(magic), Filesystem::Network, "{magic:#x}");
        }
        assert_eq!(kind_of(0), Filesystem::Other);
    }
}
