//! Who wants to know of each sync of a log: SQLite's own test program, which counts them.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

type Observer = unsafe extern "C" fn(c_int);

static OBSERVER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Has `observer` called with SQLite's sync flags at each `xSync` of a log, and once more where that makes the log's name
/// durable, in the thread that syncs; null ends it.
/// # Safety
/// The function stays callable for as long as it is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn waldio_on_sync(observer: Option<Observer>) {
    let pointer = observer.map_or(std::ptr::null_mut(), |observer| observer as *mut c_void);
    OBSERVER.store(pointer, Relaxed);
}

pub(crate) fn notify(flags: c_int) {
    let pointer = OBSERVER.load(Relaxed);
    if pointer.is_null() {
        return;
    }
    // SAFETY: only `waldio_on_sync` stores here, and only functions of this type.
    let observer = unsafe { transmute::<*mut c_void, Observer>(pointer) };
    // SAFETY: the caller of `waldio_on_sync` keeps it callable.
    unsafe { observer(flags) }
}
