//! Goal: waldio loses nothing that stock SQLite keeps, and what it leaves behind stock SQLite reads.
//! Method: as in crash_stock.rs, with the log written by waldio; each state is recovered with waldio and with stock.

mod support;

use support::machine::{Machine, Side};
use support::plan::{hold, sequences};
use support::workload::{STEPS, Synchronous};

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
