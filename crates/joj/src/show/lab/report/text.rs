//! The papers' figures beside the lab's as text for a terminal.

use joj_analysis::lab::report::outcome::Report;

use crate::show::lab::report::sheet::{REASONS, sentences, sheet, sources, unserved};
use crate::show::paper::escape;
use crate::show::text::wrap;

const LETTERS: usize = 100;

/// The same in Markdown.
pub fn markdown(report: &Report) -> String {
    let mut text = "# The papers' figures beside the lab's\n".to_owned();
    text.extend(sources(report).iter().map(|line| format!("\n{}\n", escape(line))));
    text.push_str(&format!("\n{REASONS}\n"));
    for table in &report.tables {
        let mut sheet = sheet(table);
        sheet.notes = sentences(table);
        text.push_str(&sheet.markdown_section());
    }
    if report.tables.is_empty() {
        text.push_str("\nNo table or figure of a paper has a value in these results.\n");
    }
    let unserved = unserved(report);
    if !unserved.is_empty() {
        text.push_str("\n## Without a value in these results, and what would give them one\n\n");
        text.extend(unserved.iter().map(|line| format!("- {}\n", escape(line))));
    }
    text
}

/// The tables, each with what is to be said of it.
pub fn text(report: &Report) -> String {
    let mut text: String = sources(report).iter().map(|line| format!("{line}\n")).collect();
    text.extend(wrap(REASONS, LETTERS, LETTERS).iter().map(|line| format!("{line}\n")));
    for table in &report.tables {
        let mut sheet = sheet(table);
        sheet.notes = sentences(table);
        text.push_str(&sheet.text());
    }
    if report.tables.is_empty() {
        text.push_str("\nNo table or figure of a paper has a value in these results.\n");
    }
    let unserved = unserved(report);
    if !unserved.is_empty() {
        text.push_str("\nWithout a value in these results, and what would give them one\n");
        let lines = unserved.iter().flat_map(|line| wrap(line, LETTERS - 2, LETTERS - 2));
        text.extend(lines.map(|line| format!("  {line}\n")));
    }
    text
}
