//! The result of `joj lab crash` as text.

use std::fmt::Write;

use joj_analysis::bench::key::{Synchronous, Word};
use joj_analysis::lab::crash::{CellStates, CrashResult, CrashVerdict, StateResult};
use joj_analysis::lab::loss_bound::LossBound;

/// The table, and a line for each state that broke a promise.
pub fn table(result: &CrashResult) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}, seed {}", result.machine, result.seed);
    if let Some(planted) = &result.planted {
        let _ = writeln!(text, "planted: {planted}");
    }
    let width = result.cells.iter().map(|cell| name(cell).len()).max().unwrap_or(0).max(5);
    let _ = writeln!(
        text,
        "\n{:<width$}  {:>7}  {:>6}  {:>8}  {:>6}  {:>6}  {:>7}  {:>11}  {:>8}  {:>5}",
        "cell",
        "entries",
        "states",
        "volatile",
        "sound",
        "lost",
        "corrupt",
        "unmountable",
        "unusable",
        "ended"
    );
    for cell in &result.cells {
        line(&mut text, cell, width);
    }
    for cell in result.cells.iter().filter(|cell| cell.failure.is_none()) {
        lost(&mut text, cell);
    }
    for cell in &result.cells {
        for state in cell.states.iter().filter(|state| !cell.holds(state)) {
            let _ = writeln!(text, "FAILED: {}, seed {}, {state}", name(cell), result.seed);
        }
    }
    text
}

fn line(text: &mut String, cell: &CellStates, width: usize) {
    let name = name(cell);
    if let Some(reason) = &cell.failure {
        let _ = writeln!(text, "{name:<width$}  FAILED: {reason}");
        return;
    }
    let volatile = |state: &&StateResult| state.cut.as_ref().is_some_and(|cut| cut.volatile_writes > 0);
    let sound =
        |state: &&StateResult| state.verdicts().all(|verdict| matches!(verdict, CrashVerdict::Sound(_)));
    let _ = writeln!(
        text,
        "{name:<width$}  {:>7}  {:>6}  {:>8}  {:>6}  {:>6}  {:>7}  {:>11}  {:>8}  {:>5}",
        cell.entries,
        cell.states.len(),
        cell.states.iter().filter(volatile).count(),
        cell.states.iter().filter(sound).count(),
        cell.count(|verdict| matches!(verdict, CrashVerdict::Lost(_))),
        cell.count(|verdict| matches!(verdict, CrashVerdict::Corrupt(_))),
        cell.count(|verdict| matches!(verdict, CrashVerdict::Unmountable(_))),
        cell.count(|verdict| matches!(verdict, CrashVerdict::Unusable(_))),
        cell.count(|verdict| matches!(verdict, CrashVerdict::Ended(_))),
    );
}

/// How near the losses came to what a delayed flush allows.
fn lost(text: &mut String, cell: &CellStates) {
    let LossBound::Delay { bytes, time_ns } = cell.bound() else { return };
    let ages_ns = cell.states.iter().filter_map(|state| state.lost_age_ns);
    let oldest = match ages_ns.max() {
        Some(age_ns) => {
            format!("the oldest commit that is gone returned {:.1} ms before the cut", age_ns as f64 / 1e6)
        }
        None => "no commit is gone that had returned".to_owned(),
    };
    let _ = writeln!(
        text,
        "{}: {oldest}; allowed: {:.1} ms ({:.1} and flushes of at most {:.1}), and less than {} KiB of the log",
        name(cell),
        cell.age_max_ns() as f64 / 1e6,
        time_ns as f64 / 1e6,
        cell.longest_flush_ns as f64 / 1e6,
        bytes / 1024
    );
}

fn name(cell: &CellStates) -> String {
    let cell = &cell.cell;
    let mut name = format!("{} {}", cell.filesystem.word(), cell.mode.word());
    if cell.synchronous != Synchronous::Full {
        let _ = write!(name, " {}", cell.synchronous.word());
    }
    for option in &cell.waldio_options {
        let _ = write!(name, " {option}");
    }
    name
}
