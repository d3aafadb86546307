//! Goal: the `embedded` layout loses nothing that SQLite's own keeps, and SQLite alone never reads it for something else.
//! Method: as in crash_waldio.rs; each state is recovered with waldio, whatever layout it asks for, and given to SQLite
//! alone, which must refuse it and change no byte, or find every commit.

mod support;

use support::explore::{Explorer, Stats};
use support::machine::{Machine, Side};
use support::plan::{effort, hold, sequences};
use support::workload::{STEPS, Step, Synchronous, Workload, base_image, record};

/// Those without SQLite alone as a second writer: it is refused.
fn steps() -> Vec<Step> {
    let foreign = [Step::Foreign, Step::LooseForeign];
    STEPS.into_iter().filter(|step| !foreign.contains(step)).collect()
}

fn embedded_holds(side: Side, synchronous: Synchronous, length: u64, extra: u64) -> Stats {
    let machine = Machine::new(side);
    // The header says what the layout is, not the option.
    let (judge, other, outsider) =
        (Machine::new(side), Machine::new(Side::Flush), Machine::new(Side::Outsider));
    let sequences = sequences(&steps(), length, extra);
    let stats = hold(&machine, vec![&judge, &other, &outsider], sequences, 4096, synchronous);
    assert!(stats.states > stats.workloads * 4, "{stats:?}");
    assert!(stats.refused * 2 > stats.states, "SQLite alone opened too many: {stats:?}");
    stats
}

#[test]
fn flushes_lose_nothing_in_full() {
    embedded_holds(Side::Embedded, Synchronous::Full, 1, 20);
}

#[test]
fn durable_writes_lose_nothing_in_full() {
    embedded_holds(Side::EmbeddedFua, Synchronous::Full, 1, 10);
}

#[test]
fn a_prefix_is_recovered_in_normal() {
    embedded_holds(Side::Embedded, Synchronous::Normal, 1, 10);
}

#[test]
fn a_window_loses_less_than_it_says() {
    embedded_holds(Side::EmbeddedWindow, Synchronous::Full, 1, 0);
}

#[test]
fn a_conversion_is_there_or_not_and_loses_nothing() {
    use Step::{Commit1, Commit3, Convert, Passive, Reopen, Truncate};
    let machine = Machine::new(Side::Embedded);
    let (judge, other, outsider) =
        (Machine::new(Side::Embedded), Machine::new(Side::Flush), Machine::new(Side::Outsider));
    let base = base_image(&Machine::new(Side::Flush), 4096);
    let mut explorer = Explorer::new(vec![&judge, &other, &outsider], effort());
    for steps in [
        vec![Commit1, Convert, Commit1],
        vec![Convert, Reopen, Commit3],
        vec![Commit3, Convert, Reopen, Commit1, Truncate, Commit1],
        vec![Commit1, Convert, Passive, Commit1, Reopen, Commit1],
    ] {
        let workload = Workload { steps, page_bytes: 4096, synchronous: Synchronous::Full };
        let recording = record(&machine, &base, &workload, None);
        assert!(recording.outcomes.iter().all(Result::is_ok), "{workload}: {:?}", recording.outcomes);
        if let Err(failure) = explorer.explore(&workload, &recording) {
            panic!("{failure}");
        }
    }
    let stats = explorer.stats;
    println!("{stats:?}");
    assert!(stats.refused > 0 && stats.states > stats.refused, "both layouts occurred: {stats:?}");
}
