//! Every check, in one list.

use crate::tree::{Tree, Violation};
use crate::{dependencies, folders, heads, layers, links, text, type_names, unsafe_code};

/// Everything in `tree` that breaks a rule, in no particular order; empty for a tidy tree.
pub fn violations(tree: &Tree) -> Vec<Violation> {
    let checks = [
        text::long_files,
        text::missing_headers,
        text::trailing_whitespace,
        text::machine_paths,
        text::large_binaries,
        text::forbidden_names,
        text::unfinished_work,
        unsafe_code::outside_its_files,
        dependencies::outside_the_table,
        dependencies::machine_access_in_pure_crates,
        layers::upward_uses,
        folders::crowded,
        heads::incomplete,
        links::dead_links,
        type_names::twice,
    ];
    checks.iter().flat_map(|check| check(tree)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tidy_tree_has_no_violations() {
        let tree = Tree::sample(&[("src/lib.rs", "//! A header.\n"), ("README.md", "[lib](src/lib.rs)\n")]);
        assert_eq!(violations(&tree), []);
    }

    #[test]
    fn each_check_is_reached() {
        let tree = Tree::sample(&[
            ("crates/waldio/src/lib.rs", "mod a;\nmod b; \nmod c;\n"),
            ("crates/waldio/src/a.rs", "//! A.\nunsafe {}\n"),
            ("crates/waldio/src/b.rs", "//! B.\nuse crate::a;\n"),
            ("crates/waldio/Cargo.toml", "[dependencies]\njoj.workspace = true\n"),
            ("crates/joj-analysis/src/lib.rs", "//! C.\nuse std::fs;\n"),
            ("crates/joj/src/utils.rs", &format!("//! D.\n{}", "\n".repeat(500))),
            ("README.md", concat!("[gone](gone.md)\nT", "ODO later\n/wo", "rk/main\n")),
            ("blob", &"\0".repeat(300 * 1024)),
            ("crates/joj/src/lab_a.rs", "//! E.\n"),
            ("crates/joj/src/lab_b.rs", "//! E.\n"),
            ("crates/joj/src/lab_c.rs", "//! E.\n"),
            ("crates/blockio/src/a.rs", "//! F.\nstruct Twice;\n"),
            ("crates/blockio/src/b.rs", "//! F.\nstruct Twice;\n"),
        ]);
        let found: Vec<String> =
            violations(&tree).iter().map(|violation| violation.message.clone()).collect();
        for rule in [
            "lines",
            "header",
            "whitespace",
            "machine",
            "binary",
            "names nothing",
            "issue",
            "`unsafe`",
            "`joj`",
            "`std::fs`",
            "above",
            "make it a folder",
            "does not name",
            "does not exist",
            "stands in",
        ] {
            assert!(
                found.iter().any(|message| message.contains(rule)),
                "no violation of {rule:?} in {found:#?}"
            );
        }
    }
}
