//! Goal: the harness of several connections would see a broken waldio; each bug below is planted and must be caught.
//! Method: a program that the bug hurts, explored as in crash/group.rs, with and without the bug.
//! Needs `--features planted-bugs`. One bug at a time: planting is for the whole process.

use crate::support::acts::Terms;
use crate::support::explore::Explorer;
use crate::support::group::record_group;
use crate::support::group_plan::scene;
use crate::support::machine::{Machine, Side};
use crate::support::plan::effort;
use crate::support::workload::base_image;
use waldio::testing::planted::{self, Bug};

/// The failure that the harness reports, or none.
fn failure(bug: Option<Bug>, side: Side, text: &str) -> Option<String> {
    let (machine, judge, stock) = (Machine::watched(side), Machine::new(side), Machine::new(Side::Stock));
    let base = base_image(&machine, 4096);
    let program = text.parse().expect("a program");
    let terms = Terms { durable_reads: side.reads_durably(), ..Terms::default() };
    planted::set(bug);
    let run = record_group(&machine, &base, &program, terms);
    planted::set(None);
    let mut explorer = Explorer::new(vec![&judge, &stock], effort());
    let failure = explorer.explore_scene(&scene(&program, terms), &run.recording);
    failure.err().map(|failure| failure.to_string())
}

fn is_caught(bug: Bug, side: Side, text: &str) {
    let _alone = crate::one_at_a_time();
    assert_eq!(failure(None, side, text), None, "without the bug nothing is wrong");
    let caught = failure(Some(bug), side, text);
    println!("{bug:?} in {side:?}: {}", caught.expect("the planted bug is caught"));
}

#[test]
fn planted_bug_is_caught_ack_before_sync_by_two_connections() {
    for side in [Side::Flush, Side::Fua] {
        is_caught(Bug::AckBeforeSync, side, "A:Commit1 B:Commit1");
        is_caught(Bug::AckBeforeSync, side, "A:Commit1@PhaseTwo B:Commit1");
    }
}

#[test]
fn planted_bug_is_caught_skip_checkpoint_sync_by_two_connections() {
    for side in [Side::Flush, Side::Fua] {
        is_caught(Bug::SkipCheckpointSync, side, "A:Loose A:Loose B:Passive");
    }
}

#[test]
fn planted_bug_is_caught_reads_do_not_wait() {
    for side in [Side::DurableReads, Side::DurableReadsFua] {
        is_caught(Bug::ReadsDoNotWait, side, "A:Commit1 B:Commit1 A:Commit1@PhaseTwo B:Read");
        is_caught(Bug::ReadsDoNotWait, side, "A:Commit1 B:Read A:Loose B:Read");
    }
}

#[test]
fn planted_bug_is_caught_ack_before_prefix() {
    // The second commit comes while the first one's flush is under way, too late for it.
    for side in [Side::Flush, Side::Fua] {
        is_caught(
            Bug::AckBeforePrefix,
            side,
            "A:Commit3 A:Commit3 B:Commit1 A:Commit1@Flushed B:Commit1 A:Go",
        );
    }
}

#[test]
fn planted_bug_is_caught_checkpoint_without_barrier() {
    // Frames of a commit that waits are safe: its connection's read lock keeps checkpoints from them. But those that a
    // NORMAL commit left to the next flush have no such guard.
    for side in [Side::Flush, Side::Fua] {
        is_caught(Bug::CheckpointWithoutBarrier, side, "A:Commit1 B:Commit1 A:Loose B:Passive");
        is_caught(Bug::CheckpointWithoutBarrier, side, "A:Commit1 B:Commit1 A:Loose B:Reset");
    }
}
