//! What `joj whatif` found: the table of configurations, and what to make of it.
//!
//! lab   on several emulated disks;  page: with bars

pub mod lab;
pub mod page;

use joj_analysis::recording::whatif::advice::seconds;
use joj_analysis::recording::whatif::outcome::{
    WhatifFigures, WhatifOutcome, WhatifRerun, WhatifResult, WhatifRow,
};

use crate::show::paper::{columns, escape};
use crate::show::sheet::Sheet;
use crate::show::text::{count, kib, or_dash, wrap};
use crate::show::words::plain;

/// So wide a sentence is in a terminal.
const SENTENCE_LETTERS: usize = 100;

/// The columns with figures.
const HEAD: [&str; 9] = [
    "",
    "elapsed",
    "low to high",
    "run itself",
    "forecast is",
    "of recorded",
    "in storage",
    "syncs",
    "KiB written",
];
const INTERVAL_COLUMN: usize = 2;
const TRUTH_COLUMN: usize = 3;

/// The result for a terminal.
pub fn text(result: &WhatifResult) -> String {
    let mut text: String = head(result).iter().map(|line| format!("{line}\n")).collect();
    text += "\n";
    let sheet = sheet(result);
    let without_words = |line: &Vec<String>| line[..line.len() - 1].to_vec();
    let lines: Vec<_> = std::iter::once(&sheet.head).chain(&sheet.lines).map(without_words).collect();
    let table = columns(&lines);
    let width = table.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let words = measured(result).map(|(row, _)| row.gives_up.as_str());
    for (line, words) in table.lines().zip(std::iter::once("gives up").chain(words)) {
        text += &format!("{line:<width$}  {words}\n");
    }
    text.extend(missing(result).iter().map(|said| sentence(said)));
    text += "\n";
    text.extend(result.advice.iter().map(|said| sentence(said)));
    if !result.notes.is_empty() {
        text += "\n";
    }
    text.extend(result.notes.iter().map(|said| sentence(said)));
    text
}

/// The result in Markdown.
pub fn markdown(result: &WhatifResult) -> String {
    format!("# What would make it faster\n\n{}", markdown_body(result))
}

/// The same without a title.
fn markdown_body(result: &WhatifResult) -> String {
    let list = |said: &[String]| -> String {
        said.iter().map(|said| format!("- {}\n", escape(&plain(said)))).collect()
    };
    let head: Vec<String> = head(result).iter().map(|line| escape(line)).collect();
    let mut text = format!("{}\n\n", head.join("\n"));
    text += &sheet(result).markdown();
    let missing = missing(result);
    for said in [&missing, &result.advice, &result.notes].into_iter().filter(|said| !said.is_empty()) {
        text += &format!("\n{}", list(said));
    }
    text
}

/// The table with what each configuration gives up. One round has no interval.
fn sheet(result: &WhatifResult) -> Sheet {
    let mut sheet = Sheet::new("", &[&HEAD[..], &["gives up"]].concat());
    for (row, figures) in measured(result) {
        sheet.line([cells(row, figures).as_slice(), std::slice::from_ref(&row.gives_up)].concat());
    }
    if result.rows.iter().all(|row| row.rerun.is_none()) {
        sheet.without_column(TRUTH_COLUMN + 1);
        sheet.without_column(TRUTH_COLUMN);
    }
    let has_waits = measured(result).any(|(_, figures)| figures.waits.is_some());
    if result.rounds == 1 && !has_waits {
        sheet.without_column(INTERVAL_COLUMN);
    }
    sheet
}

fn cannot(row: &WhatifRow, reason: &str) -> String {
    format!("{}: cannot be had: {reason}", row.configuration.title())
}

/// What cannot be had, and in which rows the program itself was not run; those with the same reason together.
fn missing(result: &WhatifResult) -> Vec<String> {
    let mut said: Vec<String> = unavailable(result).map(|(row, reason)| cannot(row, reason)).collect();
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in &result.rows {
        let Some(WhatifRerun::Unavailable(reason)) = &row.rerun else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, titles)) => titles.push(row.configuration.title()),
            None => reasons.push((reason, vec![row.configuration.title()])),
        }
    }
    said.extend(
        reasons.iter().map(|(reason, titles)| format!("{}: was not run itself: {reason}", titles.join("; "))),
    );
    said
}

fn sentence(said: &str) -> String {
    let lines = wrap(&plain(said), SENTENCE_LETTERS, SENTENCE_LETTERS - 2);
    let mut text = lines.join("\n  ");
    text.push('\n');
    text
}

