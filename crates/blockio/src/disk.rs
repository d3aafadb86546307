//! What waldio asks of a disk, and what a disk promises in return.
//!
//! Two implementors: `RealDisk` (system calls) and `SimDisk` (memory, with power cuts and faults from one seed).
//!
//! Promises, which the simulated disk tries to break everywhere else:
//! 1. bytes written with `write_at` or `append` survive a power cut only once a `sync_data` that *began after*
//!    the write returned has returned;
//! 2. bytes written with `write_durable` survive once that call has returned, and only those bytes do;
//! 3. a file's size and its blocks are durable with the data that needs them (`sync_data` is fdatasync);
//! 4. a name created, renamed or removed is durable once `sync_dir` of its directory has returned;
//! 5. reads see every completed write of any process, durable or not.

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// What is known at once of the place a file stands on, for decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// The kind of file system.
    pub filesystem: Filesystem,
    /// Offset and length alignment that direct writes to this file need, in bytes; 0 where it takes none.
    pub direct_align_bytes: u32,
}

/// File systems that waldio treats apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filesystem {
    /// ext2, ext3 or ext4: one magic number for all three.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
    /// NILFS2.
    Nilfs2,
    /// tmpfs or ramfs: nothing survives, and nothing needs a flush.
    Tmpfs,
    /// overlayfs.
    Overlay,
    /// Any file system in user space.
    Fuse,
    /// NFS, SMB, Ceph, AFS or 9p: the files are another machine's.
    Network,
    /// Anything else.
    #[default]
    Other,
}

/// Which file it is, whatever its name: another file under the same name has another identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// `st_dev` of stat(2).
    pub device: u64,
    /// `st_ino`; used again only when no name and no descriptor leads to the file any more.
    pub inode: u64,
}

/// How to open a file.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// Create it when it is missing.
    pub create: bool,
    /// Fail when it exists (with `create`).
    pub exclusive: bool,
    /// Open for reading only.
    pub read_only: bool,
    /// Permission bits of a created file, applied past the umask.
    pub mode: u32,
    /// Owner and group of a created file, where the process may set them.
    pub owner: Option<(u32, u32)>,
}

/// How blocks ahead of the data are made ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Zeros are written. Safe beside other processes that write to the file.
    Zeroes,
    /// `FALLOC_FL_WRITE_ZEROES`: the device zeroes. Not safe beside another writer of the same range.
    WriteZeroes,
    /// Plain `fallocate`: unwritten extents, which the first write must convert. Safe beside other writers.
    Unwritten,
}

impl OpenOptions {
    /// A file that is there, for reading and writing.
    pub const EXISTING: OpenOptions =
        OpenOptions { create: false, exclusive: false, read_only: false, mode: 0, owner: None };
}

/// A place where files are.
pub trait Disk: Send + Sync + Debug {
    /// Opens `path`.
    /// # Errors
    /// As open(2); nothing is left behind.
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Box<dyn DiskFile>>;

    /// Permission bits, owner and group of `path`, for a file that shall have the same.
    /// # Errors
    /// As stat(2).
    fn mode_and_owner(&self, path: &Path) -> io::Result<(u32, (u32, u32))>;

    /// Which file the name leads to.
    /// # Errors
    /// As stat(2).
    fn identity_of(&self, path: &Path) -> io::Result<FileId>;

    /// Removes a name.
    /// # Errors
    /// As unlink(2).
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes an empty file whose blocks are overwritten in place, on a file system that copies them (Btrfs). On others, and where the
    /// name is taken, it makes none and returns false. The file gets its name only when no descriptor of it is open: a process that
    /// closes a descriptor loses its locks on the file.
    /// # Errors
    /// There is no such file: its directory takes none.
    fn make_overwritten_in_place(&self, path: &Path, mode: u32, owner: (u32, u32)) -> io::Result<bool> {
        let _ = (path, mode, owner);
        Ok(false)
    }

