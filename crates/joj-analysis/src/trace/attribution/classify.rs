//! What a run of bytes is for: from the region it lies in, the memory it came from, and what its first bytes say.
//!
//! Evidence, strongest first: the content (a magic number) where the filesystem put it, the region (the filesystem's own layout), the
//! page cache that the memory belongs to, an extent that the filesystem named. What none of them places is unattributed.

use crate::filesystem::class::{Class, Part};
use crate::filesystem::facts::Log;
use crate::filesystem::region::{Region, RegionUse};
use crate::filesystem::{Filesystem, btrfs, xfs};
use crate::trace::attribution::places::Places;
use crate::trace::event::{Backing, Content, DeviceNumber, Event, FileKey, RequestFlags};

/// What a run is for, as far as the event and the disk's layout say. `region` is the one that holds its first sector, `kind`
/// that of the filesystem there. `None`: neither the memory nor the layout tells.
pub fn classify(
    event: &Event,
    region: Option<&Region>,
    kind: Option<Filesystem>,
    places: &Places,
) -> Option<(Class, Part)> {
    if let Some(found) = by_content(event, region, places) {
        return Some(found);
    }
    if let Some(region) = region {
        return Some(by_region(event, region, kind, places));
    }
    match event.backing {
        Backing::File | Backing::Direct => Some((Class::Data, Part::Plain)),
        Backing::Inner => Some(inner(event, kind)),
        Backing::Device => device_page(event, kind, places),
        Backing::Private => private(event, kind),
        Backing::Unseen => flagged(event, kind),
    }
}

/// What a filesystem itself calls metadata (REQ_META), where it calls nothing else so.
fn flagged(event: &Event, kind: Option<Filesystem>) -> Option<(Class, Part)> {
    let is_metadata = kind?.facts().blocks.flags_metadata && event.flags.has(RequestFlags::METADATA);
    is_metadata.then_some((Class::Metadata, Part::Plain))
}

/// Memory without a file is many a thing: buffers of XFS, but also what goes to swap, parity of Btrfs, compressed data of F2FS, and
/// zeros that the kernel writes in a disk's stead.
fn private(event: &Event, kind: Option<Filesystem>) -> Option<(Class, Part)> {
    if kind?.facts().blocks.private_is_metadata {
        return Some((Class::Metadata, Part::Plain));
    }
    flagged(event, kind)
}

/// What the content says. Of XFS and Btrfs it comes from memory that only they have.
fn by_content(event: &Event, region: Option<&Region>, places: &Places) -> Option<(Class, Part)> {
    let part = match event.content {
        Content::JournalDescriptor
        | Content::JournalCommit
        | Content::JournalSuperblock
        | Content::JournalRevoke
            if !may_be_jbd2s(event, region, places) =>
        {
            return None;
        }
        Content::JournalDescriptor => Part::Descriptor,
        Content::JournalCommit => Part::Commit,
        Content::JournalSuperblock => Part::JournalSuperblock,
        Content::JournalRevoke => Part::Revoke,
        Content::XfsLog => Part::LogRecord,
        Content::BtrfsTree => return Some(btrfs::tree(event.detail)),
        Content::XfsBuffer => return Some(xfs::buffer(event.detail)),
        _ => return None,
    };
    Some((Class::Journal, part))
}

/// True where jbd2 may have put what begins with its magic. Programs may put the same bytes into a file, a copy of a journal, say. jbd2
/// has its own blocks in the page cache of the log's disk, and what else goes to its log it writes without that magic. Outside of the
/// log ext4 keeps values of attributes in that page cache.
fn may_be_jbd2s(event: &Event, region: Option<&Region>, places: &Places) -> bool {
    let in_log = match region {
        Some(region) => matches!(region.purpose, RegionUse::Journal | RegionUse::FastCommit),
        None => !places.has_layout(places.whole(event.device), event.sector),
    };
    event.backing == Backing::Device && in_log
}

fn by_region(event: &Event, region: &Region, kind: Option<Filesystem>, places: &Places) -> (Class, Part) {
    match region.purpose {
        RegionUse::Journal if log_of(kind) == Some(Log::Records) => (Class::Journal, Part::LogRecord),
        RegionUse::Journal => (Class::Journal, logged(event, region, places)),
        RegionUse::FastCommit => (Class::Journal, Part::FastCommit),
        RegionUse::Superblock => (Class::Superblock, Part::Plain),
        other => (Class::Metadata, other.part()),
    }
}

