//! What may stand in a file, whatever its language: length, header, whitespace, paths, names.

use crate::code::is_identifier;
use crate::tree::{Tree, Violation};

/// A file longer than this has more than one noun.
const FILE_LINES_MAX: usize = 500;
/// A binary larger than this belongs in a release, not in every clone.
const BINARY_BYTES_MAX: usize = 256 * 1024;
/// Directories of one developer's machine. Split, or this file would break its own rule.
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
/// Output recorded byte by byte, and the licences' own layout.
const RECORDED: [&str; 3] = [".expected", "LICENSE-MIT", "LICENSE-APACHE"];
/// Marks of work left undone. Split for the same reason.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Sources, scripts and documents of more than 500 lines.
pub fn long_files(tree: &Tree) -> Vec<Violation> {
    let written_by_hand = [".rs", ".md", ".sh", ".py", ".c", ".js", ".go", ".java"];
    let mut found = Vec::new();
    for file in &tree.files {
        let lines = file.text().map_or(0, |text| text.lines().count());
        if written_by_hand.iter().any(|suffix| file.path.ends_with(suffix)) && lines > FILE_LINES_MAX {
            let message = format!("{lines} lines, the wall is {FILE_LINES_MAX}: split it by noun");
            found.push(Violation::new(file, lines, message));
        }
    }
    found
}

/// Rust files that do not begin by saying what they are.
pub fn missing_headers(tree: &Tree) -> Vec<Violation> {
    let bare =
        |text: &str| !text.starts_with("//! ") || text.lines().next().is_none_or(|line| line.len() < 8);
    let rust = tree.files.iter().filter(|file| file.is_rust());
    rust.filter(|file| file.text().is_none_or(bare))
        .map(|file| {
            Violation::new(file, 1, "no header: begin with `//!` and one sentence on what this file is")
        })
        .collect()
}

/// Lines that end in a space or a tab.
pub fn trailing_whitespace(tree: &Tree) -> Vec<Violation> {
    lines_where(tree, "trailing whitespace: remove it", |line| line.ends_with([' ', '\t']))
}

/// Paths that exist on one developer's machine only.
pub fn machine_paths(tree: &Tree) -> Vec<Violation> {
    let holds = |line: &str, path: &str| {
        let begins_a_path =
            |(at, _)| !line[..at].ends_with(|c: char| is_identifier(c) || ".-$}/".contains(c));
        line.match_indices(path).any(begins_a_path)
    };
    lines_where(tree, "a machine's own path: make it relative or a variable", |line| {
        MACHINE_PATHS.iter().any(|path| holds(line, path))
    })
}

/// Binary files above 256 KiB.
pub fn large_binaries(tree: &Tree) -> Vec<Violation> {
    let binaries = tree.files.iter().filter(|file| file.text().is_none());
    binaries
        .filter(|file| file.bytes.len() > BINARY_BYTES_MAX)
        .map(|file| Violation::new(file, 0, "a binary above 256 KiB: build or fetch it when it is needed"))
        .collect()
}

/// File names that say nothing of what is inside.
pub fn forbidden_names(tree: &Tree) -> Vec<Violation> {
    let names = ["utils", "util", "helpers", "helper", "misc", "common"];
    let stem = |path: &str| {
        path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or("").to_owned()
    };
    let named = tree.files.iter().filter(|file| {
        names.contains(&stem(&file.path).as_str())
            || names.iter().any(|name| file.path.contains(&format!("/{name}/mod.rs")))
    });
    named.map(|file| Violation::new(file, 0, "this file names nothing: call it after its noun")).collect()
}

/// Work left for later that no issue knows of.
pub fn unfinished_work(tree: &Tree) -> Vec<Violation> {
    lines_where(tree, "unfinished work: finish it, or name its issue as #number in the same line", |line| {
        let marked = line.split(|c: char| !is_identifier(c)).any(|word| UNFINISHED.contains(&word));
        marked && !line.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

fn lines_where(tree: &Tree, message: &str, broken: impl Fn(&str) -> bool) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| !RECORDED.iter().any(|suffix| file.path.ends_with(suffix))) {
        for (index, line) in file.text().unwrap_or("").split('\n').enumerate() {
            if broken(line) {
                found.push(Violation::new(file, index + 1, message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&Tree) -> Vec<Violation>;

    /// Lines at which `check` complains of a file `path` holding `text`.
    fn lines(check: Check, path: &str, text: &str) -> Vec<usize> {
        check(&Tree::sample(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn line_501_is_one_too_many() {
        assert_eq!(lines(long_files, "a.rs", &"x\n".repeat(500)), [0; 0]);
        assert_eq!(lines(long_files, "a.rs", &"x\n".repeat(501)), [501]);
        assert_eq!(lines(long_files, "a.csv", &"x\n".repeat(501)), [0; 0]);
    }

    #[test]
    fn a_header_is_a_sentence_on_the_first_line() {
        assert_eq!(lines(missing_headers, "a.rs", "//! What it is.\n"), [0; 0]);
        for broken in ["", "\n//! Late.\n", "// No.\n", "//!\n", "//! \n", "use std::fs;\n"] {
            assert_eq!(lines(missing_headers, "a.rs", broken), [1], "{broken:?}");
        }
    }

    #[test]
    fn whitespace_at_a_line_end_is_found() {
        assert_eq!(lines(trailing_whitespace, "a.md", "a\nb \nc\t\n"), [2, 3]);
        assert_eq!(lines(trailing_whitespace, "a.expected", "a \n"), [0; 0]);
    }

    #[test]
    fn a_machine_path_is_found_and_a_word_like_it_is_not() {
        let path = MACHINE_PATHS[0];
        assert_eq!(lines(machine_paths, "a.md", &format!("ok\nsee {path}main\n({path}x)\n")), [2, 3]);
        assert_eq!(
            lines(machine_paths, "a.md", &format!("a/frame{}\nhttps://a.b{path}\n", &path[1..])),
            [0; 0]
        );
    }

    #[test]
    fn a_large_binary_is_found_and_a_large_text_is_not() {
        assert_eq!(lines(large_binaries, "a", &"\0".repeat(BINARY_BYTES_MAX + 1)), [0]);
        assert_eq!(lines(large_binaries, "a", &"\0".repeat(BINARY_BYTES_MAX)), [0; 0]);
        assert_eq!(lines(large_binaries, "a", &"a".repeat(BINARY_BYTES_MAX + 1)), [0; 0]);
    }

    #[test]
    fn names_that_name_nothing_are_found() {
        assert_eq!(lines(forbidden_names, "crates/a/src/utils.rs", ""), [0]);
        assert_eq!(lines(forbidden_names, "crates/a/src/helpers/mod.rs", ""), [0]);
        assert_eq!(lines(forbidden_names, "crates/a/src/utilisation.rs", ""), [0; 0]);
    }

    #[test]
    fn unfinished_work_needs_an_issue() {
        let mark = UNFINISHED[0];
        assert_eq!(lines(unfinished_work, "a.rs", &format!("// {mark}: later\n// {mark}: #12\n")), [1]);
    }
}
