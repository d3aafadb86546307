//! Whether the page cache holds any page of a range of a file, without reading anything.
//!
//! A read with RWF_NOWAIT would tell as well, but on a miss it starts a read-ahead: measured on ext4, every direct
//! write then paid a device read, and commits took twice as long.

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// cachestat(2), Linux 6.5; one number on every architecture.
const SYS_CACHESTAT: c_long = 451;
const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;
const PAGE_BYTES: usize = 4096;

#[repr(C)]
struct Range {
    offset: u64,
    len_bytes: u64,
}

/// `struct cachestat`: pages in the cache, dirty, in write-back, evicted, recently evicted.
type Counts = [u64; 5];

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn mmap(
        at: *mut c_void,
        len: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, len: usize) -> c_int;
    fn mincore(at: *mut c_void, len: usize, resident: *mut u8) -> c_int;
}

/// Set once cachestat was refused: an old kernel (ENOSYS), or a filter as containers have (EPERM).
static NO_CACHESTAT: AtomicBool = AtomicBool::new(false);

/// True where the cache holds any page of `[offset, offset + len_bytes)`, or where nobody can tell; both are multiples of
/// 4096. Never an error: what was written past the cache is written, whatever the kernel, or a filter of system calls in
/// front of it, says to this question.
pub(crate) fn may_hold_any(file: BorrowedFd<'_>, offset: u64, len_bytes: usize) -> bool {
    if !NO_CACHESTAT.load(Relaxed) {
        match count_cached(file, offset, len_bytes) {
            Ok(count) => return count > 0,
            Err(_) => NO_CACHESTAT.store(true, Relaxed),
        }
    }
    is_resident(file, offset, len_bytes).unwrap_or(true)
}

fn count_cached(file: BorrowedFd<'_>, offset: u64, len_bytes: usize) -> io::Result<u64> {
    let range = Range { offset, len_bytes: len_bytes as u64 };
    let mut counts: Counts = [0; 5];
    let flags: c_uint = 0;
    // SAFETY: cachestat reads `range` and fills `counts`, both of the kernel's layout and alive for the call.
    let code = unsafe { syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, flags) };
    if code == 0 { Ok(counts[0]) } else { Err(io::Error::last_os_error()) }
}

/// As `count_cached` for older kernels. The mapping is never touched, so it brings no page in.
fn is_resident(file: BorrowedFd<'_>, offset: u64, len_bytes: usize) -> io::Result<bool> {
    let Ok(offset) = i64::try_from(offset) else { return Err(io::ErrorKind::Unsupported.into()) };
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let at =
        unsafe { mmap(std::ptr::null_mut(), len_bytes, PROT_READ, MAP_SHARED, file.as_raw_fd(), offset) };
    if at.addr() == usize::MAX {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut resident = vec![0; len_bytes.div_ceil(PAGE_BYTES)];
    // SAFETY: the mapping above, and one byte for each of its pages.
    let code = unsafe { mincore(at, len_bytes, resident.as_mut_ptr()) };
    // SAFETY: nothing else refers to the mapping.
    unsafe { munmap(at, len_bytes) };
    if code != 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(resident.iter().any(|page| page & 1 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn both_ways_see_a_page_that_was_written_and_none_past_it() {
        let path = std::env::temp_dir().join(format!("blockio-cache-{}", std::process::id()));
        let file =
            std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[1; 4096], 8192).unwrap();
        for (offset, expected) in [(8192, true), (0, false), (65536, false)] {
            assert_eq!(is_resident(file.as_fd(), offset, 4096).unwrap(), expected, "mincore at {offset}");
            assert_eq!(may_hold_any(file.as_fd(), offset, 4096), expected, "either, at {offset}");
            match count_cached(file.as_fd(), offset, 4096) {
                Ok(count) => assert_eq!(count > 0, expected, "cachestat at {offset}"),
                Err(error) => eprintln!("skipped: no cachestat here: {error}"),
            }
        }
    }
}
