//! How long runs will take, from a few timed writes. Arithmetic only.
//!
//! The factors say how many overwrites or appends, each with its sync, a transaction of a mode is worth. They
//! come from strace on ext4 and are meant to tell half a minute from ten, no more.

use joj_analysis::bench::key::{JournalMode, LogState, RowKey, Synchronous, Workload};

use crate::bench::worker::limit_run::Calibration;

/// Starting a worker, loading SQLite, creating, verifying and removing a database, in nanoseconds.
pub const SETUP_NS: f64 = 25e6;

/// Processor time of a small transaction, in nanoseconds.
const CPU_NS: f64 = 20e3;

/// Operations of each limit that one measurement makes beside runs of `transactions`.
pub fn limit_operations(transactions: u64) -> u64 {
    transactions.clamp(20, 250)
}

/// How long one measurement of the disk's limit takes, in nanoseconds.
pub fn limit_ns(transactions: u64, calibration: Calibration) -> f64 {
    SETUP_NS + 3.0 * limit_operations(transactions) as f64 * calibration.overwrite_ns as f64
}

fn transaction_ns(key: &RowKey, calibration: Calibration) -> f64 {
    let (overwrite_ns, append_ns) = (calibration.overwrite_ns as f64, calibration.append_ns as f64);
    match (key.workload, key.mode) {
        (Workload::Read, _) => return 5e3,
        (Workload::Large, _) => return 15e6 + 2.0 * append_ns,
        (Workload::Open, mode) if mode.has_log() => return 5e5 + 5.0 * append_ns,
        _ => {}
    }
    CPU_NS
        + match (key.mode, key.log, key.synchronous) {
            (JournalMode::Wal | JournalMode::Waldio, _, Synchronous::Normal) | (JournalMode::Bounded, ..) => {
                0.01 * append_ns
            }
            (JournalMode::Waldio, _, _) | (JournalMode::Wal, LogState::Steady, _) => overwrite_ns,
            (JournalMode::Wal, _, _) => append_ns,
            (JournalMode::Delete | JournalMode::Truncate, _, _) => 4.0 * append_ns,
            (JournalMode::Persist, _, _) => 3.0 * append_ns,
            (JournalMode::Memory | JournalMode::Off, _, _) => 1.5 * append_ns,
        }
}

/// How long a run of SQLite's transactions takes, in nanoseconds.
pub fn run_ns(key: &RowKey, transactions: u64, calibration: Calibration) -> f64 {
    let preparation = match (key.workload, key.log) {
        (Workload::Read, _) => 60e6 + 30.0 * calibration.append_ns as f64,
        (_, LogState::Steady) => 40e6,
        _ => 0.0,
    };
    let setup = SETUP_NS + preparation + 8.0 * calibration.append_ns as f64;
    setup + transactions as f64 * transaction_ns(key, calibration)
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
    use super::*;

    #[test]
    fn forecasts_are_rounded() {
        assert_eq!([3.4, 41.0, 130.0, 9000.0].map(rough), ["3 s", "45 s", "2 min", "2.5 h"]);
    }
}
