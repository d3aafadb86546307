//! A temporary file without a name: it goes with this process, however that ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

static MADE: AtomicU32 = AtomicU32::new(0);

/// Makes one, to be written and read. For a moment it is called `NAME-PID` (the next ones `NAME-PID-1` ..): traces know it so.
/// # Errors
/// As open(2) and unlink(2) for the directory.
pub fn create(directory: &Path, name: &str) -> io::Result<File> {
    let suffix = match MADE.fetch_add(1, Ordering::Relaxed) {
        0 => String::new(),
        number => format!("-{number}"),
    };
    let path = directory.join(format!("{name}-{}{suffix}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
