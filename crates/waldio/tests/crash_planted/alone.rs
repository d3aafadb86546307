//! Goal: the harness would see a broken waldio; each bug below is planted in it and must be caught.
//! Method: the workload that the bug hurts, explored as in crash/sides.rs, with and without the bug.
//! Needs `--features planted-bugs`. One bug at a time: planting is for the whole process.

use crate::support::explore::Explorer;
use crate::support::machine::{Machine, Side};
use crate::support::plan::effort;
use crate::support::workload::{Step, Synchronous, Workload, base_image, record};
use waldio::testing::planted::{self, Bug};

/// Runs `action` with `bug` planted.
fn with_bug<T>(bug: Option<Bug>, action: impl FnOnce() -> T) -> T {
    planted::set(bug);
    let result = action();
    planted::set(None);
    result
}

/// The failure that the harness reports, or none.
fn failure(bug: Option<Bug>, side: Side, steps: &[Step], synchronous: Synchronous) -> Option<String> {
    let alone = if side.is_embedded() { Side::Outsider } else { Side::Stock };
    let (machine, judge, stock) = (Machine::new(side), Machine::new(side), Machine::new(alone));
    let base = base_image(&machine, 4096);
    let workload = Workload { steps: steps.to_vec(), page_bytes: 4096, synchronous };
    let recording = with_bug(bug, || record(&machine, &base, &workload, None));
    let mut explorer = Explorer::new(vec![&judge, &stock], effort());
    explorer.explore(&workload, &recording).err().map(|failure| failure.to_string())
}

fn is_caught(bug: Bug, side: Side, steps: &[Step], synchronous: Synchronous) {
    let _alone = crate::one_at_a_time();
    assert_eq!(failure(None, side, steps, synchronous), None, "without the bug nothing is wrong");
    let caught = failure(Some(bug), side, steps, synchronous);
    println!("{bug:?} in {side:?}: {}", caught.expect("the planted bug is caught"));
}

#[test]
fn planted_bug_is_caught_skip_header_sync() {
    for side in [Side::Fua, Side::Flush, Side::Strict] {
        is_caught(Bug::SkipHeaderSync, side, &[Step::Commit1, Step::Commit1, Step::Reset], Synchronous::Full);
    }
}

#[test]
fn planted_bug_is_caught_every_header_waits() {
    for side in [Side::Fua, Side::Flush] {
        is_caught(
            Bug::EveryHeaderWaits,
            side,
            &[Step::Commit1, Step::Commit1, Step::Reset],
            Synchronous::Full,
        );
    }
}

#[test]
fn planted_bug_is_caught_ack_before_sync() {
    for side in [Side::Fua, Side::Flush, Side::Strict] {
        // The first commit of a log is made durable with its header.
        is_caught(Bug::AckBeforeSync, side, &[Step::Commit1, Step::Commit1], Synchronous::Full);
    }
}

#[test]
fn planted_bug_is_caught_skip_checkpoint_sync() {
    for side in [Side::Fua, Side::Flush] {
        let steps = [Step::Commit1, Step::Commit3, Step::Passive];
        is_caught(Bug::SkipCheckpointSync, side, &steps, Synchronous::Normal);
    }
}

#[test]
fn planted_bug_is_caught_skip_close_sync() {
    for side in [Side::Fua, Side::Flush] {
        is_caught(Bug::SkipCloseSync, side, &[Step::Commit1, Step::Commit3], Synchronous::Normal);
    }
}

#[test]
fn planted_bug_is_caught_window_unbounded() {
    for side in [Side::FlushDelay, Side::WindowFua] {
        is_caught(Bug::DelayUnbounded, side, &[Step::Commit1; 9], Synchronous::Full);
    }
}

#[test]
fn planted_bug_is_caught_guard_off() {
    for side in [Side::Embedded, Side::EmbeddedFua] {
        is_caught(Bug::GuardOff, side, &[Step::Commit1, Step::Commit3], Synchronous::Full);
    }
}

#[test]
fn planted_bugs_are_caught_in_the_embedded_layout() {
    let cases = [
        (Bug::SkipHeaderSync, vec![Step::Commit1, Step::Commit1, Step::Reset], Synchronous::Full),
        (Bug::AckBeforeSync, vec![Step::Commit1, Step::Commit1], Synchronous::Full),
        (Bug::SkipCheckpointSync, vec![Step::Commit1, Step::Commit3, Step::Passive], Synchronous::Normal),
    ];
    for (bug, steps, synchronous) in cases {
        is_caught(bug, Side::Embedded, &steps, synchronous);
    }
}

#[test]
fn planted_bug_is_caught_durable_without_prefix() {
    for loose in [Step::LooseSecond, Step::LooseForeign] {
        // A connection's first commit is buffered: it has yet to learn that a sync follows.
        let steps = [Step::Commit1, loose, Step::Commit1];
        is_caught(Bug::DurableWithoutPrefix, Side::FuaAlone, &steps, Synchronous::Full);
    }
}
