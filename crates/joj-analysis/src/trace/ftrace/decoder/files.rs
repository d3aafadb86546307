//! Events of filesystems: where files lie, when they are made durable, cut and removed.

use crate::trace::ftrace::known::{Known, Values};
use crate::trace::ftrace::record::{InodeKind, Length, Mapping, What};

/// BH_Mapped and BH_Unwritten among ext4's flags of a mapping; the second moved from bit 12 to 11 (linux/buffer_head.h).
const MAPPED: u64 = 1 << 4 | 1 << 11 | 1 << 12;
/// XFS's addresses have 52 bits; what has more stands for a hole or for space not yet chosen (xfs_format.h, STARTBLOCKMASK).
const XFS_ADDRESSES: u64 = 1 << 51;
/// XFS's attributes have addresses of their own (XFS_ATTR_FORK).
const XFS_ATTRIBUTES: i64 = 1;
/// BMAP_ATTRFORK (xfs_inode_fork.h and its predecessors).
const XFS_EXTENT_OF_ATTRIBUTES: u64 = 1 << 8;
/// IOCB_DSYNC (linux/fs.h), the same bit as RWF_DSYNC.
const DSYNC: u64 = 2;
/// IOCB_NOWAIT, the same bit as RWF_NOWAIT.
const NOWAIT: u64 = 8;
/// BTRFS_BLOCK_GROUP_DATA (btrfs_tree.h).
const BTRFS_DATA: u64 = 1;
/// BTRFS_DATA_RELOC_TREE_OBJECTID.
const BTRFS_RELOCATION_TREE: i64 = -9;
/// S_IFMT, S_IFREG and S_IFDIR (stat(2)).
const TYPE_MASK: u64 = 0o170_000;
const REGULAR: u64 = 0o100_000;
const DIRECTORY: u64 = 0o040_000;
/// The end of a file, as ext4 counts its blocks.
const EXT4_LAST: u64 = 0xffff_fff0;

const fn file(
    system: &'static str,
    names: &'static [&'static str],
    fields: &'static [&'static str],
    without: &'static str,
    read: fn(&Values<'_>) -> Option<What>,
) -> Known {
    Known { system, names, fields, device_field: "dev", filter: "", without, read }
}

/// For filesystems whose events carry no device.
const fn by_id(known: Known) -> Known {
    Known { device_field: "", ..known }
}

const PLACES: &str = "where files lie that were written after the start";
const MOVED: &str = "which bytes of files got other places in them";
const CUT: &str = "which places files gave up";
const SYNC: &str = "which file a sync call is for";
const TREES: &str = "which tree of Btrfs a block belongs to";
const GONE: &str = "which inode numbers were given to other files";