    /// Makes the names in the directory of `path` durable; false where the directory cannot be opened (no permission to
    /// list it, no descriptor left), and nothing was done.
    /// # Errors
    /// Afterwards it is unknown which names a power cut would leave.
    fn sync_dir_of(&self, path: &Path) -> io::Result<bool>;
}

/// One open file.
pub trait DiskFile: Send + Sync + Debug {
    /// Reads into `into` at `offset`; returns how many bytes there were (fewer only at the end of the file).
    /// # Errors
    /// As pread(2); `into` is undefined.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `data` at `offset` through the page cache.
    /// # Errors
    /// Any part of the range may be written. `StorageFull` for ENOSPC and EDQUOT.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// After a sync that succeeded: writes once more what reads of `[0, end)` show and the medium does not have. True where there was
    /// such a thing; then the next sync makes it durable or fails. The caller is alone with the file. Only ext4 can come to this, after
    /// a write that failed; elsewhere nothing is looked at. If the process is killed in the middle, what the medium has may be left.
    /// # Errors
    /// As `read_at`, of the medium, and as `write_at`: what was written anew is to be synced.
    fn write_what_is_missing(&self, _end: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Writes all of `data` (aligned in memory, offset and length) past the page cache in one request, without
    /// waiting for the medium. Later reads through the page cache of any process see it.
    /// # Errors
    /// As `write_at`; `Unsupported` or `InvalidInput` where the file takes no direct writes: then nothing is written.
    fn write_direct(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// As `write_direct`, and the bytes are on the medium when it returns (RWF_DSYNC: FUA, or write and flush).
    /// # Errors
    /// As `write_direct`; after any other error it is unknown what survives: stop using the file.
    fn write_durable(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Extends the file to at least `end` without changing any byte that is there, whoever wrote it and whenever;
    /// returns the new size. `Fill::WriteZeroes` alone is unsafe beside another writer of the same range.
    /// # Errors
    /// The file may be longer by a part; its content is untouched. `Unsupported` where the file system lacks it.
    fn extend(&self, end: u64, fill: Fill) -> io::Result<u64>;

    /// Makes every write that completed before this call survive a power cut, with the size it needs (fdatasync).
    /// # Errors
    /// Afterwards the state of those writes is unknown: stop using the file.
    fn sync_data(&self) -> io::Result<()>;

    /// The same for every file of the file system that this one is on (syncfs). Slow where others write.
    /// # Errors
    /// As `sync_data`.
    fn sync_filesystem(&self) -> io::Result<()>;

    /// Which file this is.
    /// # Errors
    /// As fstat(2).
    fn identity(&self) -> io::Result<FileId>;

    /// Size in bytes.
    /// # Errors
    /// As fstat(2).
    fn size(&self) -> io::Result<u64>;

    /// Sets the size.
    /// # Errors
    /// As ftruncate(2); the size is as before.
    fn truncate(&self, size_bytes: u64) -> io::Result<()>;

    /// Tells the kernel that `[offset, offset + len_bytes)` will be read soon. A hint: it cannot fail.
    fn read_ahead(&self, offset: u64, len_bytes: u64);

    /// Lets the page cache forget what it has from `offset` on, but for what is still to be written. Who writes there next begins with
    /// what the medium has, and with how it is marked (`write_what_is_missing`). A hint: it cannot fail.
    fn forget_cached(&self, _offset: u64) {}

    /// Bytes that its file system still has for this process, as far as it tells.
    fn free_bytes(&self) -> u64 {
        u64::MAX
    }

    /// What is known of where this file stands; costs two system calls at most.
    fn facts(&self) -> Facts;

    /// All that can be read of the file system and the device, each as (name, value, where it was read), for
    /// example ("filesystem", "ext4", "statfs f_type 0xef53"). Slow: it reads sysfs.
    fn describe(&self) -> Vec<(&'static str, String, String)> {
        Vec::new()
    }
}
