//! A word that a child of fork finds zero, whatever process ids say: a new pid namespace begins with 1 again.
//!
//! It stands in a page of its own with `MADV_WIPEONFORK`, which children of children inherit. Source: madvise(2); Linux
//! 4.14. Where the kernel refuses that, the word is plain memory, and its user has process ids alone.

use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Enough for the word; the kernel maps a whole page.
const PAGE_BYTES: usize = 4096;

/// One word of memory that the kernel zeroes in a child of fork.
#[derive(Debug)]
pub(crate) struct ForkWord {
    wiped: AtomicPtr<AtomicUsize>,
    plain: AtomicUsize,
}

impl ForkWord {
    /// A word that is zero. Maps nothing yet.
    pub(crate) const fn new() -> ForkWord {
        ForkWord { wiped: AtomicPtr::new(null_mut()), plain: AtomicUsize::new(0) }
    }

    /// The word. Without a lock: a fork may come at any moment.
    pub(crate) fn get(&self) -> &AtomicUsize {
        let found = self.wiped.load(SeqCst);
        let word = NonNull::new(found).or_else(|| self.place());
        // SAFETY: `place` puts nothing else there than the start of a page that stays mapped, readable and writable, and a
        // word of any value is valid.
        word.map_or(&self.plain, |word| unsafe { word.as_ref() })
    }

    fn place(&self) -> Option<NonNull<AtomicUsize>> {
        let page = map()?;
        match self.wiped.compare_exchange(null_mut(), page.as_ptr(), SeqCst, SeqCst) {
            Ok(_) => Some(page),
            Err(faster) => {
                unmap(page);
                NonNull::new(faster)
            }
        }
    }
}

fn map() -> Option<NonNull<AtomicUsize>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let page = unsafe { mmap_anonymous(null_mut(), PAGE_BYTES, access, MapFlags::PRIVATE) }.ok()?;
    let page = NonNull::new(page)?;
    // SAFETY: the mapping just made, which holds nothing yet.
    if unsafe { madvise(page.as_ptr(), PAGE_BYTES, Advice::LinuxWipeOnFork) }.is_err() {
        unmap(page.cast());
        return None;
    }
    Some(page.cast())
}

fn unmap(page: NonNull<AtomicUsize>) {
    // SAFETY: made by `map`, and nobody else has seen it.
    let _ = unsafe { munmap(page.as_ptr().cast(), PAGE_BYTES) };
}
