//! Where a file lies that was there before the capture, asked without opening it: closing a file again makes ext4, XFS and Btrfs write
//! what was put into it after it was cut to nothing, and takes that from whoever has it open.
//!
//! ext4 is read from its disk, through the page cache in which the kernel changes it; Btrfs tells the items of its trees. XFS names
//! the place of everything that it reads or writes.

use std::fs::File;
use std::path::Path;

use joj_analysis::filesystem::{ext4, layout::Extent};
use joj_analysis::trace::event::{Event, EventKind, FileKey};
use joj_analysis::trace::ftrace::inode_number;
use joj_analysis::trace::ftrace::volume::{Addressing, Place, Volume};
use joj_analysis::trace::header::Disk;

use crate::machine::capture::tracefs::filesystems::volumes::Mounted;
use crate::machine::devices::btrfs_tree;
use crate::machine::devices::device_bytes::DeviceBytes;
use crate::machine::files::extents::extents_of_open;

/// A file's bytes that lie together: (first byte in the file, first byte of its filesystem's addresses, length).
type Piece = (u64, u64, u64);

/// Asks one filesystem.
#[derive(Debug, Default)]
pub struct Places {
    /// ext4's.
    disk: Option<(DeviceBytes, Extent)>,
}

impl Places {
    /// Of a filesystem, on one of these disks. `Err` says what is missed.
    /// # Errors
    /// ext4's disk cannot be read.
    pub fn of(mounted: &Mounted, disks: &[Disk]) -> Result<Self, String> {
        if !mounted.mount.kind.starts_with("ext") {
            return Ok(Self::default());
        }
        let point = mounted.mount.mount_point.display();
        let missed = |problem: String| {
            format!("{point}: where files lie that were there before the start is not known: {problem}")
        };
        let disk = disks.iter().find(|disk| disk.number == mounted.volume.device);
        let disk = disk.ok_or_else(|| missed("its disk is not listed".to_owned()))?;
        let bytes = DeviceBytes::open(disk).map_err(|error| missed(error.to_string()))?;
        bytes.without_reading_ahead();
        let extent = Extent { disk: disk.whole, start_sector: disk.start_sector, sectors: disk.sectors };
        Ok(Self { disk: Some((bytes, extent)) })
    }

    /// Where a file lies, as events. The path is where it was found, if anybody knows one.
    pub fn extents(&self, mounted: &Mounted, file: FileKey, path: Option<&Path>) -> Vec<Event> {
        let pieces = match mounted.mount.kind.as_str() {
            "ext2" | "ext3" | "ext4" => self.ext4(file),
            "btrfs" => path.and_then(|path| btrfs(path, file)),
            "f2fs" => path.and_then(f2fs),
            _ => None,
        };
        let mut events = Vec::new();
        for (offset, start, bytes) in pieces.unwrap_or_default() {
            for place in in_bytes(&mounted.volume, start, bytes) {
                events.push(Event {
                    kind: EventKind::Extent,
                    file,
                    offset: offset.saturating_add(place.skipped_bytes),
                    device: place.disk,
                    sector: place.sector,
                    bytes: place.bytes,
                    ..Event::default()
                });
            }
        }
        events
    }

    /// True for an inode that ext4 keeps for the value of an attribute: nobody can open it.
    pub fn is_value(&self, file: FileKey) -> bool {
        self.disk.as_ref().is_some_and(|(bytes, extent)| {
            ext4::is_value(*extent, file.inode, &mut |at, length| bytes.read(at, length)).unwrap_or(false)
        })
    }

    fn ext4(&self, file: FileKey) -> Option<Vec<Piece>> {
        let (bytes, extent) = self.disk.as_ref()?;
        // The kernel may be changing what is read: then a second look helps, or nobody knows.
        let mut read = |at: u64, length: usize| bytes.read(at, length);
        let found = (0..2).find_map(|_| ext4::file(*extent, file.inode, &mut read).ok())?;
        Some(found.into_iter().map(|piece| (piece.offset, piece.at, piece.bytes)).collect())
    }
}

/// Its trees are told through a directory of the file's subvolume.
fn btrfs(path: &Path, file: FileKey) -> Option<Vec<Piece>> {
    let path = std::fs::canonicalize(path).ok()?;
    let directory = File::open(path.parent()?).ok()?;
    btrfs_tree::file(&directory, inode_number::own(file.inode)).ok()
}

/// It writes nothing when a reader closes a file (f2fs_release_file).
fn f2fs(path: &Path) -> Option<Vec<Piece>> {
    let extents = extents_of_open(&File::open(path).ok()?).ok()?;
    let placed = extents.into_iter().filter(|extent| extent.flags.has_place());
    Some(placed.map(|extent| (extent.offset, extent.physical_byte, extent.bytes)).collect())
}

/// Addresses in bytes, also where the filesystem counts blocks.
fn in_bytes(volume: &Volume, start: u64, bytes: u64) -> Vec<Place> {
    match &volume.addressing {
        Addressing::Blocks { base, .. } | Addressing::Groups { base, .. } => {
            let addressing = Addressing::Blocks { base: *base, block_bytes: 1 };
            Volume { addressing, ..volume.clone() }.places(start, bytes)
        }
        Addressing::Chunks(_) => volume.places(start, bytes),
    }
}
