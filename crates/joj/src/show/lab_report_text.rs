//! The papers' figures beside the lab's as text for a terminal.

use joj_analysis::lab::report::outcome::Report;

use crate::show::lab_report_sheet::{sentences, sheet, sources, unserved};

/// The tables, each with what is to be said of it.
pub fn text(report: &Report) -> String {
    let mut text: String = sources(report).iter().map(|line| format!("{line}\n")).collect();
    for table in &report.tables {
        let mut sheet = sheet(table);
        sheet.notes = sentences(table);
        text.push_str(&sheet.text());
    }
    if report.tables.is_empty() {
        text.push_str("\nNo table or figure of a paper has a value in these results.\n");
    }
    text.push_str(&unserved(report).text());
    text
}
