//! Bugs that tests plant to see whether the crash harness would find them. Compiled in with the feature
//! `planted-bugs` alone; otherwise every question answers no and costs nothing.

/// One bug each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// A new generation's header is written but not made durable before its frames (ticket ff5be73dee).
    SkipHeaderSync = 1,
    /// Not only a fresh log's header, but each one waits for the sync of its first commit.
    EveryHeaderWaits,
    /// COMMIT returns before its frames are on the medium.
    AckBeforeSync,
    /// The flush of the log before a checkpoint copies pages is left out.
    SkipCheckpointSync,
    /// Only that of the checkpoint at close, which holds no checkpoint lock.
    SkipCloseSync,

    /// Growth writes zeros at the end it remembers instead of appending them.
    FillOverwrites,
    /// One durable write is taken for enough although commits in front of it are not durable.
    DurableWithoutPrefix,
    /// The WAL-reset guard is off.
    ResetGuardOff,
    /// A commit is acknowledged while the flush that should cover it is still under way, or the one before.
    AckBeforePrefix,
    /// A checkpoint copies frames whose commits still wait for their flush.
    CheckpointWithoutBarrier,
    /// Whoever should lead the next flush, or write next, or go through the barrier, is not woken.
    LostWakeUp,
    /// A reservation of the write lock holds for ever; and so does a closed barrier.
    ReservationNeverLapses,
    /// With `waldio_durable_reads` a reader does not wait for the flush of what it sees.
    ReadsDoNotWait,
    /// After a failed flush a checkpoint's counts for commits, as if it had not failed.
    AckAfterFailure,
    /// Whoever waits for a flush that fails is not told.
    FailureNotTold,
    /// The write lock is promised to one while another asks the base VFS for it.
    HolderIgnored,
    /// Those who sleep in the queue are passed without limit.
    PassesUnlimited,
    /// The connection that comes last to the queue for the write lock stands first in it.
    NewestFirst,
    /// A connection that closes keeps what was handed to it.
    HandOverSwallowed,
    /// Whoever has the write lock waits at the barrier, too.
    WriterHeldAtBarrier,
    /// With `waldio_group` no commit waits, however much is outstanding.
    DelayUnbounded,
    /// A leader puts its flush off though somebody waits whose time is over.
    DueFlushLingers,
    /// A sync of the log begins while another one of this process runs.
    SyncsOverlap,
    /// A log in the `embedded` layout has SQLite's own header.
    GuardOff,
    /// No bug: who closes, and is not the last, loses its processor for 0.1 s in the midst of it.
    SlowClose,
}

#[cfg(feature = "planted-bugs")]
static ACTIVE: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Plants one bug for the whole process, or none.
#[cfg(feature = "planted-bugs")]
pub fn set(bug: Option<Bug>) {
    ACTIVE.store(bug.map_or(0, |bug| bug as u8), std::sync::atomic::Ordering::SeqCst);
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static HERE: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
}

/// Plants one bug for what this thread does, or none.
#[cfg(feature = "planted-bugs")]
pub fn set_here(bug: Option<Bug>) {
    HERE.set(bug.map_or(0, |bug| bug as u8));
}

/// Whether this bug is planted.
#[cfg(feature = "planted-bugs")]
pub(crate) fn is(bug: Bug) -> bool {
    ACTIVE.load(std::sync::atomic::Ordering::SeqCst) == bug as u8 || HERE.get() == bug as u8
}

/// Whether this bug is planted: never, in this build.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn is(_: Bug) -> bool {
    false
}

/// Whether a planted bug leaves out this sync of the log.
pub(crate) fn skips_sync(commit: bool, header: bool, checkpointing: bool) -> bool {
    let checkpoint = !commit && !header;
    header && is(Bug::SkipHeaderSync)
        || commit && is(Bug::AckBeforeSync)
        || checkpoint && is(Bug::SkipCheckpointSync)
        || checkpoint && is(Bug::CheckpointWithoutBarrier)
        || checkpoint && !checkpointing && is(Bug::SkipCloseSync)
}
