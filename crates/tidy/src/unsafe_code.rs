//! Where `unsafe` may stand. What it must say there (`SAFETY:`, one operation per block) clippy holds.

use crate::code;
use crate::tree::{Tree, Violation};

/// The only places: the borders to C and to the machine, and the C API as tests and a client call it.
const ALLOWED: [&str; 9] = [
    "crates/blockio/src/real/page_cache.rs",
    "crates/joj/src/machine/",
    "crates/waldio/src/ffi/",
    "crates/waldio/src/sqlite/extension.rs",
    "crates/waldio/src/sqlite/vfs/",
    "crates/waldio/tests/real/",
    "crates/waldio/tests/static_link.rs",
    "crates/waldio/tests/support/",
    "tests/clients/rusqlite/",
];

/// Rust files with `unsafe` that the list does not name.
pub fn outside_its_files(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        if ALLOWED.iter().any(|allowed| file.path.starts_with(allowed)) {
            continue;
        }
        let code = code::without_comments_and_strings(file.text().unwrap_or(""));
        // One report for each file: the first says it all.
        if let Some((line, _)) = code::identifiers(&code).find(|(_, word)| *word == "unsafe") {
            let message = "`unsafe` outside the files that crates/tidy/src/unsafe_code.rs lists: call a safe function of theirs";
            found.push(Violation::new(file, line, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_is_found_as_a_word_of_code_only() {
        let source = "//! unsafe\n#![forbid(unsafe_code)]\nlet a = \"unsafe\";\nlet b = unsafe { c() };\n";
        let found = outside_its_files(&Tree::sample(&[("crates/blockio/src/a.rs", source)]));
        assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn the_listed_files_may_and_their_neighbours_may_not() {
        let source = "unsafe fn a() {}";
        let tree = Tree::sample(&[
            ("crates/waldio/src/ffi/call.rs", source),
            ("crates/joj/src/machine/proc.rs", source),
            ("crates/waldio/src/ffi_like.rs", source),
            ("crates/waldio/tests/load.rs", source),
        ]);
        let found: Vec<String> =
            outside_its_files(&tree).into_iter().map(|violation| violation.path).collect();
        assert_eq!(found, ["crates/waldio/src/ffi_like.rs", "crates/waldio/tests/load.rs"]);
    }
}
