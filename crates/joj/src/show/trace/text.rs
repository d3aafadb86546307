//! A trace's summary as text for a terminal of 100 columns.

use joj_analysis::trace::summary::Summary;

use crate::show::paper::escape;
use crate::show::sheet::Sheet;
use crate::show::text::wrap;
use crate::show::trace::costs;
use crate::show::trace::head;
use crate::show::trace::processes;
use crate::show::trace::volumes;

/// Columns of the terminal.
const WIDTH: usize = 100;

/// The whole summary. What is empty is not shown.
pub fn summary(summary: &Summary) -> String {
    let mut text = String::new();
    for fact in head::facts(summary) {
        text.push_str(&indented(&fact, 2));
    }
    for warning in head::careful(summary) {
        text.push_str(&indented(&format!("CAREFUL: {warning}."), 9));
    }
    let tables: String = sheets(summary).iter().map(Sheet::text).collect();
    if tables.is_empty() {
        text.push_str("\nNo request was seen.\n");
    }
    text + &tables
}

/// The same in Markdown.
pub fn markdown(summary: &Summary) -> String {
    let mut text = "# What was written, and for whom\n".to_owned();
    text.extend(head::facts(summary).iter().map(|fact| format!("\n{}\n", escape(fact))));
    text.extend(
        head::careful(summary).iter().map(|warning| format!("\n**CAREFUL:** {}.\n", escape(warning))),
    );
    let tables: String = sheets(summary).iter().map(Sheet::markdown_section).collect();
    if tables.is_empty() { text + "\nNo request was seen.\n" } else { text + &tables }
}

/// Lines of a terminal's width, all but the first moved to the right.
fn indented(text: &str, indent: usize) -> String {
    let lines = wrap(text, WIDTH, WIDTH - indent);
    lines.join(&format!("\n{:indent$}", "")) + "\n"
}

/// All tables, in the order in which they are read.
pub fn sheets(summary: &Summary) -> Vec<Sheet> {
    let mut sheets = vec![costs::transactions(summary), volumes::classes(summary)];
    sheets.extend(volumes::panels(summary));
    sheets.extend([
        costs::persistence(summary),
        costs::sync_calls(summary),
        costs::latencies(summary),
        volumes::files(summary),
        processes::processes(summary),
        volumes::disks(summary),
    ]);
    sheets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::trace::sample;

    #[test]
    fn a_small_trace_reads_as_this_text() {
        let text = summary(&sample::small().summary);
        println!("{text}");
        assert_eq!(text, include_str!("text.expected"));
    }

    #[test]
    fn no_line_is_wider_than_100_columns() {
        let mut writer = sample::SampleWriter::new(&format!("/data/{}.db", "a-long-name".repeat(9)));
        writer.read(270_800, 4096);
        writer.commit_with_log(1);
        writer.commit_with_rollback_journal();
        writer.checkpoint();
        writer.metadata_written_back();
        writer.unplaced_write(900_000);
        let mut of = writer.finish(&sample::header()).summary;
        of.header.command = vec!["a-long-option".to_owned(); 20];
        of.header.ending = None;
        of.lost = Some(1234);
        for file in &mut of.files {
            file.written.bytes <<= 20;
        }
        let text = summary(&of);
        println!("{text}");
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or("");
        assert!(widest.chars().count() <= 100, "{widest}");
    }

    #[test]
    fn an_empty_trace_says_so() {
        let text = summary(&Summary::default());
        assert!(text.contains("No request was seen.") && text.contains("it was cut off"), "{text}");
    }
}
