//! A place in memory for files: a directory of a tmpfs that is there without a mount, and so without root.

use std::io;
use std::path::{Path, PathBuf};

use crate::machine::files::place::Place;
use crate::machine::files::work_dir::{WorkDir, WorkDirError};
use crate::machine::proc::memory::available_kib;
use crate::show::text::count;

/// Where Linux has one.
pub const SHARED_MEMORY: &str = "/dev/shm";
/// What it is called below the directory of a replay. No recorded path begins so.
pub const IN_REPLAY: &str = "/.joj-files-in-ram";

/// A directory in memory for joj's user alone, if so many bytes have room there. `whose`: what needs them, in the plural.
/// # Errors
/// Why there is none.
pub fn directory(needed_bytes: u64, whose: &str) -> Result<WorkDir, String> {
    let place = Path::new(SHARED_MEMORY);
    let kind = Place::of(place).filesystem.kind;
    if kind != "tmpfs" {
        return Err(format!("there is no place in memory: {SHARED_MEMORY} is no tmpfs"));
    }
    let of_filesystem = rustix::fs::statvfs(place).map(|facts| facts.f_bavail.saturating_mul(facts.f_frsize));
    let of_machine = available_kib().map_or(u64::MAX, |kib| kib.saturating_mul(1024));
    let free_bytes = of_filesystem.unwrap_or(u64::MAX).min(of_machine);
    if needed_bytes > free_bytes {
        let [needed, free] = [needed_bytes.div_ceil(1024), free_bytes / 1024].map(count);
        return Err(format!("{whose} need {needed} KiB, and {free} KiB of memory are free"));
    }
    WorkDir::private(place, "joj-whatif").map_err(|error| match error {
        WorkDirError::ReadOnly { error, .. } => cannot_write(&error),
        error => error.to_string(),
    })
}

fn cannot_write(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => "`mount -o remount,rw /dev/shm` as root lets joj write there",
        io::ErrorKind::PermissionDenied => "`chmod 1777 /dev/shm` as root lets each user write there",
        _ => "make room there",
    };
    format!(
        "cannot write in {SHARED_MEMORY}, where files are in memory: {error}; {remedy}, and --only leaves such rows out"
    )
}

/// Where the link to it is in a replay's directory.
pub fn link(directory: &Path) -> PathBuf {
    directory.join(IN_REPLAY.trim_start_matches('/'))
}
