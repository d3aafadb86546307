//! Goal: waldio loses nothing that stock SQLite keeps, and what it leaves behind stock SQLite reads.
//! Method: as in crash/stock.rs, with the log written by waldio; each state is recovered with waldio and with stock.

use blockio::simulated::log::{Op, Record};

use crate::support::machine::{Machine, Side};
use crate::support::plan::{hold, sequences};
use crate::support::workload::{STEPS, Step, Synchronous, Workload, base_image, record};

fn waldio_holds(side: Side, page_bytes: u32, synchronous: Synchronous, length: u64, extra: u64) {
    let machine = Machine::new(side);
    let (judge, stock) = (Machine::new(side), Machine::new(Side::Stock));
    let stats =
        hold(&machine, vec![&judge, &stock], sequences(&STEPS, length, extra), page_bytes, synchronous);
    assert!(stats.states > stats.workloads * 4, "{stats:?}");
}

#[test]
fn durable_writes_lose_nothing_in_full() {
    waldio_holds(Side::FuaAlone, 4096, Synchronous::Full, 1, 40);
}

#[test]
fn durable_writes_recover_a_prefix_in_normal() {
    waldio_holds(Side::Fua, 4096, Synchronous::Normal, 1, 40);
}

#[test]
fn flushes_lose_nothing_in_full() {
    waldio_holds(Side::Flush, 4096, Synchronous::Full, 1, 40);
}

#[test]
fn flushes_recover_a_prefix_in_normal() {
    waldio_holds(Side::Flush, 4096, Synchronous::Normal, 1, 40);
}

#[test]
fn pages_smaller_than_a_block_are_as_safe() {
    waldio_holds(Side::FuaAlone, 1024, Synchronous::Full, 1, 20);
    waldio_holds(Side::Flush, 1024, Synchronous::Normal, 1, 10);
}

#[test]
fn strict_mode_is_as_safe() {
    waldio_holds(Side::Strict, 4096, Synchronous::Full, 1, 20);
}

#[test]
fn a_database_file_that_grows_in_chunks_is_as_safe() {
    waldio_holds(Side::Chunks, 4096, Synchronous::Full, 1, 10);
}

/// Until a truncation is durable the medium may hold the old log, in the very blocks on a file system without a journal: zeroes
/// in it would cut it to a prefix of what the database has, and recovery would copy that over newer pages.
#[test]
fn a_truncated_log_is_filled_only_once_the_truncation_is_durable() {
    use Step::{Commit3, Truncate};
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        let machine = Machine::new(Side::Flush);
        let steps = vec![Commit3, Commit3, Truncate, Commit3, Commit3];
        let base = base_image(&machine, 4096);
        let recording = record(&machine, &base, &Workload { steps, page_bytes: 4096, synchronous }, None);
        let mut cut = None;
        let mut fills = 0;
        for Record { op, .. } in &recording.records {
            match op {
                Op::Truncate { inode, size_bytes: 0 } => cut = Some(*inode),
                Op::SyncData { inode } if cut == Some(*inode) => cut = None,
                Op::Extend { inode, .. } => {
                    assert_ne!(
                        cut,
                        Some(*inode),
                        "{synchronous:?}: filled before the truncation was durable"
                    );
                    fills += 1;
                }
                _ => {}
            }
        }
        // Commits without a sync have nothing to gain from it.
        assert_eq!(fills > 0, synchronous == Synchronous::Full, "{synchronous:?}: {fills} fills");
        assert_eq!(cut, None, "{synchronous:?}: the truncation was never durable");
    }
}
