//! Results by hand, and what is said of them.

use super::*;
use crate::recording::whatif::outcome::{WaitRange, WhatifDatabase, WhatifOutcome, WhatifRerun, WhatifRow};

/// Times in seconds of the rounds, and those of the recorded row.
fn row(configuration: Configuration, rounds: [f64; 3], recorded: [f64; 3]) -> WhatifRow {
    let ratios: Vec<f64> = rounds.iter().zip(recorded).map(|(own, recorded)| own / recorded).collect();
    let elapsed_ns = Estimate::of(&rounds.map(|time| time * 1e9)).unwrap();
    let figures = WhatifFigures {
        elapsed_ns,
        waits: None,
        ratio: Estimate::of(&ratios).unwrap(),
        blocked_ns: elapsed_ns.scaled(0.75),
        syncs: Some(0),
        device_bytes: None,
        differing: 0,
    };
    let gives_up = configuration.gives_up().to_owned();
    WhatifRow { configuration, gives_up, outcome: WhatifOutcome::Measured(figures), rerun: None }
}

const RECORDED: [f64; 3] = [4.1, 4.0, 4.2];

fn result(rows: &[(Configuration, [f64; 3])]) -> WhatifResult {
    let recorded = [(Configuration::Recorded, RECORDED)];
    let part = BlockedPart {
        call: "fdatasync".to_owned(),
        files: "/app.db".to_owned(),
        calls: 400,
        blocked_ns: Estimate::of(&[3e9]).unwrap(),
    };
    let database =
        WhatifDatabase { path: "/app.db".to_owned(), journal_mode: "delete".to_owned(), commits: 100 };
    WhatifResult {
        rounds: 3,
        threads: 1,
        rows: recorded.iter().chain(rows).map(|(which, times)| row(*which, *times, RECORDED)).collect(),
        parts: vec![part],
        databases: vec![database],
        ..WhatifResult::default()
    }
}

#[test]
fn it_says_where_the_time_goes_and_what_would_be_faster() {
    let found = result(&[
        (Configuration::NoSync, [0.5, 0.6, 0.7]),
        (Configuration::Wal, [1.6, 1.5, 1.7]),
        (Configuration::Waldio, [0.9, 0.8, 1.0]),
        (Configuration::CachesInMemory, [4.0, 4.1, 4.3]),
        (Configuration::DatabasesInMemory, [3.9, 3.95, 3.96]),
        (Configuration::Normal, [5.0, 5.1, 5.2]),
    ]);
    assert_eq!(
        sentences(&found),
        [
            "Of 4.10 s 3.07 s are calls on files: 3.00 s are 400 fdatasync of /app.db (delete mode).",
            "With commits that survive a power cut: waldio would take 900 ms (800 ms to 1.00 s); WAL would take 1.60 s (1.50 s to 1.70 s).",
            "With less durability: no sync would take 600 ms (500 ms to 700 ms).",
            "No clear difference: caches in RAM.",
            "Less than 5 % faster: databases in RAM.",
            "Slower: WAL, NORMAL.",
        ]
    );
}

#[test]
fn what_is_faster_only_if_waits_end_earlier_is_told_apart() {
    let mut found =
        result(&[(Configuration::NoSync, [0.5, 0.6, 0.7]), (Configuration::Wal, [1.6, 1.5, 1.7])]);
    for (row, longest_ns) in [(1, 4.1e9), (2, 2e9)] {
        let WhatifOutcome::Measured(figures) = &mut found.rows[row].outcome else { panic!("measured") };
        figures.waits = Some(WaitRange { shortest_ns: 0.4e9, longest_ns });
    }
    assert_eq!(
        sentences(&found)[1..],
        [
            WAITS,
            "With commits that survive a power cut: WAL would take 1.60 s (400 ms to 2.00 s).",
            "Faster only if waits end earlier: no sync would take 600 ms (400 ms to 4.10 s).",
        ]
    );
}