/// What a block of jbd2's log is. Its memory is the logged metadata block itself, whose page cache says which one that is.
fn logged(event: &Event, region: &Region, places: &Places) -> Part {
    if region.journal_offset == 0 && event.sector == region.sector {
        return Part::JournalSuperblock;
    }
    match event.backing {
        Backing::Device => logged_metadata(event, places),
        Backing::File | Backing::Direct => Part::LogOfData,
        Backing::Private | Backing::Inner => Part::LogOfCopy,
        // Only the block that ends a transaction must be durable at once.
        Backing::Unseen if event.flags.has(RequestFlags::FUA) => Part::Commit,
        Backing::Unseen => Part::Plain,
    }
}

fn logged_metadata(event: &Event, places: &Places) -> Part {
    // The page cache is the filesystem's, whose log may be on another disk.
    let cached = Some(event.file.device).filter(|device| *device != DeviceNumber::NONE);
    let cached = cached.unwrap_or(event.device);
    let (disk, home) = (places.whole(cached), places.sector_of(cached, event.offset));
    // Control blocks are buffers of the log's own blocks; their content is asked first.
    if disk == places.whole(event.device) && home == event.sector {
        return Part::Plain;
    }
    match places.region(disk, home).map(|region| region.purpose) {
        Some(RegionUse::InodeTable) => Part::LogOfInodeTable,
        Some(RegionUse::BlockBitmap) => Part::LogOfBlockBitmap,
        Some(RegionUse::InodeBitmap) => Part::LogOfInodeBitmap,
        Some(RegionUse::GroupDescriptors) => Part::LogOfGroupDescriptors,
        Some(RegionUse::Superblock) => Part::LogOfSuperblock,
        Some(_) => Part::LogOfCopy,
        None => Part::LogOfDirectory,
    }
}

/// What a run is for that lies in an extent of this file.
pub fn by_extent(file: FileKey, kind: Option<Filesystem>) -> (Class, Part) {
    kind.map_or((Class::Data, Part::Plain), |kind| kind.facts().blocks.extent(file.inode))
}

/// A file that the filesystem keeps for itself.
fn inner(event: &Event, kind: Option<Filesystem>) -> (Class, Part) {
    kind.map_or((Class::Metadata, Part::Plain), |kind| kind.facts().blocks.inner_file(event.file.inode))
}

/// What is in a filesystem's log.
pub fn log_of(kind: Option<Filesystem>) -> Option<Log> {
    kind.map(|kind| kind.facts().blocks.log)
}

