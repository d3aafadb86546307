//! What a result is drawn on: how wide it is, whether it shows colours, and whether all columns are asked for.

use crate::machine::proc::terminal;
use crate::show::text::{letters, padded, wrap};

/// The first column takes half of the paper at most, and down to a third where the others have room beside it then.
const FIRST_COLUMN_PARTS: [usize; 2] = [2, 3];

/// Letters between two columns.
const GAP: usize = 2;

/// What is drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paper {
    /// Letters in a line.
    pub letters: usize,
    /// True where colours show.
    pub has_colours: bool,
    /// True where the columns for experts are asked for.
    pub is_wide: bool,
    /// True where tables and paragraphs are Markdown's, as GitHub shows it.
    pub is_markdown: bool,
}

/// What a word is to be noticed for: the colours of joj's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Nothing.
    Plain,
    /// A heading.
    Strong,
    /// Better than what it stands beside.
    Good,
    /// Worse, or FAILED.
    Bad,
    /// Doubtful.
    Careful,
}

impl Mood {
    /// The terminal's own colours, so that they can be read on any background (ECMA-48, SGR).
    fn code(self) -> &'static str {
        match self {
            Mood::Plain => "",
            Mood::Strong => "1",
            Mood::Good => "32",
            Mood::Bad => "1;31",
            Mood::Careful => "1;33",
        }
    }
}

impl Paper {
    /// The paper of a page, which scrolls.
    pub const OF_PAGE: Paper = Paper { letters: 200, has_colours: false, is_wide: true, is_markdown: false };

    /// Standard output as it is: a terminal, or 80 letters without colours.
    pub fn of_output(is_wide: bool) -> Paper {
        Paper {
            letters: terminal::output_letters(),
            has_colours: terminal::output_has_colours(),
            is_wide,
            ..Paper::OF_PAGE
        }
    }

    /// A file in Markdown.
    pub fn of_markdown(is_wide: bool) -> Paper {
        Paper { letters: usize::MAX, is_markdown: true, is_wide, ..Paper::OF_PAGE }
    }

    /// A word that is noticed for this.
    pub fn paint(&self, mood: Mood, text: &str) -> String {
        match mood.code() {
            code if self.has_colours && !code.is_empty() && !text.is_empty() => {
                format!("\x1b[{code}m{text}\x1b[0m")
            }
            _ => text.to_owned(),
        }
    }

    /// A paragraph; it ends its line.
    pub fn paragraph(&self, text: &str) -> String {
        self.item("", text)
    }

    /// A paragraph whose first line begins with `head`, and the others as far to the right.
    pub fn item(&self, head: &str, text: &str) -> String {
        if self.is_markdown {
            let head = head.trim();
            let head = if head.is_empty() { String::new() } else { format!("**{head}** ") };
            return format!("{head}{}\n\n", escape(text));
        }
        let indent = letters(head);
        let room = self.letters.saturating_sub(indent).max(20);
        let lines = wrap(text, room, room);
        let line = |(index, line): (usize, &String)| {
            let front = if index == 0 { head.to_owned() } else { " ".repeat(indent) };
            format!("{}\n", format!("{front}{line}").trim_end())
        };
        lines.iter().enumerate().map(line).collect()
    }

    /// Lines whose columns line up: the first to the left, the others to the right. A line of one cell is a heading and spans all
    /// columns. Columns that have no room follow below, beside the first column once more.
    pub fn columns(&self, lines: &[Vec<String>]) -> String {
        if self.is_markdown {
            return markdown(lines);
        }
        let count = lines.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = lines.iter().filter(|line| line.len() > 1).filter_map(|line| line.get(column));
            cells.map(|cell| letters(cell)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..count).map(width).collect();
        let others = widths.iter().skip(1).map(|width| width + GAP).sum();
        if let Some(first) = widths.first_mut() {
            *first = (*first).min(first_letters_max(self.letters, others));
        }
        let mut text = String::new();
        for (number, block) in blocks(&widths, self.letters).into_iter().enumerate() {
            for (index, line) in lines.iter().enumerate() {
                if line.len() == 1 {
                    let heads = lines.get(index + 1).is_some_and(|next| next.len() > 1);
                    if number == 0 || (index > 0 && heads) {
                        text.push_str(&self.heading(&line[0]));
                    }
                } else if number == 0
                    || block.clone().any(|column| line.get(column).is_some_and(|cell| !cell.is_empty()))
                {
                    text.push_str(&self.row(line, &widths, block.clone()));
                }
            }
        }
        text
    }