#[test]
fn rows_that_lack_closes_are_not_told_to_be_faster() {
    let rows = [
        (Configuration::NoSync, [0.5, 0.6, 0.7]),
        (Configuration::Wal, [1.6, 1.5, 1.7]),
        (Configuration::Waldio, [3.9, 3.95, 3.96]),
        (Configuration::Normal, [5.0, 5.1, 5.2]),
    ];
    let found = WhatifResult { lacks_closes: true, ..result(&rows) };
    let perhaps = "Perhaps faster, perhaps slower, as closes of the database are left out: WAL; waldio.";
    assert_eq!(
        sentences(&found)[1..],
        [
            "With less durability: no sync would take 600 ms (500 ms to 700 ms).",
            perhaps,
            "Slower: WAL, NORMAL."
        ]
    );
    // Neither is anything said not to be worth a change.
    let found = WhatifResult { lacks_closes: true, ..result(&rows[1..2]) };
    assert_eq!(sentences(&found)[1..], [perhaps.replace("; waldio", "")]);
}

#[test]
fn a_row_whose_calls_failed_is_no_advice() {
    let mut found =
        result(&[(Configuration::AllInMemory, [0.5, 0.5, 0.6]), (Configuration::Wal, [1.6, 1.5, 1.7])]);
    for row in &mut found.rows[..2] {
        let WhatifOutcome::Measured(figures) = &mut row.outcome else { panic!("it was measured") };
        figures.differing = 3;
    }
    assert!(sentences(&found).iter().any(|said| said.contains("all in RAM would take")), "as recorded, too");
    let WhatifOutcome::Measured(figures) = &mut found.rows[1].outcome else { panic!("it was measured") };
    figures.differing = 220;
    let said = sentences(&found);
    let wanted = "In all in RAM 220 calls had another result than in the recording, such as an error: so its time is not the program's.";
    assert_eq!(said[1], wanted);
    assert!(said[2].starts_with("With commits that survive a power cut: WAL") && said.len() == 3, "{said:?}");
}

#[test]
fn with_calls_that_are_not_replayed_nothing_is_said_not_to_be_worth_a_change() {
    let found = result(&[(Configuration::NoSync, [4.1, 4.0, 4.2])]);
    assert!(sentences(&found)[2].contains("nothing is worth changing"));
    let left_out = [("io_submit".to_owned(), 1), ("msync".to_owned(), 150)].into();
    let said = sentences(&WhatifResult { left_out, ..found });
    let wanted = "The program also makes 1 call of io_submit, 150 calls of msync, which no row replays.";
    assert!(said[1].starts_with(wanted), "{said:?}");
    assert_eq!(said[2..], ["No clear difference: no sync."]);
}

#[test]
fn rounds_that_overlap_are_no_advice() {
    // A median far lower, and one round as slow as the recorded one.
    let found = result(&[(Configuration::Wal, [1.0, 1.0, 4.05])]);
    let said = sentences(&found);
    assert_eq!(said[1..], ["No clear difference: WAL.", "Of what was measured, nothing is worth changing."]);
    let found = result(&[(Configuration::Wal, [1.0, 1.2, 1.4]), (Configuration::Waldio, [0.9, 1.0, 1.3])]);
    let said = sentences(&found);
    assert!(said[1].ends_with("Where these times overlap, there is no clear difference."), "{said:?}");
}

#[test]
fn less_time_in_storage_is_told_where_the_whole_hardly_gains() {
    let mut found =
        result(&[(Configuration::Wal, [4.05, 4.1, 4.0]), (Configuration::Normal, [4.1, 4.0, 4.2])]);
    let WhatifOutcome::Measured(figures) = &mut found.rows[1].outcome else { panic!("it was measured") };
    figures.blocked_ns = Estimate::of(&[1e9, 1.1e9, 1.2e9]).unwrap();
    assert_eq!(
        sentences(&found)[1..],
        [
            "No clear difference: WAL; WAL, NORMAL.",
            "Nothing makes the program as a whole 5 % faster. It would be in storage for less time than now, 3.07 s (3.00 s to 3.15 s): WAL 1.10 s (1.00 s to 1.20 s)."
        ]
    );
}

#[test]
fn the_error_of_the_forecast_is_told_where_the_program_was_run() {
    let mut found = result(&[(Configuration::NoSync, [1.1; 3]), (Configuration::AllInMemory, [0.9; 3])]);
    for (row, seconds) in found.rows.iter_mut().zip([4.1, 1.0, 1.0]) {
        row.rerun = Some(WhatifRerun::Measured(Estimate::of(&[seconds * 1e9]).unwrap()));
    }
    found.rows[2].rerun = Some(WhatifRerun::Unavailable("not".to_owned()));
    let said = sentences(&found);
    let wanted = "was run in 2 of these configurations. There the forecast is off by 5.0 % in the mean, and by +10.0 % at worst (no sync).";
    assert!(said[1].ends_with(wanted), "{said:?}");
}

