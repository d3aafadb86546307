//! Whether a reader keeps the log from being emptied, as it is when somebody looks.
//!
//! A checkpoint copies no frame behind the snapshot of a reader, and SQLite begins the log anew when nobody reads from it. So a reader
//! counts that began before more was committed than the log's working size. Who has a connection of this process is known here.
//! Others show by their read locks: the kernel tells, and takes no lock for it.

use std::sync::Arc;

use crate::connection::Connection;
use crate::database::Database;
use crate::ffi::wal_index::LogView;
use crate::log::frame::Version;
use crate::log::layout::frame_bytes;

/// True where one does.
pub fn is_pinned(database: &Database, connections: &[Arc<Connection>]) -> bool {
    let Some(session) = database.session() else { return false };
    let Some(view) = connections.iter().find_map(|connection| connection.log_view()) else { return false };
    let Some(frames_max) = too_many(view, session.options.log_bytes) else { return false };
    let snapshots = connections.iter().filter_map(|connection| connection.snapshot());
    snapshots.into_iter().any(|snapshot| behind(view, snapshot) >= frames_max)
        || (0..view.marks.len())
            .any(|number| behind_lock(view, number) >= frames_max && database.is_read_elsewhere(number))
}

/// The frames of a log's working size, in bytes; `None` where the log has fewer.
fn too_many(view: LogView, log_bytes: u64) -> Option<u32> {
    let frames = log_bytes.div_ceil(frame_bytes(view.page_bytes));
    u32::try_from(frames).ok().filter(|frames| *frames <= view.newest.frames)
}

/// How many frames were committed since this snapshot was taken. Where it is of another generation of the log, its reader has the
/// database alone, and keeps any frame from being copied.
fn behind(view: LogView, snapshot: Version) -> u32 {
    let before = if snapshot.salts == view.newest.salts { snapshot.frames } else { 0 };
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
    use crate::log::frame::Salts;

    const VIEW: LogView = LogView {
        newest: Version { salts: Salts([1; 8]), frames: 3000 },
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
        let of = |salts, frames| behind(VIEW, Version { salts: Salts([salts; 8]), frames });
        assert_eq!((of(1, 3000), of(1, 500), of(2, 9000)), (0, 2500, 3000));
        assert_eq!([0, 1, 2, 3, 4].map(|number| behind_lock(VIEW, number)), [2500, 2500, 0, 0, 0]);
    }
}
