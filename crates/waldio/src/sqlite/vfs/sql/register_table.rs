//! Our VFS structure in SQLite's list.

use std::ffi::{CStr, c_int, c_void};

use crate::ffi::api::Api;
use crate::sqlite::vfs::registered::Registered;
use crate::sqlite::vfs::vfs_methods;

/// Registers a VFS whose methods are ours.
/// # Safety
/// `api` belongs to the library that `registered.base` is registered with.
pub(crate) unsafe fn register(api: Api, registered: &'static Registered, make_default: bool) -> c_int {
    let vfs = Box::leak(Box::new(vfs_methods::table(registered)));
    // SAFETY: complete, and leaked: it stays.
    unsafe { api.vfs_register(vfs, make_default) }
}

/// What `waldio_status` gets as its client data: the registration of this name, if it is ours.
pub(crate) fn client(api: Api, name: &CStr) -> Option<*mut c_void> {
    let vfs = api.vfs_find(Some(name));
    if vfs.is_null() {
        return None;
    }
    // SAFETY: SQLite found it registered.
    if !unsafe { vfs_methods::is_ours(vfs) } {
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { (*vfs).pAppData })
}
