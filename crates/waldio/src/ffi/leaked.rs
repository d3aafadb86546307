//! References to values that were leaked on purpose.

/// The value behind a pointer that `Box::leak` gave, or nothing for null.
pub(crate) fn get<T: Sync>(pointer: *mut T) -> Option<&'static T> {
    // SAFETY: callers pass null or what `Box::leak` returned (`process::CURRENT` holds nothing else), which is
    // never freed nor borrowed mutably again.
    unsafe { pointer.as_ref() }
}
