//! Which transaction a filesystem's journal commits, and how near a sync call is to waiting for it.
//!
//! ```text
//! JournalBegin T ... writes and flushes of T ... JournalEnd T      jbd2 commits one transaction at a time
//! ```
//!
//! 1. Nothing joins T after its begin. A call that was called, and whose data was on the disk, before that waits for T at most.
//! 2. When T has ended, such a call waits for no commit any more, though its thread may return much later.
//!    With unwritten extents (ext4's default) a file's blocks are placed when its data is on the disk, which may be after T's begin.
//!    A call for a directory needs all that there is when it is called.
//! 3. Where the capture tells for which transaction a call waits, that holds.
//!
//! XFS has no such begin and end. A call says which checkpoint of the log it waits for; kernel threads write checkpoints in order. The
//! call writes the last of it by itself, or finds that done and returns: no later write of a kernel thread is for that checkpoint.
//!
//! Source: fs/jbd2/commit.c, and ext4_sync_file in fs/ext4/fsync.c: data first, then the commit, then a flush of its own;
//! xlog_cil_force_seq and xlog_force_lsn in fs/xfs.

use crate::trace::event::{DeviceNumber, Event};

/// A commit under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalCommit {
    /// The filesystem.
    pub device: DeviceNumber,
    /// Its transaction.
    pub transaction: i64,
    /// From then on nothing joins it.
    pub begun_ns: u64,
}

/// What the filesystems' journals are at.
#[derive(Debug, Default)]
pub struct Journals {
    /// One at most of a filesystem.
    under_way: Vec<JournalCommit>,
    /// Of each filesystem for which a call was seen to wait: up to which checkpoint all of its log was handed over.
    handed_over: Vec<(DeviceNumber, i64)>,
    /// When a file of each filesystem was last seen to change.
    changed: Vec<(DeviceNumber, u64)>,
}

impl Journals {
    /// A commit begins, or is told again. Returns the one before it, where its end was not seen.
    pub fn begin(&mut self, event: &Event) -> Option<JournalCommit> {
        let before = self.end(event.device).filter(|before| before.transaction != event.detail);
        self.under_way.push(JournalCommit {
            device: event.device,
            transaction: event.detail,
            begun_ns: event.time_ns,
        });
        before
    }

    /// A filesystem's commit is over. `None` where its begin was before the trace.
    pub fn end(&mut self, filesystem: DeviceNumber) -> Option<JournalCommit> {
        let at = self.under_way.iter().position(|commit| commit.device == filesystem)?;
        Some(self.under_way.swap_remove(at))
    }

    /// A filesystem's commit under way.
    pub fn of(&self, filesystem: DeviceNumber) -> Option<JournalCommit> {
        self.under_way.iter().find(|commit| commit.device == filesystem).copied()
    }

    /// A file of a filesystem changes: the transaction that runs has to be committed for that.
    pub fn change(&mut self, filesystem: DeviceNumber, time_ns: u64) {
        match self.changed.iter_mut().find(|(own, _)| *own == filesystem) {
            Some((_, last)) => *last = time_ns,
            None => self.changed.push((filesystem, time_ns)),
        }
    }

    /// The commit under way, where nothing changed since its begin: who now needs all that there is waits for this one. `None` too
    /// where the capture tells who waits.
    pub fn last_chance(&self, filesystem: DeviceNumber) -> Option<i64> {
        let commit = self.of(filesystem).filter(|_| self.handed_over(filesystem).is_none())?;
        let changed = self.changed.iter().find(|(own, _)| *own == filesystem);
        changed.is_none_or(|(_, last)| *last < commit.begun_ns).then_some(commit.transaction)
    }

    /// Checkpoints of a filesystem's log are handed over up to this one; 0 where that is not known.
    pub fn hand_over(&mut self, filesystem: DeviceNumber, checkpoint: i64) {
        match self.handed_over.iter_mut().find(|(own, _)| *own == filesystem) {
            Some((_, last)) => *last = checkpoint.max(*last),
            None => self.handed_over.push((filesystem, checkpoint)),
        }
    }

    /// The last checkpoint of a filesystem's log that is known to be handed over. `None` where calls are not seen to wait for any.
    pub fn handed_over(&self, filesystem: DeviceNumber) -> Option<i64> {
        self.handed_over.iter().find(|(own, _)| *own == filesystem).map(|(_, last)| *last)
    }
}

