//! How large the log of a database is, watched from beside it.
//!
//! Only while this process has no connection to that database: closing any descriptor of a file drops all locks that
//! the process holds on it (fcntl(2)), those of its SQLite too.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::machine::proc::clock::{pause_until, shared_ns};

/// Between two looks. The log grows by a frame in some hundred microseconds, so little is missed.
const EVERY: Duration = Duration::from_millis(5);

/// Bytes of the log's header, and of a frame's.
const LOG_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// Bytes of one of the two copies of the wal-index's header.
const INDEX_HEADER_BYTES: usize = 48;

/// The largest sizes seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogSize {
    /// Of the file, as stat(2) tells it.
    pub file_bytes: Option<u64>,
    /// Of what is in use, by the wal-index.
    pub used_bytes: Option<u64>,
}

/// Looks at the log of `database`, whose pages have `page_bytes`, every 5 ms until [`shared_ns`] says `until_ns`.
pub fn watch(database: &Path, page_bytes: u32, until_ns: u64) -> LogSize {
    let beside = |ending: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let log = beside("-wal");
    let index = File::open(beside("-shm")).ok();
    let mut largest = LogSize::default();
    loop {
        let file_bytes = fs::metadata(&log).ok().map(|facts| facts.len());
        largest.file_bytes = largest.file_bytes.max(file_bytes);
        let used_bytes = index.as_ref().and_then(|index| used_bytes(index, page_bytes));
        largest.used_bytes = largest.used_bytes.max(used_bytes);
        let now_ns = shared_ns();
        if now_ns >= until_ns {
            return largest;
        }
        let every_ns = u64::try_from(EVERY.as_nanos()).unwrap_or(0);
        pause_until(until_ns.min(now_ns + every_ns));
    }
}

/// Source: wal.c, "WAL-INDEX FORMAT": two copies of the header, native byte order, mxFrame at 16. Copies that differ
/// are being written.
fn used_bytes(index: &File, page_bytes: u32) -> Option<u64> {
    let mut headers = [0; 2 * INDEX_HEADER_BYTES];
    index.read_exact_at(&mut headers, 0).ok()?;
    let (first, second) = headers.split_at(INDEX_HEADER_BYTES);
    if first != second {
        return None;
    }
    let frames = u32::from_ne_bytes(first.get(16..20)?.try_into().ok()?);
    Some(LOG_HEADER_BYTES + u64::from(frames) * (FRAME_HEADER_BYTES + u64::from(page_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::sqlite::connection::Connection;
    use crate::machine::sqlite::sqlite_api::Api;

    /// The look comes from another process in earnest; here nothing is locked while it happens.
    #[test]
    fn the_size_is_that_of_the_frames_written() {
        let place = std::env::temp_dir().join(format!("joj-log-size-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let database = place.join("x.db");
        let api = Api::bundled();
        let connection = Connection::open(&api, database.to_str().unwrap()).unwrap();
        assert_eq!(connection.value("PRAGMA journal_mode=wal").unwrap(), "wal");
        connection.run("CREATE TABLE t(a)").unwrap();
        let size = watch(&database, 4096, 0);
        // A new database's first page, and the table's root.
        assert_eq!(size, LogSize { file_bytes: Some(32 + 2 * 4120), used_bytes: Some(32 + 2 * 4120) });
        connection.close().unwrap();
        assert_eq!(watch(&database, 4096, 0), LogSize::default());
        fs::remove_dir_all(&place).unwrap();
    }
}
