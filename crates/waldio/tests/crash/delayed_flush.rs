//! Goal: with `waldio_durability=bounded` a power cut takes less than the bound of what was committed, under FULL and NORMAL,
//! and leaves a prefix.
//! Method: as in crash/sides.rs; acknowledged is what the window promises by its bytes. Its time never passes here: the
//! timer's flushes could only make more durable. tests/real_delayed_flush.rs has them.

use crate::support::explore::Explorer;
use crate::support::machine::{Machine, Side};
use crate::support::plan::{effort, hold, sequences};
use crate::support::workload::{Step, Synchronous, Workload, base_image, record};

/// Much that stays outstanding, and all that ends it.
const STEPS: [Step; 11] = [
    Step::Commit1,
    Step::FlushNow,
    Step::Commit3,
    Step::Second,
    Step::Spill,
    Step::Foreign,
    Step::Passive,
    Step::Reset,
    Step::Reopen,
    Step::Rejoin,
    Step::Loose,
];

fn window_holds(side: Side, synchronous: Synchronous, sequences: Vec<Vec<Step>>) {
    let machine = Machine::new(side);
    let (judge, stock) = (Machine::new(side), Machine::new(Side::Stock));
    // Two commits in front: the first of a log is durable with its header, and the second is outstanding.
    let busy = |steps: Vec<Step>| [Step::Commit1; 2].into_iter().chain(steps).collect();
    let sequences = sequences.into_iter().map(busy).collect();
    let stats = hold(&machine, vec![&judge, &stock], sequences, 4096, synchronous);
    assert!(stats.states > stats.workloads * 4, "{stats:?}");
}

#[test]
fn flushes_lose_less_than_the_window() {
    window_holds(Side::FlushDelay, Synchronous::Full, sequences(&STEPS, 1, 40));
}

/// SQLite asks for no sync of such a commit.
#[test]
fn so_do_commits_under_normal() {
    window_holds(Side::FlushDelay, Synchronous::Normal, sequences(&STEPS, 1, 40));
    window_holds(Side::WindowFua, Synchronous::Normal, sequences(&STEPS, 1, 10));
}

#[test]
fn buffered_writes_beside_durable_ones_lose_less_than_the_window() {
    window_holds(Side::WindowFua, Synchronous::Full, sequences(&STEPS, 1, 20));
}

/// Another process keeps the log open, so SQLite does not checkpoint when this one closes its last connection.
#[test]
fn what_a_process_leaves_to_others_is_durable() {
    let steps = [Step::Foreign, Step::Commit1, Step::Commit1, Step::Commit1, Step::Rejoin];
    for side in [Side::FlushDelay, Side::WindowFua] {
        for synchronous in [Synchronous::Full, Synchronous::Normal] {
            window_holds(side, synchronous, vec![steps.to_vec()]);
        }
    }
}

/// What the window saves would be nothing if each commit were durable all the same.
#[test]
fn commits_inside_of_the_window_may_be_lost() {
    let (machine, judge) = (Machine::new(Side::FlushDelay), Machine::new(Side::Flush));
    let steps = vec![Step::Commit1; 3];
    let workload = Workload { steps, page_bytes: 4096, synchronous: Synchronous::Full };
    let mut recording = record(&machine, &base_image(&machine, 4096), &workload, None);
    let newest = recording.history.newest();
    let at = recording
        .records
        .iter()
        .rposition(|record| matches!(&record.op, blockio::simulated::log::Op::Mark(_)));
    let promise = blockio::simulated::log::Op::Ack(newest);
    recording.records[at.expect("the close is marked")].op = promise;
    let lost = Explorer::new(vec![&judge], effort()).explore(&workload, &recording);
    println!("{}", lost.expect_err("the last commit may be lost"));
}