/// How surely a call waits for the commit under way; the surest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expectation {
    /// The capture told it.
    Told,
    /// It needs a commit, of what was there before this one began.
    Needed,
    /// Its data was on the disk when the commit began. It may need no commit at all.
    Ready,
    /// The commit before was concluded to be the one that it waits for.
    Doubtful,
    /// It was called, or its data was written, since then: it may wait for the next commit, or for none.
    Late,
    /// Its data is still on the way: most likely it will wait for the next.
    Early,
}

/// How far a sync call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncProgress {
    /// When it was called, when data was last handed over for it or completed, or when blocks of its file were last placed.
    pub settled_ns: u64,
    /// It needs a commit for certain: blocks of its file were placed since it was called, or it is for a directory.
    pub needs_commit: bool,
    /// Bytes of data for it that are not complete.
    pub in_flight: u64,
    /// The filesystem and the transaction of its journal that it waits for, where the capture told it.
    pub told: Option<(DeviceNumber, i64)>,
    /// It is for more than one file: it asks for commits while data for it is on the way, and then for the one that it waits for.
    pub is_for_many: bool,
    /// The transaction that it waits for, as far as the trace shows.
    pub concluded: Option<i64>,
    /// That one is committed.
    pub is_doubtful: bool,
    /// What it waited for is committed, or it is past all waiting for commits.
    pub is_satisfied: bool,
}

impl SyncProgress {
    /// Data is handed over for it.
    pub fn hand_over(&mut self, time_ns: u64, bytes: u64) {
        self.settled_ns = self.settled_ns.max(time_ns);
        self.in_flight += bytes;
        // Whose journal is waited for has all its data on the disk, where it is for many files.
        self.is_satisfied &= self.is_for_many;
    }

