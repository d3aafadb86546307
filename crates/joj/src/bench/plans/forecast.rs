//! How long a plan will take, from a few timed writes. Arithmetic only.
//!
//! The factors say how many overwrites or appends, each with its sync, a transaction of a mode is worth. They
//! come from strace on ext4 and are meant to tell half a minute from ten, no more.

use joj_analysis::bench::contended::{ContendedKey, WriterKind};
use joj_analysis::bench::key::{JournalMode, LogState, RowKey, Synchronous, Workload};
use joj_analysis::bench::study::parts::StudyPart;

use crate::bench::plans::contended::Contention;
use crate::bench::plans::rows::{Group, Selection};
use crate::bench::plans::study::{StudyPlan, frame_commits, overwrites};
use crate::bench::worker::contended::run::warm_up_ns;
use crate::bench::worker::limit_run::Calibration;
use crate::bench::worker::workload::transaction_count;

/// Starting a worker, loading SQLite, creating, verifying and removing a database, in nanoseconds.
const SETUP_NS: f64 = 25e6;

/// Processor time of a small transaction, in nanoseconds.
const CPU_NS: f64 = 20e3;

/// Transactions of the extra run that counts calls for durability.
pub const SYNC_COUNT_TRANSACTIONS: u64 = 50;

/// The limit beside contended rows is measured as beside rows of so many transactions.
pub const LIMIT_TRANSACTIONS: u64 = 1_000;

/// Operations of each limit that one measurement makes beside runs of `transactions`.
pub fn limit_operations(transactions: u64) -> u64 {
    transactions.clamp(20, 250)
}

fn transaction_ns(key: &RowKey, calibration: Calibration) -> f64 {
    let (overwrite_ns, append_ns) = (calibration.overwrite_ns as f64, calibration.append_ns as f64);
    match (key.workload, key.mode) {
        (Workload::Read, _) => return 5e3,
        (Workload::Large, _) => return 15e6 + 2.0 * append_ns,
        (Workload::Open, JournalMode::Wal | JournalMode::Waldio) => return 5e5 + 5.0 * append_ns,
        _ => {}
    }
    CPU_NS
        + match (key.mode, key.log, key.synchronous) {
            (JournalMode::Wal | JournalMode::Waldio, _, Synchronous::Normal) => 0.01 * append_ns,
            (JournalMode::Waldio, _, _) | (JournalMode::Wal, LogState::Steady, _) => overwrite_ns,
            (JournalMode::Wal, _, _) => append_ns,
            (JournalMode::Delete | JournalMode::Truncate, _, _) => 4.0 * append_ns,
            (JournalMode::Persist, _, _) => 3.0 * append_ns,
            (JournalMode::Memory | JournalMode::Off, _, _) => 1.5 * append_ns,
        }
}

fn run_ns(key: &RowKey, transactions: u64, calibration: Calibration) -> f64 {
    let preparation = match (key.workload, key.log) {
        (Workload::Read, _) => 60e6 + 30.0 * calibration.append_ns as f64,
        (_, LogState::Steady) => 40e6,
        _ => 0.0,
    };
    let setup = SETUP_NS + preparation + 8.0 * calibration.append_ns as f64;
    setup + transactions as f64 * transaction_ns(key, calibration)
}

/// Expected seconds for `runs` runs of every row of `groups`.
pub fn expected_s(
    selection: &Selection,
    groups: &[Group],
    (transactions, runs): (u64, u32),
    calibration: Calibration,
) -> f64 {
    let mut rows_ns = 0.0;
    // Of the limit alone, in each round.
    let mut round_ns = 0.0;
    let mut once_ns = 0.0;
    for group in groups {
        let libraries: std::collections::HashSet<&str> =
            group.keys.iter().map(|key| key.library.as_str()).collect();
        let per_limit_ns =
            SETUP_NS + 3.0 * limit_operations(transactions) as f64 * calibration.overwrite_ns as f64;
        if group.keys.iter().any(|key| key.workload.is_bound_by_flushes()) {
            round_ns += libraries.len() as f64 * per_limit_ns;
        }
        for key in &group.keys {
            let count = transaction_count(key, transactions);
            let rounds = (0..runs).filter(|round| selection.takes_part(key.mode, *round, runs)).count();
            rows_ns += rounds as f64 * run_ns(key, count, calibration);
            once_ns += run_ns(key, count.min(SYNC_COUNT_TRANSACTIONS), calibration);
        }
    }
    (f64::from(runs) * round_ns + rows_ns + once_ns) / 1e9
}

