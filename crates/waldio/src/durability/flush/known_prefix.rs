//! What this process knows to be on the medium: the name of a prefix of the log.
//!
//! A name counts only where the wal-index has it at that place. So a transaction that was rolled back, a savepoint, another
//! process, another file under the same path: none of them can make a wrong answer of what was right when it was noted. It
//! stops matching, and a sync too many is all that follows.
//!
//! Two names, because a commit is synced before it is published: that one counts only once it is. What was published when
//! a flush began also vouches for every snapshot in front of it that began since, because SQLite changes no published frame
//! while anybody reads. A log that is shorter than a name of its generation lost commits that failed (`failed_commits`): that
//! name, of frames that are no more, is forgotten.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::log::frame::{Prefix, Version};

/// Names of the log's longest prefix that is known to be on the medium.
#[derive(Debug, Default)]
pub struct KnownPrefix(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    /// It was published when a flush that succeeded began.
    published: Option<Prefix>,
    /// The last frame of a commit that was flushed, and was to be published next.
    committed: Option<Prefix>,
}

impl KnownPrefix {
    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A flush of the whole file succeeded that began when `prefix` was published.
    pub fn flushed(&self, prefix: Prefix) {
        let mut names = self.names();
        let is_longer = |known: Prefix| known.salts == prefix.salts && known.frames > prefix.frames;
        if !names.published.is_some_and(is_longer) {
            names.published = Some(prefix);
        }
    }

    /// A commit that ends the log at `prefix` is on the medium with everything in front of it. It may be rolled back still.
    pub fn committed(&self, prefix: Prefix) {
        self.names().committed = Some(prefix);
    }

    /// True where everything up to `published`, which the wal-index has now, is on the medium.
    pub fn covers(&self, published: Prefix) -> bool {
        let mut names = self.names();
        if names.committed == Some(published) {
            names.published = names.committed;
        }
        let is_of_lost_frames =
            |known: &mut Prefix| known.salts == published.salts && known.frames > published.frames;
        names.published.take_if(is_of_lost_frames);
        names.published == Some(published)
    }

    /// The same for a snapshot that is in use, and whose name was asked for when it was the newest.
    pub fn covers_snapshot(&self, version: Version) -> bool {
        self.names()
            .published
            .is_some_and(|known| known.salts == version.salts && known.frames >= version.frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::{Checksum, Salts};

    fn prefix(generation: u8, frames: u32, checksum: u32) -> Prefix {
        Prefix { salts: Salts([generation; 8]), frames, checksum: Checksum(checksum, 0) }
    }

    fn version(frames: u32) -> Version {
        Version { salts: Salts([1; 8]), frames }
    }

    #[test]
    fn what_was_published_before_a_flush_is_known_with_all_in_front_of_it() {
        let known = KnownPrefix::default();
        assert!(!known.covers(prefix(1, 1, 1)));
        known.flushed(prefix(1, 5, 50));
        assert!(known.covers(prefix(1, 5, 50)));
        assert!(!known.covers(prefix(1, 6, 60)) && !known.covers(prefix(2, 1, 1)));
        assert!(known.covers_snapshot(version(5)) && !known.covers_snapshot(version(6)));
        known.flushed(prefix(1, 3, 30));
        assert!(known.covers(prefix(1, 5, 50)), "a flush that began earlier takes nothing back");
    }

    #[test]
    fn other_frames_at_the_same_place_have_another_name() {
        let known = KnownPrefix::default();
        known.flushed(prefix(1, 5, 50));
        assert!(!known.covers(prefix(1, 5, 51)));
    }

    #[test]
    fn a_log_that_lost_frames_vouches_for_none_that_come_in_their_place() {
        let known = KnownPrefix::default();
        known.flushed(prefix(1, 5, 50));
        assert!(!known.covers(prefix(1, 3, 30)), "frames 4 and 5 are gone");
        assert!(!known.covers_snapshot(version(4)) && !known.covers(prefix(1, 4, 41)));
    }

    #[test]
    fn a_commit_counts_only_once_it_is_published() {
        let known = KnownPrefix::default();
        known.flushed(prefix(1, 2, 20));
        known.committed(prefix(1, 9, 90));
        // It was rolled back; somebody else's frames stand there.
        assert!(!known.covers(prefix(1, 4, 41)) && !known.covers(prefix(1, 9, 91)));
        assert!(!known.covers_snapshot(version(4)));
        assert!(known.covers(prefix(1, 9, 90)));
        assert!(known.covers_snapshot(version(9)));
    }
}
