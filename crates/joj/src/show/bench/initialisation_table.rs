//! The ways to initialise a log as text for a terminal.

use joj_analysis::bench::measurement::{Measurement, MeasurementSummary};
use joj_analysis::bench::study::initialisation::InitialisationRow;

use crate::show::text::{columns, duration_of, kib, number, or_dash};

/// Two tables, then what their columns mean; empty without rows.
pub fn render(rows: &[InitialisationRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}{LEGEND}", columns(&preparing(rows)), columns(&overwriting(rows)))
}

const LEGEND: &str = "
Medians of the runs. disk KB = what the device wrote meanwhile, whoever caused it; what the file system writes later is \
not in it.
flushes and journal = the device's flushes and commits of the file system's journal, per file or per overwrite. A dash: \
not counted here.
";

fn preparing(rows: &[InitialisationRow]) -> Vec<Vec<String>> {
    let head = [
        "", "create", "interval", "disk KB", "flushes", "journal", "extend", "interval", "disk KB",
        "flushes", "journal",
    ];
    let mut lines = vec![
        vec!["making a log of 4,100 KiB ready, and 4,096 KiB more, each made durable".to_owned()],
        head.map(str::to_owned).to_vec(),
    ];
    lines.extend(rows.iter().map(|row| line(row, [&row.create, &row.extend], true)));
    lines
}

fn overwriting(rows: &[InitialisationRow]) -> Vec<Vec<String>> {
    let runs = rows.iter().find_map(|row| row.first_pass.runs.first());
    let count = runs.map_or(0, |run| run.transactions);
    let head = [
        "", "1st pass", "p99", "disk KB", "flushes", "journal", "2nd pass", "p99", "disk KB", "flushes",
        "journal",
    ];
    let mut lines = vec![
        vec![format!("{count} overwrites of 4 KiB of it, twice, each made durable: time and cost of one")],
        head.map(str::to_owned).to_vec(),
    ];
    let measured = rows.iter().filter(|row| row.refused.is_none());
    lines.extend(measured.map(|row| line(row, [&row.first_pass, &row.second_pass], false)));
    lines
}

fn line(row: &InitialisationRow, steps: [&Measurement; 2], with_interval: bool) -> Vec<String> {
    let title = format!("  {}, {}", row.key.durability.short(), row.key.approach.title());
    if row.failure.is_some() {
        return vec![format!("{title}  FAILED, see below")];
    }
    if let Some(reason) = &row.refused {
        return vec![format!("{title}: {reason}")];
    }
    let mut cells = vec![title];
    for step in steps {
        cells.extend(
            step.summary
                .as_ref()
                .map_or_else(|| vec!["-".to_owned(); 5], |found| of_step(found, with_interval)),
        );
    }
    cells
}

fn of_step(summary: &MeasurementSummary, with_interval: bool) -> Vec<String> {
    let p50 = &summary.p50_ns;
    let spread = if with_interval {
        format!("{}-{}", duration_of(p50.low), duration_of(p50.high))
    } else {
        duration_of(summary.p99_ns.median)
    };
    vec![
        duration_of(p50.median),
        spread,
        or_dash(summary.device_bytes, kib),
        or_dash(summary.device_flushes, number),
        or_dash(summary.journal_commits, number),
    ]
}