/// The events of files and filesystems that joj reads.
pub(super) const FILES: &[Known] = &[
    file("ext4", &["ext4_sync_file_enter"], &["dev", "ino", "datasync?"], SYNC, |values| {
        file_sync(values, true)
    }),
    file("ext4", &["ext4_sync_file_exit"], &["dev", "ino", "ret"], SYNC, file_sync_end),
    file("ext4", &["ext4_ext_map_blocks_exit"], EXT4_MAP, PLACES, ext4_map),
    file("ext4", &["ext4_ind_map_blocks_exit"], EXT4_MAP, PLACES, ext4_map),
    // With the first look at a file's extents come those around; afterwards ext4 asks its memory alone.
    file("ext4", &["ext4_es_cache_extent"], EXT4_CACHED, PLACES, ext4_cached),
    file("ext4", &["ext4_es_remove_extent"], &["dev", "ino", "lblk", "len"], MOVED, |values| {
        let (file, first) = (values.inode(0, 1)?, values.number(2)?);
        Some(What::Unmapped { file, first, count: values.number(3)? })
    }),
    file("ext4", &["ext4_collapse_range"], &["dev", "ino"], MOVED, shift),
    file("ext4", &["ext4_insert_range"], &["dev", "ino"], MOVED, shift),
    file("ext4", &["ext4_ext_remove_space"], &["dev", "ino", "start", "end?"], CUT, ext4_cut),
    // Holes in the middle, too, and files without extents.
    file("ext4", &["ext4_free_blocks"], &["dev", "ino", "block", "count"], CUT, |values| {
        let (holder, start) = (values.inode(0, 1)?.holder, values.number(2)?);
        Some(What::BlocksFreed { holder, start, count: values.number(3)? })
    }),
    file("ext4", &["ext4_unlink_enter"], &["dev", "ino"], GONE, |values| {
        Some(What::Unlinked(values.inode(0, 1)?))
    }),
    file("ext4", &["ext4_allocate_inode"], &["dev", "ino", "mode"], GONE, created),
    file("ext4", &["ext4_free_inode"], &["dev", "ino"], GONE, |values| {
        Some(What::Ended(values.inode(0, 1)?))
    }),
    file("xfs", &["xfs_create"], &["dev"], GONE, |_| Some(What::CreateBegin)),
    file("xfs", &["xfs_iget_miss"], &["dev", "ino"], GONE, fetched),
    file("xfs", &["xfs_iget_recycle", "xfs_iget_reclaim"], &["dev", "ino"], GONE, fetched),
    file("xfs", &["xfs_file_fsync"], &["dev", "ino"], SYNC, |values| file_sync(values, false)),
    // Directories have an event of their own.
    file("xfs", &["xfs_dir_fsync"], &["dev", "ino"], SYNC, |values| file_sync(values, false)),
    file("xfs", &["xfs_map_blocks_found"], XFS_MAP, PLACES, xfs_map),
    file("xfs", &["xfs_map_blocks_alloc"], XFS_MAP, PLACES, xfs_map),
    // What _alloc says of new space is from before it was chosen (Linux 6.18); these two say it when the file gets it.
    file("xfs", &["xfs_iext_insert"], XFS_EXTENT, PLACES, xfs_extent),
    file("xfs", &["xfs_bmap_post_update"], XFS_EXTENT, PLACES, xfs_extent),
    file("xfs", &["xfs_iomap_found"], XFS_MAP, PLACES, xfs_map),
    file("xfs", &["xfs_iomap_alloc"], XFS_MAP, PLACES, xfs_map),
    file("xfs", &["xfs_itruncate_extents_start"], &["dev", "ino", "new_size"], CUT, |values| {
        Some(What::Truncated { file: values.inode(0, 1)?, length: Length::Bytes(values.number(2)?) })
    }),
    by_id(file("btrfs", &["btrfs_inode_new"], &["fsid", "ino", "root_objectid"], GONE, |values| {
        Some(What::Created { file: values.inode_by_id(0, 1, 2)?, kind: InodeKind::File })
    })),
    by_id(file(
        "btrfs",
        &["btrfs_sync_file"],
        &["fsid", "ino", "root_objectid", "datasync?"],
        SYNC,
        |values| {
            let data_only = values.number(3).map(|data_only| data_only != 0);
            Some(What::FileSync { file: values.inode_by_id(0, 1, 2)?, ends: false, data_only })
        },
    )),
    by_id(file(
        "btrfs",
        &["btrfs_ordered_extent_add"],
        &["fsid", "ino", "file_offset", "start", "disk_len", "root_objectid"],
        PLACES,
        btrfs_map,
    )),
    // Every new block of every tree, log trees among them, gets its room so; the second event is of the thread that the first is of.
    by_id(file(
        "btrfs",
        &["btrfs_find_free_extent", "find_free_extent"],
        &["root_objectid", "flags|data"],
        TREES,
        |values| {
            let is_data = values.number(1)? & BTRFS_DATA != 0;
            Some(What::RoomWanted(if is_data { None } else { values.signed(0) }))
        },
    )),
    by_id(file("btrfs", &["btrfs_reserve_extent"], &["fsid", "start", "len"], TREES, |values| {
        Some(What::RoomFound { holder: values.id(0)?, start: values.number(1)?, bytes: values.number(2)? })
    })),
    file("f2fs", &["f2fs_sync_file_enter"], &["dev", "ino"], SYNC, |values| file_sync(values, true)),
    file("f2fs", &["f2fs_sync_file_exit"], &["dev", "ino", "ret"], SYNC, file_sync_end),
    Known {
        // The layout says where F2FS's own tables are.
        filter: F2FS_PLACED,
        ..file("f2fs", &["f2fs_submit_folio_write", "f2fs_submit_page_write"], F2FS_WRITE, PLACES, f2fs_map)
    },
    file("f2fs", &["f2fs_truncate_blocks_enter"], &["dev", "ino", "from"], CUT, |values| {
        Some(What::Truncated { file: values.inode(0, 1)?, length: Length::Bytes(values.number(2)?) })
    }),
    // Its beginning names the directory.
    file("f2fs", &["f2fs_unlink_exit"], &["dev", "ino", "ret"], GONE, |values| {
        (values.signed(2)? == 0).then_some(())?;
        Some(What::Unlinked(values.inode(0, 1)?))
    }),
    file("f2fs", &["f2fs_evict_inode"], &["dev", "ino", "nlink"], GONE, |values| {
        (values.number(2)? == 0).then_some(())?;
        Some(What::Ended(values.inode(0, 1)?))
    }),
    Known {
        filter: "ki_flags & 2",
        ..file("iomap", &["iomap_dio_rw_begin"], &["dev", "ino", "pos", "count", "ki_flags"], DURABLE, direct)
    },
    Known {
        filter: "ki_flags & 2",
        ..file(
            "iomap",
            &["iomap_dio_complete"],
            &["dev", "ino", "ret", "ki_flags", "error?"],
            DURABLE,
            |values| {
                (values.number(3)? & DSYNC != 0).then_some(())?;
                let result = values.signed(4).filter(|error| *error < 0).or(values.signed(2))?;
                Some(What::DirectWriteEnd { file: values.inode(0, 1)?, result })
            },
        )
    },
    file("iomap", &["iomap_dio_rw_queued"], &["dev", "ino"], QUEUED, |values| {
        Some(What::DirectWriteQueued(values.inode(0, 1)?))
    }),
];