#[test]
fn two_rounds_show_nothing() {
    for rounds in [1, 2] {
        let found = WhatifResult { rounds, ..result(&[(Configuration::Wal, [1.0, 1.0, 1.0])]) };
        let said = sentences(&found);
        assert!(said.len() == 2 && said[1].contains("Fewer than 3 rounds"), "{said:?}");
    }
}

/// Rows of so many seconds on an emulated disk, whose rounds are almost the same.
fn emulated(rows: &[(Configuration, f64)]) -> WhatifResult {
    let alike = |time: f64| [time, time * 0.9999, time * 1.0001];
    let row = |(which, time): &(Configuration, f64)| row(*which, alike(*time), [4.0; 3]);
    let rows = rows.iter().map(row).collect();
    WhatifResult { emulated: true, rows, ..result(&[]) }
}

#[test]
fn what_differs_by_a_hundredth_is_the_same_on_an_emulated_disk() {
    let rows = [
        (Configuration::Recorded, 4.0),
        (Configuration::Wal, 1.6),
        (Configuration::CachesInMemory, 4.03),
        (Configuration::NoSync, 3.9),
        (Configuration::Normal, 4.1),
    ];
    let found = emulated(&rows);
    assert_eq!(
        sentences(&found)[1..],
        [
            "With commits that survive a power cut: WAL would take 1.60 s.",
            "No clear difference: caches in RAM.",
            "Less than 5 % faster: no sync.",
            "Slower: WAL, NORMAL.",
        ]
    );
    let said = sentences(&WhatifResult { emulated: false, ..found.clone() });
    assert!(said.contains(&"Slower: caches in RAM; WAL, NORMAL.".to_owned()), "{said:?}");
    let said = sentences(&WhatifResult { rounds: 1, ..found });
    assert!(said.len() == 2 && said[1].contains("Fewer than 3 rounds"), "{said:?}");
}

#[test]
fn a_gain_with_the_same_syncs_and_writes_may_be_chance_on_an_emulated_disk() {
    let rows =
        [(Configuration::Recorded, 4.0), (Configuration::CachesInMemory, 3.7), (Configuration::NoSync, 1.0)];
    let mut found = emulated(&rows);
    for (row, (syncs, bytes)) in found.rows.iter_mut().zip([(204, 3e6), (204, 2.96e6), (0, 3e6)]) {
        let WhatifOutcome::Measured(figures) = &mut row.outcome else { panic!("it was measured") };
        (figures.syncs, figures.device_bytes) = (Some(syncs), Estimate::of(&[bytes]));
    }
    let wanted = "As many syncs and writes as recorded: caches in RAM. On a card that merges blocks such a gain may be the chance of addresses.";
    assert_eq!(sentences(&found)[2..], [wanted]);
    let WhatifOutcome::Measured(figures) = &mut found.rows[1].outcome else { panic!("it was measured") };
    figures.device_bytes = Estimate::of(&[2e6]);
    assert_eq!(sentences(&found).len(), 2, "it writes less");
    assert_eq!(sentences(&WhatifResult { emulated: false, ..found }).len(), 2, "a real disk");
}

#[test]
fn a_row_with_too_few_rounds_is_no_advice() {
    let mut found =
        emulated(&[(Configuration::Recorded, 4.0), (Configuration::Wal, 1.6), (Configuration::NoSync, 1.0)]);
    let WhatifOutcome::Measured(figures) = &mut found.rows[1].outcome else { panic!("it was measured") };
    figures.elapsed_ns = Estimate::of(&[1.6e9, 1.6e9]).unwrap();
    assert_eq!(
        sentences(&found)[1..],
        ["With less durability: no sync would take 1.00 s.", "Too few rounds to tell: WAL."]
    );
}

#[test]
fn times_of_several_threads_are_no_part_of_the_whole() {
    let found = WhatifResult { threads: 5, ..result(&[]) };
    assert!(sentences(&found)[0].starts_with("In 4.10 s its 5 threads are 3.07 s in calls on files: "));
}
