//! Which descriptors files get.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Descriptors 0 to 2 belong to the standard streams: whoever prints there must not write into a log, even where a
/// program has closed them (SQLite's `SQLITE_MINIMUM_FILE_DESCRIPTOR`).
const DESCRIPTOR_MIN: i32 = 3;

/// Opens a file at a descriptor that is no standard stream's.
pub(crate) fn open_above_streams(path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    open_at_least(path, flags, mode, DESCRIPTOR_MIN)
}

/// The same file at a descriptor that is no standard stream's.
/// # Errors
/// No descriptor is left; the file is closed.
pub fn above_streams(file: OwnedFd) -> rustix::io::Result<OwnedFd> {
    at_least(file, DESCRIPTOR_MIN)
}

fn open_at_least(path: &Path, flags: OFlags, mode: Mode, minimum: i32) -> rustix::io::Result<OwnedFd> {
    at_least(uninterrupted(|| rustix::fs::open(path, flags, mode))?, minimum)
}

fn at_least(file: OwnedFd, minimum: i32) -> rustix::io::Result<OwnedFd> {
    if file.as_raw_fd() >= minimum {
        return Ok(file);
    }
    let moved = rustix::io::fcntl_dupfd_cloexec(&file, minimum)?;
    drop(file);
    fill_streams();
    Ok(moved)
}

/// Fills what is free of the standard streams' descriptors, as SQLite does after its own opens (os_unix.c, `robust_open`).
/// SQLite closes a database that it opens there again, and with that gives back all locks that this process has on it.
/// Without a free descriptor or without /dev/null nothing is filled.
pub fn fill_streams() {
    while let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty()) {
        if null.as_raw_fd() >= DESCRIPTOR_MIN {
            break;
        }
        // It stays open: the next file would get its place.
        let _ = null.into_raw_fd();
    }
}

/// Makes a system call again that a signal interrupted, but not for ever: somebody may answer EINTR each time.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    const TIMES: usize = 100;
    for _ in 1..TIMES {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_is_made_again_and_not_for_ever() {
        let mut left = 3;
        let mut call = || {
            left -= 1;
            if left == 0 { Ok(()) } else { Err(Errno::INTR) }
        };
        assert_eq!(uninterrupted(&mut call), Ok(()));
        assert_eq!(uninterrupted(|| Err::<(), _>(Errno::INTR)), Err(Errno::INTR));
    }

    #[test]
    fn a_descriptor_that_is_too_low_is_replaced() {
        let null = open_at_least(Path::new("/dev/null"), OFlags::RDWR, Mode::empty(), 100).unwrap();
        assert!(null.as_raw_fd() >= 100, "{null:?}");
        let seen = std::fs::read_link(format!("/proc/self/fd/{}", null.as_raw_fd())).unwrap();
        assert_eq!(seen, Path::new("/dev/null"));
    }
}
