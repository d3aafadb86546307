//! What `joj whatif` found as one HTML page with bars.

use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::outcome::{WhatifFigures, WhatifResult, WhatifRow};

use crate::show::bars::{Bar, Entry, Mark, draw};
use crate::show::bench::page::whole;
use crate::show::svg::{Fill, escape};
use crate::show::text::number;
use crate::show::whatif::{head, measured, missing, sheet};
use crate::show::words::plain;

const ELAPSED: Fill = Fill { colour: "#0072b2", opacity: 1.0 };
const BLOCKED: Fill = Fill { colour: "#d55e00", opacity: 0.8 };
const STYLE: &str = "
ul.said { padding-left: 1.2em; } ul.said li { margin: .15em 0; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 .8em; }
table.dense td:last-child { text-align: left; white-space: normal; }
";

/// The page.
pub fn page(result: &WhatifResult) -> String {
    let body = format!("<h1>What would make it faster</h1>\n{}", body(result));
    document(&result.recording, &body)
}

/// The document. Names and commands may have letters that act, or that no HTML may have: they are spelled out.
pub fn document(recording: &str, body: &str) -> String {
    let text = whole(&format!("joj whatif: {recording}"), STYLE, body);
    let lines: Vec<String> = text.split('\n').map(plain).collect();
    lines.join("\n")
}

/// What stands below the title.
pub fn body(result: &WhatifResult) -> String {
    let lines: Vec<String> = head(result).iter().map(|line| escape(line)).collect();
    let whiskers = if result.rounds > 1 { " Whiskers: low to high." } else { "" };
    format!(
        "<p class=\"facts\">{}</p>\n{}<p>Bars: <span class=\"key\" \
         style=\"background:{}\"></span>elapsed<span class=\"key\" style=\"background:{}\"></span>in storage, of all threads \
         together.{whiskers}</p>\n{}{}{}{}",
        lines.join("<br>\n"),
        list(&result.advice),
        ELAPSED.colour,
        BLOCKED.colour,
        picture(result),
        sheet(result).html(),
        list(&missing(result)),
        list(&result.notes),
    )
}

fn list(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let lines: String = sentences.iter().map(|said| format!("<li>{}</li>\n", escape(said))).collect();
    format!("<ul class=\"said\">\n{lines}</ul>\n")
}

fn picture(result: &WhatifResult) -> String {
    let entries: Vec<Entry> = measured(result).map(|(row, figures)| entry(row, figures)).collect();
    let mark = result.figures(Configuration::Recorded).map(|figures| Mark {
        value: figures.elapsed_ns.median / 1e9,
        label: Configuration::Recorded.title().to_owned(),
    });
    draw("Seconds", &entries, mark.as_ref(), 14.0)
}

fn entry(row: &WhatifRow, figures: &WhatifFigures) -> Entry {
    let (elapsed, blocked) = (figures.elapsed_ns.scaled(1e-9), figures.blocked_ns.scaled(1e-9));
    let note = format!("{} s  (x {:.2})", number(elapsed.median), figures.ratio.median);
    let (low, high) = figures.range_ns();
    let interval = Some((low / 1e9, high / 1e9)).filter(|(low, high)| low < high);
    let bars = vec![
        Bar { value: elapsed.median, interval, fill: ELAPSED, note },
        Bar { value: blocked.median, interval: None, fill: BLOCKED, note: String::new() },
    ];
    let heading = match row.configuration.has_commits() {
        true => "Commits through SQLite, the other calls as recorded",
        false => "All calls",
    };
    Entry { heading: heading.to_owned(), label: row.configuration.title().to_owned(), bars }
}
