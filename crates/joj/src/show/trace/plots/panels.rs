//! Stacked bars: the panels of ATC'13's Fig. 2, and what a commit consists of.

use joj_analysis::filesystem::class::Class;
use joj_analysis::trace::summary::Summary;
use joj_analysis::trace::summary::counts::{ReadAndWritten, RequestCount};

use crate::show::svg::{Anchor, Fill, Svg, round_steps};
use crate::show::trace::plots::colours::{of_class, of_index, of_label};
use crate::show::words::{counted, kib_mean, mean, part_of, plain};

const WIDTH: f64 = 450.0;
const LEFT: f64 = 66.0;
const BAR_HEIGHT: f64 = 22.0;
const ROW_HEIGHT: f64 = 30.0;
const TOP: f64 = 26.0;
const LEGEND_LINE: f64 = 17.0;
const LEGEND_COLUMNS: usize = 2;
/// About the width of a letter.
const LETTER: f64 = 6.4;
/// So many parts have a colour of their own; the rest is one.
const PARTS_MAX: usize = 8;
const WIDE: f64 = 920.0;

/// A part of a bar.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    label: String,
    /// One value for each bar.
    values: Vec<u64>,
    colour: &'static str,
}

/// The panels, two beside each other; empty without requests.
pub fn panels(summary: &Summary) -> String {
    let counts = &summary.counts;
    let pair = |first: (&str, RequestCount), second: (&str, RequestCount)| {
        [first, second].map(|(label, written)| ReadAndWritten {
            label: label.to_owned(),
            written,
            ..ReadAndWritten::default()
        })
    };
    let sync = pair(("sync", counts.sync_writes), ("buffered", counts.buffered_writes));
    let order = pair(("sequential", counts.sequential_writes), ("random", counts.random_writes));
    let by_class = |label: &str, _: usize| of_label(label);
    let by_index = |_: &str, index: usize| of_index(index);
    let of =
        |headings: &[ReadAndWritten], colour: &dyn Fn(&str, usize) -> &'static str| parts(headings, colour);
    let pictures = [
        panel("Block types", &["bytes", "requests"], of(&counts.classes, &by_class)),
        panel("File types", &["bytes", "runs"], of(&counts.file_types, &by_index)),
        panel("Sync and buffered writes", &["bytes", "requests"], of(&sync, &by_index)),
        panel("Sequential and random writes", &["bytes", "requests"], of(&order, &by_index)),
        panel("Sizes of write requests", &["bytes", "requests"], of(&counts.sizes, &by_index)),
        panel("Interrupts by device", &["times"], interrupts(summary)),
    ];
    let text = pictures.concat();
    if text.is_empty() { text } else { format!("<div class=\"pair\">\n{text}</div>\n") }
}

fn parts(headings: &[ReadAndWritten], colour: &dyn Fn(&str, usize) -> &'static str) -> Vec<Part> {
    let written = headings.iter().filter(|one| one.written.requests + one.written.bytes > 0);
    let part = |(index, one): (usize, &ReadAndWritten)| Part {
        label: one.label.clone(),
        values: vec![one.written.bytes, one.written.requests],
        colour: colour(&one.label, index),
    };
    written.enumerate().map(part).collect()
}

/// The devices with the most interrupts, the rest as one.
fn interrupts(summary: &Summary) -> Vec<Part> {
    let Some(ending) = &summary.header.ending else { return Vec::new() };
    let mut found: Vec<&(String, u64)> = ending.interrupts.iter().filter(|(_, times)| *times > 0).collect();
    found.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let named = found.iter().take(PARTS_MAX - 1).enumerate().map(|(index, (name, times))| {
        let mut label = plain(name);
        if summary.header.disks.iter().any(|disk| disk.interrupt.as_ref() == Some(name)) {
            label.push_str(" (disk)");
        }
        Part { label, values: vec![*times], colour: of_index(index) }
    });
    let mut parts: Vec<Part> = named.collect();
    let rest: u64 = found.iter().skip(PARTS_MAX - 1).map(|(_, times)| times).sum();
    if rest > 0 {
        parts.push(Part { label: "others".to_owned(), values: vec![rest], colour: of_index(PARTS_MAX - 1) });
    }
    parts
}

