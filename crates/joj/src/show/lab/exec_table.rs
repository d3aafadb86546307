//! The result of `joj lab exec` as text.

use std::fmt::Write;

use joj_analysis::bench::key::Word;
use joj_analysis::lab::exec_result::{CommandRun, ExecOutcome, ExecResult, ExecRow};

use crate::show::paper::columns;
use crate::show::text::{count, duration, number, or_dash};

/// What came of a run, in a few words.
pub fn in_short(outcome: &ExecOutcome) -> String {
    match outcome {
        ExecOutcome::Failed(reason) => format!("FAILED: {reason}"),
        ExecOutcome::Ran(run) => format!("{}, ended with {}", duration(run.elapsed_ns), end(run)),
    }
}

/// The run, where there is one and no more: what it wrote to standard error goes there.
pub fn only_run(result: &ExecResult) -> Option<&CommandRun> {
    match &result.rows[..] {
        [ExecRow { outcome: ExecOutcome::Ran(run), .. }] => Some(run),
        _ => None,
    }
}

/// What the only run printed and what it cost, or a table of several.
pub fn text(result: &ExecResult) -> String {
    let mut text = String::new();
    if let Some(run) = only_run(result) {
        text += &run.stdout;
        if !text.is_empty() && !text.ends_with('\n') {
            text += "\n";
        }
        text += "\n";
    }
    let _ = writeln!(text, "{}\n{}\n", result.command.join(" "), result.machine);
    text += &table(&result.rows);
    for row in &result.rows {
        let name = format!("{} {}", row.filesystem.word(), row.device);
        let _ = match &row.outcome {
            ExecOutcome::Failed(reason) => writeln!(text, "{name}: FAILED: {reason}"),
            ExecOutcome::Ran(run) if run.host_requests == 0 => Ok(()),
            ExecOutcome::Ran(run) => writeln!(
                text,
                "{name}: the time is too long: {} times a file of this machine was asked for",
                count(run.host_requests)
            ),
        };
    }
    text
}

fn table(rows: &[ExecRow]) -> String {
    let ran: Vec<(&ExecRow, &CommandRun)> = rows
        .iter()
        .filter_map(|row| match &row.outcome {
            ExecOutcome::Ran(run) => Some((row, run)),
            ExecOutcome::Failed(_) => None,
        })
        .collect();
    let Some((_, first)) = ran.first() else { return String::new() };
    let head = ["", "elapsed", "of the first", "ended with", "KiB written", "requests", "flushes"];
    let line = |(row, run): &(&ExecRow, &CommandRun)| {
        let counted = |figure: Option<u64>| figure.map_or_else(|| "-".to_owned(), count);
        vec![
            format!("{} {}", row.filesystem.word(), row.device),
            duration(run.elapsed_ns),
            format!("{:.3}", run.elapsed_ns as f64 / first.elapsed_ns.max(1) as f64),
            end(run),
            or_dash(run.device.map(|device| device.written_bytes as f64 / 1024.0), number),
            counted(run.device.map(|device| device.write_requests)),
            counted(run.device.and_then(|device| device.flushes)),
        ]
    };
    let head = head.into_iter().map(str::to_owned).collect();
    columns(&[head].into_iter().chain(ran.iter().map(line)).collect::<Vec<_>>())
}

fn end(run: &CommandRun) -> String {
    match (run.exit_code, run.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "-".to_owned(),
    }
}
