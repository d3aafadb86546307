//! Memory where the process has none left: SQLite answers `SQLITE_NOMEM` and goes on, and Rust's collections would end the process.
//!
//! What malloc refuses comes from a reserve of our own, so that what is under way can be finished or given up in order; and as long as
//! that is in use, and malloc still refuses, nothing new begins: `is_short` says so to whoever could begin. The reserve is zeroed
//! static memory that costs address space and no page before it is used.
//!
//! It is handed out in units, first fit, under a lock that nobody waits for long: a child of fork may find it taken for good.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::hint::{black_box, spin_loop};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// Room for the longest run of a transaction, the same in blocks of the `embedded` layout, and what a few threads need besides.
const RESERVE_BYTES: usize = 2 << 20;
const UNIT_BYTES: usize = 64;
const UNITS: usize = RESERVE_BYTES / UNIT_BYTES;
/// The largest alignment that anything of ours asks for.
const ALIGNMENT_MAX: usize = 4096;
/// How often the lock is tried.
const TRIES: u32 = 100_000;
/// What malloc must give for memory to count as back, and before a thread is started, whose own memory glibc ends the process for.
const ROOM_BYTES: usize = 64 << 10;

#[repr(C, align(4096))]
struct Area(UnsafeCell<[u8; RESERVE_BYTES]>);

// SAFETY: units belong to whoever took them, under the lock.
unsafe impl Sync for Area {}

static AREA: Area = Area(UnsafeCell::new([0; RESERVE_BYTES]));
/// A bit for each unit that is taken.
static TAKEN: [AtomicU64; UNITS / 64] = [const { AtomicU64::new(0) }; UNITS / 64];
static LOCKED: AtomicBool = AtomicBool::new(false);
/// How many units are taken.
static USED: AtomicUsize = AtomicUsize::new(0);

/// malloc, and behind it the reserve.
#[derive(Debug)]
pub(crate) struct WithReserve;

fn locked<T>(act: impl FnOnce() -> T) -> Option<T> {
    for _ in 0..TRIES {
        if !LOCKED.swap(true, SeqCst) {
            let result = act();
            LOCKED.store(false, SeqCst);
            return Some(result);
        }
        spin_loop();
    }
    None
}

fn is_taken(unit: usize) -> bool {
    TAKEN[unit / 64].load(Relaxed) & 1 << (unit % 64) != 0
}

fn mark(units: std::ops::Range<usize>, taken: bool) {
    for unit in units {
        let bit = 1 << (unit % 64);
        if taken {
            TAKEN[unit / 64].fetch_or(bit, Relaxed)
        } else {
            TAKEN[unit / 64].fetch_and(!bit, Relaxed)
        };
    }
}

/// The first of `count` units in a row that are free, at a multiple of `step`.
fn find(count: usize, step: usize) -> Option<usize> {
    let mut first = 0;
    while first + count <= UNITS {
        match (first..first + count).rev().find(|unit| is_taken(*unit)) {
            None => return Some(first),
            Some(last) => first = (last + 1).next_multiple_of(step),
        }
    }
    None
}

fn units_of(layout: Layout) -> usize {
    layout.size().div_ceil(UNIT_BYTES).max(1)
}

/// Memory of the reserve; null where it has none.
fn take(layout: Layout) -> *mut u8 {
    if layout.align() > ALIGNMENT_MAX {
        return ptr::null_mut();
    }
    let count = units_of(layout);
    let step = layout.align().div_ceil(UNIT_BYTES);
    let found = locked(|| {
        let first = find(count, step)?;
        mark(first..first + count, true);
        USED.fetch_add(count, SeqCst);
        Some(first)
    });
    match found.flatten() {
        Some(first) => AREA.0.get().cast::<u8>().wrapping_add(first * UNIT_BYTES),
        None => ptr::null_mut(),
    }
}

