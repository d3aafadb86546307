//! Since when the oldest of the commits that wait for a flush does so.
//!
//! ```text
//! commits    a  b        c  d           e
//! flushes          |--------|                  it covers a and b: from its end on the oldest is c, which came while it ran
//! ```

use std::time::Instant;

use crate::threads::primitives::now;

/// The time of the oldest commit that waits for a flush. Never too late a time: a flush that comes early because of it costs a flush, and no commit.
#[derive(Debug, Default)]
pub struct OldestCommit {
    since: Option<Instant>,
    /// Of those that came since the flush under way began, which does not cover them.
    uncovered_since: Option<Instant>,
    is_flushing: bool,
}

impl OldestCommit {
    /// A commit waits from now on.
    pub fn waits(&mut self) {
        let since = if self.is_flushing { &mut self.uncovered_since } else { &mut self.since };
        since.get_or_insert_with(now);
    }

    /// A flush begins that covers all who wait.
    pub fn flush_begins(&mut self) {
        (self.is_flushing, self.uncovered_since) = (true, None);
    }

    /// It is over. Whoever waited waits on where it failed.
    pub fn flush_ends(&mut self, succeeded: bool) {
        self.is_flushing = false;
        let uncovered = self.uncovered_since.take();
        self.since = if succeeded { uncovered } else { self.since.or(uncovered) };
    }

    /// Another flush covered all who wait.
    pub fn all_covered(&mut self) {
        (self.since, self.uncovered_since) = (None, None);
    }

    /// Another flush covered those who came before it began, at that time.
    pub fn covered_until(&mut self, at: Instant) {
        for since in [&mut self.since, &mut self.uncovered_since] {
            *since = since.map(|since| since.max(at));
        }
    }

    /// Since when the oldest waits that no flush under way covers.
    pub fn uncovered_since(&self) -> Option<Instant> {
        if self.is_flushing { self.uncovered_since } else { self.since }
    }

    /// Since when; `None` where nobody waits.
    pub fn since(&self) -> Option<Instant> {
        self.since.or(self.uncovered_since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_covers_those_who_came_before_it_began() {
        let mut oldest = OldestCommit::default();
        assert_eq!(oldest.since(), None);
        oldest.waits();
        let first = oldest.since();
        oldest.waits();
        assert_eq!(oldest.since(), first, "the second is younger");
        oldest.flush_begins();
        assert_eq!(oldest.since(), first, "not durable yet");
        oldest.waits();
        oldest.flush_ends(true);
        let second = oldest.since();
        assert!(second > first);
        oldest.flush_begins();
        oldest.flush_ends(true);
        assert_eq!(oldest.since(), None);
    }

    #[test]
    fn another_flush_covers_those_who_came_before_it_began() {
        let mut oldest = OldestCommit::default();
        oldest.waits();
        let (first, began) = (oldest.since(), now());
        oldest.waits();
        oldest.covered_until(began);
        assert!(oldest.since() > first && oldest.since() == Some(began));
        oldest.covered_until(began - std::time::Duration::from_secs(1));
        assert_eq!(oldest.since(), Some(began), "an older one ends later");
    }

    #[test]
    fn a_flush_that_failed_covers_nobody_and_another_all() {
        let mut oldest = OldestCommit::default();
        oldest.waits();
        let first = oldest.since();
        oldest.flush_begins();
        oldest.waits();
        oldest.flush_ends(false);
        assert_eq!(oldest.since(), first);
        oldest.all_covered();
        assert_eq!(oldest.since(), None);
    }
}
