//! The result of `joj replay --lab` as text.

use std::fmt::Write;

use joj_analysis::bench::key::Word;
use joj_analysis::recording::lab_result::{ReplayLabOutcome, ReplayLabResult, ReplayLabRow, Replayed};
use joj_analysis::recording::outcome::ReplayOutcome;
use joj_analysis::recording::page_transactions::outcome::TransactionsOutcome;

use crate::show::paper::columns;
use crate::show::text::{count, duration, number, or_dash};

/// So many differences of a row are shown; the others are counted.
const DIFFERENCES_SHOWN: usize = 5;

/// What came of a row, in a few words.
pub fn in_short(outcome: &ReplayLabOutcome) -> String {
    match outcome {
        ReplayLabOutcome::Failed(reason) => format!("FAILED: {reason}"),
        ReplayLabOutcome::Replayed(replayed) => duration(replayed.elapsed_ns()),
    }
}

/// The table, and below it what is the same for all rows and what failed.
pub fn table(result: &ReplayLabResult) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}\n{}\n", result.recording, result.machine);
    let rows: Vec<(&ReplayLabRow, &Replayed)> = result.rows.iter().filter_map(replayed).collect();
    if let Some((_, first)) = rows.first() {
        text += &columns(&lines(&rows, first));
        text += "\n";
        text += &of_recording(first);
    }
    for row in &result.rows {
        match &row.outcome {
            ReplayLabOutcome::Failed(reason) => {
                let _ = writeln!(text, "{}: FAILED: {reason}", name(row));
            }
            ReplayLabOutcome::Replayed(Replayed::Calls(calls)) => differences(&mut text, row, calls),
            ReplayLabOutcome::Replayed(Replayed::Transactions(_)) => {}
        }
    }
    text
}

fn replayed(row: &ReplayLabRow) -> Option<(&ReplayLabRow, &Replayed)> {
    match &row.outcome {
        ReplayLabOutcome::Replayed(replayed) => Some((row, replayed)),
        ReplayLabOutcome::Failed(_) => None,
    }
}

fn name(row: &ReplayLabRow) -> String {
    format!("{} {}", row.filesystem.word(), row.device)
}

/// The rows that there are, each beside the first of them.
fn lines(rows: &[(&ReplayLabRow, &Replayed)], first: &Replayed) -> Vec<Vec<String>> {
    let own: &[&str] = match first {
        Replayed::Calls(_) => &["calls", "other result", "syncs"],
        Replayed::Transactions(_) => &["commits", "commits/s", "syncs/commit"],
    };
    let head = [&["", "elapsed", "of the first"], own, &["KiB written", "requests", "flushes"]].concat();
    let head = head.into_iter().map(str::to_owned).collect();
    let line = |(row, replayed): &(&ReplayLabRow, &Replayed)| {
        let elapsed_ns = replayed.elapsed_ns();
        let ratio = elapsed_ns as f64 / first.elapsed_ns().max(1) as f64;
        let mut cells = vec![name(row), duration(elapsed_ns), format!("{ratio:.3}")];
        cells.extend(match replayed {
            Replayed::Calls(outcome) => of_calls(outcome),
            Replayed::Transactions(outcome) => of_transactions(outcome),
        });
        let device = replayed.device();
        cells.push(or_dash(device.map(|device| device.written_bytes as f64 / 1024.0), number));
        cells.push(device.map_or_else(|| "-".to_owned(), |device| count(device.write_requests)));
        cells.push(device.and_then(|device| device.flushes).map_or_else(|| "-".to_owned(), count));
        cells
    };
    [head].into_iter().chain(rows.iter().map(line)).collect()
}

fn of_calls(outcome: &ReplayOutcome) -> [String; 3] {
    [outcome.calls, outcome.differing(), outcome.syncs.values().sum()].map(count)
}

fn of_transactions(outcome: &TransactionsOutcome) -> [String; 3] {
    let row = &outcome.replayed;
    [count(row.commits), number(row.commits_per_s), or_dash(row.syncs_per_commit, number)]
}

/// What the recording says, and what of it no replay makes.
fn of_recording(replayed: &Replayed) -> String {
    match replayed {
        Replayed::Calls(outcome) => {
            let mut text = format!(
                "order {}; in the recording {}\n",
                outcome.order,
                duration(outcome.recorded_elapsed_ns)
            );
            for (what, calls) in &outcome.not_replayed {
                let _ = writeln!(text, "not replayed: {} {what}", count(*calls));
            }
            text + &sentences(&outcome.inferred)
        }
        Replayed::Transactions(outcome) => {
            let recorded = &outcome.recorded;
            let text = format!(
                "order {}, as {} with synchronous={}; in the recording {} commits in {}, {} a second\n",
                outcome.order,
                outcome.journal_mode,
                outcome.synchronous,
                count(recorded.commits),
                duration(recorded.elapsed_ns),
                number(recorded.commits_per_s),
            );
            text + &sentences(&outcome.notes)
        }
    }
}

fn sentences(all: &[String]) -> String {
    all.iter().map(|sentence| format!("{sentence}\n")).collect()
}

fn differences(text: &mut String, row: &ReplayLabRow, outcome: &ReplayOutcome) {
    let Some(found) = &outcome.differences else { return };
    let _ = match found.len() {
        0 => writeln!(text, "{}: the files are those that the recording implies", name(row)),
        many => writeln!(
            text,
            "{}: {} differences from the files that the recording implies:",
            name(row),
            count(many as u64)
        ),
    };
    for difference in found.iter().take(DIFFERENCES_SHOWN) {
        let _ = writeln!(text, "  {difference}");
    }
    if found.len() > DIFFERENCES_SHOWN {
        let _ = writeln!(text, "  and {} more", count((found.len() - DIFFERENCES_SHOWN) as u64));
    }
}