/// The unit that memory begins at, where it is of the reserve.
fn unit_of(memory: *mut u8) -> Option<usize> {
    let from = memory.addr().checked_sub(AREA.0.get().addr())?;
    (from < RESERVE_BYTES).then_some(from / UNIT_BYTES)
}

/// Where the lock is not to be had the units stay taken.
fn give_back(first: usize, layout: Layout) {
    let count = units_of(layout);
    locked(|| {
        mark(first..first + count, false);
        USED.fetch_sub(count, SeqCst);
    });
}

// SAFETY: memory is malloc's own, or units of the reserve that nobody else has, aligned as asked; it stays until it is given back. Nothing
// in here panics or allocates.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { take(layout) } else { memory }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if !memory.is_null() {
            return memory;
        }
        let memory = take(layout);
        if !memory.is_null() {
            // SAFETY: so many bytes were just taken.
            unsafe { memory.write_bytes(0, layout.size()) };
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match unit_of(memory) {
            Some(first) => give_back(first, layout),
            // SAFETY: malloc's, as the caller promises.
            None => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        if unit_of(memory).is_none() {
            // SAFETY: malloc's, as the caller promises.
            let grown = unsafe { System.realloc(memory, layout, size_bytes) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the caller promises that the size is no overflow with this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size_bytes, layout.align()) };
        // SAFETY: as above, and not zero.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both are as long, and they are not one.
            unsafe { moved.copy_from_nonoverlapping(memory, layout.size().min(size_bytes)) };
            // SAFETY: the caller's memory, which is copied.
            unsafe { self.dealloc(memory, layout) };
        }
        moved
    }
}

/// True where malloc has room for what a thread needs to begin.
pub(crate) fn has_room() -> bool {
    let Ok(layout) = Layout::from_size_align(ROOM_BYTES, 16) else { return false };
    // Nobody uses it: without the box the compiler may leave both calls out, and take it for given.
    // SAFETY: not of size zero.
    let memory = black_box(unsafe { System.alloc(layout) });
    if memory.is_null() {
        return false;
    }
    // SAFETY: just allocated so.
    unsafe { System.dealloc(memory, layout) };
    true
}

/// True while the reserve is in use and malloc still refuses.
pub(crate) fn is_short() -> bool {
    USED.load(Relaxed) > 0 && !has_room()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size_bytes: usize, alignment: usize) -> Layout {
        Layout::from_size_align(size_bytes, alignment).unwrap()
    }

    /// One test: the reserve is one.
    #[test]
    fn units_are_handed_out_once_aligned_and_come_back() {
        let first = take(layout(100, 8));
        let aligned = take(layout(5000, 4096));
        let last = take(layout(1, 1));
        assert!([first, aligned, last].iter().all(|memory| unit_of(*memory).is_some()));
        assert_eq!(
            (aligned.addr() % 4096, last.addr() - first.addr()),
            (0, 128),
            "what is free in front is used"
        );
        assert_eq!(USED.load(SeqCst), 2 + 79 + 1);
        assert!(!is_short(), "malloc has room");
        assert!(take(layout(RESERVE_BYTES, 8)).is_null() && take(layout(64, 8192)).is_null());
        // Grown within the reserve, by hand: malloc would have it.
        let all = take(layout(RESERVE_BYTES - (8 << 10) - 4096, 64));
        assert!(!all.is_null());
        for (memory, layout) in [
            (all, layout(RESERVE_BYTES - (8 << 10) - 4096, 64)),
            (first, layout(100, 8)),
            (last, layout(1, 1)),
        ] {
            give_back(unit_of(memory).unwrap(), layout);
        }
        // SAFETY: taken above with this layout.
        let moved = unsafe { WithReserve.realloc(aligned, layout(5000, 4096), 6000) };
        assert!(unit_of(moved).is_none() && USED.load(SeqCst) == 0, "malloc has it again");
        // SAFETY: as above.
        unsafe { WithReserve.dealloc(moved, layout(6000, 4096)) };
        assert_eq!(unit_of(ptr::null_mut()), None);
    }
}