const QUEUED: &str = "which durable writes past the page cache go on without their thread (AIO, io_uring)";
const DURABLE: &str = "durable writes past the page cache (O_DIRECT with O_DSYNC)";
const EXT4_MAP: &[&str] = &["dev", "ino", "pblk", "lblk", "len", "mflags?", "ret"];
const EXT4_CACHED: &[&str] = &["dev", "ino", "pblk", "lblk", "len", "status"];
/// EXTENT_STATUS_WRITTEN and _UNWRITTEN (extents_status.h): others have no place.
const PLACED: u64 = 1 << 0 | 1 << 1;
const XFS_MAP: &[&str] = &["dev", "ino", "whichfork?", "startoff", "startblock", "blockcount"];
const XFS_EXTENT: &[&str] = &["dev", "ino", "startoff", "startblock", "blockcount", "bmap_state"];
/// DATA and NODE of enum page_type (f2fs.h); nodes are pages of inode 1.
const F2FS_PLACED: &str = "type < 2";
const F2FS_WRITE: &[&str] = &["dev", "ino", "index", "new_blkaddr", "type"];

fn file_sync(values: &Values<'_>, ends: bool) -> Option<What> {
    let data_only = values.number(2).map(|data_only| data_only != 0);
    Some(What::FileSync { file: values.inode(0, 1)?, ends, data_only })
}

fn file_sync_end(values: &Values<'_>) -> Option<What> {
    Some(What::FileSyncEnd { file: values.inode(0, 1)?, result: values.signed(2)? })
}

fn fetched(values: &Values<'_>) -> Option<What> {
    Some(What::Fetched(values.inode(0, 1)?))
}

fn created(values: &Values<'_>) -> Option<What> {
    let kind = match values.number(2)? & TYPE_MASK {
        REGULAR => InodeKind::File,
        DIRECTORY => InodeKind::Directory,
        _ => InodeKind::Other,
    };
    Some(What::Created { file: values.inode(0, 1)?, kind })
}

