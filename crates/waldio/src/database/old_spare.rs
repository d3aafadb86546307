//! `app.db-wal-spare`, which waldio 0.1 left beside a closed database: a cleared log, kept for the next opening.
//!
//! Nothing keeps one any more. It outlived the connections, so nothing could give it the database's owner and permissions
//! when those changed, and nothing removed the deleted rows in it. What an older version left is removed.

use std::path::Path;

use blockio::disk::{Disk, OpenOptions};

/// Removes the spare of a log, if there is one: a file of that name whose header was cleared.
pub fn remove(disk: &dyn Disk, log_path: &Path) {
    let mut name = log_path.as_os_str().to_owned();
    name.push("-spare");
    let path = Path::new(&name);
    let Ok(spare) = disk.open(path, OpenOptions { read_only: true, ..OpenOptions::EXISTING }) else { return };
    let mut header = [1; 32];
    if spare.read_at(&mut header, 0).is_ok() && header == [0; 32] {
        let _ = disk.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockio::simulated::disk::SimDisk;

    #[test]
    fn a_cleared_spare_is_removed_and_no_other_file() {
        let (disk, log_path) = (SimDisk::new(), Path::new("/app.db-wal"));
        let path = Path::new("/app.db-wal-spare");
        let created = OpenOptions { create: true, ..OpenOptions::EXISTING };
        disk.open(path, created).unwrap().write_at(&[7; 4096], 0).unwrap();
        remove(&disk, log_path);
        disk.open(path, OpenOptions::EXISTING).unwrap().write_at(&[0; 32], 0).unwrap();
        remove(&disk, log_path);
        assert!(disk.open(path, OpenOptions::EXISTING).is_err());
        remove(&disk, log_path);
    }
}
