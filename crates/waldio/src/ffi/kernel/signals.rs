//! The signal mask of the calling thread, which a new thread inherits.

use std::ffi::{c_int, c_void};

/// glibc's and musl's `sigset_t` on Linux, in 8-byte words.
type SignalSet = [u64; 16];

const SIG_SETMASK: c_int = 2;

unsafe extern "C" {
    fn pthread_sigmask(how: c_int, set: *const SignalSet, old: *mut c_void) -> c_int;
}

/// Runs `body` with every signal blocked for this thread, then puts the old mask back.
pub(crate) fn with_all_blocked<T>(body: impl FnOnce() -> T) -> T {
    let all: SignalSet = [u64::MAX; 16];
    let mut old: SignalSet = [0; 16];
    // SAFETY: both sets are as large as the C library's; KILL and STOP in `all` are ignored by it.
    let blocked = unsafe { pthread_sigmask(SIG_SETMASK, &raw const all, (&raw mut old).cast()) };
    let result = body();
    if blocked == 0 {
        // SAFETY: `old` was filled by the call above.
        unsafe { pthread_sigmask(SIG_SETMASK, &raw const old, std::ptr::null_mut()) };
    }
    result
}
