//! References to values that were leaked on purpose.

/// The value at an address that was exposed from what `Box::leak` gave, or nothing for 0.
pub(crate) fn at<T: Sync>(address: usize) -> Option<&'static T> {
    let pointer: *const T = std::ptr::with_exposed_provenance(address);
    // SAFETY: callers pass 0 or the address of what `Box::leak` returned (`process::CURRENT` holds nothing else), which is
    // never freed nor borrowed mutably again.
    unsafe { pointer.as_ref() }
}
