//! What the allocator of this process has given out: to Rust, to SQLite and to the library under test alike.

use std::ffi::{c_int, c_void};
use std::hint::black_box;

/// `struct mallinfo2` (mallinfo(3)).
#[repr(C)]
struct Mallinfo2 {
    arena: usize,
    free_chunks: usize,
    fast_chunks: usize,
    mapped_chunks: usize,
    mapped_bytes: usize,
    unused: usize,
    fast_bytes: usize,
    in_use_bytes: usize,
    free_bytes: usize,
    top_bytes: usize,
}

unsafe extern "C" {
    fn mallinfo2() -> Mallinfo2;
    fn malloc_trim(keep_bytes: usize) -> c_int;
    fn mallopt(parameter: c_int, value: c_int) -> c_int;
}

/// Threads that begin from now on share one arena.
pub fn use_one_arena() {
    const ARENA_MAX: c_int = -8;
    // SAFETY: two numbers (mallopt(3)).
    assert_eq!(unsafe { mallopt(ARENA_MAX, 1) }, 1);
}

/// Bytes in use, large blocks included.
pub fn in_use_bytes() -> usize {
    // SAFETY: takes nothing, and locks each arena while it counts.
    let counts = unsafe { mallinfo2() };
    counts.in_use_bytes + counts.mapped_bytes
}

/// Gives back to the kernel what is free, so that resident memory is what is in use.
pub fn trim() {
    // SAFETY: takes a number, changes nothing that anybody uses (malloc_trim(3)).
    unsafe { malloc_trim(0) };
}

/// From here on malloc has `kib` KiB for small requests, and no more comes.
pub fn exhaust(kib: usize) {
    #[repr(C)]
    struct Limit {
        now: u64,
        most: u64,
    }
    unsafe extern "C" {
        fn malloc(bytes: usize) -> *mut c_void;
        fn free(memory: *mut c_void);
        fn setrlimit(resource: c_int, limit: *const Limit) -> c_int;
    }
    const RLIMIT_AS: c_int = 9;
    // SAFETY: takes a number.
    let kept: Vec<*mut c_void> = (0..kib).map(|_| unsafe { malloc(1000) }).collect();
    // SAFETY: a limit of the kernel's layout.
    assert_eq!(unsafe { setrlimit(RLIMIT_AS, &Limit { now: 1, most: 1 }) }, 0);
    let mut bytes = 1 << 20;
    while bytes > 0 {
        // The box: what nobody uses an optimising compiler does not allocate, and takes for given.
        // SAFETY: as above; nobody gives it back.
        if black_box(unsafe { malloc(bytes) }).is_null() {
            bytes /= 2;
        }
    }
    for memory in kept {
        // SAFETY: malloc's, given back once.
        unsafe { free(memory) };
    }
}
