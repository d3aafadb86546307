//! Goal: the simulated disk, the VFS on it and the judgement are right: SQLite alone keeps its promises on them.
//! Method: short sequences of everything a WAL database does; cut the power at each flush, in every state that it may
//! leave; recover; the rows must be a state that was published, no older than what was acknowledged.

use crate::support::machine::{Machine, Side};
use crate::support::plan::{hold, sequences};
use crate::support::workload::{STEPS, Step, Synchronous, Workload, base_image, record};
use blockio::simulated::log::{Op, Record};

fn stock_holds(page_bytes: u32, synchronous: Synchronous, length: u64, extra: u64) {
    let machine = Machine::new(Side::Stock);
    let judge = Machine::new(Side::Stock);
    let stats = hold(&machine, vec![&judge], sequences(&STEPS, length, extra), page_bytes, synchronous);
    assert!(stats.cuts > stats.workloads * 4, "each workload has several flushes: {stats:?}");
    assert!(stats.states > stats.workloads * 5, "{stats:?}");
}

#[test]
fn stock_loses_nothing_in_full() {
    stock_holds(4096, Synchronous::Full, 1, 20);
}

#[test]
fn stock_recovers_a_prefix_in_normal() {
    stock_holds(4096, Synchronous::Normal, 1, 20);
}

#[test]
fn stock_holds_with_pages_smaller_than_a_block() {
    stock_holds(1024, Synchronous::Full, 1, 20);
    stock_holds(1024, Synchronous::Normal, 1, 10);
}

/// Writes to the log, as (offset, length).
fn log_writes(records: &[Record]) -> Vec<(u64, usize)> {
    let log = records.iter().find_map(|record| match &record.op {
        Op::Create { path, inode } if path.to_string_lossy().ends_with("-wal") => Some(*inode),
        _ => None,
    });
    let of_log = |record: &Record| match &record.op {
        Op::Write { inode, offset, data, .. } if Some(*inode) == log => Some((*offset, data.len())),
        _ => None,
    };
    records.iter().filter_map(of_log).collect()
}

#[test]
fn workloads_do_what_their_names_say() {
    let machine = Machine::new(Side::Stock);
    let base = base_image(&machine, 4096);
    let writes = |steps: &[Step]| {
        let workload = Workload { steps: steps.to_vec(), page_bytes: 4096, synchronous: Synchronous::Full };
        log_writes(&record(&machine, &base, &workload, None).records)
    };
    let pages = |writes: &[(u64, usize)]| writes.iter().filter(|(_, len)| *len == 4096).count();
    assert_eq!(pages(&writes(&[Step::Commit1])), 1);
    assert_eq!(pages(&writes(&[Step::Commit3])), 3);
    let spilled = writes(&[Step::Spill]);
    let mut offsets: Vec<u64> =
        spilled.iter().filter(|(_, len)| *len == 4096).map(|(offset, _)| *offset).collect();
    let count = offsets.len();
    offsets.sort_unstable();
    offsets.dedup();
    assert!(offsets.len() < count, "a spilled page is overwritten in place: {spilled:?}");
    assert!(!writes(&[Step::Rollback]).is_empty(), "a rolled back transaction spills, too");
    let headers =
        |steps: &[Step]| writes(steps).iter().filter(|(offset, len)| (*offset, *len) == (0, 32)).count();
    assert_eq!(headers(&[Step::Commit1, Step::Reset]), 2, "a reset begins a new generation");
    assert_eq!(headers(&[Step::Commit1, Step::Second]), 1);
}
