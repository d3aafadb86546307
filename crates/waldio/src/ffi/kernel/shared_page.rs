//! A page of memory that processes share, and the words in it (docs/log_format.md, "the queue across processes").
//!
//!   offset 0 | magic, 4 | version, 4 | next ticket, 4 | zeros, 4 | who waits, 8: a bit for each place | zeros, 40
//!         64 | place 0: wake_word, 4, ticket, 4 | place 1 ... place 63 | zeros up to 4096
//!
//! In the host's byte order. Every value of every word is valid: others may write anything at any time.

use std::io;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Size of the file and of the mapping.
pub const PAGE_BYTES: usize = 4096;
/// How many can wait at once.
pub const PLACES: usize = 64;
/// "wldl", read on a little-endian host.
const MAGIC: u32 = 0x6c64_6c77;
const VERSION: u32 = 1;

/// Where one process waits.
#[repr(C)]
#[derive(Debug, Default)]
pub struct ProcessPlace {
    /// Changes when it is rung.
    pub wake_word: AtomicU32,
    /// When its process came.
    pub ticket: AtomicU32,
}

/// The words, as they stand in the page.
#[repr(C)]
#[derive(Debug)]
pub struct Words {
    magic: AtomicU32,
    version: AtomicU32,
    /// The next process that comes gets this one.
    pub next_ticket: AtomicU32,
    zeros: AtomicU32,
    /// Bit n: somebody waits at place n.
    pub waiting: AtomicU64,
    more_zeros: [AtomicU64; 5],
    /// See `ProcessPlace`.
    pub places: [ProcessPlace; PLACES],
}

const _: () = assert!(size_of::<Words>() <= PAGE_BYTES);
const _: () = assert!(std::mem::offset_of!(Words, places) == 64);

impl Words {
    /// True where the page is one of ours, of this version.
    pub fn are_ours(&self) -> bool {
        self.magic.load(Relaxed) == MAGIC && self.version.load(Relaxed) == VERSION
    }
}

/// What a new page's file holds.
pub fn fresh() -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    page[..4].copy_from_slice(&MAGIC.to_ne_bytes());
    page[4..8].copy_from_slice(&VERSION.to_ne_bytes());
    page
}

/// The mapping of a page.
#[derive(Debug)]
pub struct SharedPage {
    words: NonNull<Words>,
}

// SAFETY: it refers to atomics alone, which any thread may use, and is unmapped once, when nobody has it any more.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    /// Maps the first `PAGE_BYTES` of a file, which must have them. Who cuts the file afterwards kills whoever touches the
    /// page, as with SQLite's own -shm: the caller makes sure that nobody may who could not do so there.
    /// # Errors
    /// What mmap says.
    pub fn map(file: impl AsFd) -> io::Result<SharedPage> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let at = unsafe { mmap(null_mut(), PAGE_BYTES, access, MapFlags::SHARED, file, 0) }?;
        let words = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedPage { words })
    }

    /// The words.
    pub fn words(&self) -> &Words {
        // SAFETY: mapped as long as `self`, page-aligned, larger than `Words` (asserted above); of atomics, because other
        // processes write it, and any value is valid for an integer.
        unsafe { self.words.as_ref() }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), PAGE_BYTES) };
    }
}