    fn heading(&self, text: &str) -> String {
        let words = text.trim_start_matches(' ');
        let indent = text.len() - words.len();
        let lines =
            wrap(words, self.letters.saturating_sub(indent), self.letters.saturating_sub(indent + GAP));
        let line = |(index, line): (usize, &String)| {
            format!("{}{line}\n", " ".repeat(if index == 0 { indent } else { indent + GAP }))
        };
        lines.iter().enumerate().map(line).collect()
    }

    fn row(&self, line: &[String], widths: &[usize], block: std::ops::Range<usize>) -> String {
        let first = line.first().map_or("", String::as_str);
        let is_apart = letters(first) > widths[0];
        let mut text = if is_apart { self.heading(first) } else { String::new() };
        let mut row = padded(if is_apart { "" } else { first }, widths[0], false);
        for column in block {
            let cell = line.get(column).map_or("", String::as_str);
            row.push_str(&" ".repeat(GAP));
            row.push_str(&padded(cell, widths[column], true));
        }
        text.push_str(row.trim_end());
        text.push('\n');
        text
    }
}

/// A table of GitHub's Markdown. Where the first line is one cell, that is its title; a line of one cell below is a heading in it.
fn markdown(lines: &[Vec<String>]) -> String {
    let (title, lines) = match lines {
        [first, rest @ ..] if first.len() == 1 => (format!("### {}\n\n", escape(first[0].trim())), rest),
        _ => (String::new(), lines),
    };
    let Some(head) = lines.iter().find(|line| line.len() > 1) else { return title };
    let row = |line: &Vec<String>| match line.as_slice() {
        [heading] => vec![format!("*{}*", cell(heading.trim()))],
        cells => cells.iter().map(|text| cell(text.trim())).collect(),
    };
    let rows = lines.iter().filter(|line| !std::ptr::eq(*line, head)).map(row);
    format!("{title}{}\n", markdown_table(row(head), rows, "--:|"))
}

/// A table of cells that are Markdown, each line as long as the head; `rule` is below the columns but the first.
pub fn markdown_table(head: Vec<String>, lines: impl Iterator<Item = Vec<String>>, rule: &str) -> String {
    let columns = head.len();
    let line = |mut cells: Vec<String>| {
        cells.resize(columns, String::new());
        format!("| {} |\n", cells.join(" | "))
    };
    let lines: String = lines.map(line).collect();
    format!("{}|---|{}\n{lines}", line(head), rule.repeat(columns - 1))
}

/// A text that GitHub's Markdown shows as it is, in one line: names of files and programs may have anything in them.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let after = letters.peek().copied().unwrap_or(' ');
        match letter {
            '<' => escaped.push_str("&lt;"),
            '&' if after == '#' || after.is_alphanumeric() => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            // Within a word it is a letter.
            '_' if before.is_alphanumeric() && after.is_alphanumeric() => escaped.push(letter),
            '\\' | '`' | '*' | '_' | '[' | '~' => escaped.extend(['\\', letter]),
            _ => escaped.push(letter),
        }
        before = letter;
    }
    escaped
}

/// The same in a cell of a table, where a bar would end it.
pub fn cell(text: &str) -> String {
    escape(text).replace('|', "\\|")
}

/// Lines whose columns line up, as wide as they get.
pub fn columns(lines: &[Vec<String>]) -> String {
    Paper { letters: usize::MAX, ..Paper::OF_PAGE }.columns(lines)
}

/// So wide is the first column at most, beside others of so many letters; a longer cell has a line of its own.
fn first_letters_max(letters: usize, others: usize) -> usize {
    let [most, least] = FIRST_COLUMN_PARTS.map(|part| letters / part);
    let left = letters.saturating_sub(others);
    if left < least { most } else { left.min(most) }
}

