//! A type's name stands for one thing in its crate.

use std::collections::BTreeMap;

use crate::code::{is_identifier, without_comments_and_strings, without_unit_tests};
use crate::tree::{SourceFile, Tree, Violation};

const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];
/// By crate, names that still stand for several things. None may be added; one that is unique by now goes.
const STILL_TWICE: [(&str, &str); 1] = [
    // Each is one of two by how joj is built.
    ("joj", "BpfCapture BpfCalls"),
];

/// A file, and a line of it.
type Place<'a> = (&'a SourceFile, usize);

/// Types that have their name from another of their crate, and names of [`STILL_TWICE`] that are unique.
pub fn twice(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut crates: BTreeMap<&str, BTreeMap<String, Vec<Place<'_>>>> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        let inside = file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
        let (Some((name, path)), Some(text)) = (inside, file.text()) else { continue };
        if path.ends_with("tests.rs") || path.contains("tests/") {
            continue;
        }
        for (line, type_name) in types(text) {
            crates.entry(name).or_default().entry(type_name).or_default().push((file, line));
        }
    }
    for (name, types) in &crates {
        let left = STILL_TWICE.iter().find(|(of, _)| of == name).map_or("", |(_, names)| names);
        for (type_name, places) in types {
            let is_left = left.split_whitespace().any(|other| other == type_name);
            let (file, line) = places[places.len() - 1];
            if places.len() > 1 && !is_left {
                let first = &places[0].0.path;
                let message =
                    format!("`{type_name}` stands in {first}, too: a name of its own says what it is");
                found.push(Violation::new(file, line, message));
            } else if places.len() == 1 && is_left {
                let message =
                    format!("`{type_name}` is unique by now: take it off the list in type_names.rs");
                found.push(Violation::new(file, line, message));
            }
        }
    }
    found
}

/// Line and name of each type that stands at the outermost level of a file.
fn types(text: &str) -> Vec<(usize, String)> {
    let code = without_unit_tests(&without_comments_and_strings(text));
    let named = |line: &str| {
        if line.starts_with(char::is_whitespace) {
            return None;
        }
        let mut words =
            line.split_whitespace().skip_while(|word| word.starts_with("pub") || word.ends_with(')'));
        let is_type = words.next().is_some_and(|word| KEYWORDS.contains(&word));
        let name: String = words.next()?.chars().take_while(|c| is_identifier(*c)).collect();
        (is_type && !name.is_empty()).then_some(name)
    };
    code.lines().enumerate().filter_map(|(index, line)| Some((index + 1, named(line)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        twice(&Tree::sample(files)).into_iter().map(|violation| violation.to_string()).collect()
    }

    #[test]
    fn a_name_is_one_types_in_its_crate() {
        let text = "//! A.\n/// struct Not\npub(super) struct Row<'a> {\n    a: u8,\n}\npub enum Line {}\n";
        let other = "//! B.\nfn a() {\n    struct Line;\n}\n#[cfg(test)]\nmod tests {\nstruct Line;\n}\n";
        let same = "//! C.\n\nunion Row {}\n";
        assert!(messages(&[("crates/a/src/a.rs", text), ("crates/a/src/b.rs", other)]).is_empty());
        assert!(messages(&[("crates/a/src/a.rs", text), ("crates/b/src/a.rs", same)]).is_empty());
        assert!(messages(&[("crates/a/src/a.rs", text), ("crates/a/src/a_tests.rs", same)]).is_empty());
        let found = messages(&[("crates/a/src/a.rs", text), ("crates/a/src/c.rs", same)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/c.rs:3: `Row` stands in crates/a/src/a.rs"), "{found:?}");
    }

    #[test]
    fn the_list_of_names_that_stand_for_two_things_shrinks() {
        let one = ("crates/joj/src/a.rs", "//! A.\nstruct BpfCapture;\n");
        assert!(messages(&[one])[0].contains("take it off the list"));
        assert!(messages(&[one, ("crates/joj/src/b.rs", "//! B.\nenum BpfCapture {}\n")]).is_empty());
    }
}
