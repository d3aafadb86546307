//! The ways to initialise a log as a section of the page.

use joj_analysis::bench::key::Word;
use joj_analysis::bench::measurement::Measurement;
use joj_analysis::bench::study::initialisation::{Approach, InitialisationRow};

use crate::show::bars::{Bar, Entry, draw};
use crate::show::svg::{Fill, escape};
use crate::show::text::{duration_of, number};

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
