//! Goal: the eight SD cards of FAST'12 (papers: "Revisiting Storage for Smartphones") behave as measured on the Nexus One.
//! Method: Table 3: 128 MiB in requests of 128 KiB, and 2048 random requests of 4 KiB over those 128 MiB. Each is within 15 %, or the
//! same once it is rounded as the paper prints it, to 0.01 MB/s.
//! Fig. 13: 2048 random writes of 4 KiB over a growing range, behind 1 GiB written in order; the falls at their ranges.
//! `cargo test -p joj-device --test sd_cards -- --nocapture` prints both tables.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use joj_device::assembly::Assembly;
use joj_device::workload::{fig_13, table_3};

/// Phone columns, MB/s: sequential write, sequential read, random write, random read.
const TABLE_3: [(&str, [f64; 4]); 8] = [
    ("transcend", [4.35, 13.52, 1.38, 2.92]),
    ("ridata", [5.86, 11.51, 0.03, 2.76]),
    ("sandisk", [4.93, 8.44, 0.67, 0.73]),
    ("kingston", [4.56, 9.84, 0.01, 1.94]),
    ("wintec", [9.91, 13.38, 0.01, 3.82]),
    ("a-data", [8.93, 13.49, 0.01, 3.64]),
    ("patriot", [8.83, 13.38, 0.01, 3.72]),
    ("pny", [10.28, 14.02, 0.01, 3.95]),
];

fn card(name: &str) -> Assembly {
    Assembly::named(name).unwrap()
}

#[test]
fn table_3_holds_within_15_percent() {
    println!("{:10} {:>29} {:>29}", "FAST'12", "sequential write read", "random write read");
    for (name, paper) in TABLE_3 {
        let table = table_3(&card(name));
        assert_eq!(table.range_bytes, 128 << 20, "{name}");
        let model = [table.sequential_write, table.sequential_read, table.random_write, table.random_read];
        let cells = paper.iter().zip(model).map(|(paper, model)| (paper, model, model / paper));
        let cells: Vec<_> = cells.collect();
        let line: String = cells.iter().map(|(p, m, r)| format!(" | {p:5.2} {m:7.4} {r:.2}")).collect();
        println!("{name:10}{line}");
        for (paper, model, ratio) in cells {
            let prints_the_same = format!("{model:.2}") == format!("{paper:.2}");
            assert!(
                prints_the_same || (0.85..=1.15).contains(&ratio),
                "{name}: {model:.4} MB/s, the paper has {paper}"
            );
        }
    }
}

/// MB/s of 2048 random writes over each range, 1, 2, 4 ... 2048 MiB.
fn sweep(name: &str) -> Vec<(u64, f64)> {
    let ranges = (0..12).map(|power| 1 << power);
    let rates = ranges.map(|range_mib: u64| (range_mib, fig_13(&card(name), range_mib).unwrap()));
    let rates: Vec<(u64, f64)> = rates.collect();
    let line: String = rates.iter().map(|(range_mib, rate)| format!(" {range_mib}:{rate:.4}")).collect();
    println!("{name:10}{line}");
    rates
}

fn at(rates: &[(u64, f64)], range_mib: u64) -> f64 {
    rates.iter().find(|(range, _)| *range == range_mib).unwrap().1
}

#[test]
fn fig_13_five_cards_collapse_past_16_mib_and_stay_there() {
    for name in ["kingston", "wintec", "a-data", "patriot", "pny"] {
        let rates = sweep(name);
        assert!(at(&rates, 16) > 0.5 * at(&rates, 1), "{name} falls before 16 MiB");
        assert!(at(&rates, 16) > 20.0 * at(&rates, 32), "{name} does not fall past 16 MiB");
        assert!(at(&rates, 64) < 2.0 * at(&rates, 2048), "{name} falls on past 64 MiB");
    }
}

#[test]
fn fig_13_ridata_falls_at_the_same_range_to_a_higher_floor() {
    let (rates, worst) = (sweep("ridata"), sweep("kingston"));
    assert!(at(&rates, 16) > 5.0 * at(&rates, 32), "no fall past 16 MiB");
    assert!(at(&rates, 2048) > 2.0 * at(&worst, 2048), "its floor is not above Kingston's");
}

#[test]
fn fig_13_transcend_is_flat() {
    let rates = sweep("transcend");
    for (range_mib, rate) in &rates {
        assert!((rate / at(&rates, 1) - 1.0).abs() < 0.1, "{rate:.3} MB/s over {range_mib} MiB");
    }
}

#[test]
fn fig_13_sandisk_drops_past_32_mib_and_past_1024_mib() {
    let rates = sweep("sandisk");
    assert!(at(&rates, 32) > 0.95 * at(&rates, 1), "it falls before 32 MiB");
    assert!(at(&rates, 64) < 0.8 * at(&rates, 32), "no drop past 32 MiB");
    assert!(at(&rates, 1024) > 0.9 * at(&rates, 512), "it falls before 1024 MiB");
    assert!(at(&rates, 2048) < 0.75 * at(&rates, 1024), "no drop past 1024 MiB");
}
