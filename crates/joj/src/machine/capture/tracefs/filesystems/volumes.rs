//! The mounted filesystems whose files a capture can place: where each begins on its disk, and its arithmetic.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::ftrace::volume::{Addressing, Base, Volume};

use crate::machine::devices::btrfs_chunks;
use crate::machine::devices::btrfs_tree;
use crate::machine::devices::device_base::base;
use crate::machine::files::file_handle;
use crate::machine::files::mounts::{Mount, MountsOfOne};

/// A volume, where it is mounted, and what it is.
#[derive(Debug, Clone)]
pub struct Mounted {
    /// Its arithmetic.
    pub volume: Volume,
    /// One of its mounts, with its root directory if there is such a one.
    pub mount: Mount,
    /// All of them.
    pub mounts: MountsOfOne,
    /// What is not known of it, a sentence each.
    pub limits: Vec<String>,
    /// Each counts its inodes for itself (Btrfs). More may come.
    pub has_subvolumes: bool,
    /// `st_dev` and inode number of the mount point.
    pub top: Option<(u64, u64)>,
}

impl Mounted {
    /// Its mount point, to be closed soon: while it is open nobody can unmount the filesystem. `None` where it is not there any more,
    /// also where another filesystem is, with the same numbers.
    pub fn directory(&self) -> Option<File> {
        let directory = File::open(&self.mount.mount_point).ok()?;
        let is_it = self.top.is_some() && self.top == top(&directory) && self.mounts.is_there();
        is_it.then_some(directory)
    }

    /// What a file is called that was found from there.
    pub fn path_of(&self, found: &File) -> Option<PathBuf> {
        match self.mount.kind == "btrfs" && self.mount.root != Path::new("/") {
            true => file_handle::path_below_mount(found),
            false => file_handle::path_of(found),
        }
    }
}

fn top(directory: &File) -> Option<(u64, u64)> {
    let facts = directory.metadata().ok()?;
    Some((facts.dev(), facts.ino()))
}

/// The volumes on these whole disks, or on any where none is named.
pub fn volumes(mounts: &[Mount], disks: &[DeviceNumber]) -> Vec<Mounted> {
    let mut found: Vec<Mounted> = Vec::new();
    for mount in mounts {
        match found.iter_mut().find(|known| known.mount.device == mount.device) {
            Some(known) if known.mount.root.as_os_str().len() > mount.root.as_os_str().len() => {
                known.mount = mount.clone()
            }
            Some(_) => {}
            None => {
                let own = MountsOfOne::of(mount.device, mounts);
                let volume = volume(mount).filter(|one| disks.is_empty() || is_on(&one.volume, disks));
                found.extend(volume.map(|one| Mounted { mounts: own, ..one }));
            }
        }
    }
    found
}

fn is_on(volume: &Volume, disks: &[DeviceNumber]) -> bool {
    if base(volume.device).is_some_and(|base| disks.contains(&base.disk)) {
        return true;
    }
    match &volume.addressing {
        Addressing::Blocks { base, .. } | Addressing::Groups { base, .. } => disks.contains(&base.disk),
        Addressing::Chunks(chunks) => {
            chunks.iter().flat_map(|chunk| &chunk.copies).any(|(base, _)| disks.contains(&base.disk))
        }
    }
}

/// Reads a filesystem's arithmetic; `None` where it is on no disk. Its mounts are yet to be filled in.
fn volume(mount: &Mount) -> Option<Mounted> {
    let mut limits = Vec::new();
    let base = base(mount.device);
    if mount.kind != "btrfs" && fs::exists(format!("/sys/dev/block/{}/dm", mount.device)).unwrap_or(false) {
        let place = mount.mount_point.display();
        limits.push(format!("{place} is on a device-mapper device: requests below it have no file"));
    }
    if matches!(mount.kind.as_str(), "xfs" | "btrfs") {
        let (place, kind) = (mount.mount_point.display(), &mount.kind);
        limits.push(format!(
            "{place}: {kind} does not tell when a sync without a system call around it ends (O_SYNC, O_DSYNC, io_uring, \
             AIO): such calls are counted, and how long they took and what they wrote is not known"
        ));
    }
    let (mut id, mut first_inode, mut has_subvolumes) = ([0; 16], 0, false);
    let addressing = match mount.kind.as_str() {
        "ext2" | "ext3" | "ext4" => {
            // Lower ones are the journal, the root directory (2), quotas (EXT4_GOOD_OLD_FIRST_INO).
            first_inode = 11;
            Addressing::Blocks { base: base?, block_bytes: block_bytes(&mount.mount_point)? }
        }
        "f2fs" => {
            // Its nodes, whose places it tells as a file's.
            first_inode = 1;
            Addressing::Blocks { base: base?, block_bytes: block_bytes(&mount.mount_point)? }
        }
        "xfs" => xfs(&mount.mount_point, base?)?,
        "btrfs" => {
            let chunks = btrfs_chunks::read(&mount.mount_point).ok()?;
            id = chunks.id;
            limits.extend(chunks.limit);
            let top = File::open(&mount.mount_point);
            has_subvolumes = top.and_then(|top| btrfs_tree::has_subvolumes(&top)).unwrap_or(true);
            Addressing::Chunks(chunks.chunks)
        }
        // Its files have names and sync calls; where they lie nobody tells.
        _ => {
            base?;
            Addressing::Chunks(Vec::new())
        }
    };
    Some(Mounted {
        volume: Volume { device: mount.device, id, first_inode, addressing },
        mount: mount.clone(),
        mounts: MountsOfOne::default(),
        limits,
        has_subvolumes,
        top: File::open(&mount.mount_point).ok().as_ref().and_then(top),
    })
}

/// What its arithmetic is now, if it is mounted still.
pub fn read_again(mounted: &Mounted) -> Option<Volume> {
    volume(&mounted.mount).map(|now| now.volume).filter(|_| mounted.mounts.is_there())
}

fn block_bytes(point: &Path) -> Option<u64> {
    rustix::fs::statvfs(point).ok().map(|facts| facts.f_bsize)
}

/// XFS_IOC_FSGEOMETRY_V1 (linux: fs/xfs/libxfs/xfs_fs.h, struct xfs_fsop_geom_v1), of which we want two numbers.
#[repr(C)]
#[derive(Debug, Default)]
struct XfsGeometry {
    block_bytes: u32,
    realtime_extent: u32,
    group_blocks: u32,
    rest: [u32; 25],
}

const XFS_GEOMETRY: u64 = 0x8070_5864;
const _: () = assert!(size_of::<XfsGeometry>() == 112, "the size is part of the ioctl's number");

fn xfs(point: &Path, base: Base) -> Option<Addressing> {
    let directory = File::open(point).ok()?;
    let mut geometry = XfsGeometry::default();
    // SAFETY: the descriptor is open; the kernel writes 112 bytes, as the request's number says, which `geometry` has.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), XFS_GEOMETRY as _, &raw mut geometry) };
    (result == 0 && geometry.group_blocks > 0).then(|| Addressing::Groups {
        base,
        block_bytes: u64::from(geometry.block_bytes),
        group_blocks: u64::from(geometry.group_blocks),
        // Addresses leave each group room up to the next power of two (sb_agblklog).
        group_shift: (geometry.group_blocks - 1).checked_ilog2().map_or(0, |bits| bits + 1),
    })
}
