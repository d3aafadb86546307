//! Memory of the bundled copy of SQLite that gives nothing once, at the allocation that a test names.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use super::sqlite::ffi::{self, sqlite3_mem_methods};

type Allocate = unsafe extern "C" fn(c_int) -> *mut c_void;
type Reallocate = unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void;

/// The library's own.
static BELOW: OnceLock<(Allocate, Reallocate)> = OnceLock::new();
/// Allocations until the one that fails; negative: none will.
static LEFT: AtomicI64 = AtomicI64::new(-1);

/// Takes the place of the library's memory, which nothing may have used yet.
pub fn install() {
    const GET: c_int = ffi::SQLITE_CONFIG_GETMALLOC;
    const SET: c_int = ffi::SQLITE_CONFIG_MALLOC;
    let mut methods = MaybeUninit::<sqlite3_mem_methods>::zeroed();
    // SAFETY: this option fills a structure of methods.
    let code = unsafe { ffi::sqlite3_config(GET, methods.as_mut_ptr()) };
    assert_eq!(code, ffi::SQLITE_OK);
    // SAFETY: filled, and zeros are no methods.
    let mut methods = unsafe { methods.assume_init() };
    let below = methods.xMalloc.replace(allocate).zip(methods.xRealloc.replace(reallocate));
    assert!(BELOW.set(below.expect("methods")).is_ok(), "installed twice");
    // SAFETY: this option copies a structure of methods, and these stay.
    let code = unsafe { ffi::sqlite3_config(SET, &raw mut methods) };
    assert_eq!(code, ffi::SQLITE_OK, "the library was in use");
}

/// Runs `body` with the allocation of this number failing, counted from 0; whether there was one, and what came.
pub fn with_failing<T>(number: i64, body: impl FnOnce() -> T) -> (bool, T) {
    LEFT.store(number, SeqCst);
    let result = body();
    (LEFT.swap(-1, SeqCst) < 0, result)
}

fn is_its_turn() -> bool {
    LEFT.load(SeqCst) >= 0 && LEFT.fetch_sub(1, SeqCst) == 0
}

unsafe extern "C" fn allocate(bytes: c_int) -> *mut c_void {
    let below = BELOW.get().filter(|_| !is_its_turn());
    // SAFETY: SQLite's own argument, for the same method.
    below.map_or(ptr::null_mut(), |(allocate, _)| unsafe { allocate(bytes) })
}

unsafe extern "C" fn reallocate(memory: *mut c_void, bytes: c_int) -> *mut c_void {
    let below = BELOW.get().filter(|_| !is_its_turn());
    // SAFETY: SQLite's own arguments, for the same method.
    below.map_or(ptr::null_mut(), |(_, reallocate)| unsafe { reallocate(memory, bytes) })
}
