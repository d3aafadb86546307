//! Registers waldio on a simulated computer.

use std::ffi::CString;
use std::sync::Arc;

use blockio::disk::Disk;
use libsqlite3_sys::SQLITE_OK;
use waldio::Registration;
use waldio::options::Options;

use super::library::bundled;

/// Registers waldio as `name` over the VFS `base`, with its logs on `disk`. With an inline worker growth happens in
/// the caller, so that the same calls give the same operations.
pub fn register(name: &str, base: &str, disk: Arc<dyn Disk>, options: Options, inline_worker: bool) {
    let keep = |text: &str| &*Box::leak(CString::new(text).expect("no NUL").into_boxed_c_str());
    let registration = Registration {
        name: keep(name),
        base: Some(keep(base)),
        disk,
        make_default: false,
        treat_base_as_unix: true,
        options,
        inline_worker,
    };
    // SAFETY: the bundled SQLite's own table, a later version than 3.32.
    let code = unsafe { waldio::register_with(bundled().routines(), registration) };
    assert_eq!(code, SQLITE_OK);
}
