//! Page bytes that stand where the `embedded` layout has the frame's header: `app.db-wal-reserved`.
//!
//!   slot k, at 32 k | salts of the generation 8 | the last 24 bytes of frame k's page |
//!
//! SQLite leaves reserved bytes zero, and so this file is hardly ever made; but whoever writes there (a shim above us)
//! loses nothing. Invariants: 1. a slot is on the medium, and so is the file's name, before the frame that needs it is
//! in the log. 2. a slot counts only in the generation that wrote it. 3. the file is removed when the log has no header any more
//! on the medium.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use blockio::disk::{Disk, DiskFile, OpenOptions};

use crate::log::embedded::PageEnd;
use crate::log::frame::Salts;

const SLOT: usize = 32;

/// The file `app.db-wal-reserved` of one log.
#[derive(Debug)]
pub struct ReservedBytes {
    disk: Arc<dyn Disk>,
    /// The log, whose permissions and owner a file that is made gets.
    log_path: PathBuf,
    no_sync: bool,
    file: Mutex<Option<Box<dyn DiskFile>>>,
}

/// The file beside a log.
pub fn path_of(log_path: &Path) -> PathBuf {
    let mut name = log_path.as_os_str().to_owned();
    name.push("-reserved");
    PathBuf::from(name)
}

impl ReservedBytes {
    /// Those of a log; no file is opened or made.
    pub fn new(disk: Arc<dyn Disk>, log_path: PathBuf, no_sync: bool) -> ReservedBytes {
        ReservedBytes { disk, log_path, no_sync, file: Mutex::default() }
    }

    /// Keeps the bytes of some frames, durably.
    /// # Errors
    /// Some may not be kept: the frames must not be written.
    pub fn keep(&self, reserved: &[(u64, Salts, PageEnd)]) -> io::Result<()> {
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            let (path, (mode, owner)) = (path_of(&self.log_path), self.disk.mode_and_owner(&self.log_path)?);
            let options = OpenOptions { create: true, mode, owner: Some(owner), ..OpenOptions::EXISTING };
            let file = self.disk.open(&path, options)?;
            if !self.no_sync {
                self.disk.sync_dir_of(&path)?;
            }
            *open = Some(file);
        }
        let Some(file) = open.as_ref() else { return Ok(()) };
        for (frame, salts, reserved) in reserved {
            let mut slot = [0; SLOT];
            slot[..8].copy_from_slice(&salts.0);
            slot[8..].copy_from_slice(reserved);
            file.write_at(&slot, frame * SLOT as u64)?;
        }
        if self.no_sync { Ok(()) } else { file.sync_data() }
    }

    /// The bytes of one frame; zeros where none were kept in this generation.
    /// # Errors
    /// The file cannot be read.
    pub fn get(&self, frame: u64, salts: Salts) -> io::Result<PageEnd> {
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            match self.disk.open(&path_of(&self.log_path), OpenOptions::EXISTING) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok([0; 24]),
                other => *open = Some(other?),
            }
        }
        let (mut slot, mut reserved) = ([0; SLOT], [0; 24]);
        let read = open.as_ref().map_or(Ok(0), |file| file.read_at(&mut slot, frame * SLOT as u64))?;
        if read == SLOT && slot[..8] == salts.0 {
            reserved.copy_from_slice(&slot[8..]);
        }
        Ok(reserved)
    }
}

/// Whether a log has the file beside it.
pub fn exist(disk: &dyn Disk, log_path: &Path) -> bool {
    disk.open(&path_of(log_path), OpenOptions::EXISTING).is_ok()
}

/// Removes the file of a log that has no header any more.
pub fn remove(disk: &dyn Disk, log_path: &Path) {
    // What stays counts for no other log, whose salts are others.
    let _ = disk.remove(&path_of(log_path));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_its_name_from_the_log_and_goes_when_it_is_told() {
        let (disk, log) = (blockio::simulated::disk::SimDisk::new(), Path::new("/a.db-wal"));
        assert!(!exist(&disk, log));
        let options = OpenOptions { create: true, ..OpenOptions::EXISTING };
        disk.open(Path::new("/a.db-wal-reserved"), options).unwrap();
        assert!(exist(&disk, log));
        remove(&disk, log);
        assert!(!exist(&disk, log));
    }
}
