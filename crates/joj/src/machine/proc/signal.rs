//! Ctrl-C and its kin: end the worker under way and let the program clean up after itself.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Exit code of a program that SIGINT ended, by the shell's convention.
pub const STOPPED_EXIT_CODE: u8 = 130;

static STOPPED: AtomicBool = AtomicBool::new(false);
static WORKER: AtomicI32 = AtomicI32::new(0);

/// Only what signal-safety(7) allows: two atomics and kill.
extern "C" fn on_signal(_number: libc::c_int) {
    STOPPED.store(true, Ordering::SeqCst);
    let worker = WORKER.load(Ordering::SeqCst);
    if worker > 0 {
        // SAFETY: kill takes any number; `worker` is a child not yet waited for (see `forget_worker`).
        unsafe { libc::kill(worker, libc::SIGKILL) };
    }
}

/// From now on SIGINT, SIGQUIT, SIGTERM and SIGHUP set [`is_stopped`] and end the worker instead of this process.
/// # Errors
/// As sigaction(2); signals are then as before.
pub fn install() -> io::Result<()> {
    for number in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: sigaction is plain data for which all zeros is a valid value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int) = on_signal;
        action.sa_sigaction = handler as libc::sighandler_t;
        // SAFETY: `action` is whole, the old one is not asked for, the handler is signal-safe.
        let result = unsafe { libc::sigaction(number, &raw const action, std::ptr::null_mut()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// True once a signal asked this process to end.
pub fn is_stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}

/// The signal did what it was sent for; the next one asks for something else.
pub fn forget_stop() {
    STOPPED.store(false, Ordering::SeqCst);
}

/// Names the child that a signal shall end.
pub fn watch_worker(process_id: u32) {
    WORKER.store(i32::try_from(process_id).unwrap_or(0), Ordering::SeqCst);
    if is_stopped() {
        // The signal came between the start of the child and the line above.
        on_signal(0);
    }
}

/// To be called before the child is waited for: after that its number may be somebody else's.
pub fn forget_worker() {
    WORKER.store(0, Ordering::SeqCst);
}
