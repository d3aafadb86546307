//! One table of a report as columns, and what is to be said below them.

use joj_analysis::lab::report::outcome::{Order, Report, RowReport, TableReport};
use joj_analysis::lab::report::paper::End;

use crate::show::sheet::Sheet;
use crate::show::text::{number, or_dash};

/// Most reversed pairs that a sentence names.
const PAIRS_MAX: usize = 4;
/// Most values without a cell that a sentence names.
const MISSING_MAX: usize = 8;

/// The columns: the paper's value, the lab's, the ratio; the lab's alone where the paper has none.
pub fn sheet(table: &TableReport) -> Sheet {
    let has_paper: Vec<bool> = (0..table.columns.len())
        .map(|index| table.rows.iter().any(|row| row.values[index].paper.is_some()))
        .collect();
    let mut head = vec![String::new()];
    let unit = common_unit(table);
    for (column, has_paper) in table.columns.iter().zip(&has_paper) {
        let label = if unit.is_some() { column.label.clone() } else { label(&column.label, &column.unit) };
        if *has_paper {
            head.extend([format!("{label}, paper"), "here".to_owned(), "ratio".to_owned()]);
        } else {
            head.push(format!("{label}, here"));
        }
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let unit = unit.map_or_else(String::new, |unit| format!("; all in {unit}"));
    let mut sheet = Sheet::new(&format!("{}: {}{unit}", table.paper, table.title), &head);
    for row in &table.rows {
        let mut line = vec![row.name.clone()];
        for (value, has_paper) in row.values.iter().zip(&has_paper) {
            let here = or_dash(value.here, short);
            if *has_paper {
                let ratio = or_dash(value.ratio, |ratio| format!("{ratio:.2}"));
                line.extend([or_dash(value.paper, short), here, ratio]);
            } else {
                line.push(here);
            }
        }
        sheet.line(line);
    }
    sheet
}

/// The unit that all columns have, unless it is their name.
fn common_unit(table: &TableReport) -> Option<&str> {
    let first = table.columns.first()?;
    let alike = table.columns.iter().all(|column| column.unit == first.unit && column.label != column.unit);
    alike.then_some(first.unit.as_str())
}

/// Whole numbers without a point, others with three digits.
pub fn short(value: f64) -> String {
    let text = number(value);
    if value.fract() == 0.0 { text.split('.').next().unwrap_or_default().to_owned() } else { text }
}

/// A column's name with its unit, unless it is the unit.
pub fn label(label: &str, unit: &str) -> String {
    if label == unit { label.to_owned() } else { format!("{label} {unit}") }
}

/// Order, reasons, what was not measured, notes; in this order.
pub fn sentences(table: &TableReport) -> Vec<String> {
    let mut found = orders(table);
    found.extend(extremes(table));
    found.extend(table.rows.iter().flat_map(|row| reasons(table, row)));
    found.extend(not_measured(table));
    let notes = table.rows.iter().filter_map(|row| Some(format!("{}: {}.", row.name, row.note.as_ref()?)));
    found.extend(notes);
    found.extend(table.notes.iter().cloned());
    found
}

fn orders(table: &TableReport) -> Vec<String> {
    let name = |order: &Order| {
        let among = format!("{} {}", order.among.trim_end_matches([',', ':']), order.column);
        format!("{} ({} rows)", among.trim(), order.rows)
    };
    let is_held = |order: &&Order| order.reversed.is_empty() && order.equal.is_empty();
    let held: Vec<String> = table.orders.iter().filter(is_held).map(name).collect();
    let mut found = Vec::new();
    if !held.is_empty() {
        found.push(format!("In the paper's order: {}.", held.join(", ")));
    }
    for order in table.orders.iter().filter(|order| !is_held(order)) {
        let equal = pairs(&order.equal, "is as high as");
        if order.reversed.is_empty() {
            let name = name(order);
            found.push(format!("In the paper's order but for equals (0.5 %): {name}: {equal}."));
            continue;
        }
        let reversed = pairs(&order.reversed, "is below");
        let equal = if equal.is_empty() { equal } else { format!("; {equal}") };
        found.push(format!("Not in the paper's order: {}: {reversed}{equal}.", name(order)));
    }
    found
}

/// The first pairs, in words.
fn pairs(pairs: &[(String, String)], are: &str) -> String {
    let mut words: Vec<String> =
        pairs.iter().take(PAIRS_MAX).map(|(high, low)| format!("{high} {are} {low}")).collect();
    if pairs.len() > PAIRS_MAX {
        words.push(format!("{} more pairs", pairs.len() - PAIRS_MAX));
    }
    words.join(", ")
}

fn extremes(table: &TableReport) -> Vec<String> {
    let words = |is: End| if is == End::Highest { "highest" } else { "lowest" };
    let held: Vec<String> = table
        .extremes
        .iter()
        .filter(|extreme| extreme.beyond.is_empty())
        .map(|extreme| {
            format!(
                "{} has the {} {} of {}",
                extreme.row,
                words(extreme.is),
                extreme.column,
                extreme.others + 1
            )
        })
        .collect();
    let mut found = Vec::new();
    if !held.is_empty() {
        found.push(format!("As in the paper: {}.", held.join(", ")));
    }
    for extreme in table.extremes.iter().filter(|extreme| !extreme.beyond.is_empty()) {
        found.push(format!(
            "Not as in the paper: {} has not the {} {}; beyond it: {}.",
            extreme.row,
            words(extreme.is),
            extreme.column,
            extreme.beyond.join(", ")
        ));
    }
    found
}

/// A sentence for each reason of a row, whichever columns have it.
fn reasons(table: &TableReport, row: &RowReport) -> Vec<String> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (column, value) in table.columns.iter().zip(&row.values) {
        let Some(reason) = &value.reason else { continue };
        let off = match value.ratio {
            Some(ratio) => format!("{} x {ratio:.2}", column.label),
            None => format!("{} {} for 0", column.label, or_dash(value.here, number)),
        };
        let text = format!("{}: {}.", reason.cause.words(), reason.text);
        match found.iter_mut().find(|(_, other)| *other == text) {
            Some((columns, _)) => columns.push_str(&format!(", {off}")),
            None => found.push((off, text)),
        }
    }
    found.into_iter().map(|(columns, text)| format!("{} ({columns}): {text}", row.name)).collect()
}

