//! What a replay was like, as text.
//!
//! page_transactions   the same of --as: the row of the recording, and that of the replay

pub mod page_transactions;

use joj_analysis::recording::outcome::ReplayOutcome;

use crate::show::paper::columns;
use crate::show::text::{count, duration, number};

/// So many differences are shown; the others are counted.
const DIFFERENCES_SHOWN: usize = 20;

/// The result for a terminal.
pub fn outcome(outcome: &ReplayOutcome) -> String {
    let by_rate = outcome.elapsed_ns.max(1) as f64 / 1e9;
    let mut text = format!(
        "{} calls of {} threads in {}, {} a second; in the recording {}\n",
        count(outcome.calls),
        count(outcome.threads),
        duration(outcome.elapsed_ns),
        number(outcome.calls as f64 / by_rate),
        duration(outcome.recorded_elapsed_ns),
    );
    text += &format!("time inside calls, of all threads together: {}\n", duration(outcome.in_calls_ns));
    let (read, written) = (count(outcome.read_bytes), count(outcome.written_bytes));
    text += &format!("{read} bytes read, {written} bytes written\n");
    let syncs: Vec<String> =
        outcome.syncs.iter().map(|(call, calls)| format!("{} {call}", count(*calls))).collect();
    text += &format!("syncs: {}\n", if syncs.is_empty() { "none".to_owned() } else { syncs.join(", ") });
    if let Some(device) = outcome.device {
        let flushes = device.flushes.map_or_else(|| "-".to_owned(), count);
        text += &format!(
            "the device wrote {} KiB in {} requests meanwhile, and flushed {flushes} times, for whomever\n",
            count(device.written_bytes / 1024),
            count(device.write_requests),
        );
    }
    if let Some(late) = outcome.lateness {
        text += &format!(
            "calls began late by {} (median), {} (99 %), {} (most)\n",
            duration(late.p50_ns),
            duration(late.p99_ns),
            duration(late.max_ns),
        );
    }
    text += &format!("processor time of the replay: {}\n\n", duration(outcome.cpu_us * 1_000));
    text += &calls(outcome);
    text += &rest(outcome);
    text
}

fn calls(outcome: &ReplayOutcome) -> String {
    let mut lines = vec![["call", "made", "other result", "not made"].map(str::to_owned).to_vec()];
    for (call, kind) in &outcome.by_call {
        let numbers = [kind.calls, kind.differ, kind.not_made].map(count);
        lines.push([std::slice::from_ref(call), numbers.as_slice()].concat());
    }
    columns(&lines)
}

fn rest(outcome: &ReplayOutcome) -> String {
    let mut text = String::new();
    if let (Some(files), Some(skipped)) = (outcome.files, outcome.skipped) {
        let (files, skipped) = (count(files), count(skipped));
        text += &format!("\nMobibench's reading: {files} files, {skipped} calls skipped\n");
    }
    if outcome.files_apart > 0 {
        let files = count(outcome.files_apart);
        text += &format!(
            "\n{files} files of filesystems that the program only read lay in TMPDIR, or /tmp, meanwhile\n"
        );
    }
    if !outcome.not_replayed.is_empty() {
        text += "\nnot replayed:\n";
        for (what, calls) in &outcome.not_replayed {
            text += &format!("  {} {what}\n", count(*calls));
        }
    }
    for sentence in &outcome.inferred {
        text += &format!("\n{sentence}");
    }
    text += if outcome.inferred.is_empty() { "" } else { "\n" };
    if let Some(differences) = &outcome.differences {
        text += &match differences.len() {
            0 => "\nthe files are those that the recording implies\n".to_owned(),
            found => {
                format!("\n{} differences from the files that the recording implies:\n", count(found as u64))
            }
        };
        for difference in differences.iter().take(DIFFERENCES_SHOWN) {
            text += &format!("  {difference}\n");
        }
        if differences.len() > DIFFERENCES_SHOWN {
            text += &format!("  and {} more\n", count((differences.len() - DIFFERENCES_SHOWN) as u64));
        }
    }
    if let Some(kept) = &outcome.kept {
        text += &format!("\nthe files are in {kept}\n");
    }
    text
}
