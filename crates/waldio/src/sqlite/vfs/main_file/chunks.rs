//! `waldio_db_chunk`: a large database file grows by whole chunks at checkpoints.
//!
//! The base VFS does it (`SQLITE_FCNTL_CHUNK_SIZE`). It rounds each size up, also where it cuts the file. Only zeros may stay after the
//! last page: pages that a VACUUM dropped are cut off to the byte.

use std::ffi::c_int;
use std::ops::Range;

use crate::ffi::base_vfs::methods_of;
use crate::ffi::codes::*;
use crate::ffi::types::sqlite3_file;
use crate::sqlite::vfs::handle::{base_of, forward};

/// Database files below so many chunks grow page by page, as ever.
const CHUNKS_MIN: u64 = 4;

fn is_large(size_bytes: u64, chunk_bytes: u64) -> bool {
    size_bytes >= CHUNKS_MIN.saturating_mul(chunk_bytes)
}

/// Before a checkpoint: has the base VFS make a large database file longer by chunks.
pub(super) fn before_checkpoint(file: *mut sqlite3_file, chunk_bytes: u64) {
    if chunk_bytes > 0 && size_of(file).is_some_and(|size_bytes| is_large(size_bytes, chunk_bytes)) {
        set(file, chunk_bytes);
    }
}

/// Before the file is cut to `size_bytes`, as each complete checkpoint does. Where more than zeros would stay after that size, the file
/// is cut to the byte. The next checkpoint makes it longer again.
pub(super) fn before_truncation(file: *mut sqlite3_file, size_bytes: i64, chunk_bytes: u64) {
    if chunk_bytes == 0 {
        return;
    }
    let wanted = u64::try_from(size_bytes).unwrap_or(0);
    let Some(now) = size_of(file) else { return set(file, 0) };
    if !is_zeros(file, wanted..now.min(wanted.next_multiple_of(chunk_bytes))) {
        set(file, 0);
    }
}

fn size_of(file: *mut sqlite3_file) -> Option<u64> {
    let mut size_bytes = 0_i64;
    let code = forward!(file, xFileSize(&raw mut size_bytes), SQLITE_IOERR);
    u64::try_from(size_bytes).ok().filter(|_| code == SQLITE_OK)
}

/// False where it cannot be read, too.
fn is_zeros(file: *mut sqlite3_file, bytes: Range<u64>) -> bool {
    const PIECE: usize = 1 << 12;
    let mut piece = [0_u8; PIECE];
    bytes.clone().step_by(PIECE).all(|at| {
        let count = usize::try_from(bytes.end - at).unwrap_or(PIECE).min(PIECE);
        let (into, len) = ((&raw mut piece).cast(), c_int::try_from(count).unwrap_or(0));
        let offset = i64::try_from(at).unwrap_or(i64::MAX);
        let code = forward!(file, xRead(into, len, offset), SQLITE_IOERR);
        code == SQLITE_OK && piece[..count].iter().all(|byte| *byte == 0)
    })
}

fn set(file: *mut sqlite3_file, chunk_bytes: u64) {
    let mut chunk_bytes = c_int::try_from(chunk_bytes).unwrap_or(0);
    let place = (&raw mut chunk_bytes).cast();
    // Where it does not take that, the file grows as ever.
    let _ = forward!(file, xFileControl(SQLITE_FCNTL_CHUNK_SIZE, place), SQLITE_NOTFOUND);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_a_few_chunks_grows_page_by_page() {
        let large = [0, (4 << 20) - 1, 4 << 20, u64::MAX].map(|size_bytes| is_large(size_bytes, 1 << 20));
        assert_eq!(large, [false, false, true, true]);
    }
}
