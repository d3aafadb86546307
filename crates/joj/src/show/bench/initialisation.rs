//! The ways to initialise a log: as text for a terminal, and as a section of the page.

use joj_analysis::bench::key::Word;
use joj_analysis::bench::measurement::{Measurement, MeasurementSummary};
use joj_analysis::bench::study::initialisation::{Approach, InitialisationRow};

use crate::show::bars::{Bar, Entry, draw};
use crate::show::paper::Paper;
use crate::show::svg::{Fill, escape};
use crate::show::text::{duration_of, kib, number, or_dash};

/// Two tables, then what their columns mean; empty without rows.
pub fn table(rows: &[InitialisationRow], paper: &Paper) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let (made, overwritten) = (paper.columns(&preparing(rows)), paper.columns(&overwriting(rows)));
    format!("\n{made}\n{overwritten}\n{}", paper.paragraph(LEGEND))
}

const LEGEND: &str = "Medians of the runs. disk KB = what the device wrote meanwhile, whoever caused it; what the file system \
    writes later is not in it. flushes and journal = the device's flushes and commits of the file system's \
    journal, per file or per overwrite. A dash: not counted here.";

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

/// Okabe and Ito's colours, one for each approach in the order of [`Approach::ALL`].
const COLOURS: [&str; 5] = ["#6b6b6b", "#d55e00", "#cc79a7", "#0072b2", "#009e73"];

/// Plots of the time to make a log ready, and of the time and bytes of its overwrites; empty without rows.
pub fn section(rows: &[InitialisationRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let refused = rows.iter().filter_map(|row| {
        let text = format!("{}: {}", row.key, row.refused.as_ref()?);
        Some(format!("<p class=\"facts\">{}</p>\n", escape(&text)))
    });
    let preparing: [(&str, Step); 2] = [("create", |row| &row.create), ("extend", |row| &row.extend)];
    let passes: [(&str, Step); 2] =
        [("first pass", |row| &row.first_pass), ("second pass", |row| &row.second_pass)];
    format!(
        "<h2>Initialising a log: log writes without SQLite</h2>\n{}{}{}{}",
        refused.collect::<String>(),
        plot(
            "Milliseconds to make 4,100 KiB ready (create), and 4,096 KiB more (extend)",
            rows,
            &preparing,
            milliseconds
        ),
        plot("Microseconds for an overwrite of 4 KiB made durable, median", rows, &passes, microseconds),
        plot("KiB on the disk for an overwrite of 4 KiB", rows, &passes, kilobytes)
    )
}

type Step = fn(&InitialisationRow) -> &Measurement;

/// A value, the interval around it, and how to say it.
type Shown = (f64, Option<(f64, f64)>, String);

fn time(step: &Measurement, unit_ns: f64) -> Option<Shown> {
    let found = step.summary.as_ref()?.p50_ns;
    Some((
        found.median / unit_ns,
        Some((found.low / unit_ns, found.high / unit_ns)),
        duration_of(found.median),
    ))
}

fn milliseconds(step: &Measurement) -> Option<Shown> {
    time(step, 1e6)
}

fn microseconds(step: &Measurement) -> Option<Shown> {
    time(step, 1e3)
}

fn kilobytes(step: &Measurement) -> Option<Shown> {
    let value = step.summary.as_ref()?.device_bytes? / 1024.0;
    Some((value, None, format!("{} KiB", number(value))))
}

fn plot(
    title: &str,
    rows: &[InitialisationRow],
    steps: &[(&str, Step); 2],
    value: fn(&Measurement) -> Option<Shown>,
) -> String {
    let bar = |row: &InitialisationRow, (name, step): &(&str, Step), opacity: f64| {
        let (value, interval, text) = value(step(row))?;
        let fill = Fill { colour: colour(row.key.approach), opacity };
        Some(Bar { value, interval, fill, note: format!("{text} {name}") })
    };
    let entries = rows.iter().filter(|row| row.failure.is_none()).filter_map(|row| {
        let bars: Vec<Bar> =
            [bar(row, &steps[0], 0.5), bar(row, &steps[1], 1.0)].into_iter().flatten().collect();
        let heading = row.key.durability.title().to_owned();
        (!bars.is_empty()).then(|| Entry { heading, label: row.key.approach.title().to_owned(), bars })
    });
    draw(title, &entries.collect::<Vec<Entry>>(), None, 13.0)
}

fn colour(approach: Approach) -> &'static str {
    let index = Approach::ALL.iter().position(|other| *other == approach).unwrap_or(0);
    COLOURS[index % COLOURS.len()]
}
