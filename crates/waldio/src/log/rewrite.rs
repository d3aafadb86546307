//! Writing a log over itself: its bytes become new ones to the page cache, which the next sync has to write.
//!
//! After a failed sync the kernel counts pages as clean that it could not write, and no later sync would.

use std::io;

use blockio::disk::DiskFile;

use crate::log::layout::{FrameIndex, frame_offset};
use crate::log::pending_writes::RUN_BYTES_MAX;
use crate::log::recovery;

/// Who may write behind the published frames meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Nobody: the caller has the write lock, or is alone.
    None,
    /// Another connection, of any process.
    Others,
}

/// Where the last valid frame ends; 0 where there is none.
/// # Errors
/// The log cannot be read.
pub fn valid_end(file: &dyn DiskFile) -> io::Result<u64> {
    let log = recovery::scan(|into, offset| file.read_at(into, offset))?;
    let end = || frame_offset(FrameIndex(log.frames_valid), log.page_bytes);
    Ok(if log.frames_valid == 0 { 0 } else { end() })
}

/// Puts the log's bytes up to `end` into the page cache as new ones, while nobody changes them.
/// # Errors
/// The bytes are the same; which of them the next sync writes is unknown.
pub fn over_itself(file: &dyn DiskFile, end: u64) -> io::Result<()> {
    let mut piece = vec![0; RUN_BYTES_MAX];
    let mut offset = 0;
    while offset < end {
        let len_bytes = usize::try_from(end - offset).unwrap_or(usize::MAX).min(piece.len());
        let bytes = &mut piece[..len_bytes];
        let read = file.read_at(bytes, offset)?;
        assert!(read == len_bytes, "the log ends at {offset} + {read} while it is locked");
        file.write_at(bytes, offset)?;
        offset += len_bytes as u64;
    }
    Ok(())
}

/// A sync failed. The kernel may have dropped what it was to write, of every process's frames, and counts the pages
/// as clean; this process's log is poisoned, but another process, or this one once it was closed and opened anew,
/// gets an OK from its next sync and builds on them. So the published frames are written over themselves at once:
/// the next sync writes them, or fails. SQLite syncs under the write lock, under read lock 0 held exclusively (a
/// checkpoint) or alone, so the log cannot be reset meanwhile, and within a generation no published byte changes;
/// what lies behind `published_end` may be another writer's, but for whoever has the write lock. `None`: nobody else has the database.
/// # Errors
/// As `over_itself`.
pub fn published(file: &dyn DiskFile, published_end: Option<u64>, writers: Writers) -> io::Result<()> {
    let valid_end = valid_end(file)?;
    let published_end = published_end.unwrap_or(valid_end);
    over_itself(file, valid_end.min(published_end))?;
    if writers == Writers::None {
        // Nobody reads what lies there: see `DiskFile::forget_cached`.
        file.forget_cached(published_end);
    }
    Ok(())
}
