//! The log between two openings of its database: `app.db-wal-spare`.
//!
//! SQLite deletes the log at the last close, and the next open pays again for making it. Keeping it under its own
//! name would be a trap: valid frames in `-wal` silently override a database file that was restored meanwhile, and
//! bring WAL mode back after `journal_mode=DELETE`. So the log is cleared and renamed.
//!
//! Invariants: 1. what bears the spare's name has a header of zeros *on the medium*, because it is cleared and
//! synced before it is renamed; 2. a spare found otherwise (copied there, made by other hands) is cleared and
//! synced before it becomes a log; 3. it has the database's permissions and owner, or is removed.

use std::io;
use std::path::{Path, PathBuf};

use blockio::disk::{Disk, DiskFile, OpenOptions};

use crate::planted::{self, Bug};
use crate::reserve::SPARE_BYTES_MIN;

/// Name of the spare of a log.
pub fn path_of(log_path: &Path) -> PathBuf {
    let mut name = log_path.as_os_str().to_owned();
    name.push("-spare");
    PathBuf::from(name)
}

/// Makes the closed log the spare; false (and the log is as it was, or empty) where it should be deleted instead.
/// It is cut to `bytes_max`: the working size, or the user's `journal_size_limit`.
pub fn keep(disk: &dyn Disk, log_path: &Path, bytes_max: u64, no_sync: bool) -> bool {
    bytes_max >= SPARE_BYTES_MIN && try_keep(disk, log_path, bytes_max, no_sync).unwrap_or(false)
}

fn try_keep(disk: &dyn Disk, log_path: &Path, bytes_max: u64, no_sync: bool) -> io::Result<bool> {
    let log = disk.open(log_path, OpenOptions::EXISTING)?;
    let bytes = log.size()?;
    if bytes < SPARE_BYTES_MIN {
        return Ok(false);
    }
    clear(&*log, no_sync)?;
    if bytes > bytes_max {
        log.truncate(bytes_max)?;
    }
    disk.rename(log_path, &path_of(log_path))?;
    Ok(true)
}

/// Makes the spare, if there is one, the log; false where there is none. The caller still has to make the new name
/// durable before it relies on it.
/// # Errors
/// Names are as before, or another process's log stands there.
pub fn take(disk: &dyn Disk, log_path: &Path, mode_and_owner: (u32, (u32, u32))) -> io::Result<bool> {
    let spare_path = path_of(log_path);
    let spare = match disk.open(&spare_path, OpenOptions::EXISTING) {
        Ok(spare) => spare,
        // Absent, or not ours to open: a log of its own will do.
        Err(_) => return Ok(false),
    };
    if disk.mode_and_owner(&spare_path)? != mode_and_owner {
        let _ = disk.remove(&spare_path);
        return Ok(false);
    }
    clear(&*spare, false)?;
    // Another process was faster with a log of its own or took this spare, or the file system has no RENAME_NOREPLACE:
    // do without.
    Ok(disk.rename_no_replace(&spare_path, log_path).is_ok())
}

/// Zeros the header of a log, durably, whose frames are all in the database.
/// # Errors
/// It is as before, or zeros.
pub fn clear_at(disk: &dyn Disk, log_path: &Path, no_sync: bool) -> io::Result<()> {
    clear(&*disk.open(log_path, OpenOptions::EXISTING)?, no_sync)
}

/// Zeros the log's header, durably; does nothing where it is zeros, because nobody but this function makes it so.
///
/// The header's 32 bytes and no more: they lie in one sector, so a power cut leaves the old log or none. Zeroing
/// whole blocks can persist in part and leave a *shorter* valid log, whose older pages would override newer ones in
/// the database (found by `crash_waldio`, page size 1024).
fn clear(log: &dyn DiskFile, no_sync: bool) -> io::Result<()> {
    if planted::is(Bug::SpareNotCleared) {
        return Ok(());
    }
    let mut header = [0; 32];
    log.read_at(&mut header, 0)?;
    if header == [0; 32] {
        return Ok(());
    }
    log.write_at(&[0; 32], 0)?;
    if !no_sync {
        log.sync_data()?;
    }
    Ok(())
}
