//! Log patterns as a section of the page.

use joj_analysis::bench::durability::Durability;
use joj_analysis::bench::key::Word;
use joj_analysis::bench::study::pattern::{Pattern, PatternRow};

use crate::show::bars::{Bar, Entry, draw};
use crate::show::svg::{Fill, escape};
use crate::show::text::number;

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
