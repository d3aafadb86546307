//! Whether a reader keeps the log from being emptied, as it is when somebody looks.
//!
//! A checkpoint copies no frame behind the snapshot of a reader, and SQLite begins the log anew when nobody reads from it. So a reader
//! counts that began before more was committed than the log's working size. Who has a connection of this process is known here.
//! Others show by their read locks: the kernel tells, and takes no lock for it.

use std::sync::Arc;

use crate::connection::Connection;
use crate::database::Database;
use crate::ffi::wal_index::LogView;
use crate::log::layout::frame_bytes;

/// True where one does.
pub fn is_pinned(database: &Database, connections: &[Arc<Connection>]) -> bool {
    let Some(session) = database.session() else { return false };
    let Some(view) = connections.iter().find_map(|connection| connection.log_view()) else { return false };
    let Some(frames_max) = too_many(view, session.options.log_bytes) else { return false };
    let mut snapshots = connections.iter().filter_map(|connection| connection.snapshot());
    snapshots.any(|snapshot| behind(view, snapshot) >= frames_max)
        || (0..view.marks.len())
            .any(|number| behind_lock(view, number) >= frames_max && database.is_read_elsewhere(number))
}

/// The frames of a log's working size, in bytes; `None` where the log has fewer.
fn too_many(view: LogView, log_bytes: u64) -> Option<u32> {
    let frames = log_bytes.div_ceil(frame_bytes(view.page_bytes));
    u32::try_from(frames).ok().filter(|frames| *frames <= view.newest.frames)
}

/// How many frames were committed since this snapshot was taken: its generation, folded, and its frames. Where the log is of another
/// generation now, the reader has the database alone, and keeps any frame from being copied.
fn behind(view: LogView, (generation, frames): (u32, u32)) -> u32 {
    let before = if generation == view.newest.salts.folded() { frames } else { 0 };
    view.newest.frames.saturating_sub(before)
}

/// The same for whoever has this read lock. Number 0 is that of readers of the database alone: what it has is what was copied.
fn behind_lock(view: LogView, number: usize) -> u32 {
    let mark = if number == 0 { Some(view.copied) } else { view.marks[number] };
    mark.map_or(0, |mark| view.newest.frames.saturating_sub(mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::{Salts, Version};

    const SALTS: Salts = Salts([1, 2, 3, 4, 5, 6, 7, 8]);
    const VIEW: LogView = LogView {
        newest: Version { salts: SALTS, frames: 3000 },
        page_bytes: 4096,
        copied: 500,
        marks: [Some(0), Some(500), Some(3000), None, Some(3001)],
    };

    #[test]
    fn a_log_below_its_working_size_is_kept_by_nobody() {
        assert_eq!(too_many(VIEW, 4 << 20), Some(1019));
        assert_eq!((too_many(VIEW, 3000 * 4120), too_many(VIEW, 3000 * 4120 + 1)), (Some(3000), None));
    }

    #[test]
    fn a_reader_is_as_far_behind_as_was_committed_since_it_began() {
        let of = |salts: Salts, frames| behind(VIEW, (salts.folded(), frames));
        let [later, other] = [Salts([2, 2, 3, 4, 5, 6, 7, 8]), Salts([1, 2, 3, 4, 5, 6, 7, 9])];
        assert_eq!((of(SALTS, 3000), of(SALTS, 500)), (0, 2500));
        assert_eq!((of(later, 9000), of(other, 9000)), (3000, 3000));
        assert_eq!([0, 1, 2, 3, 4].map(|number| behind_lock(VIEW, number)), [2500, 2500, 0, 0, 0]);
    }
}
