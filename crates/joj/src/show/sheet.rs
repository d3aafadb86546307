//! A table that is shown as text and as HTML.

use crate::show::paper::{cell, columns, escape as escape_markdown, markdown_table};
use crate::show::svg::escape;
use crate::show::text::wrap;

/// So wide a note is in a terminal.
const NOTE_LETTERS: usize = 98;

/// A table under a title. Without lines it is not shown at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sheet {
    /// What it is about.
    pub title: String,
    /// Above the columns; the first is what the lines are. Not shown where all are empty.
    pub head: Vec<String>,
    /// The lines, each as long as the head.
    pub lines: Vec<Vec<String>>,
    /// Sentences below the table.
    pub notes: Vec<String>,
}

impl Sheet {
    /// A table without lines.
    pub fn new(title: &str, head: &[&str]) -> Self {
        let head = head.iter().map(|cell| (*cell).to_owned()).collect();
        Self { title: title.to_owned(), head, lines: Vec::new(), notes: Vec::new() }
    }

    /// Adds a line.
    pub fn line(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len(), "{}: {cells:?}", self.title);
        self.lines.push(cells);
    }

    /// Takes away a column.
    pub fn without_column(&mut self, column: usize) {
        self.head.remove(column);
        for line in &mut self.lines {
            line.remove(column);
        }
    }

    /// For a terminal; empty without lines.
    pub fn text(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let mut lines = vec![vec![self.title.clone()]];
        let head = Some(&self.head).filter(|_| self.has_head());
        lines.extend(head.into_iter().chain(&self.lines).map(|line| {
            let mut line = line.clone();
            line[0] = format!("  {}", line[0]);
            line
        }));
        let notes = self.notes.iter().flat_map(|note| wrap(note, NOTE_LETTERS, NOTE_LETTERS));
        let notes: String = notes.map(|line| format!("  {line}\n")).collect();
        format!("\n{}{notes}", columns(&lines))
    }

    /// For a page: the table and its notes without the title; empty without lines.
    pub fn html(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let row = |cells: &[String], tag: &str| {
            let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let lines: String = self.lines.iter().map(|line| row(line, "td")).collect();
        let notes = match self.notes.as_slice() {
            [] => String::new(),
            notes => format!("<p class=\"caption\">{}</p>\n", escape(&notes.join(" "))),
        };
        let head = if self.has_head() { row(&self.head, "th") } else { String::new() };
        format!("<table class=\"dense\">\n{head}{lines}</table>\n{notes}")
    }

    /// The table in Markdown, without title and notes; empty without lines.
    pub fn markdown(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let row = |cells: &Vec<String>| cells.iter().map(|text| cell(text)).collect();
        markdown_table(row(&self.head), self.lines.iter().map(row), "---|")
    }

    /// The same below its title, with the notes; empty without lines.
    pub fn markdown_section(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let notes: String = self.notes.iter().map(|note| format!("\n{}\n", escape_markdown(note))).collect();
        format!("\n## {}\n\n{}{notes}", escape_markdown(&self.title), self.markdown())
    }

    fn has_head(&self) -> bool {
        self.head.iter().any(|cell| !cell.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut sheet = Sheet::new("What", &["name", "KiB", "failed"]);
        sheet.line(vec!["<b>".to_owned(), "4".to_owned(), "0".to_owned()]);
        sheet.notes.push("a & b".to_owned());
        sheet
    }

    #[test]
    fn the_same_table_is_text_and_html_and_its_names_stay_text() {
        let mut sheet = sheet();
        assert_eq!(sheet.text(), "\nWhat\n  name  KiB  failed\n  <b>     4       0\n  a & b\n");
        sheet.without_column(2);
        let html = "<table class=\"dense\">\n<tr><th>name</th><th>KiB</th></tr>\n\
                    <tr><td>&lt;b&gt;</td><td>4</td></tr>\n</table>\n<p class=\"caption\">a &amp; b</p>\n";
        assert_eq!(sheet.html(), html);
        sheet.lines[0][1] = "4|5".to_owned();
        assert_eq!(sheet.markdown(), "| name | KiB |\n|---|---|\n| &lt;b> | 4\\|5 |\n");
    }

    #[test]
    fn without_lines_nothing_is_shown() {
        let empty = Sheet::new("What", &["name"]);
        assert_eq!([empty.text(), empty.html(), empty.markdown(), empty.markdown_section()], [""; 4]);
    }
}
