//! What befalls a process from outside: another user, limits, closed descriptors.

use std::ffi::{c_int, c_uint};
use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

unsafe extern "C" {
    fn setuid(uid: c_uint) -> c_int;
    fn setgid(gid: c_uint) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn close(descriptor: c_int) -> c_int;
    fn fcntl(descriptor: c_int, command: c_int, argument: c_int) -> c_int;
}

/// A user that owns nothing (`nobody` of every distribution).
pub const NOBODY: u32 = 65_534;

/// Becomes `nobody` for good.
pub fn become_nobody() {
    // SAFETY: a system call; glibc changes all threads.
    assert_eq!(unsafe { setgid(NOBODY) }, 0, "setgid");
    // SAFETY: as above.
    assert_eq!(unsafe { setuid(NOBODY) }, 0, "setuid");
}

/// A write beyond RLIMIT_FSIZE is an error, as it is for every program that ignores the signal.
pub fn ignore_file_size_signal() {
    const SIGXFSZ: c_int = 25;
    const SIG_IGN: usize = 1;
    // SAFETY: ignoring a signal runs no code.
    unsafe { signal(SIGXFSZ, SIG_IGN) };
}

/// Bounds the process: no descriptor from `value` on, or no byte of a file behind it; `None` takes the bound away.
pub fn bound(resource: Resource, value: Option<u64>) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(resource, Rlimit { current: value.or(maximum), maximum }).unwrap();
}

/// Closes some of the descriptors 0 to 2.
pub fn close_descriptors(which: Range<c_int>) {
    for descriptor in which {
        // SAFETY: the test prints nothing any more, and owns the process.
        unsafe { close(descriptor) };
    }
}

/// Writes a line to whatever descriptor 2 is, as a library would that complains.
pub fn complain() {
    // SAFETY: it is not closed by this value.
    let mut out = ManuallyDrop::new(unsafe { File::from_raw_fd(2) });
    // It may be closed: that is what is tried.
    let _ = out.write_all(b"a library complains about something that nobody reads\n");
}

/// A copy of a descriptor above all that programs usually have.
pub fn high_copy(descriptor: c_int) -> io::Result<OwnedFd> {
    const F_DUPFD_CLOEXEC: c_int = 1030;
    // SAFETY: a system call on a number.
    let copy = unsafe { fcntl(descriptor, F_DUPFD_CLOEXEC, 900) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that this call made.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Whether this process may become another user's.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
