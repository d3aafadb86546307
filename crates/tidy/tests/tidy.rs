//! Goal: no rule of the house is broken anywhere in the repository.
//! Method: read every file and run every check; the checks' own tests show that each of them can fail.

use std::fmt::Write;
use std::path::Path;

use tidy::rules;
use tidy::tree::Tree;

#[test]
fn the_repository_keeps_the_rules_of_the_house() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = Tree::read(&root).unwrap();
    assert!(
        tree.get("crates/tidy/tests/tidy.rs").is_some(),
        "the tree was not found from {}",
        root.display()
    );
    let violations = rules::violations(&tree);
    let report = violations.iter().fold(String::new(), |mut report, violation| {
        writeln!(report, "{violation}").unwrap();
        report
    });
    assert!(violations.is_empty(), "\n{report}{} violations (see CONTRIBUTING.md)", violations.len());
}
