//! What a replay of page transactions was like, as text: the recording's row and the replay's.

use joj_analysis::recording::page_transactions::outcome::{TransactionsOutcome, TransactionsRow};

use crate::show::paper::columns;
use crate::show::text::{count, duration, number};

/// The result for a terminal.
pub fn outcome(outcome: &TransactionsOutcome) -> String {
    let (recorded, replayed) = (&outcome.recorded, &outcome.replayed);
    let mut text = format!(
        "{} commits on {} databases by {} connections, replayed as {} with synchronous={}, SQLite {}{}\n\n",
        count(recorded.commits),
        count(outcome.databases.len() as u64),
        count(outcome.connections),
        outcome.journal_mode,
        outcome.synchronous,
        outcome.sqlite.version,
        if outcome.sqlite.waldio.is_some() { ", waldio" } else { "" },
    );
    let head = ["", "commits", "commits/s", "p50", "p99", "max", "syncs/commit", "KiB/commit", "pages"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.push(line("recorded", recorded));
    lines.push(line("replayed", replayed));
    text += &columns(&lines);
    text += &format!("\nrecorded journal modes: {}\n", modes(recorded));
    if let Some(device) = replayed.device {
        let per_commit = |bytes: u64| number(bytes as f64 / 1024.0 / replayed.commits.max(1) as f64);
        text += &format!(
            "the device wrote {} KiB a commit meanwhile, for whomever\n",
            per_commit(device.written_bytes)
        );
    }
    if outcome.frames.low < outcome.frames.high {
        text += &format!(
            "with a log the recorded commits write {} to {} frames: the recording does not tell how often page 1 changed\n",
            count(outcome.frames.low),
            count(outcome.frames.high),
        );
    }
    text += &differences(outcome);
    if let Some(late) = outcome.lateness {
        text += &format!(
            "commits began late by {} (median), {} (99 %), {} (most)\n",
            duration(late.p50_ns),
            duration(late.p99_ns),
            duration(late.max_ns),
        );
    }
    for database in &outcome.databases {
        text += &format!(
            "{}: pages of {} bytes, {} to {}; made {} to {}, integrity_check ok\n",
            database.path,
            database.page_bytes,
            count(u64::from(database.pages_before)),
            count(u64::from(database.pages_after)),
            count(u64::from(database.made_pages_before)),
            count(u64::from(database.made_pages_after)),
        );
    }
    for sentence in &outcome.notes {
        text += &format!("{sentence}\n");
    }
    if let Some(kept) = &outcome.kept {
        text += &format!("the files are in {kept}\n");
    }
    text
}

fn line(name: &str, row: &TransactionsRow) -> Vec<String> {
    let times = &row.commit_times;
    let or_none = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    vec![
        name.to_owned(),
        count(row.commits),
        number(row.commits_per_s),
        duration(times.p50_ns),
        duration(times.p99_ns),
        duration(times.max_ns),
        or_none(row.syncs_per_commit),
        or_none(row.kib_per_commit),
        row.pages.map_or_else(|| "-".to_owned(), count),
    ]
}

fn modes(row: &TransactionsRow) -> String {
    let modes: Vec<String> =
        row.journal_modes.iter().map(|(mode, commits)| format!("{mode} {}", count(*commits))).collect();
    modes.join(", ")
}

fn differences(outcome: &TransactionsOutcome) -> String {
    let told = [
        (
            outcome.pages_unknown,
            "commits have pages that joj chose: the recording tells only how many there were",
        ),
        (outcome.parents_added, "commits write one page more than recorded: the parent of their new pages"),
        (outcome.shrinks_left_out, "commits made a database smaller, which the replay does not"),
    ];
    let told = told.iter().filter(|(commits, _)| *commits > 0);
    told.map(|(commits, what)| format!("{} {what}\n", count(*commits))).collect()
}