/// Expected seconds for `runs` runs of every contended row of `groups`.
pub fn contended_expected_s(
    contention: &Contention,
    groups: &[Vec<ContendedKey>],
    runs: u32,
    calibration: Calibration,
) -> f64 {
    // Loading a library and opening a connection, on a machine with fewer cores than writers.
    const PROCESS_NS: f64 = 20e6;
    const THREAD_NS: f64 = 2e6;
    // A sleeping busy handler looks again after 100 ms at most; 64 of them keep each other out for seconds even then.
    const LAST_COMMITS_NS: f64 = 1e8;
    const LAST_COMMIT_OF_EACH_NS: f64 = 3e7;
    let row_ns = |key: &ContendedKey, clock_ns: u64| {
        let each_ns = if key.kind == WriterKind::Processes { PROCESS_NS } else { THREAD_NS };
        let flush_ns = key.flush_delay_ns.max(calibration.append_ns) as f64;
        let around_ns = 2.0 * SETUP_NS + LAST_COMMITS_NS + 16.0 * flush_ns;
        around_ns
            + f64::from(key.writers) * (each_ns + flush_ns + LAST_COMMIT_OF_EACH_NS)
            + (clock_ns + warm_up_ns(clock_ns)) as f64
    };
    let mut all_ns = 0.0;
    for group in groups {
        let limit_ns =
            SETUP_NS + 3.0 * limit_operations(LIMIT_TRANSACTIONS) as f64 * calibration.overwrite_ns as f64;
        all_ns += f64::from(runs) * if contention.flush_delay_ns == 0 { limit_ns } else { 0.0 };
        for key in group {
            all_ns += f64::from(runs) * row_ns(key, contention.run_ns);
            if let Some(clock_ns) = contention.counting_run_ns() {
                all_ns += row_ns(key, clock_ns);
            }
        }
    }
    all_ns / 1e9
}

/// Expected seconds for `runs` rounds of the study with so many transactions asked for.
pub fn study_expected_s(plan: &StudyPlan, (transactions, runs): (u64, u32), calibration: Calibration) -> f64 {
    let (overwrite_ns, append_ns) = (calibration.overwrite_ns as f64, calibration.append_ns as f64);
    let limit_ns = SETUP_NS + 3.0 * limit_operations(transactions) as f64 * overwrite_ns;
    let of_part = |part: &StudyPart| match part {
        StudyPart::Init => {
            // Each half is some 64 blocks' worth of time to zero; blocks that are first written may cost an append.
            let initialise_ns = 128.0 * append_ns;
            let passes_ns = overwrites(transactions) as f64 * (append_ns + overwrite_ns);
            limit_ns + plan.row_count(*part) as f64 * (SETUP_NS + initialise_ns + passes_ns)
        }
        StudyPart::Alignment => {
            let commits = frame_commits(transactions) as f64;
            // Two durabilities of three flush, half of the logs grow; 64 appends' worth of time to prepare one.
            let row_ns = SETUP_NS + 64.0 * append_ns + commits * (overwrite_ns + append_ns) / 3.0;
            limit_ns + plan.row_count(*part) as f64 * row_ns
        }
        StudyPart::Table2 => {
            let rows_ns = plan.table_two.iter().map(|key| run_ns(&key.row, transactions, calibration));
            limit_ns + rows_ns.sum::<f64>()
        }
    };
    f64::from(runs) * plan.parts.iter().map(of_part).sum::<f64>() / 1e9
}

/// `40 s`, `3 min`, `2 h`: no more digits than a forecast has.
pub fn rough(seconds: f64) -> String {
    match seconds {
        short if short < 10.0 => format!("{short:.0} s"),
        short if short < 100.0 => format!("{:.0} s", (short / 5.0).ceil() * 5.0),
        medium if medium < 5_400.0 => format!("{:.0} min", medium / 60.0),
        long => format!("{:.1} h", long / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use joj_analysis::bench::key::Word;
    use joj_analysis::bench::study::table_two::Layout;

    use super::*;
    use crate::bench::plans::study::table_two_keys;

    const FAST: Calibration = Calibration { overwrite_ns: 100_000, append_ns: 150_000 };
    const SLOW: Calibration = Calibration { overwrite_ns: 20_000_000, append_ns: 60_000_000 };

    #[test]
    fn a_slow_disk_takes_as_much_longer_as_its_flushes() {
        let selection = Selection::default();
        let groups = selection.groups(&["bundled".to_owned(), "system".to_owned()]);
        let expected = |counts, calibration| expected_s(&selection, &groups, counts, calibration);
        let (fast, slow) = (expected((1000, 5), FAST), expected((1000, 5), SLOW));
        assert!(fast < 90.0, "the default plan promises 90 s at 0.1 ms a flush, and this is {fast}");
        assert!(slow > 100.0 * 60.0, "{slow}");
        assert!(expected((200, 3), SLOW) < slow / 3.0);
    }

    #[test]
    fn contended_rows_take_their_clock_and_little_more() {
        let contention = Contention { threads: vec![1, 16], run_ns: 2_000_000_000, ..Contention::default() };
        let groups = contention.groups(&["system".to_owned()]);
        let expected = contended_expected_s(&contention, &groups, 5, FAST);
        // Two modes, two counts, five runs of 2.5 s; four counting runs of 1.25 s.
        assert!((55.0..80.0).contains(&expected), "{expected}");
        let slow = Contention { flush_delay_ns: 2_000_000, ..contention };
        let slow_s = contended_expected_s(&slow, &slow.groups(&["system".to_owned()]), 5, FAST);
        assert!((50.0..80.0).contains(&slow_s), "{slow_s}");
    }

    #[test]
    fn the_study_takes_as_much_longer_as_its_flushes() {
        let table_two = table_two_keys("system", &[Layout::Stock]);
        let plan = StudyPlan { parts: StudyPart::ALL.to_vec(), table_two };
        let expected = |calibration| study_expected_s(&plan, (1_000, 5), calibration);
        assert!(expected(FAST) < 240.0 && expected(SLOW) > 60.0 * expected(FAST), "{}", expected(SLOW));
    }

    #[test]
    fn forecasts_are_rounded() {
        assert_eq!([3.4, 41.0, 130.0, 9000.0].map(rough), ["3 s", "45 s", "2 min", "2.5 h"]);
    }
}