/// Which columns, without the first, stand side by side; each block has one at least.
fn blocks(widths: &[usize], room: usize) -> Vec<std::ops::Range<usize>> {
    let mut blocks = Vec::new();
    let mut from = 1;
    let mut taken = widths.first().copied().unwrap_or(0);
    for (column, width) in widths.iter().enumerate().skip(1) {
        taken += GAP + width;
        if taken > room && column > from {
            blocks.push(from..column);
            from = column;
            taken = widths[0] + GAP + width;
        }
    }
    blocks.push(from..widths.len().max(from));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper(letters: usize) -> Paper {
        Paper { letters, is_wide: false, ..Paper::OF_PAGE }
    }

    fn line(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_line_up_and_headings_do_not_widen_them() {
        let lines = [line(&["a long heading over everything"]), line(&["x", "1"]), line(&["yy", "100"])];
        assert_eq!(columns(&lines), "a long heading over everything\nx     1\nyy  100\n");
    }

    #[test]
    fn columns_without_room_follow_below_beside_the_first() {
        let lines = [
            line(&["what it is about"]),
            line(&["", "one", "two", "three"]),
            line(&[" build"]),
            line(&["  row", "1", "22", "333"]),
            line(&["  other FAILED"]),
        ];
        let whole =
            "what it is about\n       one  two  three\n build\n  row    1   22    333\n  other FAILED\n";
        assert_eq!(paper(80).columns(&lines), whole);
        let cut = "what it is about\n       one  two\n build\n  row    1   22\n  other FAILED\n       three\n build\n  row    333\n";
        assert_eq!(paper(16).columns(&lines), cut);
    }

    #[test]
    fn the_first_column_gives_way_where_the_others_fit_then() {
        assert_eq!([20, 48, 52].map(|others| first_letters_max(80, others)), [40, 32, 28]);
        assert_eq!(first_letters_max(80, 70), 40, "they do not fit in any case");
    }

    #[test]
    fn no_line_is_wider_than_the_paper() {
        let long = "a first cell that is longer than half of the paper, by far";
        let lines = [
            line(&[&format!("  {long} {long}")]),
            line(&[long, "1", "2"]),
            line(&["short", "12345678", "2"]),
        ];
        for letters in [30, 40, 80] {
            let text = paper(letters).columns(&lines) + &paper(letters).item("WARNING: ", long);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(letters), "{letters}:\n{text}");
        }
    }

    #[test]
    fn markdown_has_a_table_for_columns_and_its_bars_are_escaped() {
        let lines = [
            line(&["what | why"]),
            line(&["", "a|b"]),
            line(&[" build"]),
            line(&["  <row>", "1"]),
            line(&["  other FAILED"]),
        ];
        let text = Paper::of_markdown(false).columns(&lines);
        let table = "### what | why\n\n|  | a\\|b |\n|---|--:|\n| *build* |  |\n| &lt;row> | 1 |\n| *other FAILED* |  |\n\n";
        assert_eq!(text, table);
        assert_eq!(Paper::of_markdown(false).item("Your disk: ", "is fast"), "**Your disk:** is fast\n\n");
    }

    #[test]
    fn names_stay_text_in_markdown() {
        for (name, expected) in [
            ("my_app.db", "my_app.db"),
            ("_a_ *b* `c` [d](e)", r"\_a\_ \*b\* \`c\` \[d](e)"),
            (r"a\b ~c~", r"a\\b \~c\~"),
            ("&lt; & <b>", "&amp;lt; & &lt;b>"),
            ("a\nb\rc", "a b c"),
        ] {
            assert_eq!(escape(name), expected);
        }
        assert_eq!(cell(r"a\|b"), r"a\\\|b");
    }

    #[test]
    fn colours_take_no_room_and_are_left_out_where_none_are_wanted() {
        let coloured = Paper { has_colours: true, ..paper(80) };
        assert_eq!(paper(80).paint(Mood::Good, "1.20"), "1.20");
        let cell = coloured.paint(Mood::Good, "1.20");
        assert_eq!(cell, "\x1b[32m1.20\x1b[0m");
        let text = coloured.columns(&[vec!["a".to_owned(), cell.clone()], line(&["b", "12345"])]);
        assert_eq!(text, format!("a   {cell}\nb  12345\n"));
    }
}
