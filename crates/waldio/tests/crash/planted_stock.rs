//! Goal: the harness would see a broken VFS; each bug below was put there on purpose and must be caught.
//! Method: stock SQLite on a simulated VFS that leaves out one duty, explored as in crash/stock.rs.

use crate::support::explore::Explorer;
use crate::support::machine::{Machine, Side};
use crate::support::plan::effort;
use crate::support::sim_host::Plant;
use crate::support::workload::{Step, Synchronous, Workload, base_image, record};

/// The failure that the harness reports, or none.
fn failure(plant: Option<Plant>, steps: &[Step], synchronous: Synchronous) -> Option<String> {
    let (machine, judge) = (Machine::new(Side::Stock), Machine::new(Side::Stock));
    let base = base_image(&machine, 4096);
    machine.host.plant(plant);
    let workload = Workload { steps: steps.to_vec(), page_bytes: 4096, synchronous };
    let recording = record(&machine, &base, &workload, None);
    let mut explorer = Explorer::new(vec![&judge], effort());
    explorer.explore(&workload, &recording).err().map(|failure| failure.to_string())
}

fn is_caught(plant: Plant, steps: &[Step], synchronous: Synchronous) {
    assert_eq!(failure(None, steps, synchronous), None, "without the bug nothing is wrong");
    let caught = failure(Some(plant), steps, synchronous);
    println!("{plant:?}: {}", caught.expect("the planted bug is caught"));
}

#[test]
fn planted_bug_is_caught_skip_header_sync() {
    is_caught(Plant::SkipHeaderSync, &[Step::Commit1, Step::Commit1, Step::Reset], Synchronous::Full);
}

#[test]
fn planted_bug_is_caught_ack_before_sync() {
    is_caught(Plant::AckBeforeSync, &[Step::Commit1], Synchronous::Full);
}

#[test]
fn planted_bug_is_caught_skip_checkpoint_sync() {
    is_caught(Plant::SkipCheckpointSync, &[Step::Commit3, Step::Passive], Synchronous::Normal);
}

#[test]
fn planted_bug_is_caught_skip_close_sync() {
    is_caught(Plant::SkipCloseSync, &[Step::Commit3], Synchronous::Normal);
}

#[test]
fn planted_bug_is_caught_spare_not_cleared() {
    // The log of the first step comes back after a commit in DELETE mode.
    is_caught(Plant::SpareNotCleared, &[Step::Commit1, Step::Switch], Synchronous::Full);
}
