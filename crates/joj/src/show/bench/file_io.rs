//! File I/O without SQLite, as tables for a terminal, and as a section of the page.

use joj_analysis::bench::io::row::IoRow;
use joj_analysis::statistics::Estimate;

use crate::show::bars::{Bar, Entry, draw};
use crate::show::bench::groups::groups;
use crate::show::paper::Paper;
use crate::show::svg::{Fill, escape};
use crate::show::text::{duration, kib, number, or_dash};

/// A table for each job and size of a record, then what the columns mean; empty without rows.
pub fn table(rows: &[IoRow], paper: &Paper) -> String {
    let groups = groups(rows, |one, other| one.key.same_group(&other.key));
    let text: String = groups.iter().map(|members| group(members, paper)).collect();
    if text.is_empty() { text } else { format!("{text}\n{}", paper.paragraph(LEGEND)) }
}

const LEGEND: &str = "Each run ends with a sync of the file, which its rate counts and no record's time does. The file is not in \
    the page cache at the begin. limit = share of the disk's, for durable records of 4 KiB; p50, p99, max = a \
    record's time, its sync with it, of all runs; syncs = calls for durability a record; disk KB, flushes, \
    journal = what the device wrote, its flushes and the journal's commits a record. A dash: not available \
    here, or no meaning there. All figures are in the JSON (`--json FILE`).";

fn group(members: &[&IoRow], paper: &Paper) -> String {
    let head = [
        "", "KiB/s", "interval", "ops/s", "limit", "p50", "p99", "max", "syncs", "disk KB", "flushes",
        "journal",
    ];
    let mut lines = vec![vec![members[0].key.group_title()], head.map(str::to_owned).to_vec()];
    lines.extend(members.iter().map(|row| line(row)));
    format!("\n{}", paper.columns(&lines))
}

fn line(row: &IoRow) -> Vec<String> {
    let title = format!("  {}", row.key.way.title());
    match (&row.failure, &row.refused, &row.records.summary, &row.bytes_per_s) {
        (Some(_), ..) => vec![format!("{title}  FAILED, see below")],
        (None, Some(reason), ..) => vec![format!("{title}: {reason}")],
        (None, None, Some(summary), Some(speed)) => vec![
            title,
            kib(speed.median),
            format!("{}-{}", kib(speed.low), kib(speed.high)),
            number(summary.operations_per_s.median),
            or_dash(row.share_of_limit.map(|share| share.median), |share| format!("{share:.2}")),
            duration(row.latency.p50_ns),
            duration(row.latency.p99_ns),
            duration(row.latency.max_ns),
            number(row.syncs.per_transaction()),
            or_dash(summary.device_bytes, kib),
            or_dash(summary.device_flushes, number),
            or_dash(summary.journal_commits, number),
        ],
        _ => vec![format!("{title}  not measured")],
    }
}

/// A plot of each job's rates; empty without rows.
pub fn section(rows: &[IoRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from("<h2>File I/O without SQLite</h2>\n");
    for row in rows {
        if let Some(reason) = &row.refused {
            let reason = escape(&format!("{}: {reason}", row.key));
            text.push_str(&format!("<p class=\"facts\">{reason}</p>\n"));
        }
    }
    for members in groups(rows, |one, other| one.key.same_group(&other.key)) {
        // What waits for nothing is a thousand times as fast: on one scale the others could not be told apart.
        for (is_durable, words) in [(true, "each durable"), (false, "made durable at the end, or read")] {
            let of_kind = members.iter().filter(|row| row.key.way.is_durable() == is_durable);
            let entries: Vec<Entry> = of_kind.filter_map(|row| entry(row)).collect();
            if !entries.is_empty() {
                text.push_str(&draw(&format!("KiB per second, {words}"), &entries, None, 14.0));
            }
        }
    }
    text
}

fn entry(row: &IoRow) -> Option<Entry> {
    let speed = row.bytes_per_s.filter(|_| row.failure.is_none())?;
    let speed: Estimate = speed.scaled(1.0 / 1024.0);
    let bar = Bar {
        value: speed.median,
        interval: Some((speed.low, speed.high)),
        fill: Fill { colour: "#0072b2", opacity: 1.0 },
        note: number(speed.median),
    };
    Some(Entry { heading: row.key.group_title(), label: row.key.way.title().to_owned(), bars: vec![bar] })
}
