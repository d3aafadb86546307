//! Commits that failed: none of them may come back when the log is next recovered.
//!
//! SQLite rolls a commit back whose sync failed, but its frames are in the file, and a poisoned log is neither written to nor deleted
//! at the close. A commit that shares a flush is published before that: others may see it, and build on it. So it stays as long
//! as this process has the database open, and goes with its last close. It does not go where another process has committed behind it,
//! copied it into the database, or reads it at that moment. Where the power is cut before, or all attempts to take it back fail, it
//! is unknown whether it happened, as with SQLite alone.

use std::sync::atomic::Ordering::SeqCst;

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
            let (salts, frames) = wal_index.newest();
            salts == name.salts && frames >= name.frames
        });
        if let (false, Some(page_bytes)) = (is_published, self.page_bytes) {
            self.clear_header(name, page_bytes);
        }
    }

    /// The log is poisoned, and its connection is about to close. True where all others of this process are, too: connections that
    /// close at the same time keep one another from the exclusive lock, and the last one waits for it.
    pub fn leaves(&mut self) -> bool {
        if !std::mem::replace(&mut self.leaves, true) {
            self.session.leaving.fetch_add(1, SeqCst);
        }
        self.session.leaving.load(SeqCst) >= self.session.handles.load(SeqCst)
    }

    /// It has closed.
    pub fn has_left(&self) {
        if self.leaves {
            self.session.leaving.fetch_sub(1, SeqCst);
        }
    }

    /// Nobody else uses the log, which is poisoned: takes back the commits at its end that failed, published or not. What was
    /// published and did not fail stays, and all in front of it; and so do all of them where a
    /// checkpoint may have copied more than these, `copied_frames` at most.
    pub fn take_back_failed(&self, wal_index: WalIndex, copied_frames: u32) {
        let Some(published) = wal_index.published() else { return };
        let mut commits: Vec<Prefix> = Vec::new();
        let scanned = recovery::scan_commits(
            |into, offset| self.file.read_at(into, offset),
            |commit| commits.push(commit),
        );
        let Ok(log) = scanned else { return };
        if log.salts != published.salts {
            return;
        }
        let failed = |commit: &&Prefix| {
            commit.frames > published.frames || self.session.durability.has_failed(**commit)
        };
        let kept = commits.len() - commits.iter().rev().take_while(failed).count();
        let kept_frames = kept.checked_sub(1).map_or(0, |last| commits[last].frames);
        if let Some(first) = commits.get(kept)
            && copied_frames <= kept_frames
        {
            self.clear_header(*first, log.page_bytes);
            let _ = self.file.sync_data();
        }
    }

    fn clear_header(&self, commit: Prefix, page_bytes: u32) {
        let offset = frame_offset(FrameIndex(u64::from(commit.frames) - 1), page_bytes);
        let _ = self.file.write_at(&[0; 24], offset);
    }
}
