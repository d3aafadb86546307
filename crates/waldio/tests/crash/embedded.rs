//! Goal: the `embedded` layout loses nothing that SQLite's own keeps, and SQLite alone never reads it for something else.
//! Method: as in crash/sides.rs; each state is recovered with waldio, whatever layout it asks for, and given to SQLite
//! alone, which must refuse it and change no byte, or find every commit.

use std::path::Path;

use blockio::simulated::image::Image;
use blockio::simulated::log::{Op, Record};

use crate::support::explore::{Explorer, Stats};
use crate::support::machine::{DATABASE, LOG, Machine, Side};
use crate::support::plan::{effort, hold, sequences};
use crate::support::workload::{STEPS, Step, Synchronous, Workload, base_image, record};

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
    embedded_holds(Side::EmbeddedWindow, Synchronous::Normal, 1, 0);
}

/// SQLite alone has the database open when the last of waldio's connections closes, and goes on with the log.
#[test]
fn a_last_close_beside_a_refused_connection_loses_nothing() {
    use Step::{
        Commit1, Commit3, Foreign, Loose, LooseForeign, Passive, Refused, Rejoin, Reopen, Second, Spill,
        Truncate,
    };
    for side in [Side::Embedded, Side::EmbeddedFua] {
        let machine = Machine::new(side);
        let (judge, other, outsider) =
            (Machine::new(side), Machine::new(Side::Flush), Machine::new(Side::Outsider));
        let mut explorer = Explorer::new(vec![&judge, &other, &outsider], effort());
        let base = base_image(&machine, 4096);
        let sequences = [
            vec![Commit1, Refused, Rejoin],
            vec![Commit3, Refused, Rejoin, Foreign, Commit1],
            vec![Refused, Spill, Commit1, Rejoin, Commit3, Foreign],
            vec![Commit3, Passive, Refused, Commit1, Rejoin, LooseForeign, Reopen, Commit1],
            vec![Commit1, Truncate, Refused, Rejoin, Foreign, Foreign],
            vec![Commit3, Second, Refused, Loose, Rejoin, Foreign, Passive, Commit3],
        ];
        for (number, steps) in sequences.into_iter().enumerate() {
            let workload = Workload { steps, page_bytes: 4096, synchronous: Synchronous::Full };
            let recording = record(&machine, &base, &workload, None);
            assert!(recording.outcomes.iter().all(Result::is_ok), "{workload}: {:?}", recording.outcomes);
            if let Err(failure) = explorer.explore(&workload, &recording) {
                panic!("{number}: {failure}");
            }
        }
        println!("{:?}", explorer.stats);
    }
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

/// As `base`, with bytes of somebody else's where the layout has its headers: in one page of `every`.
fn with_used_reserved_bytes(base: &Image, every: u64) -> Image {
    let mut image = base.clone();
    let database = image.files.get_mut(Path::new(DATABASE)).expect("it has a database");
    for page in (1..=database.size_bytes() / 4096).filter(|page| page % every == 0) {
        database.write(&[0xab; 24], page * 4096 - 24);
    }
    image
}

#[test]
fn pages_whose_reserved_bytes_are_used_lose_nothing() {
    use Step::{Commit1, Commit3, Passive, Refused, Rejoin, Reopen, Reset, Second, Spill, Switch, Truncate};
    let machine = Machine::new(Side::Embedded);
    let (judge, outsider) = (Machine::new(Side::Embedded), Machine::new(Side::Outsider));
    let mut explorer = Explorer::new(vec![&judge, &outsider], effort());
    let base = base_image(&machine, 4096);
    let sequences = [
        vec![Commit1, Commit3],
        vec![Commit1, Commit3, Commit1, Commit3],
        vec![Commit3, Reset, Commit1],
        vec![Commit1, Truncate, Commit3],
        vec![Spill, Second, Passive],
        vec![Commit3, Commit3, Switch],
        vec![Commit3, Commit1, Commit3, Reopen, Commit1],
        vec![Commit3, Commit1, Commit3, Refused, Rejoin, Commit1],
    ];
    // With all of them a log that lost its reserved bytes is empty; with some of them it is a part of what it was.
    for (every, steps) in
        sequences.into_iter().flat_map(|steps| [1, 2, 3].map(|every| (every, steps.clone())))
    {
        let workload = Workload { steps, page_bytes: 4096, synchronous: Synchronous::Full };
        let base = with_used_reserved_bytes(&base, every);
        let recording = record(&machine, &base, &workload, None);
        assert!(recording.outcomes.iter().all(Result::is_ok), "{workload}: {:?}", recording.outcomes);
        let reserved = format!("{LOG}-reserved");
        let used =
            |record: &Record| matches!(&record.op, Op::Create { path, .. } if *path == Path::new(&reserved));
        assert!(every > 1 || recording.records.iter().any(used), "{workload}: no page had bytes to keep");
        if let Err(failure) = explorer.explore(&workload, &recording) {
            panic!("{failure}");
        }
    }
    println!("{:?}", explorer.stats);
}
