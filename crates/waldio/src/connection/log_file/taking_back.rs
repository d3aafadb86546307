//! Commits that failed: none of them may come back when the log is next recovered.
//!
//! SQLite rolls a commit back whose sync failed, but its frames are in the file, and a poisoned log is neither written to nor deleted
//! at the close. A commit that shares a flush is published before that: others may see it, and build on it. It is taken back as soon
//! as nobody of them reads (`sqlite/vfs/taking_back`), but not where another process has committed behind it or copied it into the
//! database. Where the power is cut before, or all attempts to take it back fail, it is unknown whether it happened, as with
//! SQLite alone.

use std::io;

use super::LogFile;
use crate::ffi::wal_index::WalIndex;
use crate::log::frame::Prefix;
use crate::log::layout::{FrameIndex, frame_offset};
use crate::log::recovery;

impl LogFile {
    /// The commit that was just written failed. Without its header the commit frame is none. A frame that is published stays.
    pub(super) fn take_back_commit(&self, wal_index: Option<WalIndex>) {
        let Some(name) = self.transaction.commit_name() else { return };
        let is_published = wal_index.is_some_and(|wal_index| {
            let newest = wal_index.newest();
            newest.salts == name.salts && newest.frames >= name.frames
        });
        if let (false, Some(page_bytes)) = (is_published, self.page_bytes) {
            // Where that fails the close tries again.
            let _ = self.clear_header(frame_offset(FrameIndex(u64::from(name.frames) - 1), page_bytes));
        }
    }

    /// The log is poisoned: where the commit frame stands of the first of the commits at its end that failed, published or not. What
    /// was published and did not fail stays, and all in front of it. `None` where a checkpoint may have copied one of them, even in
    /// part: pages of it would stay in the database. Checkpoints of this process copy nothing that is not durable. `None`, too, while
    /// another thread may yet be told that its commit failed: it comes here after that. The caller keeps others from writing and from
    /// checkpoints.
    pub fn first_failed(&self, wal_index: WalIndex) -> Option<u64> {
        let published = wal_index.published().filter(|_| !self.session.durability.is_any_untold())?;
        let mut commits: Vec<Prefix> = Vec::new();
        let scanned = recovery::scan_commits(
            |into, offset| self.file.read_at(into, offset),
            |commit| commits.push(commit),
        );
        let log = scanned.ok()?;
        if log.salts != published.salts {
            return None;
        }
        let failed = |commit: &&Prefix| {
            commit.frames > published.frames || self.session.durability.has_failed(**commit)
        };
        let kept = commits.len() - commits.iter().rev().take_while(failed).count();
        let kept_frames = kept.checked_sub(1).map_or(0, |last| commits[last].frames);
        let first = commits.get(kept).filter(|_| wal_index.copied_at_most() <= kept_frames);
        first.map(|first| frame_offset(FrameIndex(u64::from(first.frames) - 1), log.page_bytes))
    }

    /// Makes the commit whose commit frame stands at `offset` none, and so all behind it. The caller keeps others from reading as well.
    /// True where no recovery finds it from now on, but for one after a power cut.
    pub fn take_back(&self, offset: u64) -> bool {
        self.clear_header(offset).is_ok()
    }

    fn clear_header(&self, offset: u64) -> io::Result<()> {
        self.file.write_at(&[0; 24], offset)
    }
}
