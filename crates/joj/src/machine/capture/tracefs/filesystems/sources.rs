//! The filesystems whose files can be asked for, and what each of them tells by itself.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use joj_analysis::trace::event::FileKey;
use joj_analysis::trace::header::Disk;

use crate::machine::capture::tracefs::filesystems::places::Places;
use crate::machine::capture::tracefs::filesystems::volumes::Mounted;
use crate::machine::files::file_handle;

/// The events without which nobody tells that a number was given to a new file, by the beginning of a filesystem's name.
const CREATIONS: [(&str, &[&str]); 3] = [
    ("ext", &["events/ext4/ext4_allocate_inode"]),
    ("xfs", &["events/xfs/xfs_create", "events/xfs/xfs_iget_miss"]),
    ("btrfs", &["events/btrfs/btrfs_inode_new"]),
];

/// A filesystem whose files can be asked for.
#[derive(Debug)]
pub struct Source {
    /// Where it is mounted.
    pub mounted: Mounted,
    /// Where its files lie.
    pub places: Places,
    /// Records tell when a number is given to a new file.
    pub tells_creations: bool,
    /// The mount point's inode number; 0 on Btrfs, where each subvolume has one of that number.
    pub top: u64,
}

impl Source {
    /// Of a mounted filesystem on one of these disks, of which these events tell. The second: what is missed.
    pub fn of(mounted: &Mounted, disks: &[Disk], events: &[String]) -> (Self, Option<String>) {
        let top = mounted.top.filter(|_| mounted.mount.kind != "btrfs").map_or(0, |(_, inode)| inode);
        let tells = |event: &&str| events.iter().any(|path| path == event);
        let creation = CREATIONS.iter().find(|(kind, _)| mounted.mount.kind.starts_with(kind));
        let tells_creations = creation.is_some_and(|(_, events)| events.iter().all(tells));
        let (places, missed) = match Places::of(mounted, disks) {
            Ok(places) => (places, None),
            Err(missed) => (Places::default(), Some(missed)),
        };
        (Self { mounted: mounted.clone(), places, tells_creations, top }, missed)
    }

    /// ext2 and ext3 are mounted by the same driver. It does not tell where it writes what it wrote before.
    pub fn is_ext4(&self) -> bool {
        self.mounted.mount.kind.starts_with("ext")
    }

    /// Whose removals are told by records of the thread that removes.
    pub fn tells_removals(&self) -> bool {
        self.is_ext4() || self.mounted.mount.kind == "f2fs"
    }

    /// Whose own records name the file of each sync call. /proc would be asked later, when the descriptor may be another file's.
    pub fn tells_syncs(&self) -> bool {
        self.is_ext4() || matches!(self.mounted.mount.kind.as_str(), "xfs" | "btrfs" | "f2fs")
    }

    /// XFS's requests say themselves that they carry a directory or a link's target (REQ_META); to F2FS these are data.
    pub fn places_metadata(&self) -> bool {
        matches!(self.mounted.mount.kind.as_str(), "xfs" | "f2fs")
    }

    /// A descriptor that names the file.
    pub fn find(&self, file: FileKey) -> Option<File> {
        let directory = self.mounted.directory()?;
        if file.inode == self.top {
            return Some(directory);
        }
        // Elsewhere a handle needs the generation, which is what we want to know. F2FS would do without, but takes a number that
        // is no inode's for damage: from then on it writes in other ways, and asks for fsck (f2fs_check_nid_range).
        self.is_ext4().then_some(())?;
        file_handle::open_inode(&directory, file.inode, 0).ok()
    }

    /// What a file that was found so is called.
    pub fn name_of(&self, found: &File, facts: &Metadata) -> Option<String> {
        let path = self.mounted.path_of(found).filter(|path| !is_made_up(path, facts))?;
        // Where the kernel has no name in memory, it calls the file by the mount's own name.
        let is_top_of_all = path == self.mounted.mount.mount_point || path == Path::new("/");
        (facts.ino() == self.top || !is_top_of_all).then(|| self.mounted.mount.inside(&path))?
    }
}

/// True for the name that the kernel makes up for a file that never had one (O_TMPFILE, d_tmpfile).
pub fn is_made_up(path: &Path, facts: &Metadata) -> bool {
    facts.nlink() == 0 && path.file_name() == Some(OsStr::new(&format!("#{}", facts.ino())))
}
