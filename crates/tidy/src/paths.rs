//! The paths (`a::b::c`) that code names, with groups taken apart.

use crate::code::is_identifier;

/// A path as written, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// First is 1: the line of the path's first segment.
    pub line: usize,
    /// The segments, the first of which is the root asked for.
    pub segments: Vec<String>,
}

/// Every path of `code` that begins with one of `roots` and goes on with `::`; `a::{b, c::d}` gives two.
/// Takes code without comments and strings.
pub fn beginning_with(code: &str, roots: &[&str]) -> Vec<Named> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, (line, word)) in tokens.iter().enumerate() {
        let continued = tokens.get(at + 1).is_some_and(|(_, next)| *next == "::");
        let inner = at > 0 && tokens[at - 1].1 == "::";
        if roots.contains(word) && continued && !inner {
            let mut reader = Reader { tokens: &tokens, at, line: *line, found: Vec::new() };
            reader.path(&[]);
            found.extend(reader.found);
        }
    }
    found
}

struct Reader<'code> {
    tokens: &'code [(usize, &'code str)],
    at: usize,
    line: usize,
    found: Vec<Named>,
}

impl Reader<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |(_, word)| word)
    }

    /// Reads one path that stands behind `prefix`, and leaves `at` behind it.
    fn path(&mut self, prefix: &[String]) {
        let mut segments = prefix.to_vec();
        loop {
            if self.peek() == "{" {
                return self.group(&segments);
            }
            if self.peek().starts_with(is_identifier) {
                segments.push(self.peek().to_owned());
            }
            self.at += 1;
            if self.peek() != "::" {
                self.found.push(Named { line: self.line, segments });
                return;
            }
            self.at += 1;
        }
    }

    fn group(&mut self, prefix: &[String]) {
        self.at += 1;
        while !["}", ""].contains(&self.peek()) {
            self.path(prefix);
            while ![",", "}", ""].contains(&self.peek()) {
                self.at += 1; // `as name`
            }
            self.at += usize::from(self.peek() == ",");
        }
        self.at += 1;
    }
}

/// Words, `::` and single other characters, with their lines.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c| !is_identifier(c)).unwrap_or(rest.len());
            let length = if word > 0 {
                word
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push((index + 1, &rest[..length]));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(code: &str) -> Vec<(usize, String)> {
        let named = beginning_with(code, &["crate", "std"]);
        named.into_iter().map(|named| (named.line, named.segments.join("::"))).collect()
    }

    #[test]
    fn paths_stand_in_uses_and_in_expressions() {
        let code = "use crate::a::B;\nlet c = std::fs::read(crate::d::E);\nuse std::io as io;";
        assert_eq!(
            paths(code),
            [
                (1, "crate::a::B".into()),
                (2, "std::fs::read".into()),
                (2, "crate::d::E".into()),
                (3, "std::io".into())
            ]
        );
    }

    #[test]
    fn groups_are_taken_apart() {
        let code = "use crate::{\n a::{self, B as C, d::*},\n e,\n};\nf::crate_::g();";
        let names: Vec<String> = paths(code).into_iter().map(|(_, path)| path).collect();
        assert_eq!(names, ["crate::a::self", "crate::a::B", "crate::a::d", "crate::e"]);
    }

    #[test]
    fn unfinished_code_ends_the_search() {
        assert_eq!(paths("use crate::{a, ").len(), 1);
        assert_eq!(paths("crate::"), [(1, "crate".into())]);
    }
}
