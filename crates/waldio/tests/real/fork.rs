//! A fork of this process that goes on without exec, as a worker of a server does: with the memory of its parent and
//! without its other threads.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::sqlite::Library;

unsafe extern "C" {
    fn fork() -> c_int;
    fn unshare(flags: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// What a child that panicked ends with.
const FAILED: u8 = 255;
/// A child that takes longer hangs.
const LIFE_MAX: Duration = Duration::from_secs(60);

/// A child; killed when dropped.
pub struct Forked {
    pid: Option<Pid>,
}

/// Forks: the child does `body` and ends with what that returns, below 255. The caller says why no lock that `body`
/// needs is held by another thread at this moment.
pub fn forked(body: impl FnOnce() -> u8) -> Forked {
    // SAFETY: the child uses what is safe after a fork by the caller's word, and never returns to the caller.
    let pid = unsafe { fork() };
    assert!(pid >= 0, "cannot fork");
    if pid == 0 {
        // Beyond here are the destructors of the parent's connections, which are not the child's to close.
        let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(FAILED);
        // SAFETY: ends the process.
        unsafe { _exit(c_int::from(code)) };
    }
    Forked { pid: Pid::from_raw(pid) }
}

/// As `sqlite3_sleep`, without the lock of SQLite's own under which that looks for the VFS.
pub fn sleeper(library: &Library) -> impl Fn(i32) + use<> {
    // SAFETY: null asks for the default VFS, which is registered and stays so.
    let vfs = unsafe { (library.functions.sqlite3_vfs_find)(std::ptr::null()) };
    // SAFETY: as above.
    let sleep = unsafe { (*vfs).xSleep }.expect("every VFS can sleep");
    move |milliseconds| {
        // SAFETY: as above.
        unsafe { sleep(vfs, milliseconds * 1000) };
    }
}

/// The next fork's child is process 1 of a new namespace. No thread can be started here any more.
pub fn children_begin_with_pid_1() {
    const CLONE_NEWPID: c_int = 0x2000_0000;
    // SAFETY: changes what a later fork does, and nothing of this process's memory.
    let code = unsafe { unshare(CLONE_NEWPID) };
    assert_eq!(code, 0, "{}", std::io::Error::last_os_error());
}

impl Forked {
    /// What it ended with.
    #[track_caller]
    pub fn finish(mut self) -> u8 {
        let began = Instant::now();
        loop {
            if let Some((_, status)) = waitpid(self.pid, WaitOptions::NOHANG).unwrap() {
                self.pid = None;
                let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
                assert!(code.is_some_and(|code| code != FAILED), "a forked child failed: {status:?}");
                return code.unwrap();
            }
            assert!(began.elapsed() < LIFE_MAX, "a forked child hangs");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}