/// A sentence for each reason why values are missing, whichever rows have it.
fn not_measured(table: &TableReport) -> Vec<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for row in &table.rows {
        for (column, value) in table.columns.iter().zip(&row.values) {
            let Some(why) = &value.not_measured else { continue };
            let all = row.values.iter().all(|other| other.not_measured.as_ref() == Some(why));
            let name = if all { row.name.clone() } else { format!("{} {}", row.name, column.label) };
            match found.iter_mut().find(|(other, _)| other == why) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => found.push((why.clone(), vec![name])),
            }
        }
    }
    let told = |(why, mut names): (String, Vec<String>)| {
        if names.len() > MISSING_MAX {
            let more = names.len() - MISSING_MAX;
            names.truncate(MISSING_MAX);
            names.push(format!("{more} more"));
        }
        format!("Not measured, {why}: {}.", names.join("; "))
    };
    found.into_iter().map(told).collect()
}

/// A line for each result that the report was made of; neighbours of one plan and machine share one.
pub fn sources(report: &Report) -> Vec<String> {
    let line = |source: &joj_analysis::lab::report::outcome::ReportSource| {
        let machine = &source.machine;
        let sqlite: Vec<String> =
            machine.sqlite.iter().map(|(name, version)| format!(", SQLite {version} ({name})")).collect();
        format!("{}: {machine}{}", source.title, sqlite.concat())
    };
    let mut lines: Vec<String> = report.sources.iter().map(line).collect();
    lines.dedup();
    lines
}

/// What would give the tables without a value one.
pub fn unserved(report: &Report) -> Vec<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for table in &report.unserved {
        let from = table
            .plan
            .as_ref()
            .map_or("the device model, without a guest".to_owned(), |plan| format!("joj lab run {plan}"));
        let name = format!("{} ({})", table.name, table.paper);
        match found.iter_mut().find(|(other, _)| *other == from) {
            Some((_, names)) => names.push(name),
            None => found.push((from, vec![name])),
        }
    }
    found.into_iter().map(|(from, names)| format!("{from}: {}", names.join("; "))).collect()
}

/// What the reader has to know of all tables.
pub const REASONS: &str = "\
Ratio: here / paper. What is off by more than a factor of 1.25, unless the table says otherwise, has a line with what its \
cell's trace, counters and clock show. Paper values less than 5 % apart are no order.";