    /// Data of it is complete.
    pub fn complete(&mut self, time_ns: u64, bytes: u64) {
        self.settled_ns = self.settled_ns.max(time_ns);
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// Blocks of its file have a place now, by a handle on the transaction that runs.
    pub fn place(&mut self, time_ns: u64) {
        self.settled_ns = time_ns;
        self.needs_commit = true;
        self.is_satisfied = false;
    }

    /// The capture tells for what it waits.
    pub fn tell(&mut self, filesystem: DeviceNumber, transaction: i64) {
        self.told = Some((filesystem, transaction));
        self.is_satisfied = false;
    }

    /// A commit of its filesystem is over.
    pub fn committed(&mut self, commit: JournalCommit) {
        match (self.told, self.concluded) {
            (Some(told), _) => self.is_satisfied |= told == (commit.device, commit.transaction),
            (None, _) if self.is_for_many => {}
            // What the next transaction holds may have changed unseen.
            (None, Some(transaction)) if transaction == commit.transaction => {
                (self.is_doubtful, self.concluded) = (true, None);
            }
            _ => self.is_satisfied |= self.in_flight == 0 && self.settled_ns < commit.begun_ns,
        }
    }

    /// Whether it waits for this commit; `None` where it does not. Without a commit: for whatever the journal writes.
    pub fn expects(&self, commit: Option<JournalCommit>) -> Option<Expectation> {
        // A call for all filesystems waits for each in turn.
        let is_of = |(device, _): &(DeviceNumber, i64)| commit.is_none_or(|commit| commit.device == *device);
        let told = self.told.filter(is_of).map(|(_, transaction)| transaction);
        match (told.or(self.concluded), commit) {
            _ if self.is_satisfied => None,
            (Some(transaction), Some(commit)) => {
                (transaction == commit.transaction).then_some(Expectation::Told)
            }
            _ if self.is_for_many => Some(Expectation::Ready),
            _ if self.is_doubtful => Some(Expectation::Doubtful),
            _ if self.in_flight > 0 => Some(Expectation::Early),
            (_, Some(commit)) if self.settled_ns >= commit.begun_ns => Some(Expectation::Late),
            _ if self.needs_commit => Some(Expectation::Needed),
            _ => Some(Expectation::Ready),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: JournalCommit = JournalCommit { device: DeviceNumber(3), transaction: 7, begun_ns: 100 };
    const NEXT: JournalCommit = JournalCommit { transaction: 8, begun_ns: 200, ..COMMIT };

    fn begun(settled_ns: u64) -> SyncProgress {
        SyncProgress { settled_ns, ..SyncProgress::default() }
    }

    #[test]
    fn a_call_whose_data_was_there_before_a_commit_began_waits_for_no_later_one() {
        let mut call = begun(50);
        call.hand_over(60, 4096);
        assert_eq!(call.expects(Some(COMMIT)), Some(Expectation::Early));
        call.complete(90, 4096);
        assert_eq!(call.expects(Some(COMMIT)), Some(Expectation::Ready));
        call.committed(COMMIT);
        assert_eq!((call.expects(Some(NEXT)), call.expects(None)), (None, None));
        // It wrote more: that is of a later transaction.
        call.hand_over(210, 4096);
        call.complete(220, 4096);
        call.committed(NEXT);
        assert_eq!(call.expects(Some(NEXT)), Some(Expectation::Late));
    }

    #[test]
    fn a_call_that_came_when_a_commit_was_under_way_may_wait_for_the_next() {
        let mut call = begun(150);
        assert_eq!(call.expects(Some(COMMIT)), Some(Expectation::Late));
        call.committed(COMMIT);
        assert_eq!(call.expects(Some(NEXT)), Some(Expectation::Ready));
    }

    #[test]
    fn a_call_whose_blocks_were_placed_goes_before_one_that_may_only_flush() {
        let (mut call, only_flushes) = (begun(50), begun(40));
        call.place(95);
        let expected = (Some(Expectation::Needed), Some(Expectation::Ready));
        assert_eq!((call.expects(Some(COMMIT)), only_flushes.expects(Some(COMMIT))), expected);
        // Its data was on the disk before the commit began, its blocks had their place only then.
        call.place(105);
        call.committed(COMMIT);
        assert_eq!(call.expects(Some(NEXT)), Some(Expectation::Needed));
    }

    #[test]
    fn a_call_for_a_directory_waits_for_the_commit_under_way_unless_something_changed_since() {
        let mut journals = Journals::default();
        let begin = Event { device: COMMIT.device, detail: 7, time_ns: 100, ..Event::default() };
        assert_eq!(journals.last_chance(COMMIT.device), None);
        journals.change(COMMIT.device, 90);
        journals.begin(&begin);
        assert_eq!(journals.last_chance(COMMIT.device), Some(7));
        journals.change(COMMIT.device, 110);
        assert_eq!(journals.last_chance(COMMIT.device), None);

        let mut call = SyncProgress { needs_commit: true, concluded: Some(7), ..begun(105) };
        assert_eq!(call.expects(Some(COMMIT)), Some(Expectation::Told));
        call.committed(COMMIT);
        // Only where nobody else can wait for it.
        assert_eq!(call.expects(Some(NEXT)), Some(Expectation::Doubtful));
        call.tell(COMMIT.device, 8);
        assert_eq!(call.expects(Some(NEXT)), Some(Expectation::Told));
    }

    #[test]
    fn what_was_told_holds() {
        let mut call = begun(50);
        call.tell(COMMIT.device, 8);
        call.committed(COMMIT);
        assert_eq!((call.expects(Some(COMMIT)), call.expects(Some(NEXT))), (None, Some(Expectation::Told)));
        call.committed(NEXT);
        assert_eq!(call.expects(Some(NEXT)), None);
    }

    #[test]
    fn a_filesystem_has_one_commit_under_way() {
        let mut journals = Journals::default();
        let begin = |detail| Event { device: COMMIT.device, detail, time_ns: 100, ..Event::default() };
        assert_eq!((journals.begin(&begin(7)), journals.begin(&begin(7))), (None, None));
        assert_eq!(journals.begin(&begin(8)), Some(COMMIT));
        assert_eq!(journals.of(COMMIT.device).map(|commit| commit.transaction), Some(8));
        assert_eq!((journals.of(DeviceNumber(4)), journals.end(DeviceNumber(4))), (None, None));
        journals.end(COMMIT.device);
        assert_eq!(journals.of(COMMIT.device), None);
    }

    #[test]
    fn checkpoints_are_handed_over_in_order() {
        let mut journals = Journals::default();
        assert_eq!(journals.handed_over(DeviceNumber(3)), None);
        for checkpoint in [0, 5, 4] {
            journals.hand_over(DeviceNumber(3), checkpoint);
        }
        assert_eq!(
            (journals.handed_over(DeviceNumber(3)), journals.handed_over(DeviceNumber(4))),
            (Some(5), None)
        );
    }
}
