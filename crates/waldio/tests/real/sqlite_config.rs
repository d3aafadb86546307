//! How Debian's SQLite library is configured before a test uses it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use libsqlite3_sys as ffi;

/// What `sqlite3_config(SQLITE_CONFIG_LOG)` collected, of every library.
static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn note_log(_: *mut c_void, code: c_int, message: *const c_char) {
    // SAFETY: SQLite passes a terminated message.
    let message = unsafe { CStr::from_ptr(message) };
    let line = format!("{code}: {}", message.to_string_lossy());
    LOG.lock().unwrap_or_else(PoisonError::into_inner).push(line);
}

/// Everything in SQLite's error log so far.
pub fn error_log() -> Vec<String> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

static SINGLE_THREADED: AtomicBool = AtomicBool::new(false);

/// From here on Debian's library has no mutexes. To be called before its first use.
pub fn take_mutexes_away() {
    SINGLE_THREADED.store(true, SeqCst);
}

/// Collects the error log, and takes the mutexes away where a test wants that.
/// # Safety
/// `config` is the library's `sqlite3_config`, and nobody used the library yet.
pub unsafe fn configure(config: *mut c_void) {
    type Config = unsafe extern "C" fn(c_int, ...) -> c_int;
    // SAFETY: SQLite's function of this name has this type (sqlite3.h).
    let config = unsafe { transmute::<*mut c_void, Config>(config) };
    let log: unsafe extern "C" fn(*mut c_void, c_int, *const c_char) = note_log;
    // SAFETY: the caller's promise; this option takes a function and its data.
    unsafe { config(ffi::SQLITE_CONFIG_LOG, log, ptr::null_mut::<c_void>()) };
    if SINGLE_THREADED.load(SeqCst) {
        // SAFETY: as above; this option takes nothing more.
        unsafe { config(ffi::SQLITE_CONFIG_SINGLETHREAD) };
    }
}
