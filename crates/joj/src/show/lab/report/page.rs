//! The papers' figures beside the lab's as one HTML page.

use joj_analysis::lab::report::outcome::{Report, RowReport, TableReport};

use crate::show::bars::{Bar, Entry, draw};
use crate::show::bench::page;
use crate::show::lab::report::sheet::{REASONS, label, sentences, sheet, short, sources, unserved};
use crate::show::svg::{Fill, escape};

const PAPER: Fill = Fill { colour: "#a8a8a8", opacity: 1.0 };
const HERE: Fill = Fill { colour: "#0072b2", opacity: 1.0 };
const STYLE: &str = "
ul.said { padding-left: 1.2em; } ul.said li { margin: .15em 0; font-size: 14px; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 .8em; }
table.dense td { white-space: nowrap; }
";

/// The page.
pub fn page(report: &Report) -> String {
    let lines: Vec<String> = sources(report).iter().map(|line| escape(line)).collect();
    let mut body = format!(
        "<h1>What the papers printed, and what the lab measures</h1>\n<p class=\"facts\">{}</p>\n\
         <p>Bars: <span class=\"key\" style=\"background:{}\"></span>the paper's value<span class=\"key\" \
         style=\"background:{}\"></span>here. {REASONS}</p>\n",
        lines.join("<br>\n"),
        PAPER.colour,
        HERE.colour
    );
    for table in &report.tables {
        body.push_str(&section(table));
    }
    let unserved = unserved(report);
    if !unserved.is_empty() {
        let list = list(&unserved);
        body.push_str(&format!(
            "<h2>Without a value in these results, and what would give them one</h2>\n{list}"
        ));
    }
    page::whole("joj lab report", STYLE, &body)
}

fn list(sentences: &[String]) -> String {
    let lines: String = sentences.iter().map(|sentence| format!("<li>{}</li>\n", escape(sentence))).collect();
    format!("<ul class=\"said\">\n{lines}</ul>\n")
}

fn section(table: &TableReport) -> String {
    let (sheet, said) = (sheet(table), list(&sentences(table)));
    let plan = table.plan.as_ref().map_or_else(
        || "From the device model, without a guest.".to_owned(),
        |plan| format!("<code>joj lab run {}</code>", escape(plan)),
    );
    let (mut values, mut multiples) = (String::new(), String::new());
    for index in 0..table.columns.len() {
        values.push_str(&picture(table, index, |row| row.relative_to.is_none()));
        multiples.push_str(&picture(table, index, |row| row.relative_to.is_some()));
    }
    format!(
        "<h2>{}<br>{}</h2>\n<p class=\"facts\">{plan}</p>\n{}{said}{values}{multiples}",
        escape(&table.paper),
        escape(sheet.title.trim_start_matches(&format!("{}: ", table.paper))),
        sheet.html()
    )
}

/// The bars of a column, of the rows that `is_drawn` takes; empty where nothing of them was measured.
fn picture(table: &TableReport, index: usize, is_drawn: fn(&RowReport) -> bool) -> String {
    let column = &table.columns[index];
    let rows: Vec<&RowReport> = table.rows.iter().filter(|row| is_drawn(row)).collect();
    if rows.iter().all(|row| row.values[index].here.is_none()) {
        return String::new();
    }
    let is_multiple = rows.iter().any(|row| row.relative_to.is_some());
    let title =
        if is_multiple { format!("{}, multiples", column.label) } else { label(&column.label, &column.unit) };
    let entries: Vec<Entry> = rows.iter().filter_map(|row| entry(row, index)).collect();
    draw(&title, &entries, None, 13.0)
}

fn entry(row: &RowReport, index: usize) -> Option<Entry> {
    let value = &row.values[index];
    let paper =
        value.paper.map(|paper| Bar { value: paper, interval: None, fill: PAPER, note: short(paper) });
    let ratio = value.ratio.map_or_else(String::new, |ratio| format!("  (x {ratio:.2})"));
    let here = value.here.map(|here| Bar {
        value: here,
        interval: None,
        fill: HERE,
        note: format!("{}{ratio}", short(here)),
    });
    let bars: Vec<Bar> = [paper, here].into_iter().flatten().collect();
    (!bars.is_empty()).then(|| Entry {
        heading: row.group.trim_end_matches([',', ':']).to_owned(),
        label: row.label.clone(),
        bars,
    })
}