/// What was replayed, where, and how often.
fn head(result: &WhatifResult) -> Vec<String> {
    let (calls, threads) = (count(result.calls), count(result.threads));
    let sqlite = result.sqlite.as_ref();
    let sqlite = sqlite.map_or_else(String::new, |version| format!("; commits by SQLite {version}"));
    let rounds = match (result.emulated, result.rounds) {
        (true, 1) => {
            "one round; another may differ, most on cards (docs/whatif.md, \"How far rounds differ\")"
                .to_owned()
        }
        (false, 1) => "1 round".to_owned(),
        (_, rounds) => format!("{rounds} rounds"),
    };
    vec![
        format!(
            "{}: {calls} calls of {threads} threads, {} long",
            plain(&result.recording),
            seconds(result.recorded_ns as f64)
        ),
        format!(
            "replayed {} {}, {rounds}{sqlite}",
            if result.emulated { "on" } else { "in" },
            plain(&result.place)
        ),
    ]
}

fn measured(result: &WhatifResult) -> impl Iterator<Item = (&WhatifRow, &WhatifFigures)> {
    result.rows.iter().filter_map(|row| Some((row, row.figures()?)))
}

fn unavailable(result: &WhatifResult) -> impl Iterator<Item = (&WhatifRow, &str)> {
    result.rows.iter().filter_map(|row| match &row.outcome {
        WhatifOutcome::Measured(_) => None,
        WhatifOutcome::Unavailable(reason) => Some((row, reason.as_str())),
    })
}

fn cells(row: &WhatifRow, figures: &WhatifFigures) -> [String; 9] {
    let (elapsed, (low, high)) = (&figures.elapsed_ns, figures.range_ns());
    let truth = row.truth().map_or_else(|| "-".to_owned(), |truth| seconds(truth.median));
    let error = row.error().map_or_else(|| "-".to_owned(), |error| format!("{:+.1} %", error * 100.0));
    [
        row.configuration.title().to_owned(),
        seconds(elapsed.median),
        format!("{} to {}", seconds(low), seconds(high)),
        truth,
        error,
        format!("{:.2}", figures.ratio.median),
        seconds(figures.blocked_ns.median),
        figures.syncs.map_or_else(|| "-".to_owned(), count),
        or_dash(figures.device_bytes.map(|bytes| bytes.median), kib),
    ]
}

#[cfg(test)]
mod tests {
    use joj_analysis::recording::whatif::configuration::Configuration;
    use joj_analysis::statistics::Estimate;

    use super::*;

    fn estimate(median: f64) -> Estimate {
        Estimate::of(&[median * 0.5, median, median * 2.0]).unwrap()
    }

    /// A recorded row of two seconds, and a row that cannot be had.
    fn result() -> WhatifResult {
        let figures = WhatifFigures {
            elapsed_ns: estimate(2e9),
            waits: None,
            ratio: estimate(1.0),
            blocked_ns: estimate(1e9),
            syncs: Some(1234),
            device_bytes: None,
            differing: 0,
        };
        let row = |configuration: Configuration, outcome| {
            let gives_up = configuration.gives_up().to_owned();
            WhatifRow { configuration, gives_up, outcome, rerun: None }
        };
        WhatifResult {
            recording: "<app>.joj".to_owned(),
            place: ".".to_owned(),
            rounds: 3,
            rows: vec![
                row(Configuration::Recorded, WhatifOutcome::Measured(figures)),
                row(Configuration::Wal, WhatifOutcome::Unavailable("no <database>".to_owned())),
            ],
            advice: vec!["Do <this>.".to_owned()],
            notes: vec!["Mind that.".to_owned()],
            ..WhatifResult::default()
        }
    }

    #[test]
    fn a_name_of_the_program_s_cannot_act_on_a_terminal() {
        let name = "a\u{1b}[2Jb\nc.db";
        let found = WhatifResult {
            recording: name.to_owned(),
            place: name.to_owned(),
            advice: vec![name.to_owned()],
            notes: vec![name.to_owned()],
            ..result()
        };
        for (text, name) in
            [(text(&found), r"a\u{1b}[2Jb\u{a}c.db"), (markdown(&found), r"a\\u{1b}\[2Jb\\u{a}c.db")]
        {
            assert!(!text.contains('\u{1b}') && !text.contains("b\nc"), "{text:?}");
            assert_eq!(text.matches(name).count(), 4, "{text}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_had_says_why_in_each_form() {
        let text = text(&result());
        let row = "as recorded   2.00 s  1000 ms to 4.00 s         1.00  1.00 s  1,234            -  nothing: as the program has it";
        assert!(text.contains("\nWAL: cannot be had: no <database>\n\nDo <this>.\n\nMind that.\n"), "{text}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(&words(row).replace("1000 ms", "1.00 s")), "{text}");
        let markdown = markdown(&result());
        assert!(
            markdown
                .contains("\n- WAL: cannot be had: no &lt;database>\n\n- Do &lt;this>.\n\n- Mind that.\n")
        );
        assert!(
            markdown.contains(
                "\n| as recorded | 2.00 s | 1.00 s to 4.00 s | 1.00 | 1.00 s | 1,234 | - | nothing"
            )
        );
        let page = page::page(&result());
        assert!(page.contains("<svg") && page.contains("no &lt;database&gt;"), "{page}");
        assert!(page.contains("Do &lt;this&gt;.") && !page.contains("<this>") && !page.contains("<app>"));
    }
}