/// Bars of 100 % each; empty where nothing was counted.
fn panel(title: &str, bars: &[&str], parts: Vec<Part>) -> String {
    let totals: Vec<u64> =
        (0..bars.len()).map(|bar| parts.iter().map(|part| part.values[bar]).sum()).collect();
    if totals.iter().all(|total| *total == 0) {
        return String::new();
    }
    let legend_top = TOP + bars.len() as f64 * ROW_HEIGHT + 12.0;
    let legend_lines = parts.len().div_ceil(LEGEND_COLUMNS) as f64;
    let mut svg = Svg::new(WIDTH, legend_top + legend_lines * LEGEND_LINE, title);
    svg.text((0.0, 14.0), Anchor::Start, "title", title);
    for (bar, name) in bars.iter().enumerate() {
        let y = TOP + bar as f64 * ROW_HEIGHT;
        svg.text((LEFT - 8.0, y + 15.0), Anchor::End, "label", name);
        let mut x = LEFT;
        for part in &parts {
            let width = (WIDTH - LEFT) * part.values[bar] as f64 / totals[bar].max(1) as f64;
            if width > 0.0 {
                svg.bar((x, y), width - 0.6, BAR_HEIGHT, Fill { colour: part.colour, opacity: 1.0 });
            }
            let share = part_of(part.values[bar], totals[bar]);
            if width > share.chars().count() as f64 * LETTER + 6.0 {
                svg.text((x + width / 2.0, y + 15.0), Anchor::Middle, "inside", &share);
            }
            x += width;
        }
    }
    let shares = |part: &Part| {
        let shares: Vec<String> =
            part.values.iter().zip(&totals).map(|(value, total)| part_of(*value, *total)).collect();
        format!("{}  {}", part.label, shares.join(", "))
    };
    for (index, part) in parts.iter().enumerate() {
        let x = (index % LEGEND_COLUMNS) as f64 * WIDTH / LEGEND_COLUMNS as f64;
        let y = legend_top + (index / LEGEND_COLUMNS) as f64 * LEGEND_LINE;
        svg.bar((x, y - 1.0), 10.0, 10.0, Fill { colour: part.colour, opacity: 1.0 });
        svg.text((x + 15.0, y + 8.0), Anchor::Start, "tick", &shares(part));
    }
    svg.finish()
}

/// KiB of a mean commit and checkpoint by class; empty where there was none.
pub fn transactions(summary: &Summary) -> String {
    let rows = [("commit", "commits", &summary.commits), ("checkpoint", "checkpoints", &summary.checkpoints)];
    let rows: Vec<_> = rows.into_iter().filter(|(_, _, totals)| totals.total_bytes() > 0).collect();
    let largest =
        rows.iter().map(|(_, _, totals)| totals.mean(totals.total_bytes()) / 1024.0).fold(0.0, f64::max);
    if rows.is_empty() {
        return String::new();
    }
    let steps = round_steps(largest);
    let span = steps.last().copied().unwrap_or(1.0);
    let (left, right) = (130.0, WIDE - 210.0);
    let x_of = |kib: f64| left + (right - left) * kib / span;
    let bottom = TOP + 10.0 + rows.len() as f64 * ROW_HEIGHT;
    let title = "KiB written for a commit, by what they are for";
    let mut svg = Svg::new(WIDE, bottom + 44.0, title);
    svg.text((0.0, 14.0), Anchor::Start, "title", title);
    for step in &steps {
        svg.line((x_of(*step), TOP), (x_of(*step), bottom), "grid");
        svg.text((x_of(*step), bottom + 15.0), Anchor::Middle, "tick", &mean(*step));
    }
    for (row, (one, more, totals)) in rows.iter().enumerate() {
        let y = TOP + 6.0 + row as f64 * ROW_HEIGHT;
        svg.text((left - 8.0, y + 15.0), Anchor::End, "label", &counted(totals.total, one, more));
        let mut kib = 0.0;
        for class in Class::ALL {
            let more = totals.mean_bytes(*class) / 1024.0;
            if more > 0.0 {
                svg.bar(
                    (x_of(kib), y),
                    x_of(more) - left - 0.6,
                    BAR_HEIGHT,
                    Fill { colour: of_class(*class), opacity: 1.0 },
                );
                kib += more;
            }
        }
        let joj = kib_mean(totals.mean(totals.journal_of_journal_bytes));
        let note = format!("{} KiB, {joj} of them JOJ", kib_mean(totals.mean(totals.total_bytes())));
        svg.text((x_of(kib) + 7.0, y + 15.0), Anchor::Start, "value", &note);
    }
    let used = |class: &&Class| rows.iter().any(|(_, _, totals)| totals.bytes.contains_key(class.text()));
    for (index, class) in Class::ALL.iter().filter(used).enumerate() {
        let x = left + index as f64 * 110.0;
        svg.bar((x, bottom + 28.0), 10.0, 10.0, Fill { colour: of_class(*class), opacity: 1.0 });
        svg.text((x + 15.0, bottom + 37.0), Anchor::Start, "tick", class.text());
    }
    svg.finish()
}
