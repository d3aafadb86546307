//! Whether there is room for the files of a replay, before any is made.

use std::path::Path;

use crate::replay::error::ReplayError;
use crate::show::text::count;

/// Refuses what has no room: the disk is not filled first. `whose`: what needs the bytes, in the plural.
/// # Errors
/// [`ReplayError::Full`] says how much is needed, how much is free, and where.
pub fn check(directory: &Path, needed_bytes: u64, whose: &str) -> Result<(), ReplayError> {
    let Ok(facts) = rustix::fs::statvfs(directory) else { return Ok(()) };
    let free_bytes = facts.f_bavail.saturating_mul(facts.f_frsize);
    // One that counts no blocks, as ramfs, does not say how much is free.
    if facts.f_blocks == 0 || needed_bytes <= free_bytes {
        return Ok(());
    }
    let [needed, free] = [needed_bytes.div_ceil(1024), free_bytes / 1024].map(count);
    let what = format!("{whose} need {needed} KiB, and {free} KiB are free");
    Err(ReplayError::Full { place: directory.to_owned(), what })
}
