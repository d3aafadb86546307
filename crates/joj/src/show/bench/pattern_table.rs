//! Log patterns as text for a terminal.

use joj_analysis::bench::study::pattern::PatternRow;

use crate::show::bench::groups::groups;
use crate::show::text::{columns, duration_of, kib, number, or_dash};

/// A table for each durability and kind of log, then what the columns mean; empty without rows.
pub fn render(rows: &[PatternRow]) -> String {
    let groups = groups(rows, |one, other| one.key.same_group(&other.key));
    let text: String = groups.iter().map(|members| group(members)).collect();
    if text.is_empty() { text } else { format!("{text}{LEGEND}") }
}

const LEGEND: &str = "
Log patterns are log writes WITHOUT SQLite: what a layout of the log could cost, not what SQLite does with it. A commit is one \
frame of
one page. x WAL = against the WAL pattern of the same table, paired by round. disk KB = what the device wrote for a commit, \
whoever
caused it; + flush = with one fdatasync behind the last commit; flushes and journal = the device's flushes and commits of the \
journal.
";

fn group(members: &[&PatternRow]) -> String {
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
    format!("\n{}", columns(&lines))
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
