//! What the medium has of a file, beside what the page cache shows of it.
//!
//! ext4 allocates new blocks as unwritten extents, and marks them as written when the write is done. Where the write fails they stay
//! unwritten; the page counts as clean and as mapped all the same. Writes of such a page are synced with success later, and the extent
//! reads as zeros after a power cut. A direct write beyond the size on the medium does not mark it either, and has the kernel forget
//! the page. So a page like that has to be forgotten first, and written then.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::fs::Advice;
use rustix::io::Errno;

use crate::aligned::AlignedBuffer;
use crate::real::descriptors::uninterrupted;
use crate::real::whole::{read_whole, write_whole};

/// What is compared at once.
const PIECE_BYTES: usize = 256 << 10;
/// What is forgotten at once. ext4's folios are no larger, and lie at multiples of their size: the kernel forgets whole ones alone.
const WINDOW_BYTES: usize = 8 << 20;

/// An open file, through the page cache and past it.
pub(super) struct Medium<'file> {
    pub(super) buffered: BorrowedFd<'file>,
    pub(super) direct: BorrowedFd<'file>,
}

impl Medium<'_> {
    /// As [`crate::disk::DiskFile::write_what_is_missing`]. It looks at the last piece to its end: the next bytes are written there.
    pub(super) fn write_what_is_missing(&self, end: u64) -> io::Result<bool> {
        let end = end.next_multiple_of(PIECE_BYTES as u64);
        let mut is_missing = false;
        for window in (0..end).step_by(WINDOW_BYTES) {
            if !self.has(window, end.min(window + WINDOW_BYTES as u64))? {
                self.write_anew(window)?;
                is_missing = true;
            }
        }
        Ok(is_missing)
    }

    /// Whether a read past the page cache, which first writes what is dirty there, shows what a read through it does; true where the
    /// file has no such reads.
    fn has(&self, from: u64, to: u64) -> io::Result<bool> {
        let [mut cached, mut there] = [(); 2].map(|()| AlignedBuffer::zeroed(PIECE_BYTES));
        for offset in (from..to).step_by(PIECE_BYTES) {
            let len_bytes = read_whole(self.buffered, cached.bytes_mut(), offset)?;
            // One call: at the end of a file that is not aligned a second one would be refused.
            match uninterrupted(|| rustix::io::pread(self.direct, there.bytes_mut(), offset)) {
                Ok(read) if there.bytes()[..read] == cached.bytes()[..len_bytes] => {}
                Ok(_) => return Ok(false),
                Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::PERM) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// A process that is killed in the middle leaves what the medium has.
    fn write_anew(&self, window: u64) -> io::Result<()> {
        let mut bytes = vec![0; WINDOW_BYTES];
        let len_bytes = read_whole(self.buffered, &mut bytes, window)?;
        let all = NonZeroU64::new(WINDOW_BYTES as u64);
        rustix::fs::fadvise(self.buffered, window, all, Advice::DontNeed)?;
        write_whole(self.buffered, &bytes[..len_bytes], window)
    }
}