fn ext4_map(values: &Values<'_>) -> Option<What> {
    let (start, count) = (values.number(2)?, values.number(4)?);
    // The result is how many blocks were found; without blocks there is no place.
    let placed = values.signed(6)? > 0 && start != 0 && count != 0;
    let mapped = values.number(5).is_none_or(|flags| flags & MAPPED != 0);
    (placed && mapped).then_some(())?;
    Some(What::Mapped(Mapping {
        file: values.inode(0, 1)?,
        in_bytes: false,
        first: values.number(3)?,
        start,
        count,
    }))
}

fn ext4_cached(values: &Values<'_>) -> Option<What> {
    (values.number(5)? & PLACED != 0).then_some(())?;
    let (file, start) = (values.inode(0, 1)?, values.number(2)?);
    let (first, count) = (values.number(3)?, values.number(4)?);
    Some(What::Mapped(Mapping { file, in_bytes: false, first, start, count }))
}

fn shift(values: &Values<'_>) -> Option<What> {
    Some(What::ShiftBegin(values.inode(0, 1)?))
}

fn ext4_cut(values: &Values<'_>) -> Option<What> {
    // Otherwise a hole in the middle.
    values.number(3).is_none_or(|end| end >= EXT4_LAST).then_some(())?;
    Some(What::Truncated { file: values.inode(0, 1)?, length: Length::Blocks(values.number(2)?) })
}

fn xfs_map(values: &Values<'_>) -> Option<What> {
    let (start, count) = (values.number(4)?, values.number(5)?);
    (values.signed(2) != Some(XFS_ATTRIBUTES) && start < XFS_ADDRESSES && count != 0).then_some(())?;
    Some(What::Mapped(Mapping {
        file: values.inode(0, 1)?,
        in_bytes: false,
        first: values.number(3)?,
        start,
        count,
    }))
}

fn xfs_extent(values: &Values<'_>) -> Option<What> {
    (values.number(5)? & XFS_EXTENT_OF_ATTRIBUTES == 0).then_some(())?;
    let (start, count) = (values.number(3)?, values.number(4)?);
    (start < XFS_ADDRESSES && count != 0).then_some(())?;
    Some(What::Mapped(Mapping {
        file: values.inode(0, 1)?,
        in_bytes: false,
        first: values.number(2)?,
        start,
        count,
    }))
}

fn btrfs_map(values: &Values<'_>) -> Option<What> {
    // A balance moves data of files through a file of its own: what was known of that place is over.
    if values.signed(5)? == BTRFS_RELOCATION_TREE {
        return Some(What::BlocksFreed {
            holder: values.id(0)?,
            start: values.number(3)?,
            count: values.number(4)?,
        });
    }
    // Trees of files are 5 and from 256 on (btrfs_tree.h): the others keep caches in inodes.
    (values.number(5)? == 5 || (256..1 << 63).contains(&values.number(5)?)).then_some(())?;
    let (first, start, count) = (values.number(2)?, values.number(3)?, values.number(4)?);
    Some(What::Mapped(Mapping { file: values.inode_by_id(0, 1, 5)?, in_bytes: true, first, start, count }))
}

fn f2fs_map(values: &Values<'_>) -> Option<What> {
    (values.number(4)? < 2).then_some(())?;
    let start = values.number(3)?;
    // NULL_ADDR, and what is not chosen yet (f2fs_fs.h).
    (start != 0 && start < 0xffff_fff0).then_some(())?;
    Some(What::Mapped(Mapping {
        file: values.inode(0, 1)?,
        in_bytes: false,
        first: values.number(2)?,
        start,
        count: 1,
    }))
}

fn direct(values: &Values<'_>) -> Option<What> {
    (values.number(4)? & DSYNC != 0).then_some(())?;
    let (file, offset, bytes) = (values.inode(0, 1)?, values.number(2)?, values.number(3)?);
    let tries = values.number(4)? & NOWAIT != 0;
    Some(What::DirectWrite { file, offset, bytes, tries })
}