fn device_page(event: &Event, kind: Option<Filesystem>, places: &Places) -> Option<(Class, Part)> {
    // A program may write to the device itself: that is neither data of a file nor metadata. It can be told apart where the filesystem
    // keeps nothing in that page cache.
    let blocks = &kind?.facts().blocks;
    if blocks.log != Log::Copies {
        return (blocks.device_pages)(event.offset);
    }
    // Metadata goes to its own place, but for its copy in a log of which the layout does not tell.
    if places.sector_of(event.device, event.offset) != event.sector {
        return Some((Class::Journal, Part::LogOfCopy));
    }
    // Without the layout it may as well be a bitmap.
    if places.has_layout(places.whole(event.device), event.sector) {
        return Some((Class::Metadata, Part::Directory));
    }
    (blocks.device_pages)(event.offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::event::FileKey;
    use crate::trace::header::{Disk, Header, MountedFilesystem};

    const DISK: DeviceNumber = DeviceNumber(7);

    /// Superblock at 2, inode table at 100, journal from 1000 on.
    fn places(kind: &str) -> Places {
        let region =
            |sector, sectors, purpose| Region { disk: DISK, sector, sectors, purpose, journal_offset: 0 };
        Places::new(&Header {
            disks: vec![Disk { number: DISK, whole: DISK, sectors: 1 << 20, ..Disk::default() }],
            filesystems: vec![MountedFilesystem {
                device: DISK,
                kind: kind.to_owned(),
                disks: vec![DISK],
                regions: vec![
                    region(2, 2, RegionUse::Superblock),
                    region(100, 80, RegionUse::InodeTable),
                    region(1000, 800, RegionUse::Journal),
                ],
                ..MountedFilesystem::default()
            }],
            ..Header::default()
        })
    }

    fn class(kind: &str, event: &Event) -> Option<(Class, Part)> {
        let places = places(kind);
        let kind = places.kind(places.filesystem(DISK, event.sector));
        classify(event, places.region(DISK, event.sector), kind, &places)
    }

    fn event(sector: u64, backing: Backing, offset: u64) -> Event {
        Event { device: DISK, sector, bytes: 4096, backing, offset, ..Event::default() }
    }

    #[test]
    fn a_block_of_the_log_says_which_metadata_it_is_a_copy_of() {
        let logged = |offset| class("ext4", &event(1016, Backing::Device, offset)).map(|(_, part)| part);
        assert_eq!(logged(100 * 512), Some(Part::LogOfInodeTable));
        assert_eq!(logged(2 * 512), Some(Part::LogOfSuperblock));
        assert_eq!(logged(5000 * 512), Some(Part::LogOfDirectory));
        assert_eq!(logged(1016 * 512), Some(Part::Plain));
        let copy = class("ext4", &event(1016, Backing::Private, 0));
        assert_eq!(copy, Some((Class::Journal, Part::LogOfCopy)));
        assert_eq!(
            class("ext4", &event(1000, Backing::Device, 0)),
            Some((Class::Journal, Part::JournalSuperblock))
        );
    }

    #[test]
    fn a_log_on_another_disk_holds_copies_of_the_filesystems_blocks() {
        let log = DeviceNumber(8);
        let region = |disk, sector, purpose| Region { disk, sector, sectors: 80, purpose, journal_offset: 0 };
        let disk = |number| Disk { number, whole: number, sectors: 1 << 20, ..Disk::default() };
        let places = Places::new(&Header {
            disks: vec![disk(DISK), disk(log)],
            filesystems: vec![MountedFilesystem {
                device: DISK,
                kind: "ext4".to_owned(),
                disks: vec![DISK],
                regions: vec![region(DISK, 100, RegionUse::InodeTable), region(log, 16, RegionUse::Journal)],
                ..MountedFilesystem::default()
            }],
            ..Header::default()
        });
        let logged = |sector, home: u64| {
            let file = FileKey { device: DISK, inode: 0, generation: 0 };
            let event = Event { device: log, file, ..event(sector, Backing::Device, home * 512) };
            classify(&event, places.region(log, sector), Some(Filesystem::Ext4), &places)
        };
        assert_eq!(logged(24, 104), Some((Class::Journal, Part::LogOfInodeTable)));
        // The same number on the other disk is another place.
        assert_eq!(logged(24, 24), Some((Class::Journal, Part::LogOfDirectory)));
    }

    #[test]
    fn content_comes_first_and_regions_before_page_caches() {
        let commit = Event { content: Content::JournalCommit, ..event(1024, Backing::Device, 1024 * 512) };
        assert_eq!(class("ext4", &commit), Some((Class::Journal, Part::Commit)));
        assert_eq!(
            class("ext4", &event(104, Backing::Device, 104 * 512)),
            Some((Class::Metadata, Part::InodeTable))
        );
        assert_eq!(
            class("ext4", &event(9000, Backing::Device, 9000 * 512)),
            Some((Class::Metadata, Part::Directory))
        );
        assert_eq!(class("ext4", &event(9000, Backing::File, 0)), Some((Class::Data, Part::Plain)));
    }

    /// A copy of a journal, or whatever begins like one.
    #[test]
    fn jbd2s_magic_in_a_file_is_the_files() {
        for content in [
            Content::JournalDescriptor,
            Content::JournalCommit,
            Content::JournalSuperblock,
            Content::JournalRevoke,
        ] {
            let begins = |sector, backing, offset| Event { content, ..event(sector, backing, offset) };
            for backing in [Backing::File, Backing::Direct] {
                let told = class("ext4", &begins(9000, backing, 0));
                assert_eq!(told, Some((Class::Data, Part::Plain)), "{content:?} {backing:?}");
                let logged = class("ext4", &begins(1024, backing, 0));
                assert_eq!(logged, Some((Class::Journal, Part::LogOfData)), "{content:?} {backing:?}");
            }
            // The value of an attribute, and a program's own memory in another filesystem's way to the disk.
            let value = class("ext4", &begins(9000, Backing::Device, 9000 * 512));
            assert_eq!(value, Some((Class::Metadata, Part::Directory)), "{content:?}");
            assert_eq!(class("vfat", &begins(9000, Backing::Private, 0)), None, "{content:?}");
            let unknown = Places::new(&Header::default());
            let elsewhere = classify(&begins(9000, Backing::Device, 0), None, None, &unknown);
            assert_eq!(elsewhere.map(|(class, _)| class), Some(Class::Journal), "{content:?}: no layout");
        }
    }

    #[test]
    fn without_memory_only_the_layout_speaks() {
        assert_eq!(class("ext4", &event(9000, Backing::Unseen, 0)), None);
        let fua = Event { flags: RequestFlags::FUA, ..event(1032, Backing::Unseen, 0) };
        assert_eq!(class("ext4", &fua), Some((Class::Journal, Part::Commit)));
        assert_eq!(class("ext4", &event(1032, Backing::Unseen, 0)), Some((Class::Journal, Part::Plain)));
        assert_eq!(class("vfat", &event(9000, Backing::Device, 0)), None);
        let meta = Event { flags: RequestFlags::METADATA, ..event(9000, Backing::Unseen, 0) };
        assert_eq!(class("xfs", &meta), Some((Class::Metadata, Part::Plain)));
        assert_eq!((class("btrfs", &meta), class("vfat", &meta)), (None, None));
        // XFS's log has nothing but records, from its first block on.
        for sector in [1000, 1032] {
            let record = Event { flags: RequestFlags::FUA, ..event(sector, Backing::Unseen, 0) };
            assert_eq!(class("xfs", &record), Some((Class::Journal, Part::LogRecord)));
        }
    }

    /// Swap, parity, what is compressed: all of it has such memory, too.
    #[test]
    fn memory_without_a_file_is_metadata_only_where_the_filesystem_says_so() {
        let private = event(9000, Backing::Private, 0);
        let flagged = Event { flags: RequestFlags::METADATA, ..private };
        for kind in ["ext4", "xfs", "btrfs", "f2fs", "vfat"] {
            assert_eq!(class(kind, &private), None, "{kind}");
        }
        assert_eq!(class("xfs", &flagged), Some((Class::Metadata, Part::Plain)));
        assert_eq!(class("btrfs", &flagged), None);
        // Summaries of segments.
        assert_eq!(class("nilfs2", &private), Some((Class::Metadata, Part::Plain)));
        // The layout tells all the same.
        let zeros = event(104, Backing::Private, 0);
        assert_eq!(class("ext4", &zeros), Some((Class::Metadata, Part::InodeTable)));
    }

    #[test]
    fn without_the_layout_no_part_is_claimed() {
        let header = Header {
            disks: vec![Disk { number: DISK, whole: DISK, sectors: 1 << 20, ..Disk::default() }],
            filesystems: vec![MountedFilesystem {
                kind: "ext4".to_owned(),
                disks: vec![DISK],
                ..MountedFilesystem::default()
            }],
            ..Header::default()
        };
        let found = classify(
            &event(9000, Backing::Device, 9000 * 512),
            None,
            Some(Filesystem::Ext4),
            &Places::new(&header),
        );
        assert_eq!(found, Some((Class::Metadata, Part::Plain)));
        let copy = classify(
            &event(9000, Backing::Device, 800 * 512),
            None,
            Some(Filesystem::Ext4),
            &Places::new(&header),
        );
        assert_eq!(copy, Some((Class::Journal, Part::LogOfCopy)));
    }

    #[test]
    fn filesystems_have_their_own_trees_and_inner_files() {
        let tree =
            |owner| Event { content: Content::BtrfsTree, detail: owner, ..event(9000, Backing::Inner, 0) };
        assert_eq!(class("btrfs", &tree(-6)), Some((Class::Journal, Part::LogTree)));
        assert_eq!(class("btrfs", &tree(5)), Some((Class::Metadata, Part::FileTree)));
        let buffer = |magic: &[u8; 4]| Event {
            content: Content::XfsBuffer,
            detail: i64::from(u32::from_be_bytes(*magic)),
            ..event(9000, Backing::Private, 0)
        };
        assert_eq!(class("xfs", &buffer(b"XAGF")), Some((Class::Metadata, Part::GroupHeader)));
        assert_eq!(class("xfs", &buffer(b"IN\x81\xa4")), Some((Class::Metadata, Part::InodeTable)));
        let inner = |inode| Event {
            file: FileKey { device: DISK, inode, generation: 0 },
            ..event(9000, Backing::Inner, 0)
        };
        assert_eq!(class("f2fs", &inner(1)), Some((Class::Node, Part::Plain)));
        assert_eq!(class("nilfs2", &inner(3)), Some((Class::Metadata, Part::InnerFile)));
    }
}
