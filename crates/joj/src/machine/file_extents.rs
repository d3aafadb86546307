//! Where an open file lies on its filesystem now (FIEMAP).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// FS_IOC_FIEMAP (linux/fs.h).
const FIEMAP: u64 = 0xc020_660b;
/// FIEMAP_EXTENT_LAST; those whose place is unknown, not yet chosen, encoded, or inside metadata (linux/fiemap.h).
const LAST: u32 = 1;
const NO_PLACE: u32 = 2 | 4 | 8 | 0x200;
const EXTENTS_MAX: usize = 128;

/// Bytes of a file that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    /// First byte in the file.
    pub offset: u64,
    /// First byte in the filesystem's addresses.
    pub start: u64,
    /// How many.
    pub bytes: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_more: [u32; 3],
}

#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS_MAX],
}

const _: () = assert!(size_of::<RawExtent>() == 56, "struct fiemap_extent");
const _: () = assert!(
    std::mem::offset_of!(Request, extents) == 32,
    "the size of struct fiemap is in the ioctl's number"
);

/// The extents that have a place on the disk, in order of their offsets.
/// # Errors
/// As ioctl(2); EOPNOTSUPP where the filesystem does not say.
pub fn of(file: &File) -> io::Result<Vec<FileExtent>> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let mut request = Request {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            room: 128,
            reserved: 0,
            extents: [RawExtent::default(); EXTENTS_MAX],
        };
        // SAFETY: the descriptor is open; `request` has room for the 128 extents that it says it has room for.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut request) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut mapped = request.extents.iter().take(request.mapped as usize);
        for extent in mapped.clone().filter(|extent| extent.flags & NO_PLACE == 0) {
            found.push(FileExtent { offset: extent.logical, start: extent.physical, bytes: extent.length });
        }
        let next = mapped.next_back().filter(|last| last.flags & LAST == 0);
        match next.and_then(|last| last.logical.checked_add(last.length)) {
            Some(next) if next > start => start = next,
            _ => return Ok(found),
        }
    }
}
