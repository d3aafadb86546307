//! Horizontal bars, one or more for each entry, under headings.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::row::{Row, RowSummary};

use crate::show::svg::{Anchor, Fill, Svg, fill_of, round_steps};
use crate::show::text::number;

const WIDTH: f64 = 920.0;
const LEFT_MIN: f64 = 150.0;
/// About the width of a letter of a label.
const LETTER: f64 = 6.6;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 28.0;
const HEADING_HEIGHT: f64 = 24.0;

/// A bar and its label.
#[derive(Debug)]
pub struct Bar {
    /// The value at which the bar ends.
    pub value: f64,
    /// Ends of the interval around it.
    pub interval: Option<(f64, f64)>,
    pub fill: Fill,
    /// What stands beside it.
    pub note: String,
}

/// Bars that belong together, and what stands beside them.
#[derive(Debug)]
pub struct Entry {
    /// Neighbours of one heading stand below it.
    pub heading: String,
    /// What is left of the bars.
    pub label: String,
    pub bars: Vec<Bar>,
}

/// A vertical line across all bars.
#[derive(Debug)]
pub struct Mark {
    /// The value at which the mark stands.
    pub value: f64,
    /// What is above it.
    pub label: String,
}

/// The bars of a row.
fn entry(row: &Row, bars: Vec<Bar>) -> Entry {
    Entry { heading: short_name(&row.key.library), label: row.key.mode_title(), bars }
}

/// Throughput of the rows of a group, with intervals and the disk's limit.
pub fn throughput(document: &Document, rows: &[&Row]) -> String {
    let entries: Vec<Entry> = rows
        .iter()
        .filter_map(|row| {
            let summary = row.summary.as_ref()?;
            let speed = summary.transactions_per_s;
            let bar = Bar {
                value: speed.median,
                interval: Some((speed.low, speed.high)),
                fill: fill_of(&row.key),
                note: throughput_note(summary),
            };
            Some(entry(row, vec![bar]))
        })
        .collect();
    let is_bound = rows.iter().any(|row| row.key.is_bound_by_flushes());
    let limit = document.best_limit().filter(|_| is_bound).and_then(|limit| limit.operations_per_s);
    let mark = limit.map(|speed| Mark {
        value: speed.median,
        label: format!("the disk's limit, {}/s", number(speed.median)),
    });
    draw("Transactions per second", &entries, mark.as_ref(), 16.0)
}

fn throughput_note(summary: &RowSummary) -> String {
    let speed = number(summary.transactions_per_s.median);
    match summary.versus_stock_wal {
        Some(ratio) => format!("{speed}  ({:.2} x WAL)", ratio.median),
        None => speed,
    }
}

/// Bytes per transaction: what the process passed to write calls, and what the device wrote.
pub fn bytes(rows: &[&Row]) -> String {
    let entries: Vec<Entry> = rows
        .iter()
        .filter_map(|row| {
            let summary = row.summary.as_ref()?;
            let fill = fill_of(&row.key);
            let bar = |value: Option<f64>, opacity: f64, whose: &str| {
                let value = value? / 1024.0;
                let note = format!("{} KiB {whose}", number(value));
                Some(Bar { value, interval: None, fill: Fill { opacity, ..fill }, note })
            };
            let bars = [bar(summary.wchar_bytes, 0.4, "calls"), bar(summary.device_bytes, 1.0, "device")];
            let bars: Vec<Bar> = bars.into_iter().flatten().collect();
            (!bars.is_empty()).then(|| entry(row, bars))
        })
        .collect();
    draw("KiB per transaction", &entries, None, 12.0)
}

/// The image of `entries`, whose neighbours under one heading stand together; empty where no bar has a length.
pub fn draw(title: &str, entries: &[Entry], mark: Option<&Mark>, bar_height: f64) -> String {
    let ends = entries.iter().flat_map(|entry| &entry.bars);
    let largest = ends.map(|bar| bar.interval.map_or(bar.value, |(_, high)| high.max(bar.value)));
    let largest = largest.chain(mark.map(|mark| mark.value)).fold(0.0, f64::max);
    if entries.is_empty() || largest <= 0.0 {
        return String::new();
    }
    let steps = round_steps(largest);
    let span = steps.last().copied().unwrap_or(1.0);
    let letters = entries.iter().map(|entry| entry.label.chars().count()).max().unwrap_or(0);
    let left = LEFT_MIN.max(letters as f64 * LETTER + 12.0);
    let x_of = |value: f64| left + (WIDTH - left - RIGHT) * value / span;
    let headings = 1 + entries.windows(2).filter(|pair| pair[0].heading != pair[1].heading).count();
    let bars: f64 = entries.iter().map(|entry| entry.bars.len() as f64 * bar_height + 7.0).sum();
    let bottom = TOP + bars + HEADING_HEIGHT * headings as f64;
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM, title);
    svg.text((0.0, 14.0), Anchor::Start, "title", title);
    for step in &steps {
        svg.line((x_of(*step), TOP - 4.0), (x_of(*step), bottom), "grid");
        svg.text((x_of(*step), bottom + 16.0), Anchor::Middle, "tick", &number(*step));
    }
    let mut y = TOP;
    let mut heading = None;
    for entry in entries {
        if heading != Some(&entry.heading) {
            heading = Some(&entry.heading);
            svg.text((0.0, y + 15.0), Anchor::Start, "library", &entry.heading);
            y += HEADING_HEIGHT;
        }
        y = draw_entry(&mut svg, entry, y, bar_height, &x_of);
    }
    if let Some(mark) = mark {
        svg.line((x_of(mark.value), TOP - 8.0), (x_of(mark.value), bottom), "limit");
        let anchor = if mark.value > span / 2.0 { Anchor::End } else { Anchor::Start };
        svg.text((x_of(mark.value), TOP - 13.0), anchor, "limit-label", &mark.label);
    }
    svg.finish()
}

/// Draws one entry at `y`; where the next one goes.
fn draw_entry(svg: &mut Svg, entry: &Entry, mut y: f64, bar_height: f64, x_of: &impl Fn(f64) -> f64) -> f64 {
    let middle = y + entry.bars.len() as f64 * bar_height / 2.0 + 4.0;
    let left = x_of(0.0);
    svg.text((left - 8.0, middle), Anchor::End, "label", &entry.label);
    for bar in &entry.bars {
        svg.bar((left, y), x_of(bar.value) - left, bar_height - 1.0, bar.fill);
        let end = x_of(bar.value);
        if let Some((low, high)) = bar.interval {
            let centre = y + bar_height / 2.0 - 0.5;
            svg.line((x_of(low), centre), (x_of(high), centre), "interval");
            for edge in [low, high] {
                svg.line((x_of(edge), centre - 3.5), (x_of(edge), centre + 3.5), "interval");
            }
        }
        // Beside a whisker and the limit's line there is no room: such notes stand in a column of their own.
        let note_x = if bar.interval.is_some() { WIDTH - RIGHT + 14.0 } else { end + 6.0 };
        svg.text((note_x, y + bar_height / 2.0 + 3.5), Anchor::Start, "value", &bar.note);
        y += bar_height;
    }
    y + 7.0
}

/// The last 60 letters of a library's path.
pub fn short_name(library: &str) -> String {
    let letters: Vec<char> = library.chars().collect();
    let from = letters.len().saturating_sub(60);
    let cut: String = letters[from..].iter().collect();
    format!("SQLite {}{cut}", if from > 0 { "..." } else { "" })
}
