//! The result of a lab plan as text.

use std::fmt::Write;

use joj_analysis::bench::run::DeviceDelta;
use joj_analysis::lab::cell::Task;
use joj_analysis::lab::result::{CellMeasurement, CellOutcome, CellResult, LabResult};

/// What came of a cell, in a few words.
pub fn in_short(outcome: &CellOutcome) -> String {
    match outcome {
        CellOutcome::Failed(reason) => format!("FAILED: {reason}"),
        CellOutcome::Measured(measured) if measured.replay.is_some() => {
            format!("{:.2} s in calls", measured.run.elapsed_ns as f64 / 1e9)
        }
        CellOutcome::Measured(measured) => format!("{:.1}/s", measured.run.transactions_per_s()),
    }
}

/// The table.
pub fn table(result: &LabResult) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}\n{}\n", result.title, result.machine);
    let name = |cell: &CellResult| cell.cell.to_string();
    let width = result.cells.iter().map(|cell| name(cell).len()).max().unwrap_or(0);
    let is_replay = |cell: &&CellResult| cell.cell.task == Task::Replay;
    let (replays, others): (Vec<&CellResult>, Vec<_>) = result.cells.iter().partition(is_replay);
    for (cells, head) in
        [(others, HEAD), (replays, REPLAY_HEAD)].iter().filter(|(cells, _)| !cells.is_empty())
    {
        let _ = writeln!(text, "{:<width$}{}", "cell", right(head.map(str::to_owned)));
        for cell in cells {
            let figures = match &cell.outcome {
                CellOutcome::Failed(reason) => format!("  FAILED: {reason}"),
                CellOutcome::Measured(measured) => right(figures(measured)),
            };
            let _ = writeln!(text, "{:<width$}{figures}", name(cell));
        }
    }
    let is_traced = |cell: &CellResult| match &cell.outcome {
        CellOutcome::Failed(_) => false,
        CellOutcome::Measured(measured) => measured.costs.is_some() || measured.trace_failure.is_some(),
    };
    if result.cells.iter().any(is_traced) {
        costs(&mut text, result, width);
    }
    text
}

const HEAD: [&str; 6] = ["1/s", "p50 us", "p99 us", "KiB/txn", "writes", "flush"];
const REPLAY_HEAD: [&str; 6] = ["in calls", "syncs", "calls", "KiB", "writes", "flush"];

/// What stands behind a cell's name.
fn figures(measured: &CellMeasurement) -> [String; 6] {
    let run = &measured.run;
    let device = |amount: fn(&DeviceDelta) -> Option<u64>, unit: f64, digits: usize| {
        let amount = run.device.as_ref().and_then(amount);
        amount.map_or("-".to_owned(), |amount| format!("{:.digits$}", run.per_transaction(amount) / unit))
    };
    let digits = usize::from(measured.replay.is_none());
    let [kib, writes, flushes] = [
        device(|device| Some(device.written_bytes), 1024.0, digits),
        device(|device| Some(device.write_requests), 1.0, digits),
        device(|device| device.flushes, 1.0, digits),
    ];
    let [first, second, third] = match &measured.replay {
        Some(replay) => [
            format!("{:.2} s", run.elapsed_ns as f64 / 1e9),
            replay.syncs.to_string(),
            replay.calls.to_string(),
        ],
        None => [
            format!("{:.1}", run.transactions_per_s()),
            format!("{:.0}", run.latency.p50_ns as f64 / 1e3),
            format!("{:.0}", run.latency.p99_ns as f64 / 1e3),
        ],
    };
    [first, second, third, kib, writes, flushes]
}

fn right(cells: [String; 6]) -> String {
    let [first, second, third, kib, writes, flushes] = cells;
    format!("  {first:>9}  {second:>9}  {third:>9}  {kib:>7}  {writes:>7}  {flushes:>6}")
}

fn costs(text: &mut String, result: &LabResult, width: usize) {
    let _ = writeln!(
        text,
        "\n{:<width$}  {:>6}  {:>8}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}",
        "KiB of a transaction, from the trace (medians)",
        "data",
        "journal",
        "JOJ",
        "other",
        "writes",
        "flush",
        "syncs",
        "slower"
    );
    for cell in &result.cells {
        let CellOutcome::Measured(measured) = &cell.outcome else { continue };
        let name = cell.cell.to_string();
        if let Some(reason) = &measured.trace_failure {
            let _ = writeln!(text, "{name:<width$}  no trace: {reason}");
        }
        let Some(costs) = &measured.costs else { continue };
        let kib = |bytes: u64| format!("{:.1}", bytes as f64 / 1024.0);
        let _ = writeln!(
            text,
            "{name:<width$}  {:>6}  {:>8}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}",
            kib(costs.data_bytes),
            kib(costs.journal_bytes),
            kib(costs.journal_of_journal_bytes),
            kib(costs.other_bytes),
            costs.writes,
            costs.flushes,
            costs.syncs,
            measured.traced_share().map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * (1.0 - share))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED_TRACE: &str = r#"{
        "format": "joj-lab-result", "version": 1, "title": "t",
        "machine": {"joj": "joj", "qemu": "q", "kernel": "6.1", "clock": "c", "sqlite": []},
        "cells": [{
            "cell": {"filesystem": "ext4", "feature": "none", "device": "card", "journal_device": null, "task": "insert",
                "mode": "wal", "synchronous": "full", "sync_call": "fdatasync", "schema": "waldio", "log": "fresh",
                "batch_atomic": false, "directory_sync": true, "waldio_options": [], "threads": 1, "transactions": 12},
            "outcome": {"measured": {
                "run": {"round": 0, "transactions": 12, "elapsed_ns": 1000000000, "cpu_user_us": 0, "cpu_system_us": 0,
                    "latency": {"p50_ns": 1, "p99_ns": 1, "p999_ns": 1, "max_ns": 1}, "switches_voluntary": 0,
                    "switches_involuntary": 0, "device": null, "tick_share": 0.0, "failure": null},
                "quantiles_ns": [], "trace_failure": "the programs were refused"}}
        }]
    }"#;

    #[test]
    fn why_there_is_no_trace_is_said_where_no_cell_has_one() {
        let result: LabResult = serde_json::from_str(FAILED_TRACE).expect("a result");
        let text = table(&result);
        assert!(text.contains("no trace: the programs were refused"), "{text}");
    }
}
