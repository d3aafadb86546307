//! Log patterns: as text for a terminal, and as a section of the page.

use joj_analysis::bench::key::Word;
use joj_analysis::bench::study::durability::Durability;
use joj_analysis::bench::study::pattern::{Pattern, PatternRow};

use crate::show::bars::{Bar, Entry, draw};
use crate::show::bench::groups::groups;
use crate::show::paper::Paper;
use crate::show::svg::{Fill, escape};
use crate::show::text::{duration_of, kib, number, or_dash};

/// A table for each durability and kind of log, then what the columns mean; empty without rows.
pub fn table(rows: &[PatternRow], paper: &Paper) -> String {
    let groups = groups(rows, |one, other| one.key.same_group(&other.key));
    let text: String = groups.iter().map(|members| group(members, paper)).collect();
    if text.is_empty() { text } else { format!("{text}\n{}", paper.paragraph(LEGEND)) }
}

const LEGEND: &str = "Log patterns are log writes WITHOUT SQLite: what a layout of the log could cost, not what SQLite does with \
    it. A commit is one frame of one page. x WAL = against the WAL pattern of the same table, paired by round. \
    disk KB = what the device wrote for a commit, whoever caused it; + flush = with one fdatasync behind the \
    last commit; flushes and journal = the device's flushes and commits of the journal.";

fn group(members: &[&PatternRow], paper: &Paper) -> String {
    let commits = members.iter().find_map(|row| row.commits.runs.first()).map_or(0, |run| run.transactions);
    let head =
        ["", "commits/s", "interval", "x WAL", "p50", "p99", "disk KB", "+ flush", "flushes", "journal"];
    let mut lines = vec![
        vec![format!(
            "log patterns, without SQLite; {}; {commits} commits of one frame",
            members[0].key.group_title()
        )],
        head.map(str::to_owned).to_vec(),
    ];
    lines.extend(members.iter().map(|row| line(row)));
    format!("\n{}", paper.columns(&lines))
}

fn line(row: &PatternRow) -> Vec<String> {
    let title = format!("  {}", row.key.pattern.title());
    match (&row.failure, &row.refused, &row.commits.summary) {
        (Some(_), _, _) => vec![format!("{title}  FAILED, see below")],
        (None, Some(reason), _) => vec![format!("{title}: {reason}")],
        (None, None, None) => vec![format!("{title}  not measured")],
        (None, None, Some(summary)) => {
            let speed = &summary.operations_per_s;
            vec![
                title,
                number(speed.median),
                format!("{}-{}", number(speed.low), number(speed.high)),
                or_dash(row.versus_wal.map(|ratio| ratio.median), |ratio| format!("{ratio:.2}")),
                duration_of(summary.p50_ns.median),
                duration_of(summary.p99_ns.median),
                or_dash(summary.device_bytes, kib),
                or_dash(row.device_bytes_with_last_flush(), kib),
                or_dash(summary.device_flushes, number),
                or_dash(summary.journal_commits, number),
            ]
        }
    }
}

/// Okabe and Ito's colours, one for each pattern in the order of [`Pattern::ALL`].
const COLOURS: [&str; 5] = ["#0072b2", "#6b6b6b", "#e69f00", "#cc79a7", "#d55e00"];

/// Plots of commits per second and of bytes per commit; empty without rows.
pub fn section(rows: &[PatternRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<h2>Log patterns: log writes without SQLite</h2>\n<p class=\"facts\">What a layout of the log could cost, not \
         what SQLite does with it. A commit is one frame of one page; x WAL is against the WAL pattern below the same \
         heading.</p>\n",
    );
    for row in rows {
        if let Some(reason) = &row.refused {
            let reason = escape(&format!("{}: {reason}", row.key));
            text.push_str(&format!("<p class=\"facts\">{reason}</p>\n"));
        }
    }
    // Without a flush a commit is a hundred times faster: on one scale the others could not be told apart.
    text.push_str(&draw("Commits per second, each made durable", &entries(rows, durable_speed), None, 14.0));
    text.push_str(&draw("Commits per second without a flush", &entries(rows, unflushed_speed), None, 14.0));
    let title = "KiB on the disk for each commit, one flush behind the last included";
    text.push_str(&draw(title, &entries(rows, bytes), None, 14.0));
    text
}

fn entries(rows: &[PatternRow], bar: fn(&PatternRow) -> Option<Bar>) -> Vec<Entry> {
    let sound = rows.iter().filter(|row| row.failure.is_none());
    let entry = |row: &PatternRow| {
        let (heading, label) = (row.key.group_title(), row.key.pattern.title().to_owned());
        Some(Entry { heading, label, bars: vec![bar(row)?] })
    };
    sound.filter_map(entry).collect()
}

fn fill(row: &PatternRow) -> Fill {
    let index = Pattern::ALL.iter().position(|other| *other == row.key.pattern).unwrap_or(0);
    Fill { colour: COLOURS[index % COLOURS.len()], opacity: 1.0 }
}

fn durable_speed(row: &PatternRow) -> Option<Bar> {
    speed(row).filter(|_| row.key.durability != Durability::Ns)
}

fn unflushed_speed(row: &PatternRow) -> Option<Bar> {
    speed(row).filter(|_| row.key.durability == Durability::Ns)
}

fn speed(row: &PatternRow) -> Option<Bar> {
    let speed = row.commits.summary.as_ref()?.operations_per_s;
    let ratio = row.versus_wal.map_or_else(String::new, |ratio| format!("  ({:.2} x WAL)", ratio.median));
    let note = format!("{}{ratio}", number(speed.median));
    Some(Bar { value: speed.median, interval: Some((speed.low, speed.high)), fill: fill(row), note })
}

fn bytes(row: &PatternRow) -> Option<Bar> {
    let value = row.device_bytes_with_last_flush()? / 1024.0;
    Some(Bar { value, interval: None, fill: fill(row), note: format!("{} KiB", number(value)) })
}
