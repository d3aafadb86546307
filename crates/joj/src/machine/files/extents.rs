//! Where a file's bytes lie on its filesystem's device: FS_IOC_FIEMAP.
//!
//! Source: Documentation/filesystems/fiemap.rst of the kernel.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `_IOWR('f', 11, struct fiemap)`
const FS_IOC_FIEMAP: u32 = 0xc020_660b;
/// No more in one call: 14 KiB of answer.
const EXTENTS_PER_CALL: u32 = 256;
const ENTRY: FiemapExtent =
    FiemapExtent { logical: 0, physical: 0, length: 0, reserved64: [0; 2], flags: 0, reserved: [0; 3] };

/// A piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its first byte on the filesystem's device; for Btrfs in the filesystem's own address space.
    pub physical_byte: u64,
    pub bytes: u64,
    /// What the filesystem says besides, as bits.
    pub flags: ExtentFlags,
}

/// FIEMAP_EXTENT_* of linux/fiemap.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtentFlags(pub u32);

impl ExtentFlags {
    const LAST: u32 = 0x1;
    const UNKNOWN: u32 = 0x2;
    const DELAYED: u32 = 0x4;
    const ENCODED: u32 = 0x8;
    const INLINE: u32 = 0x200;

    /// True where `physical_byte` is the place of the file's bytes: they have one, alone and as they are.
    pub fn has_place(self) -> bool {
        self.0 & (Self::UNKNOWN | Self::DELAYED | Self::ENCODED | Self::INLINE) == 0
    }
}

/// struct fiemap_extent
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// struct fiemap, with room for the answer.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS_PER_CALL as usize],
}

const _: () = assert!(size_of::<FiemapExtent>() == 56, "struct fiemap_extent");
const _: () = assert!(
    std::mem::offset_of!(Fiemap, extents) == 32,
    "the size of struct fiemap is in the ioctl's number"
);

/// The extents of a file or directory, in the order of the file. What was written and has no place yet is listed
/// without one: the file is not synced for the question.
/// # Errors
/// As open(2) and ioctl(2): `EOPNOTSUPP` where the filesystem does not tell.
pub fn extents_of(path: &Path) -> io::Result<Vec<FileExtent>> {
    extents_of_open(&File::open(path)?)
}

/// As [`extents_of`], of a file that is open.
/// # Errors
/// As ioctl(2).
pub fn extents_of_open(file: &File) -> io::Result<Vec<FileExtent>> {
    let mut found: Vec<FileExtent> = Vec::new();
    let mut start = 0;
    loop {
        let answer = ask(file, start)?;
        let mapped = usize::try_from(answer.mapped_extents).unwrap_or(usize::MAX);
        let Some(entries) = answer.extents.get(..mapped) else {
            return Err(io::Error::other(format!(
                "the kernel tells of {mapped} extents where it may tell 256"
            )));
        };
        for entry in entries {
            found.push(FileExtent {
                offset: entry.logical,
                physical_byte: entry.physical,
                bytes: entry.length,
                flags: ExtentFlags(entry.flags),
            });
        }
        let Some(last) = entries.last() else { return Ok(found) };
        let next = last.logical.saturating_add(last.length);
        // A file that is written meanwhile may have extents that move; the walk must go on all the same.
        if last.flags & ExtentFlags::LAST != 0 || next <= start {
            return Ok(found);
        }
        start = next;
    }
}

fn ask(file: &File, start: u64) -> io::Result<Fiemap> {
    let extents = [ENTRY; EXTENTS_PER_CALL as usize];
    let mut question = Fiemap {
        start,
        length: u64::MAX - start,
        flags: 0,
        mapped_extents: 0,
        extent_count: EXTENTS_PER_CALL,
        reserved: 0,
        extents,
    };
    // SAFETY: the kernel writes into `question` alone: its head, and behind it `extent_count` extents, for which it has room.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut question) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(question) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use super::*;

    const BLOCK: u64 = 64 << 10;
    static WRITTEN: [u8; 64 << 10] = [1; 64 << 10];

    /// Every other 64 KiB of a file are written, so that it has holes, and more extents than one call can tell.
    #[test]
    fn extents_cover_what_was_written_and_nothing_else() {
        let path = std::env::temp_dir().join(format!("joj-extents-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        for index in 0..300 {
            file.write_all_at(&WRITTEN, index * 2 * BLOCK).unwrap();
        }
        file.sync_all().unwrap();
        let answer = extents_of(&path);
        fs::remove_file(&path).unwrap();
        let found = match answer {
            Ok(found) => found,
            Err(error) => return println!("skipped: no FIEMAP in {}: {error}", path.display()),
        };
        let mut covered = vec![0; 600];
        for extent in &found {
            for block in extent.offset / BLOCK..(extent.offset + extent.bytes).div_ceil(BLOCK) {
                covered[usize::try_from(block).unwrap()] += 1;
            }
            assert!(extent.bytes > 0 && extent.flags.has_place(), "{extent:?}");
        }
        assert!(covered.iter().step_by(2).all(|times| *times > 0), "written, and not told: {found:?}");
        assert!(
            covered.iter().skip(1).step_by(2).all(|times| *times == 0),
            "told, and not written: {found:?}"
        );
    }

    #[test]
    fn what_has_no_extents_says_so() {
        assert!(extents_of(Path::new("/proc/self/status")).is_err());
        assert_eq!(extents_of(Path::new("/no/such/file")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
